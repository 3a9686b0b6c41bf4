#include "api/whatif/defrag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/request/reply.h"
#include "api/whatif/proposal.h"
#include "api/whatif/whatif.h"
#include "model/geometry.h"

enum { TOKEN_MAX = 16 };

static const struct bh_field request_fields[] = {
    BH_F(struct bh_defrag_request, token, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = TOKEN_MAX,
         .doc = "of the plan, as it was shown"),
};
const struct bh_fields bh_defrag_request_fields =
    BH_FIELDS("defrag", struct bh_defrag_request, request_fields);

/* ---- the proposal ---- */

struct defrag_copying {
    struct bh_simulation simulation;
    uint64_t now_ns;
};

/* On the owner's thread: a copy and nothing else. */
static void
defrag_copy(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct defrag_copying *copying = self;

    copying->now_ns = now_ns;
    bh_simulation_copy(engine, &copying->simulation);
}

static bh_rc
defrag_propose(struct bh_call *call, struct bh_proposal *ret_proposal, uint64_t *ret_now_ns,
               struct bh_err *err)
{
    struct defrag_copying copying;
    bh_rc rc = bh_whatif_acquire(call->api->whatif_lock, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, defrag_copy, &copying, err);
    if (rc == BH_OK) {
        bh_proposal_make(&copying.simulation, copying.now_ns, ret_proposal);
        *ret_now_ns = copying.now_ns;
    }
    bh_whatif_release(call->api->whatif_lock);
    return rc;
}

static void
defrag_format_token(uint64_t token, char ret_text[TOKEN_MAX + 1])
{
    snprintf(ret_text, TOKEN_MAX + 1, "%016" PRIx64, token);
}

/* ---- showing it ---- */

static bh_rc
defrag_fill_placement(const struct bh_call *call, const struct bh_move_placement *from,
                      struct bh_reply_placement *ret, struct bh_err *err)
{
    const struct bh_dir_gpu *gpu = bh_directory_gpu(call->dir, from->gpu);
    char *name;
    bh_rc rc = bh_call_alloc(call, BH_PARTITION_NAME_MAX, &name, err);

    if (rc != BH_OK)
        return rc;
    bh_partition_name(BH_GPU_MODEL_NONE, from->profile, name);
    *ret = (struct bh_reply_placement){ .gpu = gpu ? gpu->uuid : "", .profile = name, .start = from->start };
    return BH_OK;
}

static bh_rc
defrag_list_from(const struct bh_call *call, const struct bh_engine *engine, const struct bh_job_view *view,
                 struct bh_list *ret, struct bh_err *err)
{
    struct bh_reply_placement *rows;
    struct bh_member_view member;
    bh_rc rc = bh_call_alloc(call, view->gang * BH_JOB_COUNT_MAX * sizeof *rows, &rows, err);

    *ret = (struct bh_list){ rows, 0 };
    for (uint32_t i = 0; i < view->gang && rc == BH_OK; i++) {
        uint32_t count = bh_view_member(engine, view->job, i, &member) ? member.partition_count : 0;

        for (uint32_t k = 0; k < count && rc == BH_OK; k++) {
            const struct bh_partition *partition = &member.partitions[k];
            const struct bh_move_placement from = { partition->gpu, partition->profile, partition->start };

            rc = defrag_fill_placement(call, &from, &rows[ret->count++], err);
        }
    }
    return rc;
}

static bh_rc
defrag_list_to(const struct bh_call *call, const struct bh_move_placement *placements, uint32_t count,
               struct bh_list *ret, struct bh_err *err)
{
    struct bh_reply_placement *rows;
    bh_rc rc = bh_call_alloc(call, count * sizeof *rows, &rows, err);

    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = defrag_fill_placement(call, &placements[i], &rows[i], err);
    *ret = (struct bh_list){ rows, count };
    return rc;
}

/* The moves in order, and what they leave of the placements: those of the jobs that gain. */
static bh_rc
defrag_list_moves(const struct bh_call *call, const struct bh_proposal *proposal, struct bh_list *ret,
                  struct bh_err *err)
{
    const struct bh_engine *engine = proposal->present.state.engine;
    const struct bh_ev_move *move = &proposal->plan.move;
    struct bh_reply_defrag_move *rows;
    uint32_t at = 0;
    bh_rc rc = bh_call_alloc(call, move->move_count * sizeof *rows, &rows, err);

