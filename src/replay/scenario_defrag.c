/* Statements on defragmentation: the plan, and carrying it out as the daemon does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/whatif/proposal.h"
#include "base/num.h"
#include "base/time.h"
#include "replay/scenario_run.h"

static void
propose(const struct bh_scenario_run *run, struct bh_proposal *ret_proposal)
{
    struct bh_simulation taken;

    bh_simulation_copy(bh_world_engine(run->world), &taken);
    bh_proposal_make(&taken, bh_world_now_ns(run->world), ret_proposal);
}

static bh_rc
send_moves(struct bh_scenario_run *run, const struct bh_ev_move *move, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_MOVE, .u.move = *move };

    return bh_scenario_run_send(run, &event, err);
}

bh_rc
bh_scenario_run_defragment(struct bh_scenario_run *run, struct bh_err *err)
{
    BH_AUTO(bh_proposal_free) struct bh_proposal proposal;

    propose(run, &proposal);
    if (proposal.settings.defrag.mode != BH_DEFRAG_ON || !bh_proposal_holds(&proposal))
        return BH_OK;
    return send_moves(run, &proposal.plan.move, err);
}

/* defrag: as `bulkhead defrag --apply` */
static bh_rc
play_defrag(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    BH_AUTO(bh_proposal_free) struct bh_proposal proposal;
    struct bh_ev_move nothing = { .move_count = 1 };

    propose(run, &proposal);
    if (proposal.settings.defrag.mode == BH_DEFRAG_OFF)
        return send_moves(run, &nothing, err);
    if (!bh_proposal_holds(&proposal))
        return bh_err_set(err, BH_CONFLICT, "there is no plan of moves");
    return send_moves(run, &proposal.plan.move, err);
}

/* ---- expect-plan ---- */

static void
name_jobs(const struct bh_scenario_run *run, const struct bh_ev_move *move, struct bh_buf *out)
{
    for (uint32_t i = 0; i < move->move_count; i++)
        bh_buf_printf(out, "%s%s", i ? " " : "",
                      bh_names_text(run->names, BH_NAMED_JOB, (uint32_t)move->moves[i].job.v));
    if (move->for_job.v)
        bh_buf_printf(out, " for %s", bh_names_text(run->names, BH_NAMED_JOB, (uint32_t)move->for_job.v));
}

static void
name_words(const struct bh_words *words, struct bh_buf *out)
{
    for (uint32_t at = 1; at < words->count; at++)
        bh_buf_printf(out, "%s%s", at > 1 ? " " : "", words->at[at]);
}

/* expect-plan a b for big; expect-plan a; expect-plan none */
static bh_rc
play_expect_plan(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    BH_AUTO(bh_proposal_free) struct bh_proposal proposal;
    char found[400], wanted[400];
    struct bh_buf out;

    propose(run, &proposal);
    bh_buf_init_fixed(&out, found, sizeof found);
    if (bh_proposal_holds(&proposal))
        name_jobs(run, &proposal.plan.move, &out);
    else
        bh_buf_puts(&out, "none");
    bh_buf_text(&out);
    bh_buf_init_fixed(&out, wanted, sizeof wanted);
    name_words(words, &out);
    bh_buf_text(&out);
    if (strcmp(found, wanted) == 0)
        return BH_OK;
    return bh_err_set(err, BH_CONFLICT,
                      "the plan is: %.80s; found %d, gain %" PRIu64 " cost %" PRIu64 " saved %" PRId64
                      " GPU-ms",
                      found, proposal.found, proposal.plan.move.gain_gpu_ms, proposal.plan.move.cost_gpu_ms,
                      proposal.verdict.saved_gpu_ms);
}

const struct bh_statement bh_defrag_statements[] = {
    { "defrag", 0, 0, "", play_defrag },
    { "expect-plan", 1, 10, "JOB... [for JOB] | none", play_expect_plan },
    { NULL, 0, 0, NULL, NULL },
};
