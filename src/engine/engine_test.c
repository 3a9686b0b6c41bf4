#include "engine/engine.h"

#include "engine/story_test.h"

static void
a_snapshot_is_adopted_and_goes_on(void **state)
{
    struct bh_story *story = bh_story_site(2);
    struct bh_engine_caps caps = bh_engine_caps(story->engine);
    size_t size = bh_engine_size(&caps);
    struct bh_engine *copy = bh_story_engine(&caps);

    bh_story_run(story, bh_story_wants(21, 1, 1));
    memcpy(copy, story->engine, size);
    assert_ptr_equal(bh_engine_adopt(copy, size), copy);
    assert_true(bh_story_digest(copy) == bh_story_digest(story->engine));
    free(story->engine);
    story->engine = copy;
    bh_story_run(story, bh_story_wants(31, 1, 1));
    bh_story_close(story);
}

static void
foreign_bytes_are_not_adopted(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    size_t size = bh_engine_size(&caps);
    struct bh_engine *engine = bh_story_engine(&caps);
    unsigned char *bytes = (unsigned char *)engine;

    assert_non_null(bh_engine_adopt(engine, size));
    assert_null(bh_engine_adopt(engine, size - 1));
    assert_null(bh_engine_adopt(engine, 8));
    for (size_t at = 0; at < 24; at++) { /* magic, length, layout version */
        if (at >= 20)
            continue; /* reserved */
        bytes[at] ^= 0x40;
        assert_null(bh_engine_adopt(engine, size));
        bytes[at] ^= 0x40;
    }
    assert_non_null(bh_engine_adopt(engine, size));
    free(engine);
}

static void
a_full_table_is_named_and_growing_helps(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT, wanted;
    struct bh_story *story;
    struct bh_engine *larger;

    caps.jobs = 2;
    story = bh_story_open_with(&caps);
    bh_story_sku(story, 1, "1g.10gb");
    bh_story_tenant(story, (struct bh_ev_tenant){ .tenant = { 1 } });
    bh_story_submit(story, bh_story_wants(1, 1, 1));
    bh_story_submit(story, bh_story_wants(1, 1, 1));
    assert_int_equal(bh_story_try(story, bh_story_wants(1, 1, 1)), BH_FULL);
    assert_int_equal(story->step.verdict.code, BH_REASON_TABLE_FULL);
    wanted = bh_engine_wanted(story->engine);
    assert_int_equal(wanted.jobs, 4);
    assert_int_equal(wanted.leases, caps.leases);
    larger = bh_engine_grow(story->engine, calloc(1, bh_engine_size(&wanted)), &wanted);
    assert_true(bh_story_digest(larger) == bh_story_digest(story->engine));
    free(story->engine);
    story->engine = larger;
    bh_story_submit(story, bh_story_wants(1, 1, 1));
    bh_story_close(story);
}

static void
a_job_that_ended_gives_its_slot_to_the_next(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_story *story;

    caps.jobs = 1;
    story = bh_story_open_with(&caps);
    bh_story_sku(story, 1, "1g.10gb");
    bh_story_tenant(story, (struct bh_ev_tenant){ .tenant = { 1 } });
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(
            bh_story_cancel(story, bh_story_submit(story, bh_story_wants(1, 1, 1))), BH_OK);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_snapshot_is_adopted_and_goes_on),
    cmocka_unit_test(foreign_bytes_are_not_adopted),
    cmocka_unit_test(a_full_table_is_named_and_growing_helps),
    cmocka_unit_test(a_job_that_ended_gives_its_slot_to_the_next),
};
BH_TEST_MAIN(tests)
