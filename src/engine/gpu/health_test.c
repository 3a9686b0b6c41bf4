#include "engine/gpu/health.h"

#include "engine/gpu/capacity.h"
#include "engine/gpu/ledger.h"
#include "engine/step/fixture_test.h"

#define S 1000000000ull

static const uint64_t burn_in_ns = 60 * S;

static struct bh_fixture *
health_test_open_site(uint32_t gpus)
{
    struct bh_fixture *fixture = bh_fixture_site(gpus);
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.burn_in_ns = burn_in_ns;
    bh_fixture_must_send(fixture, &event);
    return fixture;
}

static void
health_test_fault(struct bh_fixture *fixture, uint32_t gpu, enum bh_fault_ends ends, enum bh_fault_then then)
{
    struct bh_event event = { .kind = BH_EV_HEALTH,
                              .u.health = { .gpu = { gpu }, .ends = ends, .then = then, .xid = 48 } };

    bh_fixture_must_send(fixture, &event);
}

/* A fault that names the partition of a job. */
static void
hit(struct bh_fixture *fixture, uint64_t job, enum bh_fault_ends ends, enum bh_fault_then then)
{
    struct bh_partition partition = bh_fixture_job(fixture, job).partitions[0];
    struct bh_event event = { .kind = BH_EV_HEALTH,
                              .u.health = { .gpu = partition.gpu,
                                            .partition = partition.partition,
                                            .ends = ends,
                                            .then = then,
                                            .xid = 94 } };

    bh_fixture_must_send(fixture, &event);
}

static struct bh_gpu_view
health_test_look(const struct bh_fixture *fixture, uint32_t gpu)
{
    struct bh_gpu_view view = { 0 };

    assert_true(bh_view_gpu(fixture->engine, (bh_gpu_id){ gpu }, &view));
    return view;
}

static enum bh_gpu_health
health_test_health(const struct bh_fixture *fixture, uint32_t gpu)
{
    return health_test_look(fixture, gpu).health;
}

/* Answer the oldest order, which is of that kind. */
static void
health_test_answer(struct bh_fixture *fixture, enum bh_effect_kind kind, enum bh_outcome_kind outcome,
                   bh_rc rc)
{
    struct bh_effect effect;
    struct bh_event event;

    assert_true(bh_fixture_next_effect(fixture, &effect));
    assert_int_equal(effect.kind, kind);
    event = bh_fixture_answer(&effect, outcome);
    if (event.kind == BH_EV_SERVICED)
        event.u.serviced.rc = rc;
    bh_fixture_must_send(fixture, &event);
}

static void
only_the_instance_that_was_hit_ends(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t one = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    uint64_t other = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));

    hit(fixture, one, BH_ENDS_INSTANCE, BH_THEN_RESET_IDLE);
    assert_int_equal(bh_fixture_state(fixture, one), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_RUNNING);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_WATCHED);
    assert_true(health_test_look(fixture, 1).reset_due);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, one), BH_JOB_RUNNING); /* anew: it goes on meanwhile */
    assert_int_equal(bh_fixture_job(fixture, one).restarts, 1);
    bh_fixture_close(fixture);
}

/* A GPU that is fenced already stays that: the fault's own decision is taken all the same, now
 * and not with whatever happens next. */
static void
a_fault_that_changes_no_state_ends_its_job_at_once(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t one = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));

    hit(fixture, one, BH_ENDS_NOBODY, BH_THEN_DRAIN);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_DRAINING);
    assert_int_equal(bh_fixture_state(fixture, one), BH_JOB_RUNNING);
    hit(fixture, one, BH_ENDS_INSTANCE, BH_THEN_WATCH);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_DRAINING);
    assert_int_equal(bh_fixture_state(fixture, one), BH_JOB_STOPPING);
    bh_fixture_close(fixture);
}

