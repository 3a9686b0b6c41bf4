#include "daemon/defragger.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "api/proposal.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/time.h"

struct bh_defragger {
    /* fixed */
    struct bh_owner owner;
    uint64_t interval_ns;
    pthread_t thread;
    /* shared, under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopping;
};

struct taking {
    struct bh_forecast forecast;
    uint64_t now_ns;
    bool wanted;
};

/* On the owner's thread: a copy where it is wanted, and nothing else. */
static void
take(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct taking *taking = self;
    struct bh_ev_settings settings;

    bh_view_settings(engine, &settings);
    taking->wanted = settings.defrag.mode == BH_DEFRAG_ON;
    taking->now_ns = now_ns;
    if (taking->wanted)
        bh_forecast_take(engine, &taking->forecast);
}

static void
carry_out(const struct bh_defragger *defragger, const struct bh_proposal *proposal)
{
    const struct bh_ev_move *move = &proposal->plan.move;
    struct bh_command command = { .op = BH_OP_DEFRAG_APPLY, .system = true, .move = move,
                                  .caller = { .name = "bulkheadd" } };
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_answer answer;
    struct bh_err err;

    if (defragger->owner.ops->command(defragger->owner.self, &command, arena, &answer, &err)
        == BH_OK)
        bh_log(JOBS_MOVED, BH_U64("jobs", move->move_count), BH_U64("for", move->for_job.v),
               BH_U64("gain_gpu_ms", move->gain_gpu_ms),
               BH_U64("cost_gpu_ms", move->cost_gpu_ms));
    bh_arena_free(arena);
}

static void
look(const struct bh_defragger *defragger)
{
    struct taking taking = { .wanted = false };
    struct bh_proposal proposal;
    struct bh_err unused;

    if (defragger->owner.ops->ask(defragger->owner.self, take, &taking, &unused) != BH_OK
        || !taking.wanted)
        return;
    bh_proposal_make(&taking.forecast, taking.now_ns, &proposal);
    if (bh_proposal_holds(&proposal))
        carry_out(defragger, &proposal);
    bh_proposal_free(&proposal);
}

/* False when the thread is to end. */
static bool
wait_a_turn(struct bh_defragger *defragger)
{
    bh_ns until_ns = bh_time_monotonic() + defragger->interval_ns;
    struct timespec until = { .tv_sec = (time_t)(until_ns / BH_NS_PER_S),
                              .tv_nsec = (long)(until_ns % BH_NS_PER_S) };
    bool more;
    int rc = 0;

    pthread_mutex_lock(&defragger->mutex);
    while (!defragger->stopping && rc == 0)
        rc = pthread_cond_clockwait(&defragger->changed, &defragger->mutex, CLOCK_MONOTONIC,
                                    &until);
    more = !defragger->stopping;
    pthread_mutex_unlock(&defragger->mutex);
    return more;
}

static void *
run_thread(void *self)
{
    struct bh_defragger *defragger = self;

    while (wait_a_turn(defragger))
        look(defragger);
    return NULL;
}

bh_rc
bh_defragger_start(const struct bh_owner *owner, uint64_t interval_ns,
                   struct bh_defragger **ret_defragger, struct bh_err *err)
{
    struct bh_defragger *defragger = calloc(1, sizeof *defragger);

    BH_ASSERT(defragger);
    defragger->owner = *owner;
    defragger->interval_ns = interval_ns;
    pthread_mutex_init(&defragger->mutex, NULL);
    pthread_cond_init(&defragger->changed, NULL);
    errno = pthread_create(&defragger->thread, NULL, run_thread, defragger);
    if (errno != 0) {
        free(defragger);
        return bh_err_errno(err, "start the defragmenting thread");
    }
    *ret_defragger = defragger;
    return BH_OK;
}

void
bh_defragger_stop(struct bh_defragger *defragger)
{
    if (!defragger)
        return;
    pthread_mutex_lock(&defragger->mutex);
    defragger->stopping = true;
    pthread_cond_signal(&defragger->changed);
    pthread_mutex_unlock(&defragger->mutex);
    pthread_join(defragger->thread, NULL);
    pthread_cond_destroy(&defragger->changed);
    pthread_mutex_destroy(&defragger->mutex);
    free(defragger);
}
