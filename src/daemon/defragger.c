#include "daemon/defragger.h"

#include "api/proposal.h"
#include "base/log.h"

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
carry_out(const struct bh_owner *owner, const struct bh_proposal *proposal)
{
    const struct bh_ev_move *move = &proposal->plan.move;
    struct bh_command command = { .op = BH_OP_DEFRAG_APPLY, .system = true, .move = move,
                                  .caller = { .name = "bulkheadd" } };
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_answer answer;
    struct bh_err err;

    if (owner->ops->command(owner->self, &command, arena, &answer, &err) == BH_OK)
        bh_log(JOBS_MOVED, BH_U64("jobs", move->move_count), BH_U64("for", move->for_job.v),
               BH_U64("gain_gpu_ms", move->gain_gpu_ms),
               BH_U64("cost_gpu_ms", move->cost_gpu_ms));
    bh_arena_free(arena);
}

void
bh_defragger_look(void *self)
{
    const struct bh_owner *owner = self;
    struct taking taking = { .wanted = false };
    struct bh_proposal proposal;
    struct bh_err unused;

    if (owner->ops->ask(owner->self, take, &taking, &unused) != BH_OK || !taking.wanted)
        return;
    bh_proposal_make(&taking.forecast, taking.now_ns, &proposal);
    if (bh_proposal_holds(&proposal))
        carry_out(owner, &proposal);
    bh_proposal_free(&proposal);
}
