#include "engine/forecast/defrag_leave.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

#define HOUR_NS UINT64_C(3600000000000)

static void
suggest(struct bh_fixture *fixture)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.defrag = (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST };
    bh_fixture_must_send(fixture, &event);
}

static void
defrag_leave_test_cordon(struct bh_fixture *fixture, uint32_t id)
{
    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { id },
                                                .node = { 1 },
                                                .managed = true,
                                                .cordoned = true,
                                                .mig_capable = true,
                                                .model = BH_GPU_H100_80GB });
}

/* Two GPUs, a job on one of them, which is cordoned: is there a plan? */
static void
who_can_go_goes(void **state)
{
    static const struct {
        const char *name;
        enum bh_contract contract;
        uint64_t limit_ns, ran_ns;
        bool other_busy, cordoned, plan;
    } cases[] = {
        { "a job of two hours", BH_CONTRACT_REQUEUE, 2 * HOUR_NS, 0, false, true, true },
        { "nobody said so", BH_CONTRACT_REQUEUE, 2 * HOUR_NS, 0, false, false, false },
        { "the other is in use", BH_CONTRACT_REQUEUE, 2 * HOUR_NS, 0, true, true, false },
        { "it may not be moved", BH_CONTRACT_NEVER, 2 * HOUR_NS, 0, false, true, false },
        { "it would lose more than it stays", BH_CONTRACT_REQUEUE, 2 * HOUR_NS, HOUR_NS + HOUR_NS / 2, false,
          true, false },
        { "it has a checkpoint", BH_CONTRACT_CHECKPOINT, 2 * HOUR_NS, HOUR_NS + HOUR_NS / 2, false, true,
          true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(2);
        struct bh_ev_submit submit = bh_fixture_submission(21, 3, 1), other = submit;
        struct bh_defrag_plan plan = { .empties = { 0 } };
        uint64_t job, gpu;

        suggest(fixture);
        submit.contract = cases[i].contract;
        submit.time_limit_ns = cases[i].limit_ns;
        other.contract = BH_CONTRACT_NEVER;
        job = bh_fixture_submit_running(fixture, submit);
        gpu = bh_fixture_placement_of(fixture, job) / 100;
        if (cases[i].other_busy)
            bh_fixture_submit_running(fixture, other);
        bh_fixture_tick(fixture, cases[i].ran_ns + 1);
        if (cases[i].cordoned)
            defrag_leave_test_cordon(fixture, (uint32_t)gpu);
        BH_CHECK_EQ(cases[i].name, bh_defrag_leave(fixture->engine, &plan), cases[i].plan);
        BH_CHECK_EQ(cases[i].name, plan.empties.v, cases[i].plan ? gpu : 0);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* The plan is taken, and the GPU is empty. */
static void
the_gpu_is_left(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_event event = { .kind = BH_EV_MOVE };
    uint64_t jobs[3], from;
    struct bh_defrag_plan plan;

    suggest(fixture);
    for (uint32_t i = 0; i < 3; i++)
        jobs[i] = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    from = bh_fixture_placement_of(fixture, jobs[0]) / 100;
    defrag_leave_test_cordon(fixture, (uint32_t)from);
    assert_true(bh_defrag_find(fixture->engine, &plan));
    assert_int_equal(plan.empties.v, from);
    assert_int_equal(plan.move.move_count, 3);
    event.u.move = plan.move;
    bh_fixture_must_send(fixture, &event);
    bh_fixture_finish_effects(fixture);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(bh_fixture_state(fixture, jobs[i]), BH_JOB_RUNNING);
        assert_int_not_equal(bh_fixture_placement_of(fixture, jobs[i]) / 100, from);
    }
    assert_false(bh_defrag_leave(fixture->engine, &plan));
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_can_go_goes),
    cmocka_unit_test(the_gpu_is_left),
};
BH_TEST_MAIN(tests)
