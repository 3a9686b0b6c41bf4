#include "api/jobs/start_estimates.h"

#include <stdlib.h>

#include "api/state/simulation.h"
#include "base/assert.h"
#include "base/lock.h"
#include "base/time.h"

static const bh_ns least_ns = 200 * BH_NS_PER_MS, most_ns = 5 * BH_NS_PER_S;

/* It may cost a twentieth of the time, a quarter when a job is asked for that is new. */
enum { LIST_SHARE = 20, JOB_SHARE = 4 };

struct bh_start_estimates {
    struct bh_mutex mutex;
    /* under mutex */
    struct bh_simulation simulation; /* its outlooks are kept, and no more */
    bh_ns made_ns, cost_ns;          /* by the monotonic clock; made 0: none yet */
    bool making;
};

struct bh_start_estimates *
bh_start_estimates_new(void)
{
    struct bh_start_estimates *start_estimates = calloc(1, sizeof *start_estimates);

    BH_ASSERT(start_estimates);
    bh_mutex_init(&start_estimates->mutex, BH_LOCK_ESTIMATES);
    return start_estimates;
}

void
bh_start_estimates_free(struct bh_start_estimates *start_estimates)
{
    if (!start_estimates)
        return;
    bh_simulation_free(&start_estimates->simulation);
    bh_mutex_fini(&start_estimates->mutex);
    free(start_estimates);
}

/* Whether it must be made anew. */
static bool
is_old(const struct bh_start_estimates *start_estimates, bh_job_id job, bh_ns now_ns)
{
    bh_ns age_ns = now_ns - start_estimates->made_ns, keep_ns = LIST_SHARE * start_estimates->cost_ns;

    BH_ASSERT(bh_mutex_is_held(&start_estimates->mutex));
    if (!start_estimates->made_ns)
        return true;
    if (job.v && !bh_job_forecasts_find(&start_estimates->simulation.forecasts, job))
        return age_ns >= JOB_SHARE * start_estimates->cost_ns;
    keep_ns = keep_ns < least_ns ? least_ns : keep_ns > most_ns ? most_ns : keep_ns;
    return age_ns >= keep_ns;
}

struct estimates_copying {
    struct bh_simulation *simulation;
    uint64_t now_ns;
};

/* On the owner's thread: a copy of memory and nothing else. */
static void
estimates_copy(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct estimates_copying *copying = self;

    copying->now_ns = now_ns;
    bh_simulation_copy(engine, copying->simulation);
}

static bool
estimates_make(const struct bh_call *call, struct bh_simulation *ret_simulation)
{
    struct estimates_copying copying = { .simulation = ret_simulation };
    struct bh_err unused;

    if (bh_call_ask(call, estimates_copy, &copying, &unused) != BH_OK)
        return false;
    bh_simulation_begin(ret_simulation, copying.now_ns);
    bh_simulation_run(ret_simulation);
    bh_state_fini(&ret_simulation->state);
    return true;
}

void
bh_start_estimates_refresh(const struct bh_call *call, bh_job_id job)
{
    struct bh_start_estimates *start_estimates = call->api->start_estimates;
    bh_ns begun_ns = bh_time_monotonic();
    struct bh_simulation made = { 0 };
    bool mine, well;

    bh_mutex_lock(&start_estimates->mutex);
    mine = !start_estimates->making && is_old(start_estimates, job, begun_ns);
    start_estimates->making = start_estimates->making || mine;
    bh_mutex_unlock(&start_estimates->mutex);
    if (!mine)
        return;
    well = estimates_make(call, &made);
    bh_mutex_lock(&start_estimates->mutex);
    if (well) {
        struct bh_simulation old = start_estimates->simulation;

        start_estimates->simulation = made;
        made = old;
        start_estimates->made_ns = bh_time_monotonic();
        start_estimates->cost_ns = start_estimates->made_ns - begun_ns;
    }
    start_estimates->making = false;
    bh_mutex_unlock(&start_estimates->mutex);
    bh_simulation_free(&made);
}

uint64_t
bh_start_estimates_of(const struct bh_call *call, bh_job_id job)
{
    struct bh_start_estimates *start_estimates = call->api->start_estimates;
    const struct bh_job_forecast *row;
    uint64_t start_ns;

    bh_mutex_lock(&start_estimates->mutex);
    row = bh_job_forecasts_find(&start_estimates->simulation.forecasts, job);
    start_ns = row ? row->start_ns : 0;
    bh_mutex_unlock(&start_estimates->mutex);
    return start_ns;
}