static void
a_gpu_is_emptied_reset_tested_watched_and_returns(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t one = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    uint64_t other = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));

    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_FENCED);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_STOP), 2);
    health_test_answer(fixture, BH_FX_STOP, BH_OUTCOME_OK, BH_OK);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_RESET), 0);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 0);
    health_test_answer(fixture, BH_FX_STOP, BH_OUTCOME_OK, BH_OK);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 2);
    health_test_answer(fixture, BH_FX_DESTROY, BH_OUTCOME_OK, BH_OK);
    health_test_answer(fixture, BH_FX_DESTROY, BH_OUTCOME_FAILED, BH_IO); /* it goes with the reset */
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_RESETTING);
    health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_OK, BH_OK);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_TESTING);
    health_test_answer(fixture, BH_FX_TEST, BH_OUTCOME_OK, BH_OK);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_BURN_IN);
    assert_int_equal(bh_fixture_state(fixture, one), BH_JOB_PENDING);
    assert_int_equal(bh_engine_next_tick_ns(fixture->engine), fixture->now_ns + burn_in_ns);
    bh_fixture_tick(fixture, burn_in_ns - 1);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_BURN_IN);
    bh_fixture_tick(fixture, 1);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_OK);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, one), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, other), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
who_may_not_begin_again_fails_with_the_cause(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    struct bh_ev_submit never = bh_fixture_submission(21, 1, 1);
    uint64_t job;

    never.contract = BH_CONTRACT_NEVER;
    job = bh_fixture_submit_running(fixture, never);
    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    health_test_answer(fixture, BH_FX_STOP, BH_OUTCOME_OK, BH_OK);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_FAILED);
    assert_int_equal(bh_fixture_job(fixture, job).cause, BH_END_GPU_FAULT);
    bh_fixture_close(fixture);
}

static void
other_gpus_go_on(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(2);
    uint64_t here = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    uint64_t there = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    uint32_t gpu = bh_fixture_job(fixture, here).partitions[0].gpu.v;

    health_test_fault(fixture, gpu, BH_ENDS_GPU, BH_THEN_RESET);
    assert_int_equal(bh_fixture_state(fixture, here), BH_JOB_STOPPING);
    assert_int_equal(bh_fixture_state(fixture, there), BH_JOB_RUNNING);
    assert_int_equal(health_test_health(fixture, 3 - gpu), BH_HEALTH_OK);
    bh_fixture_close(fixture);
}

static void
a_drain_waits_for_what_runs(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));

    health_test_fault(fixture, 1, BH_ENDS_NOBODY, BH_THEN_DRAIN);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_state(fixture, bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1))),
                     BH_JOB_PENDING);
    bh_fixture_exit_job(fixture, job, 0);
    health_test_answer(fixture, BH_FX_DESTROY, BH_OUTCOME_OK, BH_OK);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_RESETTING);
    bh_fixture_close(fixture);
}

static void
resets_that_fail_are_tried_later_each_time(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t wait_ns = BH_HEALTH_RETRY_NS;

    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    for (int i = 0; i < BH_HEALTH_ATTEMPTS_MAX; i++, wait_ns *= 2) {
        health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_FAILED, BH_CONFLICT);
        assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_WAITING);
        bh_fixture_tick(fixture, wait_ns - 1);
        assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_WAITING);
        bh_fixture_tick(fixture, 1);
        assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_RESETTING);
    }
    health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_FAILED, BH_CONFLICT);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_QUARANTINED);
    bh_fixture_close(fixture);
}

static void
what_cannot_be_reset_here_waits_for_an_operator(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);

    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_FAILED, BH_UNAVAILABLE);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_QUARANTINED);
    bh_fixture_close(fixture);
}

static void
reset_and_return(struct bh_fixture *fixture)
{
    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_OK, BH_OK);
    health_test_answer(fixture, BH_FX_TEST, BH_OUTCOME_OK, BH_OK);
    bh_fixture_tick(fixture, burn_in_ns);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_OK);
}

static void
the_third_reset_within_a_day_is_not_made(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    struct bh_event clear = { .kind = BH_EV_CORDON, .u.cordon = { .gpu = { 1 }, .clear_fault = true } };

    reset_and_return(fixture);
    reset_and_return(fixture);
    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_RESET), 0);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_QUARANTINED);
    bh_fixture_tick(fixture, 2 * BH_HEALTH_DAY_NS); /* nor does time help */
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_QUARANTINED);
    bh_fixture_must_send(fixture, &clear);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_TESTING);
    assert_int_equal(bh_fixture_send(fixture, &clear), BH_CONFLICT); /* the test is under way */
    health_test_answer(fixture, BH_FX_TEST, BH_OUTCOME_OK, BH_OK);
    bh_fixture_tick(fixture, burn_in_ns);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_OK);
    bh_fixture_close(fixture);
}

