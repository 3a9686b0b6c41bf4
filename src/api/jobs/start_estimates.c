#include "api/jobs/start_estimates.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/state/simulation.h"
#include "base/assert.h"
#include "base/lock.h"
#include "base/time.h"

static const bh_ns least_ns = 200 * BH_NS_PER_MS, most_ns = 5 * BH_NS_PER_S;

/* It may cost a twentieth of the time, a quarter when a job is asked for that is new. */
enum { LIST_SHARE = 20, JOB_SHARE = 4 };

struct bh_start_estimates {
    struct bh_owner owner;
    pthread_t thread;
    struct bh_mutex mutex;
    struct bh_condition wake;
    /* under mutex */
    struct bh_simulation simulation; /* its outlooks are kept, and no more */
    bh_ns made_ns, cost_ns;          /* by the monotonic clock; made 0: none yet */
    uint64_t number;                 /* it knows the changes up to this one */
    bool making, wanted, running, stopping;
};

/* ---- making one ---- */

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
estimates_play(const struct bh_owner *owner, struct bh_simulation *ret_simulation)
{
    struct estimates_copying copying = { .simulation = ret_simulation };
    struct bh_err unused;

    if (owner->ops->ask(owner->self, estimates_copy, &copying, &unused) != BH_OK)
        return false;
    bh_simulation_begin(ret_simulation, copying.now_ns);
    bh_simulation_run(ret_simulation);
    bh_state_fini(&ret_simulation->state);
    return true;
}

/* Called and returns with the mutex held, `making` set; plays without it. */
static void
estimates_make(struct bh_start_estimates *estimates)
{
    const struct bh_owner *owner = &estimates->owner;
    bh_ns begun_ns = bh_time_monotonic();
    struct bh_simulation made = { 0 };
    uint64_t number;
    bool well;

    BH_ASSERT(bh_mutex_is_held(&estimates->mutex) && estimates->making);
    bh_mutex_unlock(&estimates->mutex);
    number = owner->ops->change_number(owner->self);
    well = estimates_play(owner, &made);
    bh_mutex_lock(&estimates->mutex);
    if (well) {
        struct bh_simulation old = estimates->simulation;

        estimates->simulation = made;
        estimates->number = number;
        estimates->made_ns = bh_time_monotonic();
        estimates->cost_ns = estimates->made_ns - begun_ns;
        made = old;
    }
    estimates->making = false;
    bh_mutex_unlock(&estimates->mutex);
    bh_simulation_free(&made);
    bh_mutex_lock(&estimates->mutex);
}

/* ---- the thread ---- */

static void *
estimates_run(void *self)
{
    struct bh_start_estimates *estimates = self;

    bh_mutex_lock(&estimates->mutex);
    while (!estimates->stopping) {
        if (estimates->wanted && !estimates->making) {
            estimates->wanted = false;
            estimates->making = true;
            estimates_make(estimates);
        } else {
            bh_condition_wait(&estimates->wake, &estimates->mutex);
        }
    }
    bh_mutex_unlock(&estimates->mutex);
    return NULL;
}

struct bh_start_estimates *
bh_start_estimates_new(const struct bh_owner *owner)
{
    struct bh_start_estimates *estimates = calloc(1, sizeof *estimates);

    BH_ASSERT(estimates);
    estimates->owner = *owner;
    bh_mutex_init(&estimates->mutex, BH_LOCK_ESTIMATES);
    bh_condition_init(&estimates->wake);
    return estimates;
}

void
bh_start_estimates_free(struct bh_start_estimates *estimates)
{
    if (!estimates)
        return;
    bh_mutex_lock(&estimates->mutex);
    estimates->stopping = true;
    bh_condition_signal(&estimates->wake);
    bh_mutex_unlock(&estimates->mutex);
    if (estimates->running)
        pthread_join(estimates->thread, NULL);
    bh_simulation_free(&estimates->simulation);
    bh_condition_fini(&estimates->wake);
    bh_mutex_fini(&estimates->mutex);
    free(estimates);
}

/* ---- questions ---- */

/* The request itself makes one: where there is none, and for a job that the present one does not know. */
static bool
estimates_must_wait(const struct bh_start_estimates *estimates, bh_job_id job, bh_ns now_ns)
{
    if (!estimates->made_ns)
        return true;
    return job.v && !bh_job_forecasts_find(&estimates->simulation.forecasts, job)
           && now_ns - estimates->made_ns >= JOB_SHARE * estimates->cost_ns;
}

/* A job that runs longer than was expected changes the future without a change. */
static bool
estimates_is_old(const struct bh_start_estimates *estimates, uint64_t number, bh_ns now_ns)
{
    bh_ns age_ns = now_ns - estimates->made_ns, keep_ns = LIST_SHARE * estimates->cost_ns;

    keep_ns = keep_ns < least_ns ? least_ns : keep_ns > most_ns ? most_ns : keep_ns;
    return age_ns >= (number == estimates->number ? most_ns : keep_ns);
}

/* Without its thread there are none but those that requests make. */
static void
estimates_want(struct bh_start_estimates *estimates)
{
    if (!estimates->running)
        estimates->running = pthread_create(&estimates->thread, NULL, estimates_run, estimates) == 0;
    estimates->wanted = true;
    bh_condition_signal(&estimates->wake);
}

void
bh_start_estimates_refresh(const struct bh_call *call, bh_job_id job)
{
    struct bh_start_estimates *estimates = call->api->start_estimates;
    uint64_t number = estimates->owner.ops->change_number(estimates->owner.self);
    bh_ns now_ns = bh_time_monotonic();

    bh_mutex_lock(&estimates->mutex);
    if (!estimates->making && estimates_must_wait(estimates, job, now_ns)) {
        estimates->making = true;
        estimates_make(estimates);
    } else if (!estimates->making && estimates_is_old(estimates, number, now_ns)) {
        estimates_want(estimates);
    }
    bh_mutex_unlock(&estimates->mutex);
}

uint64_t
bh_start_estimates_of(const struct bh_call *call, bh_job_id job)
{
    struct bh_start_estimates *estimates = call->api->start_estimates;
    const struct bh_job_forecast *row;
    uint64_t start_ns;

    bh_mutex_lock(&estimates->mutex);
    row = bh_job_forecasts_find(&estimates->simulation.forecasts, job);
    start_ns = row ? row->start_ns : 0;
    bh_mutex_unlock(&estimates->mutex);
    return start_ns;
}
