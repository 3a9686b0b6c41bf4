#include "daemon/owner/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/time.h"

struct bh_ticker {
    /* fixed */
    void (*tick)(void *self);
    void *self;
    uint64_t interval_ns;
    pthread_t thread;
    /* shared, under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopping;
};

/* False when the thread is to end. */
static bool
ticker_wait(struct bh_ticker *ticker)
{
    bh_ns until_ns = bh_time_monotonic() + ticker->interval_ns;
    struct timespec until = { .tv_sec = (time_t)(until_ns / BH_NS_PER_S),
                              .tv_nsec = (long)(until_ns % BH_NS_PER_S) };
    bool more;
    int rc = 0;

    pthread_mutex_lock(&ticker->mutex);
    while (!ticker->stopping && rc == 0)
        rc = pthread_cond_clockwait(&ticker->changed, &ticker->mutex, CLOCK_MONOTONIC, &until);
    more = !ticker->stopping;
    pthread_mutex_unlock(&ticker->mutex);
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
    pthread_mutex_init(&ticker->mutex, NULL);
    pthread_cond_init(&ticker->changed, NULL);
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
    pthread_mutex_lock(&ticker->mutex);
    ticker->stopping = true;
    pthread_cond_signal(&ticker->changed);
    pthread_mutex_unlock(&ticker->mutex);
    pthread_join(ticker->thread, NULL);
    pthread_cond_destroy(&ticker->changed);
    pthread_mutex_destroy(&ticker->mutex);
    free(ticker);
}
