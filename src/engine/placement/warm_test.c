#include "engine/placement/warm.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

static uint32_t
small(void)
{
    return bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
}

static void
set_preshape(struct bh_fixture *fixture, bool on)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.preshape = on;
    bh_fixture_must_send(fixture, &event);
}

static void
want_ready(struct bh_fixture *fixture, uint32_t profile, uint32_t ready)
{
    struct bh_event event = { .kind = BH_EV_ADVICE };

    event.u.advice.of = BH_ADVICE_PARTITIONS;
    event.u.advice.profile = profile;
    event.u.advice.ready = ready;
    bh_fixture_must_send(fixture, &event);
}

static uint32_t
unheld(const struct bh_fixture *fixture)
{
    return fixture->engine->core.shapes.unheld[small()];
}

static void
partitions_are_carved_before_a_job_comes(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job;

    want_ready(fixture, small(), 2);
    assert_int_equal(unheld(fixture), 0); /* off by default */
    set_preshape(fixture, true);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 2);
    bh_fixture_finish_effects(fixture);
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 1); /* at once */
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 1); /* the next one for no tenant */
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(unheld(fixture), 2);
    bh_fixture_close(fixture);
}

/* Tenants 21 and 31 are separated by a hard boundary: neither gets an idle partition of the other, both get
 * one of no tenant. */
static void
any_tenant_takes_them(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    set_preshape(fixture, true);
    want_ready(fixture, small(), 1);
    bh_fixture_finish_effects(fixture);
    bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 1);
    bh_fixture_finish_effects(fixture);
    bh_fixture_submit(fixture, bh_fixture_submission(31, 1, 1));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 1);
    bh_fixture_close(fixture);
}

static void
they_go_when_something_else_is_to_stand_there(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    set_preshape(fixture, true);
    want_ready(fixture, small(), 3);
    bh_fixture_finish_effects(fixture);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1)); /* the whole GPU */
    assert_int_equal(unheld(fixture), 0);
    bh_fixture_close(fixture);
}

static void
room_for_jobs_comes_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    set_preshape(fixture, true);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 2)); /* two halves: nothing is left */
    want_ready(fixture, small(), 4);
    assert_int_equal(unheld(fixture), 0);
    bh_fixture_close(fixture);
}

/* An idle partition stays for its tenant while that has a job, and goes when it has none. */
static void
idle_partitions_of_those_who_may_come_stay(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t jobs[7];

    set_preshape(fixture, true);
    for (uint32_t i = 0; i < 7; i++)
        jobs[i] = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    for (uint32_t i = 1; i < 7; i++)
        bh_fixture_exit_job(fixture, jobs[i], 0);
    want_ready(fixture, small(), 2);
    assert_int_equal(unheld(fixture), 0);
    bh_fixture_exit_job(fixture, jobs[0], 0);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 2);
    assert_int_equal(unheld(fixture), 2);
    bh_fixture_close(fixture);
}

static void
a_carve_that_failed_is_tried_again_later(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    set_preshape(fixture, true);
    want_ready(fixture, small(), 1);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED));
    assert_int_equal(unheld(fixture), 0);
    bh_fixture_tick(fixture, 1000000000);
    assert_int_equal(unheld(fixture), 0);
    assert_true(bh_engine_next_tick_ns(fixture->engine) <= fixture->now_ns + 59000000000);
    bh_fixture_tick(fixture, 59000000000);
    assert_int_equal(unheld(fixture), 1);
    bh_fixture_close(fixture);
}

static void
what_is_recorded_must_fit(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct work work = { .engine = fixture->engine, .step = &fixture->step };
    struct bh_decision good = { .kind = BH_DO_WARM, .partition_count = 1 }, bad;

    good.partitions[0] = (struct bh_partition){ { 900 }, { 1 }, small(), 0, true };
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)); /* somewhere, but not everywhere */
    bad = good;
    bad.partitions[0].gpu.v = 99;
    assert_int_equal(bh_warm_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.partitions[0].carve = false;
    assert_int_equal(bh_warm_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.partitions[0].profile = BH_PROFILE_WHOLE.v;
    assert_int_equal(bh_warm_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.partitions[0].start = bh_fixture_placement_of(fixture, 1) % 100;
    assert_int_equal(bh_warm_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.job.v = 1;
    assert_int_equal(bh_warm_apply(&work, &bad), BH_CONFLICT);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(partitions_are_carved_before_a_job_comes),
    cmocka_unit_test(any_tenant_takes_them),
    cmocka_unit_test(they_go_when_something_else_is_to_stand_there),
    cmocka_unit_test(room_for_jobs_comes_first),
    cmocka_unit_test(idle_partitions_of_those_who_may_come_stay),
    cmocka_unit_test(a_carve_that_failed_is_tried_again_later),
    cmocka_unit_test(what_is_recorded_must_fit),
};
BH_TEST_MAIN(tests)
