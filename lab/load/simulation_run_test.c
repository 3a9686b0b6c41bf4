#include "lab/load/simulation_run.h"

#include "base/test.h"
#include "base/time.h"
#include "model/geometry.h"
#include "lab/load/load.h"
#include "lab/load/synth.h"

/* One job of a story: when it comes, how long it works, how many GPUs it wants. */
static void
add(struct bh_load *load, uint32_t tenant, uint64_t submit_s, uint64_t work_s, uint32_t gpus)
{
    bh_load_add(load, &(struct bh_simulation_job){ .submit_ns = submit_s * BH_NS_PER_S,
                                                   .work_ns = work_s * BH_NS_PER_S,
                                                   .tenant = { tenant },
                                                   .sku = { 1 },
                                                   .count = gpus,
                                                   .priority = BH_PRIORITY_NORMAL,
                                                   .contract = BH_CONTRACT_REQUEUE });
}

/* One node of four GPUs and two tenants. */
static void
open_load(struct bh_load *load)
{
    *load = (struct bh_load){ 0 };
    bh_load_set_rack(load, 1, 4);
    bh_load_add_tenant(load, "a", (bh_tenant_id){ 0 });
    bh_load_add_tenant(load, "b", (bh_tenant_id){ 0 });
}

static struct bh_simulation_plan
plan_of(const struct bh_load *load)
{
    struct bh_simulation_plan plan = bh_load_plan(load);

    plan.check_every = 1;
    plan.encode = true;
    plan.window_ns = BH_NS_PER_S;
    return plan;
}

static uint64_t
end_s(const struct bh_simulation_run *run, uint32_t job)
{
    return run->ends[job].end_ns / BH_NS_PER_S;
}

