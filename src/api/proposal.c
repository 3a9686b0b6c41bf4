#include "api/proposal.h"

/* Both futures begin here; the plan is made of what is then. */
static bool
tick(struct bh_forecast *forecast)
{
    return bh_forecast_send(forecast, &(struct bh_event){ .kind = BH_EV_TICK }) == BH_OK;
}

static void
play(struct bh_proposal *proposal, struct bh_forecast *before, uint64_t now_ns)
{
    struct bh_event event = { .kind = BH_EV_MOVE, .u.move = proposal->plan.move };
    struct bh_forecast after;

    bh_forecast_twin(before, &after);
    bh_forecast_begin(before, now_ns);
    bh_forecast_begin(&after, now_ns);
    proposal->found = bh_forecast_send(&after, &event) == BH_OK;
    if (proposal->found) {
        bh_forecast_play(before);
        bh_forecast_play(&after);
        bh_defrag_judge(proposal->present.state.engine, &proposal->plan.move, &before->outlooks,
                        &after.outlooks, &proposal->verdict);
        proposal->complete = !before->outlooks.open && !after.outlooks.open;
    }
    bh_forecast_free(&after);
}

void
bh_proposal_make(struct bh_forecast *taken, uint64_t now_ns, struct bh_proposal *ret_proposal)
{
    struct bh_proposal *proposal = ret_proposal;
    struct bh_forecast before;

    *proposal = (struct bh_proposal){ .present = *taken };
    *taken = (struct bh_forecast){ .future = NULL };
    bh_view_settings(proposal->present.state.engine, &proposal->settings);
    if (proposal->settings.defrag.mode == BH_DEFRAG_OFF)
        return;
    bh_forecast_begin(&proposal->present, now_ns);
    if (!tick(&proposal->present))
        return;
    bh_view_moves_left(proposal->present.state.engine, now_ns, &proposal->left);
    proposal->found = bh_defrag_find(proposal->present.state.engine, &proposal->plan);
    if (!proposal->found)
        return;
    proposal->token = bh_defrag_token(&proposal->plan.move);
    bh_forecast_twin(&proposal->present, &before);
    play(proposal, &before, now_ns);
    bh_forecast_free(&before);
}

void
bh_proposal_free(struct bh_proposal *proposal)
{
    bh_forecast_free(&proposal->present);
}

bool
bh_proposal_holds(const struct bh_proposal *proposal)
{
    return proposal->found && proposal->verdict.sound;
}
