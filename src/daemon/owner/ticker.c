#include "daemon/owner/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/time.h"

struct bh_ticker {
    /* fixed */
    void (*tick)(void *self);
    void *self;
    uint64_t interval_ns;
    pthread_t thread;
    /* shared, under mutex */
    struct bh_mutex mutex;
    struct bh_condition changed;
    bool stopping;
};

/* False when the thread is to end. */
static bool
ticker_wait(struct bh_ticker *ticker)
{
    bh_ns until = bh_time_monotonic() + ticker->interval_ns;
    bool more, in_time = true;

    bh_mutex_lock(&ticker->mutex);
    while (!ticker->stopping && in_time)
        in_time = bh_condition_wait_until(&ticker->changed, &ticker->mutex, until);
    more = !ticker->stopping;
    bh_mutex_unlock(&ticker->mutex);
    return more;
}

static void *
run_thread(void *self)
{
    struct bh_ticker *ticker = self;

    while (ticker_wait(ticker))
        ticker->tick(ticker->self);
    return NULL;
}

bh_rc
bh_ticker_start(uint64_t interval_ns, void (*tick)(void *self), void *self, struct bh_ticker **ret_ticker,
                struct bh_err *err)
{
    struct bh_ticker *ticker = calloc(1, sizeof *ticker);

    BH_ASSERT(ticker);
    *ticker = (struct bh_ticker){ .tick = tick, .self = self, .interval_ns = interval_ns };
    bh_mutex_init(&ticker->mutex, BH_LOCK_TICKER);
    bh_condition_init(&ticker->changed);
    errno = pthread_create(&ticker->thread, NULL, run_thread, ticker);
    if (errno != 0) {
        free(ticker);
        return bh_err_errno(err, "start a thread");
    }
    *ret_ticker = ticker;
    return BH_OK;
}

void
bh_ticker_stop(struct bh_ticker *ticker)
{
    if (!ticker)
        return;
    bh_mutex_lock(&ticker->mutex);
    ticker->stopping = true;
    bh_condition_signal(&ticker->changed);
    bh_mutex_unlock(&ticker->mutex);
    pthread_join(ticker->thread, NULL);
    bh_condition_fini(&ticker->changed);
    bh_mutex_fini(&ticker->mutex);
    free(ticker);
}