/* Two fill the node; the third waits for the first that ends. */
static void
test_waits(void **state)
{
    struct bh_simulation_run run;
    struct bh_load load;
    struct bh_err err = { 0 };
    struct bh_simulation_plan plan;

    open_load(&load);
    add(&load, 1, 0, 10, 2);
    add(&load, 1, 0, 20, 2);
    add(&load, 2, 1, 5, 1);
    plan = plan_of(&load);
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
    BH_CHECK_EQ("ended", run.ended, 3);
    BH_CHECK_EQ("first", end_s(&run, 0), 10);
    BH_CHECK_EQ("second", end_s(&run, 1), 20);
    BH_CHECK_EQ("third starts", run.ends[2].first_start_ns / BH_NS_PER_S, 10);
    BH_CHECK_EQ("third", end_s(&run, 2), 15);
    BH_CHECK_EQ("cause", run.ends[2].cause, BH_END_EXITED);
    BH_CHECK_EQ("makespan", run.makespan_ns / BH_NS_PER_S, 20);
    BH_CHECK_EQ("used", bh_meter_total(run.meter, 0).used / BH_GPU_PARTS / BH_NS_PER_S, 60);
    BH_CHECK_EQ("wanted", bh_meter_total(run.meter, 1).wanted / BH_GPU_PARTS / BH_NS_PER_S, 14);
    BH_CHECK("records", run.record_bytes > 1000);
    bh_simulation_run_fini(&run);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

/* A higher job takes the room: what becomes of the other's work is its contract's. */
static void
test_preemption(void **state)
{
    static const struct {
        const char *what;
        enum bh_contract contract;
        uint64_t end_s, lost_gpu_s;
        uint32_t preemptions, suspensions;
    } rows[] = {
        { "requeue", BH_CONTRACT_REQUEUE, 10 + 5 + 30, 40, 1, 0 },
        { "suspend", BH_CONTRACT_SUSPEND, 10 + 5 + 20, 0, 0, 1 },
        { "never", BH_CONTRACT_NEVER, 30, 0, 0, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_simulation_run run;
        struct bh_load load;
        struct bh_err err = { 0 };
        struct bh_simulation_plan plan;

        open_load(&load);
        add(&load, 1, 0, 30, 4);
        load.jobs[0].contract = rows[i].contract;
        add(&load, 2, 10, 5, 4);
        load.jobs[1].priority = BH_PRIORITY_HIGH;
        plan = plan_of(&load);
        assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
        BH_CHECK_EQ(rows[i].what, end_s(&run, 0), rows[i].end_s);
        BH_CHECK_EQ(rows[i].what, run.ends[0].lost / BH_GPU_PARTS / BH_NS_PER_S, rows[i].lost_gpu_s);
        BH_CHECK_EQ(rows[i].what, run.ends[0].preemptions, rows[i].preemptions);
        BH_CHECK_EQ(rows[i].what, run.ends[0].suspensions, rows[i].suspensions);
        bh_simulation_run_fini(&run);
        bh_load_fini(&load);
    }
    BH_CHECK_DONE();
}

/* Orders take their time, and a time limit strikes. */
static void
test_delays_and_limit(void **state)
{
    struct bh_simulation_run run;
    struct bh_load load;
    struct bh_err err = { 0 };
    struct bh_simulation_plan plan;

    open_load(&load);
    add(&load, 1, 0, 100, 1);
    load.jobs[0].time_limit_ns = 20 * BH_NS_PER_S;
    add(&load, 2, 50, 7, 1);
    plan = plan_of(&load);
    plan.delays_ns[BH_FX_CARVE] = 2 * BH_NS_PER_S;
    plan.delays_ns[BH_FX_START] = 3 * BH_NS_PER_S;
    plan.delays_ns[BH_FX_STOP] = 4 * BH_NS_PER_S;
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
    BH_CHECK_EQ("start", run.ends[0].first_start_ns / BH_NS_PER_S, 5);
    BH_CHECK_EQ("end", end_s(&run, 0), 5 + 20 + 4);
    BH_CHECK_EQ("cause", run.ends[0].cause, BH_END_TIME_LIMIT);
    BH_CHECK_EQ("lost", run.ends[0].lost / BH_GPU_PARTS / BH_NS_PER_S, 24);
    BH_CHECK_EQ("after it", run.ends[1].cause, BH_END_EXITED);
    bh_simulation_run_fini(&run);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

/* More than the first block holds, and the same run each time. */
static void
test_grows_and_repeats(void **state)
{
    struct bh_engine_caps caps = { .tenants = 4,
                                   .skus = 2,
                                   .nodes = 2,
                                   .gpus = 4,
                                   .jobs = 8,
                                   .leases = 4,
                                   .partitions = 4,
                                   .classes = 4,
                                   .metered = 8 };
    struct bh_simulation_run run, again;
    struct bh_load load;
    struct bh_err err = { 0 };
    struct bh_simulation_plan plan;

    open_load(&load);
    for (uint32_t i = 0; i < 60; i++)
        add(&load, 1 + i % 2, i / 20, 1 + i % 7, 1 + i % 4);
    plan = plan_of(&load);
    plan.caps = &caps;
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
    plan.caps = NULL;
    assert_int_equal(bh_simulation_run_play(&plan, &again, &err), BH_OK);
    BH_CHECK("grown", run.grown > 0);
    BH_CHECK_EQ("not grown", again.grown, 0);
    BH_CHECK_EQ("ended", run.ended, 60);
    BH_CHECK_EQ("steps", run.steps, again.steps);
    BH_CHECK_EQ("records", run.record_bytes, again.record_bytes);
    BH_CHECK_EQ("ends", memcmp(run.ends, again.ends, 60 * sizeof run.ends[0]), 0);
    bh_simulation_run_fini(&run);
    bh_simulation_run_fini(&again);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

static void
test_refused(void **state)
{
    struct bh_simulation_run run;
    struct bh_load load;
    struct bh_err err = { 0 };
    struct bh_simulation_plan plan;

    open_load(&load);
    add(&load, 1, 5, 1, 1);
    add(&load, 1, 4, 1, 1);
    plan = plan_of(&load);
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_INVALID);
    BH_CHECK_STR("order", err.msg, "job 2 is submitted before the one before it");
    bh_simulation_run_fini(&run);
    load.jobs[1].submit_ns = load.jobs[0].submit_ns;
    load.tenants[0].limit = 0;
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
    BH_CHECK_EQ("no limit allows it", run.refused, 2);
    BH_CHECK_EQ("nothing wanted", bh_meter_total(run.meter, 0).wanted, 0);
    bh_simulation_run_fini(&run);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

/* How a run of instances went: jobs that had to wait to begin, and work thrown away. */
struct outcome {
    uint32_t waited, preemptions;
    uint64_t makespan_ns;
};

static struct outcome
play(struct bh_load *load, enum bh_lending lending, bool preshape)
{
    struct bh_simulation_plan plan = bh_load_plan(load);
    struct outcome outcome = { 0 };
    struct bh_simulation_run run;
    struct bh_err err = { 0 };

    plan.settings.lending = lending;
    plan.settings.preshape = preshape;
    plan.slot_ns = 1800 * BH_NS_PER_S;
    plan.check_every = 50;
    plan.delays_ns[BH_FX_CARVE] = plan.delays_ns[BH_FX_DESTROY] = 5 * BH_NS_PER_S;
    assert_int_equal(bh_simulation_run_play(&plan, &run, &err), BH_OK);
    assert_int_equal(run.ended, load->job_count);
    for (uint32_t i = 0; i < load->job_count; i++)
        outcome.waited += run.ends[i].first_start_ns > load->jobs[i].submit_ns;
    outcome.preemptions = (uint32_t)run.preemptions;
    outcome.makespan_ns = run.makespan_ns;
    bh_simulation_run_fini(&run);
    return outcome;
}

/* A quarter and more of those who would wait for carving do not. */
static void
test_partitions_carved_ahead_spare_waiting(void **state)
{
    struct bh_synth synth = { .nodes = 4, .jobs = 800, .tenants = 2, .seed = 1, .mig = true };
    struct outcome without, with;
    struct bh_load load = { 0 };
    struct bh_err err;

    bh_synth_make(&synth, &load);
    assert_int_equal(bh_load_scale(&load, 1000, &err), BH_OK);
    without = play(&load, BH_LEND_ALL, false);
    with = play(&load, BH_LEND_ALL, true);
    print_message("# %u of 800 waited without, %u with\n", without.waited, with.waited);
    BH_CHECK("fewer wait", with.waited < without.waited - without.waited / 4);
    BH_CHECK_EQ("the same again", play(&load, BH_LEND_ALL, true).waited, with.waited);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

/* What is likely to be wanted back is not lent, so less of it is taken back by force. */
static void
test_lending_by_forecast_preempts_less(void **state)
{
    struct bh_synth synth = { .nodes = 4, .jobs = 600, .tenants = 4, .seed = 1 };
    struct outcome all, by_forecast;
    struct bh_load load = { 0 };
    struct bh_err err;

    bh_synth_make(&synth, &load);
    assert_int_equal(bh_load_scale(&load, 1000, &err), BH_OK);
    bh_load_guarantee(&load, 1000);
    all = play(&load, BH_LEND_ALL, false);
    by_forecast = play(&load, BH_LEND_FORECAST, false);
    print_message("# %u preemptions, %u by forecast\n", all.preemptions, by_forecast.preemptions);
    BH_CHECK("half at most", by_forecast.preemptions * 2 <= all.preemptions);
    bh_load_fini(&load);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_waits),
    cmocka_unit_test(test_preemption),
    cmocka_unit_test(test_delays_and_limit),
    cmocka_unit_test(test_grows_and_repeats),
    cmocka_unit_test(test_refused),
    cmocka_unit_test(test_partitions_carved_ahead_spare_waiting),
    cmocka_unit_test(test_lending_by_forecast_preempts_less),
};
BH_TEST_MAIN(tests)
