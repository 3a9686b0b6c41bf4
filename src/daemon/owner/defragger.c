#include "daemon/owner/defragger.h"

#include "api/whatif/proposal.h"
#include "base/log.h"

struct defragger_copying {
    struct bh_simulation simulation;
    uint64_t now_ns;
    bool wanted;
};

/* On the owner's thread: a copy where it is wanted, and nothing else. */
static void
defragger_copy(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct defragger_copying *copying = self;
    struct bh_ev_settings settings;

    bh_view_settings(engine, &settings);
    copying->wanted = settings.defrag.mode == BH_DEFRAG_ON;
    copying->now_ns = now_ns;
    if (copying->wanted)
        bh_simulation_copy(engine, &copying->simulation);
}

static void
defragger_apply(const struct bh_owner *owner, const struct bh_proposal *proposal)
{
    const struct bh_ev_move *move = &proposal->plan.move;
    struct bh_command command = {
        .op = BH_OP_DEFRAG_APPLY, .system = true, .move = move, .caller = { .name = "bulkheadd" }
    };
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_answer answer;
    struct bh_err err;

    if (owner->ops->command(owner->self, &command, arena, &answer, &err) == BH_OK)
        bh_log(JOBS_MOVED, BH_U64("jobs", move->move_count), BH_U64("for", move->for_job.v),
               BH_U64("gain_gpu_ms", move->gain_gpu_ms), BH_U64("cost_gpu_ms", move->cost_gpu_ms));
    bh_arena_free(arena);
}

void
bh_defragger_run(void *self)
{
    const struct bh_owner *owner = self;
    struct defragger_copying copying = { .wanted = false };
    struct bh_proposal proposal;
    struct bh_err unused;

    if (owner->ops->ask(owner->self, defragger_copy, &copying, &unused) != BH_OK || !copying.wanted)
        return;
    bh_proposal_make(&copying.simulation, copying.now_ns, &proposal);
    if (bh_proposal_holds(&proposal))
        defragger_apply(owner, &proposal);
    bh_proposal_free(&proposal);
}
