#include "api/request/answer.h"

#include <string.h>

#include "base/json.h"

struct bh_reply_site_changes
bh_answer_site(const struct bh_answer *answer, bool dry_run)
{
    const struct bh_site_changes *changes = &answer->changes;
    struct bh_reply_site_changes reply = {
        .change_count = changes->count,
        .changes = changes->lines,
        .dry_run = dry_run,
        .removes = answer->removes,
        .revision = answer->revision,
        .warnings = answer->warnings,
    };

    if (changes->listed != changes->count)
        memcpy(reply.changes_sha256, changes->digest, sizeof reply.changes_sha256);
    return reply;
}

#define PUT(out, name, ...)                                                                                  \
    bh_json_encode(out, &bh_reply_##name##_fields, &(const struct bh_reply_##name){ __VA_ARGS__ })

static void
answer_put_moved(struct bh_buf *out, const struct bh_ev_move *move)
{
    uint64_t jobs[BH_MOVES_MAX];

    for (uint32_t i = 0; i < move->move_count; i++)
        jobs[i] = move->moves[i].job.v;
    PUT(out, defrag_moved, .moved = { jobs, move->move_count });
}

static void
answer_put_shredded(struct bh_buf *out, const struct bh_shred_request *request,
                    const struct bh_answer *answer)
{
    bool asked = answer->shred_token && answer->shred_token[0];

    PUT(out, key_shredding, .expires_ns = asked ? answer->expires_ns : (uint64_t)BH_UNSET,
        .keys = answer->keys, .month = request->name ? NULL : request->month, .name = request->name,
        .state = asked ? "asked" : "destroyed", .tenant = request->name ? NULL : request->tenant,
        .token = asked ? answer->shred_token : NULL);
}

static void
answer_put_job(struct bh_buf *out, const struct bh_command *command, const struct bh_answer *answer)
{
    PUT(out, job_accepted, .dry_run = command->dry_run, .id = answer->job.v,
        .reason = bh_reason_names[answer->reason.code], .state = bh_job_state_names[answer->state]);
}

static void
answer_put_site(struct bh_buf *out, const struct bh_command *command, const struct bh_answer *answer)
{
    const struct bh_reply_site_changes changes = bh_answer_site(answer, command->dry_run);

    bh_json_encode(out, &bh_reply_site_changes_fields, &changes);
}

void
bh_answer_encode(struct bh_buf *out, const struct bh_command *command, const struct bh_answer *answer,
                 bool keep)
{
    switch ((int)command->op) {
    case BH_OP_SITE_APPLY:
        answer_put_site(out, command, answer);
        break;
    case BH_OP_DEFRAG_APPLY:
        answer_put_moved(out, command->move);
        break;
    case BH_OP_LAYOUT_APPLY:
    case BH_OP_LAYOUT_ROLLBACK:
        PUT(out, layout_declared, .change = answer->change, .gpus = answer->gpus);
        break;
    case BH_OP_CORDON:
    case BH_OP_UNCORDON:
    case BH_OP_DRAIN:
        PUT(out, held, .held = bh_held_names[answer->held], .target = command->cordon->target);
        break;
    case BH_OP_KEY_SHRED:
        answer_put_shredded(out, command->shred, answer);
        break;
    case BH_OP_JOB_VERIFY:
    case BH_OP_NODE_VERIFY:
        PUT(out, verification_asked, .request = answer->verify_request);
        break;
    case BH_OP_KEY_ROTATE:
        PUT(out, key_rotation, .keys = answer->keys);
        break;
    case BH_OP_AUDIT_PRUNE:
        PUT(out, pruned, .minimum = answer->minimum, .more = answer->more, .pruned = answer->pruned);
        break;
    case BH_OP_TOKEN_CREATE:
        PUT(out, token_made, .id = answer->token_id, .token = keep ? NULL : answer->secret);
        break;
    case BH_OP_TOKEN_REVOKE:
        PUT(out, token_revoked, .id = command->token_id, .revoked = true);
        break;
    default:
        answer_put_job(out, command, answer);
        break;
    }
}

uint32_t
bh_answer_status(const struct bh_command *command)
{
    bool makes = command->op == BH_OP_JOB_SUBMIT || command->op == BH_OP_TOKEN_CREATE;

    return makes && !command->dry_run ? 201 : 200;
}
