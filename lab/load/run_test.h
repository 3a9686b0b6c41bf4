#ifndef BH_LAB_LOAD_RUN_TEST_H
#define BH_LAB_LOAD_RUN_TEST_H

#include "base/test.h"
#include "lab/load/load.h"

/* The first `jobs` through the engine, every step checked. */
static inline void
run_some(const struct bh_load *load, uint32_t jobs)
{
    struct bh_simulation_plan plan = bh_load_plan(load);
    struct bh_simulation_run run;
    struct bh_err err = { 0 };

    plan.job_count = jobs < plan.job_count ? jobs : plan.job_count;
    plan.check_every = 50;
    plan.encode = true;
    if (bh_simulation_run_play(&plan, &run, &err) != BH_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(run.ended + run.refused, plan.job_count);
    assert_int_equal(run.refused, 0);
    bh_simulation_run_fini(&run);
}

#endif