static void
resets_of_other_days_do_not_count(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);

    for (int i = 0; i < 6; i++) {
        reset_and_return(fixture);
        bh_fixture_tick(fixture, BH_HEALTH_DAY_NS / 2 + S);
    }
    bh_fixture_close(fixture);
}

static void
a_test_that_fails_is_a_reason_for_another_reset(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);

    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_OK, BH_OK);
    health_test_answer(fixture, BH_FX_TEST, BH_OUTCOME_FAILED, BH_IO);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_RESETTING);
    health_test_answer(fixture, BH_FX_RESET, BH_OUTCOME_OK, BH_OK);
    health_test_answer(fixture, BH_FX_TEST, BH_OUTCOME_FAILED, BH_IO);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_QUARANTINED);
    bh_fixture_close(fixture);
}

static void
three_jobs_make_an_applications_fault_the_gpus(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t jobs[3];

    for (int i = 0; i < 3; i++)
        jobs[i] = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    for (int i = 0; i < 5; i++)
        hit(fixture, jobs[0], BH_ENDS_NOBODY, BH_THEN_COUNT); /* one job alone is itself to blame */
    hit(fixture, jobs[1], BH_ENDS_NOBODY, BH_THEN_COUNT);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_OK);
    health_test_fault(fixture, 1, BH_ENDS_NOBODY, BH_THEN_COUNT); /* it is unknown whose */
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_OK);
    hit(fixture, jobs[2], BH_ENDS_NOBODY, BH_THEN_COUNT);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_DRAINING);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bh_fixture_state(fixture, jobs[i]), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

static void
a_reset_that_can_wait_comes_when_the_gpu_is_idle(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t first = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)), second;

    health_test_fault(fixture, 1, BH_ENDS_NOBODY, BH_THEN_RESET_IDLE);
    bh_fixture_tick(fixture, 3 * BH_HEALTH_DAY_NS);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_WATCHED);
    second = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    bh_fixture_exit_job(fixture, first, 0);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_WATCHED);
    bh_fixture_exit_job(fixture, second, 0);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_DRAINING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_BURN_IN);
    bh_fixture_close(fixture);
}

static void
a_reboot_closes_the_node_until_it_is_over(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(2);
    uint64_t here = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    uint64_t there = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1));
    uint32_t gpu = bh_fixture_job(fixture, here).partitions[0].gpu.v;
    uint64_t waiting;

    health_test_fault(fixture, gpu, BH_ENDS_GPU, BH_THEN_REBOOT);
    bh_fixture_finish_effects(fixture);
    bh_fixture_exit_job(fixture, there, 0);
    waiting = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_PENDING);
    health_test_fault(fixture, gpu, BH_ENDS_NOBODY, BH_THEN_RECOVERED);
    assert_int_equal(health_test_health(fixture, gpu), BH_HEALTH_TESTING);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, here), BH_JOB_RUNNING); /* on the other one */
    bh_fixture_tick(fixture, burn_in_ns);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, waiting), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* A machine that was rebooted has reset its GPUs: nothing is due any more. */
static void
a_reboot_is_a_reset_that_was_due(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));

    health_test_fault(fixture, 1, BH_ENDS_NOBODY, BH_THEN_RESET_IDLE);
    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_REBOOT);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_NEEDS_REBOOT);
    health_test_fault(fixture, 1, BH_ENDS_NOBODY, BH_THEN_RECOVERED);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_BURN_IN);
    assert_false(health_test_look(fixture, 1).reset_due);
    bh_fixture_tick(fixture, burn_in_ns);
    assert_int_equal(health_test_health(fixture, 1), BH_HEALTH_OK);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* The ledger counts all time in which no job could use a GPU as unusable. */
