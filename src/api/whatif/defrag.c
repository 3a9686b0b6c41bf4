#include "api/whatif/defrag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

struct defrag_writing {
    const struct bh_call *call;
    const struct bh_proposal *proposal;
    struct bh_json_writer w;
};

static void
defrag_put_placement(struct defrag_writing *writing, bh_gpu_id id, uint32_t profile_id, uint32_t start)
{
    const struct bh_dir_gpu *gpu = bh_directory_gpu(writing->call->dir, id);
    char name[BH_PARTITION_NAME_MAX];
    struct bh_json_writer *w = &writing->w;

    bh_partition_name(BH_GPU_MODEL_NONE, profile_id, name);
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "gpu", gpu ? gpu->uuid : "");
    bh_json_str(w, "profile", name);
    bh_json_u64(w, "start", start);
    bh_json_close(w, '}');
}

static void
defrag_put_from(struct defrag_writing *writing, const struct bh_job_view *view)
{
    const struct bh_engine *engine = writing->proposal->present.state.engine;
    struct bh_member_view member;

    bh_json_open(&writing->w, "from", '[');
    for (uint32_t i = 0; i < view->gang; i++)
        if (bh_view_member(engine, view->job, i, &member))
            for (uint32_t k = 0; k < member.partition_count; k++)
                defrag_put_placement(writing, member.partitions[k].gpu, member.partitions[k].profile,
                                     member.partitions[k].start);
    bh_json_close(&writing->w, ']');
}

static void
defrag_put_to(struct defrag_writing *writing, const struct bh_move_placement *placements, uint32_t count)
{
    bh_json_open(&writing->w, "to", '[');
    for (uint32_t i = 0; i < count; i++)
        defrag_put_placement(writing, placements[i].gpu, placements[i].profile, placements[i].start);
    bh_json_close(&writing->w, ']');
}

/* The moves in order, and what they leave of the places: those for whom they are. */
static void
defrag_put_moves(struct defrag_writing *writing)
{
    const struct bh_engine *engine = writing->proposal->present.state.engine;
    const struct bh_ev_move *move = &writing->proposal->plan.move;
    struct bh_json_writer *w = &writing->w;
    uint32_t at = 0;

    bh_json_open(w, "moves", '[');
    for (uint32_t i = 0; i < move->move_count; i++) {
        const struct bh_dir_tenant *tenant;
        struct bh_job_view view;

        if (!bh_view_job(engine, move->moves[i].job, &view))
            continue;
        tenant = bh_directory_tenant(writing->call->dir, view.tenant);
        bh_json_open(w, NULL, '{');
        defrag_put_from(writing, &view);
        bh_json_u64(w, "job", view.job.v);
        bh_json_str(w, "tenant", tenant ? tenant->path : "");
        defrag_put_to(writing, &move->placements[at], view.count * view.gang);
        bh_json_close(w, '}');
        at += view.count * view.gang;
    }
    bh_json_close(w, ']');
}

/* The GPU that all this is for. */
static void
defrag_put_emptied(struct defrag_writing *writing)
{
    const struct bh_dir_gpu *gpu = bh_directory_gpu(writing->call->dir, writing->proposal->plan.empties);

    if (gpu)
        bh_json_str(&writing->w, "empties", gpu->uuid);
}

static void
defrag_put_plan(struct defrag_writing *writing)
{
    const struct bh_proposal *proposal = writing->proposal;
    const struct bh_ev_move *move = &proposal->plan.move;
    struct bh_json_writer *w = &writing->w;
    char token[TOKEN_MAX + 1];

    defrag_format_token(proposal->token, token);
    bh_json_open(w, "plan", '{');
    bh_json_bool(w, "complete", proposal->complete);
    bh_json_u64(w, "cost_gpu_ms", move->cost_gpu_ms);
    defrag_put_emptied(writing);
    if (move->for_job.v)
        bh_json_u64(w, "for_job", move->for_job.v);
    bh_json_u64(w, "gain_gpu_ms", move->gain_gpu_ms);
    defrag_put_moves(writing);
    bh_json_open(w, "room", '{');
    bh_json_u64(w, "after_parts", proposal->plan.capacity.after);
    bh_json_u64(w, "before_parts", proposal->plan.capacity.before);
    bh_json_close(w, '}');
    bh_json_open(w, "simulated", '{');
    bh_json_u64(w, "later", proposal->verdict.later);
    bh_json_i64(w, "saved_gpu_ms", proposal->verdict.saved_gpu_ms);
    bh_json_u64(w, "sooner", proposal->verdict.sooner);
    bh_json_close(w, '}');
    bh_json_str(w, "token", token);
    bh_json_close(w, '}');
}

static void
defrag_put_budget(struct defrag_writing *writing)
{
    const struct bh_proposal *proposal = writing->proposal;
    struct bh_json_writer *w = &writing->w;

    bh_json_open(w, "budget", '{');
    if (proposal->left.ends_ns)
        bh_json_ns(w, "ends_ns", proposal->left.ends_ns);
    bh_json_u64(w, "gpu_ms", proposal->settings.defrag.lost_gpu_s * 1000);
    bh_json_u64(w, "gpu_ms_left", proposal->left.lost_gpu_ms);
    bh_json_u64(w, "moves", proposal->settings.defrag.moves);
    bh_json_u64(w, "moves_left", proposal->left.moves);
    bh_json_close(w, '}');
}

static const char *
defrag_sentence_of(const struct bh_proposal *proposal)
{
    if (proposal->settings.defrag.mode == BH_DEFRAG_OFF)
        return "defragmentation is off on this site (scheduling.defrag)";
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
    struct defrag_writing writing = { .call = call, .proposal = &proposal, .w = bh_call_writer(call) };
    struct bh_json_writer *w = &writing.w;
    uint64_t now_ns;
    bh_rc rc = defrag_propose(call, &proposal, &now_ns, err);

    if (rc != BH_OK)
        return rc;
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "assumption", bh_simulation_assumption);
    if (proposal.settings.defrag.mode != BH_DEFRAG_OFF)
        defrag_put_budget(&writing);
    bh_json_str(w, "mode", bh_defrag_mode_names[proposal.settings.defrag.mode]);
    bh_json_ns(w, "now_ns", now_ns);
    if (bh_proposal_holds(&proposal))
        defrag_put_plan(&writing);
    bh_json_str(w, "sentence", defrag_sentence_of(&proposal));
    bh_json_close(w, '}');
    return BH_OK;
}

/* ---- carrying it out ---- */

/* The owner is asked in any case: it knows what was answered to the same request before,
 * and records what is refused.  A plan that is not the present one is sent as one that
 * moves nobody, which the engine refuses as stale, or because the mode is off. */
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
