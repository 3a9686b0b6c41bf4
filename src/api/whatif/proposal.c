#include "api/whatif/proposal.h"

/* Both futures begin here; the plan is made of what is then. */
static bool
proposal_tick(struct bh_simulation *simulation)
{
    return bh_simulation_send(simulation, &(struct bh_event){ .kind = BH_EV_TICK }) == BH_OK;
}

static void
proposal_play(struct bh_proposal *proposal, struct bh_simulation *before, uint64_t now_ns)
{
    struct bh_event event = { .kind = BH_EV_MOVE, .u.move = proposal->plan.move };
    struct bh_simulation after;

    bh_simulation_clone(before, &after);
    bh_simulation_begin(before, now_ns);
    bh_simulation_begin(&after, now_ns);
    proposal->found = bh_simulation_send(&after, &event) == BH_OK;
    if (proposal->found) {
        bh_simulation_run(before);
        bh_simulation_run(&after);
        bh_defrag_judge(proposal->present.state.engine, &proposal->plan.move, &before->forecasts,
                        &after.forecasts, &proposal->verdict);
        proposal->complete = !before->forecasts.open && !after.forecasts.open;
    }
    bh_simulation_free(&after);
}

void
bh_proposal_make(struct bh_simulation *taken, uint64_t now_ns, struct bh_proposal *ret_proposal)
{
    struct bh_proposal *proposal = ret_proposal;
    struct bh_simulation before;

    *proposal = (struct bh_proposal){ .present = *taken };
    *taken = (struct bh_simulation){ .future = NULL };
    bh_view_settings(proposal->present.state.engine, &proposal->settings);
    if (proposal->settings.defrag.mode == BH_DEFRAG_OFF)
        return;
    bh_simulation_begin(&proposal->present, now_ns);
    if (!proposal_tick(&proposal->present))
        return;
    bh_view_moves_left(proposal->present.state.engine, now_ns, &proposal->left);
    proposal->found = bh_defrag_find(proposal->present.state.engine, &proposal->plan);
    if (!proposal->found)
        return;
    proposal->token = bh_defrag_token(&proposal->plan.move);
    bh_simulation_clone(&proposal->present, &before);
    proposal_play(proposal, &before, now_ns);
    bh_simulation_free(&before);
}

void
bh_proposal_free(struct bh_proposal *proposal)
{
    bh_simulation_free(&proposal->present);
}

bool
bh_proposal_holds(const struct bh_proposal *proposal)
{
    return proposal->found && proposal->verdict.sound;
}
