#include "api/starts.h"

#include <pthread.h>
#include <stdlib.h>

#include "api/forecast.h"
#include "base/assert.h"
#include "base/time.h"

static const bh_ns least_ns = 200 * BH_NS_PER_MS, most_ns = 5 * BH_NS_PER_S;

/* It may cost a twentieth of the time, a quarter when a job is asked for that is new. */
enum { LIST_SHARE = 20, JOB_SHARE = 4 };

struct bh_starts {
    pthread_mutex_t mutex;
    /* under mutex */
    struct bh_forecast forecast; /* its outlooks are kept, and no more */
    bh_ns made_ns, cost_ns;      /* by the monotonic clock; made 0: none yet */
    bool making;
};

struct bh_starts *
bh_starts_new(void)
{
    struct bh_starts *starts = calloc(1, sizeof *starts);

    BH_ASSERT(starts);
    pthread_mutex_init(&starts->mutex, NULL);
    return starts;
}

void
bh_starts_free(struct bh_starts *starts)
{
    if (!starts)
        return;
    bh_forecast_free(&starts->forecast);
    pthread_mutex_destroy(&starts->mutex);
    free(starts);
}

/* Whether it must be made anew; under the mutex. */
static bool
is_old(const struct bh_starts *starts, bh_job_id job, bh_ns now_ns)
{
    bh_ns age_ns = now_ns - starts->made_ns, keep_ns = LIST_SHARE * starts->cost_ns;

    if (!starts->made_ns)
        return true;
    if (job.v && !bh_outlooks_find(&starts->forecast.outlooks, job))
        return age_ns >= JOB_SHARE * starts->cost_ns;
    keep_ns = keep_ns < least_ns ? least_ns : keep_ns > most_ns ? most_ns : keep_ns;
    return age_ns >= keep_ns;
}

struct taking {
    struct bh_forecast *forecast;
    uint64_t now_ns;
};

/* On the owner's thread: a copy of memory and nothing else. */
static void
take(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct taking *taking = self;

    taking->now_ns = now_ns;
    bh_forecast_take(engine, taking->forecast);
}

static bool
make(const struct bh_call *call, struct bh_forecast *ret_forecast)
{
    struct taking taking = { .forecast = ret_forecast };
    struct bh_err unused;

    if (bh_call_ask(call, take, &taking, &unused) != BH_OK)
        return false;
    bh_forecast_begin(ret_forecast, taking.now_ns);
    bh_forecast_play(ret_forecast);
    bh_state_fini(&ret_forecast->state);
    return true;
}

void
bh_starts_refresh(const struct bh_call *call, bh_job_id job)
{
    struct bh_starts *starts = call->api->starts;
    bh_ns begun_ns = bh_time_monotonic();
    struct bh_forecast made = { 0 };
    bool mine, well;

    pthread_mutex_lock(&starts->mutex);
    mine = !starts->making && is_old(starts, job, begun_ns);
    starts->making = starts->making || mine;
    pthread_mutex_unlock(&starts->mutex);
    if (!mine)
        return;
    well = make(call, &made);
    pthread_mutex_lock(&starts->mutex);
    if (well) {
        struct bh_forecast old = starts->forecast;

        starts->forecast = made;
        made = old;
        starts->made_ns = bh_time_monotonic();
        starts->cost_ns = starts->made_ns - begun_ns;
    }
    starts->making = false;
    pthread_mutex_unlock(&starts->mutex);
    bh_forecast_free(&made);
}

uint64_t
bh_starts_of(const struct bh_call *call, bh_job_id job)
{
    struct bh_starts *starts = call->api->starts;
    const struct bh_outlook *row;
    uint64_t start_ns;

    pthread_mutex_lock(&starts->mutex);
    row = bh_outlooks_find(&starts->forecast.outlooks, job);
    start_ns = row ? row->start_ns : 0;
    pthread_mutex_unlock(&starts->mutex);
    return start_ns;
}
