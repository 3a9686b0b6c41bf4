#include "engine/gpu/gpu_group.h"

#include "base/test.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static uint32_t
groups(const struct bh_fixture *fixture)
{
    uint32_t count = 0;

    for (uint32_t slot = 0; bh_slot_next(fixture->engine, TABLE_GPU_GROUP, &slot);)
        count++;
    return count;
}

/* Each step of a story is checked; here, how many groups there are. */
static void
gpus_stand_together_by_what_stands_on_them(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(4);
    uint64_t jobs[8];

    assert_int_equal(groups(fixture), 1);
    for (uint32_t i = 0; i < 7; i++)
        jobs[i] = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(groups(fixture), 2); /* one is full */
    jobs[7] = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(groups(fixture), 3);
    for (uint32_t i = 0; i < 8; i++)
        bh_fixture_exit_job(fixture, jobs[i], 0);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(groups(fixture), 1);
    bh_fixture_close(fixture);
}

static void
who_gets_no_new_work_stands_in_no_group(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    bh_fixture_node(fixture, 1, false);
    assert_int_equal(groups(fixture), 0);
    bh_fixture_node(fixture, 1, true);
    assert_int_equal(groups(fixture), 1);
    bh_fixture_close(fixture);
}

static void
the_last_that_changed_comes_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(3);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    uint32_t gpu = gpu_find(fixture->engine, (uint32_t)(bh_fixture_placement_of(fixture, job) / 100));
    uint32_t group;

    bh_fixture_exit_job(fixture, job, 0);
    group = gpu_at(fixture->engine, gpu)->gpu_group;
    assert_int_equal(gpu_group_at(fixture->engine, group)->first, gpu);
    assert_int_equal(gpu_group_at(fixture->engine, group)->gpus, 3);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gpus_stand_together_by_what_stands_on_them),
    cmocka_unit_test(who_gets_no_new_work_stands_in_no_group),
    cmocka_unit_test(the_last_that_changed_comes_first),
};
BH_TEST_MAIN(tests)
