#include "engine/gpu/cordon.h"

#include "engine/step/fixture_test.h"

static bh_rc
cordon_test_cordon(struct bh_fixture *fixture, uint32_t gpu, uint32_t node, enum bh_held held)
{
    return bh_fixture_send(
        fixture, &(struct bh_event){ .kind = BH_EV_CORDON, .u.cordon = { { gpu }, { node }, held, false } });
}

static void
a_cordon_keeps_new_work_off_and_lets_what_runs(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t running = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), waiting;

    assert_int_equal(cordon_test_cordon(fixture, 1, 0, BH_HELD_CORDONED), BH_OK);
    waiting = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_state(fixture, running), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_PENDING);
    assert_int_equal(cordon_test_cordon(fixture, 1, 0, BH_HELD_NOT), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

static void
a_nodes_cordon_is_beside_those_of_its_gpus(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t waiting;

    assert_int_equal(cordon_test_cordon(fixture, 0, 1, BH_HELD_DRAINING), BH_OK);
    assert_int_equal(cordon_test_cordon(fixture, 1, 0, BH_HELD_CORDONED), BH_OK);
    waiting = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(cordon_test_cordon(fixture, 0, 1, BH_HELD_NOT), BH_OK);
    assert_int_equal(bh_fixture_job(fixture, waiting).partitions[0].gpu.v, 2);
    bh_fixture_close(fixture);
}

static void
a_drain_now_ends_what_runs_by_its_contract(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit wants = bh_fixture_submission(21, 1, 1);
    struct bh_effect stop = { 0 };
    uint64_t again, saves, never;

    again = bh_fixture_submit_running(fixture, wants);
    wants.contract = BH_CONTRACT_CHECKPOINT;
    saves = bh_fixture_submit_running(fixture, wants);
    wants.contract = BH_CONTRACT_NEVER;
    never = bh_fixture_submit_running(fixture, wants);
    assert_int_equal(
        cordon_test_cordon(fixture, bh_fixture_job(fixture, again).partitions[0].gpu.v, 0, BH_HELD_DRAIN_NOW),
        BH_OK);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_STOP), 3);
    for (uint32_t i = 0; i < fixture->step.effect_count; i++)
        if (fixture->step.effects[i].kind == BH_FX_STOP && fixture->step.effects[i].job.v == saves)
            stop = fixture->step.effects[i];
    assert_int_equal(stop.signal, BH_CHECKPOINT_SIGNAL);
    for (int i = 0; i < 3; i++)
        bh_fixture_answer_next(fixture, BH_OUTCOME_OK);
    assert_int_equal(bh_fixture_state(fixture, never), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, never).cause, BH_END_DRAINED);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, again), BH_JOB_RUNNING); /* on the other GPU */
    assert_int_equal(bh_fixture_state(fixture, saves), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
who_is_suspended_there_does_not_wait_for_ever(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit wants = bh_fixture_submission(21, 3, 1);
    uint64_t low, high;

    wants.contract = BH_CONTRACT_SUSPEND;
    low = bh_fixture_submit_running(fixture, wants);
    wants.priority = BH_PRIORITY_HIGH;
    high = bh_fixture_submit_running(fixture, wants);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_SUSPENDED);
    assert_int_equal(cordon_test_cordon(fixture, 0, 1, BH_HELD_DRAINING), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_SUSPENDED);
    assert_int_equal(cordon_test_cordon(fixture, 0, 1, BH_HELD_DRAIN_NOW), BH_OK);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, low), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_state(fixture, high), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
what_is_refused(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_cordon cordon;
        bh_rc rc;
    } cases[] = {
        { "neither", { .held = BH_HELD_CORDONED }, BH_RANGE },
        { "both", { .gpu = { 1 }, .node = { 1 } }, BH_RANGE },
        { "no such word", { .gpu = { 1 }, .held = BH_HELDS }, BH_RANGE },
        { "no such GPU", { .gpu = { 9 } }, BH_NOT_FOUND },
        { "no such node", { .node = { 9 } }, BH_NOT_FOUND },
        { "nothing to clear", { .gpu = { 1 }, .clear_fault = true }, BH_OK },
    };
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(
            cases[i].name,
            bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_CORDON, .u.cordon = cases[i].cordon }),
            cases[i].rc);
    bh_fixture_close(fixture);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cordon_keeps_new_work_off_and_lets_what_runs),
    cmocka_unit_test(a_nodes_cordon_is_beside_those_of_its_gpus),
    cmocka_unit_test(a_drain_now_ends_what_runs_by_its_contract),
    cmocka_unit_test(who_is_suspended_there_does_not_wait_for_ever),
    cmocka_unit_test(what_is_refused),
};
BH_TEST_MAIN(tests)
