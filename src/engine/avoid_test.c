#include "engine/avoid.h"

#include "engine/story_start_test.h"

#define SECOND UINT64_C(1000000000)

/* As often as it takes, and nobody's fault. */
static void
who_finds_no_scratch_waits(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, 3, 1));

    for (int i = 0; i < 4; i++) {
        struct bh_host_view view;

        bh_story_fail_start(story, (struct bh_ev_lease){ .scratch = true });
        assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
        assert_int_equal(bh_story_why(story, job).code, BH_REASON_SCRATCH);
        assert_int_equal(bh_story_why(story, job).guarantee.cause, 0);
        assert_true(bh_view_host(story->engine, (bh_node_id){ 1 }, &view));
        assert_false(view.unchecked);
        bh_story_tick(story, 30 * SECOND);
        assert_int_equal(bh_story_state(story, job), BH_JOB_STARTING);
    }
    assert_int_equal(bh_story_job(story, job).restarts, 0);
    bh_story_fail_start(story, (struct bh_ev_lease){ .rc = 0 }); /* what fails otherwise is still tried once more, and no more */
    bh_story_tick(story, 5 * SECOND);
    bh_story_fail_start(story, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_story_state(story, job), BH_JOB_FAILED);
    bh_story_close(story);
}

/* Another node at once; after that none, until something ends. */
static void
the_other_node_is_tried_first(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t runs = bh_story_run(story, bh_story_wants(21, 1, 1)), job;
    uint32_t first;

    bh_story_h100s(story, 2, 2, 1);
    job = bh_story_submit(story, bh_story_wants(21, 1, 1));
    first = bh_story_where(story, job);
    bh_story_fail_start(story, (struct bh_ev_lease){ .scratch = true });
    assert_int_equal(bh_story_state(story, job), BH_JOB_STARTING);
    assert_true(bh_story_where(story, job) != first);
    bh_story_fail_start(story, (struct bh_ev_lease){ .scratch = true });
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    bh_story_tick(story, 6 * SECOND);
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    bh_story_exit(story, runs, 0);
    bh_story_tick(story, 4 * SECOND);
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    bh_story_tick(story, 1 * SECOND);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STARTING);
    bh_story_close(story);
}

/* Others of the same needs may want no scratch: they do not wait, and no room is kept from them. */
static void
who_wants_none_goes_on(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, 1, 1)), beside;

    bh_story_fail_start(story, (struct bh_ev_lease){ .scratch = true });
    for (uint32_t i = 0; i < 6; i++) {
        beside = bh_story_run(story, bh_story_wants(21, 1, 1));
        assert_int_equal(bh_story_state(story, beside), BH_JOB_RUNNING);
    }
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    bh_story_close(story);
}

static void
a_failed_start_is_the_reason_while_its_node_is_kept_off(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, 3, 1));
    struct bh_reason why;

    bh_story_fail_start(story, (struct bh_ev_lease){ .rc = 0 });
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    why = bh_story_why(story, job);
    assert_int_equal(why.code, BH_REASON_START_FAILED);
    assert_int_equal(why.guarantee.cause, 0);
    assert_true(why.gpu.v != 0 && why.frees_at_ns != 0);
    bh_story_close(story);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_finds_no_scratch_waits),
        cmocka_unit_test(the_other_node_is_tried_first),
        cmocka_unit_test(who_wants_none_goes_on),
        cmocka_unit_test(a_failed_start_is_the_reason_while_its_node_is_kept_off),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
