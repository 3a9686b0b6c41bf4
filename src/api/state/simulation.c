#include "api/state/simulation.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/time.h"

const char bh_simulation_assumption[] =
    "if jobs run to their time limits, 24h where a batch job has none, and nothing else happens";

enum { SLICE_STEPS = 200, NEW_ROWS = 16 };

void
bh_simulation_copy(const struct bh_engine *engine, struct bh_simulation *ret_simulation)
{
    *ret_simulation = (struct bh_simulation){ 0 };
    bh_state_copy_engine(engine, &ret_simulation->state);
}

void
bh_simulation_clone(const struct bh_simulation *simulation, struct bh_simulation *ret_clone)
{
    bh_simulation_copy(simulation->state.engine, ret_clone);
}

void
bh_simulation_free(struct bh_simulation *simulation)
{
    bh_state_fini(&simulation->state);
    free(simulation->future);
    free(simulation->forecasts.rows);
    *simulation = (struct bh_simulation){ 0 };
}

void
bh_simulation_begin(struct bh_simulation *simulation, uint64_t now_ns)
{
    struct bh_job_forecasts *forecasts = &simulation->forecasts;
    struct bh_future_options options = { .now_ns = now_ns,
                                         .notify = bh_job_forecasts_notify,
                                         .self = forecasts };
    bh_rc rc;

    BH_ASSERT(!simulation->future);
    forecasts->max = bh_job_forecasts_needed(simulation->state.engine) + NEW_ROWS;
    forecasts->rows = calloc(forecasts->max, sizeof *forecasts->rows);
    simulation->future = malloc(sizeof *simulation->future);
    BH_ASSERT(forecasts->rows && simulation->future);
    rc = bh_job_forecasts_begin(forecasts, simulation->state.engine);
    BH_ASSERT(rc == BH_OK);
    bh_future_begin(simulation->future, simulation->state.engine, &options);
}

static void
simulation_grow(struct bh_simulation *simulation)
{
    bh_state_grow(&simulation->state);
    simulation->future->engine = simulation->state.engine;
}

bh_rc
bh_simulation_send(struct bh_simulation *simulation, const struct bh_event *event)
{
    bh_rc rc;

    while ((rc = bh_future_send(simulation->future, event)) == BH_FULL)
        simulation_grow(simulation);
    return rc;
}

void
bh_simulation_run(struct bh_simulation *simulation)
{
    bh_ns stop_ns = bh_time_monotonic() + BH_SIMULATION_SECONDS_MAX * BH_NS_PER_S;
    enum bh_future_end end = BH_FUTURE_MORE;

    while (end <= BH_FUTURE_FULL && simulation->future->steps < BH_SIMULATION_STEPS_MAX
           && bh_time_monotonic() < stop_ns) {
        end = bh_future_run(simulation->future, SLICE_STEPS);
        if (end == BH_FUTURE_FULL)
            simulation_grow(simulation);
    }
    bh_job_forecasts_close(&simulation->forecasts, simulation->future, end);
}
