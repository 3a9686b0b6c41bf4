#include "engine/state/effect.h"

#include "engine/step/fixture_test.h"

static void
effects_are_numbered_by_record_and_position(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 2));
    assert_true(fixture->step.effect_count >= 3);
    for (uint32_t i = 0; i < fixture->step.effect_count; i++)
        assert_int_equal(fixture->step.effects[i].order, (fixture->seq << BH_ORDER_BITS) + i);
    bh_fixture_close(fixture);
}

static void
a_job_is_reported_once_as_it_is_in_the_end(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));

    assert_int_equal(bh_fixture_effects(fixture, BH_FX_JOB), 1); /* pending, then starting */
    assert_int_equal(fixture->step.effects[0].job.v, job);
    assert_int_equal(fixture->step.effects[0].state, BH_JOB_STARTING);
    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, job, 7);
    assert_int_equal(fixture->step.effects[0].state, BH_JOB_FAILED);
    assert_int_equal(fixture->step.effects[0].cause, BH_END_EXITED);
    assert_int_equal(fixture->step.effects[0].exit_status, 7);
    assert_int_equal(fixture->step.effects[0].lease.v, 1);
    assert_int_equal(fixture->step.effects[0].node.v, 1);
    bh_fixture_close(fixture);
}

static void
what_is_not_answered_is_outstanding_in_order(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_effect effects[8];
    bh_node_id node = { 1 };

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_engine_outstanding(fixture->engine, node, effects, 8), 0);
    bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 2));
    bh_fixture_submit(fixture, bh_fixture_submission(31, 2, 1));
    assert_int_equal(bh_engine_outstanding(fixture->engine, node, effects, 8), 3);
    for (uint32_t i = 0; i < 3; i++) {
        struct bh_effect older = effects[i];

        older.order--;
        assert_true(bh_engine_awaits(fixture->engine, &effects[i]));
        assert_false(bh_engine_awaits(fixture->engine, &older));
        assert_int_equal(effects[i].order, fixture->effects[i].order);
        assert_int_equal(effects[i].kind, BH_FX_CARVE);
        assert_int_equal(effects[i].partition.partition.v, fixture->effects[i].partition.partition.v);
    }
    assert_int_equal(bh_engine_outstanding(fixture->engine, node, effects, 2), 2);
    assert_int_equal(effects[0].order, fixture->effects[0].order);
    assert_int_equal(bh_engine_outstanding(fixture->engine, (bh_node_id){ 2 }, effects, 8), 0);
    bh_fixture_finish_effects(fixture);
    assert_false(bh_engine_awaits(fixture->engine, &effects[0]));
    bh_fixture_close(fixture);
}

static void
a_stop_carries_the_grace(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit submit = bh_fixture_submission(21, 1, 1);
    uint64_t job;

    submit.grace_ns = 12345;
    job = bh_fixture_submit_running(fixture, submit);
    assert_int_equal(bh_fixture_cancel(fixture, job), BH_OK);
    assert_int_equal(fixture->effects[0].kind, BH_FX_STOP);
    assert_int_equal(fixture->effects[0].grace_ns, 12345);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(effects_are_numbered_by_record_and_position),
    cmocka_unit_test(a_job_is_reported_once_as_it_is_in_the_end),
    cmocka_unit_test(what_is_not_answered_is_outstanding_in_order),
    cmocka_unit_test(a_stop_carries_the_grace),
};
BH_TEST_MAIN(tests)