    *ret = (struct bh_list){ rows, 0 };
    for (uint32_t i = 0; i < move->move_count && rc == BH_OK; i++) {
        struct bh_reply_defrag_move *row = &rows[ret->count];
        const struct bh_dir_tenant *tenant;
        struct bh_job_view view;

        if (!bh_view_job(engine, move->moves[i].job, &view))
            continue;
        tenant = bh_directory_tenant(call->dir, view.tenant);
        row->job = view.job.v;
        row->tenant = tenant ? tenant->path : "";
        rc = defrag_list_from(call, engine, &view, &row->from, err);
        if (rc == BH_OK)
            rc = defrag_list_to(call, &move->placements[at], view.count * view.gang, &row->to, err);
        at += view.count * view.gang;
        ret->count++;
    }
    return rc;
}

static bh_rc
defrag_fill_plan(const struct bh_call *call, const struct bh_proposal *proposal, char token[TOKEN_MAX + 1],
                 struct bh_reply_defrag_plan *ret, struct bh_err *err)
{
    const struct bh_dir_gpu *emptied = bh_directory_gpu(call->dir, proposal->plan.empties);
    const struct bh_ev_move *move = &proposal->plan.move;

    defrag_format_token(proposal->token, token);
    *ret = (struct bh_reply_defrag_plan){
        .complete = proposal->complete,
        .cost_gpu_ms = move->cost_gpu_ms,
        .empties = emptied ? emptied->uuid : NULL,
        .for_job = move->for_job.v,
        .free_capacity = { .after_parts = proposal->plan.capacity.after,
                           .before_parts = proposal->plan.capacity.before },
        .gain_gpu_ms = move->gain_gpu_ms,
        .simulated = { .later = proposal->verdict.later,
                       .saved_gpu_ms = proposal->verdict.saved_gpu_ms,
                       .sooner = proposal->verdict.sooner },
        .token = token,
    };
    return defrag_list_moves(call, proposal, &ret->moves, err);
}

static const char *
defrag_sentence_of(const struct bh_proposal *proposal)
{
    if (proposal->settings.defrag.mode == BH_DEFRAG_OFF)
        return "defragmentation is off on this site: scheduling.defrag of the site file turns it on";
    if (bh_proposal_holds(proposal))
        return proposal->plan.move.for_job.v ? "a job that waits could begin"
                                             : "larger jobs could begin than now";
    if (proposal->found)
        return "moves were found, and played forward they were not worth it";
    if (proposal->left.moves == 0)
        return "this hour's moves are used up";
    return "no moves are worth what they would lose";
}

bh_rc
bh_defrag_show(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(bh_proposal_free) struct bh_proposal proposal = { .found = false };
    struct bh_reply_defrag_plan plan;
    struct bh_reply_defrag_budget budget;
    char token[TOKEN_MAX + 1];
    uint64_t now_ns;
    bh_rc rc = defrag_propose(call, &proposal, &now_ns, err);

    if (rc == BH_OK && bh_proposal_holds(&proposal))
        rc = defrag_fill_plan(call, &proposal, token, &plan, err);
    if (rc != BH_OK)
        return rc;
    budget = (struct bh_reply_defrag_budget){ .ends_ns = proposal.left.ends_ns,
                                              .gpu_ms = proposal.settings.defrag.lost_gpu_s * 1000,
                                              .gpu_ms_left = proposal.left.lost_gpu_ms,
                                              .moves = proposal.settings.defrag.moves,
                                              .moves_left = proposal.left.moves };
    BH_REPLY_WITH(call, defrag_shown, .assumption = bh_simulation_assumption,
                  .budget = proposal.settings.defrag.mode == BH_DEFRAG_OFF ? NULL : &budget,
                  .mode = bh_defrag_mode_names[proposal.settings.defrag.mode], .now_ns = now_ns,
                  .plan = bh_proposal_holds(&proposal) ? &plan : NULL,
                  .sentence = defrag_sentence_of(&proposal));
    return BH_OK;
}

/* ---- carrying it out ---- */

/* The owner is asked in any case: it knows what was answered to the same request before,
 * and records what is refused.  A plan that is not the present one is sent as one that
 * moves no job, which the engine refuses as stale, or because the mode is off. */
bh_rc
bh_defrag_apply(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(bh_proposal_free) struct bh_proposal proposal = { .found = false };
    const struct bh_ev_move nothing = { .move_count = 1 };
    struct bh_command command = { .move = &nothing };
    struct bh_defrag_request request;
    char token[TOKEN_MAX + 1];
    uint64_t now_ns;
    bh_rc rc = bh_call_body(call, &bh_defrag_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    rc = defrag_propose(call, &proposal, &now_ns, err);
    if (rc != BH_OK)
        return rc;
    defrag_format_token(proposal.token, token);
    if (bh_proposal_holds(&proposal) && strcmp(token, request.token) == 0)
        command.move = &proposal.plan.move;
    return bh_call_send(call, &command, err);
}