static void
time_under_repair_is_unusable(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(1);
    struct bh_ledger_view before, after;

    health_test_fault(fixture, 1, BH_ENDS_GPU, BH_THEN_RESET);
    bh_view_ledger(fixture->engine, fixture->now_ns, &before);
    bh_fixture_tick(fixture, 100 * S);
    bh_view_ledger(fixture->engine, fixture->now_ns, &after);
    assert_true(after.unusable_compute - before.unusable_compute == (bh_part_ns)100 * S * BH_GPU_PARTS);
    assert_true(after.causes_memory[BH_UNUSABLE_FAULT] - before.causes_memory[BH_UNUSABLE_FAULT]
                == (bh_part_ns)100 * S * BH_GPU_PARTS);
    bh_fixture_close(fixture);
}

static void
faults_of_unknown_gpus_are_refused(void **state)
{
    struct bh_fixture *fixture = health_test_open_site(2);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    struct bh_partition partition = bh_fixture_job(fixture, job).partitions[0];
    struct bh_event event = { .kind = BH_EV_HEALTH, .u.health = { .gpu = { 7 } } };
    struct bh_event answered = { .kind = BH_EV_SERVICED, .u.serviced = { .gpu = { 1 } } };

    assert_int_equal(bh_fixture_send(fixture, &event), BH_NOT_FOUND);
    event.u.health = (struct bh_ev_health){ .gpu = { 3 - partition.gpu.v },
                                            .partition = partition.partition,
                                            .ends = BH_ENDS_INSTANCE };
    assert_int_equal(bh_fixture_send(fixture, &event), BH_NOT_FOUND); /* another GPU's */
    event.u.health = (struct bh_ev_health){ .gpu = { 1 }, .then = BH_FAULT_THENS };
    assert_int_equal(bh_fixture_send(fixture, &event), BH_RANGE);
    assert_int_equal(bh_fixture_send(fixture, &answered), BH_CONFLICT); /* nothing was ordered */
    bh_fixture_close(fixture);
}

/* The table, where it is more than "stay": what is worse goes on top of what is better. */
static void
no_fault_makes_a_gpu_better(void **state)
{
    for (uint32_t from = 0; from < BH_HEALTHS; from++) {
        assert_int_equal(bh_health_after((enum bh_gpu_health)from, BH_THEN_NOTHING), from);
        assert_int_equal(bh_health_after((enum bh_gpu_health)from, BH_THEN_RETIRE), BH_HEALTH_QUARANTINED);
        for (uint32_t then = 0; then < BH_THEN_RECOVERED; then++) {
            struct gpu gpu = { 0 };

            gpu.health.state = (uint8_t)from;
            if (bh_capacity_is_healthy(&gpu))
                continue;
            gpu.health.state = (uint8_t)bh_health_after((enum bh_gpu_health)from, (enum bh_fault_then)then);
            assert_false(bh_capacity_is_healthy(&gpu));
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_the_instance_that_was_hit_ends),
    cmocka_unit_test(a_fault_that_changes_no_state_ends_its_job_at_once),
    cmocka_unit_test(a_gpu_is_emptied_reset_tested_watched_and_returns),
    cmocka_unit_test(who_may_not_begin_again_fails_with_the_cause),
    cmocka_unit_test(other_gpus_go_on),
    cmocka_unit_test(a_drain_waits_for_what_runs),
    cmocka_unit_test(resets_that_fail_are_tried_later_each_time),
    cmocka_unit_test(what_cannot_be_reset_here_waits_for_an_operator),
    cmocka_unit_test(the_third_reset_within_a_day_is_not_made),
    cmocka_unit_test(resets_of_other_days_do_not_count),
    cmocka_unit_test(a_test_that_fails_is_a_reason_for_another_reset),
    cmocka_unit_test(three_jobs_make_an_applications_fault_the_gpus),
    cmocka_unit_test(a_reset_that_can_wait_comes_when_the_gpu_is_idle),
    cmocka_unit_test(a_reboot_closes_the_node_until_it_is_over),
    cmocka_unit_test(a_reboot_is_a_reset_that_was_due),
    cmocka_unit_test(time_under_repair_is_unusable),
    cmocka_unit_test(faults_of_unknown_gpus_are_refused),
    cmocka_unit_test(no_fault_makes_a_gpu_better),
};
BH_TEST_MAIN(tests)
