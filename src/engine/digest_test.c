#include "engine/digest.h"

#include "engine/story_test.h"

static void
any_change_changes_the_digest(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t before = bh_story_digest(story->engine), after;

    bh_story_submit(story, bh_story_wants(21, 1, 1));
    after = bh_story_digest(story->engine);
    assert_true(after != before);
    bh_story_next(story, BH_OUTCOME_OK);
    assert_true(bh_story_digest(story->engine) != after);
    bh_story_close(story);
}

static void
a_refused_event_does_not(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t before = bh_story_digest(story->engine);

    assert_int_equal(bh_story_try(story, bh_story_wants(99, 1, 1)), BH_NOT_FOUND);
    assert_true(bh_story_digest(story->engine) == before);
    bh_story_close(story);
}

static void
capacities_do_not_show(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_engine *small = bh_story_engine(&caps), *large;

    caps.jobs *= 3;
    caps.tenants *= 2;
    large = bh_story_engine(&caps);
    assert_true(bh_story_digest(small) == bh_story_digest(large));
    free(small);
    free(large);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_change_changes_the_digest),
    cmocka_unit_test(a_refused_event_does_not),
    cmocka_unit_test(capacities_do_not_show),
};
BH_TEST_MAIN(tests)
