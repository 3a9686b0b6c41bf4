#include "engine/alike.h"

#include "base/test.h"
#include "engine/slots.h"
#include "engine/story_test.h"

static uint32_t
groups(const struct bh_story *story)
{
    uint32_t count = 0;

    for (uint32_t slot = 0; bh_slot_next(story->engine, TABLE_ALIKE, &slot);)
        count++;
    return count;
}

/* Each step of a story is checked; here, how many groups there are. */
static void
gpus_stand_together_by_what_stands_on_them(void **state)
{
    struct bh_story *story = bh_story_site(4);
    uint64_t jobs[8];

    assert_int_equal(groups(story), 1);
    for (uint32_t i = 0; i < 7; i++)
        jobs[i] = bh_story_run(story, bh_story_wants(21, 1, 1));
    assert_int_equal(groups(story), 2); /* one is full */
    jobs[7] = bh_story_run(story, bh_story_wants(21, 1, 1));
    assert_int_equal(groups(story), 3);
    for (uint32_t i = 0; i < 8; i++)
        bh_story_exit(story, jobs[i], 0);
    bh_story_settle(story);
    assert_int_equal(groups(story), 1);
    bh_story_close(story);
}

static void
who_gets_no_new_work_stands_in_no_group(void **state)
{
    struct bh_story *story = bh_story_site(2);

    bh_story_node(story, 1, false);
    assert_int_equal(groups(story), 0);
    bh_story_node(story, 1, true);
    assert_int_equal(groups(story), 1);
    bh_story_close(story);
}

static void
the_last_that_changed_comes_first(void **state)
{
    struct bh_story *story = bh_story_site(3);
    uint64_t job = bh_story_run(story, bh_story_wants(21, 3, 1));
    uint32_t gpu = gpu_find(story->engine, (uint32_t)(bh_story_where(story, job) / 100));
    uint32_t group;

    bh_story_exit(story, job, 0);
    group = gpu_at(story->engine, gpu)->alike;
    assert_int_equal(alike_at(story->engine, group)->first, gpu);
    assert_int_equal(alike_at(story->engine, group)->gpus, 3);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gpus_stand_together_by_what_stands_on_them),
    cmocka_unit_test(who_gets_no_new_work_stands_in_no_group),
    cmocka_unit_test(the_last_that_changed_comes_first),
};
BH_TEST_MAIN(tests)
