#include "api/request/answer.h"

#include <string.h>

#include "base/json.h"

static void
answer_put_job(struct bh_json_writer *w, const struct bh_command *command, const struct bh_answer *answer)
{
    if (command->dry_run)
        bh_json_bool(w, "dry_run", true);
    if (answer->job.v)
        bh_json_u64(w, "id", answer->job.v);
    bh_json_str(w, "reason", bh_reason_names[answer->reason.code]);
    bh_json_str(w, "state", bh_job_state_names[answer->state]);
}

/* Lines of a text, NULL being none, as a list. */
static void
answer_put_lines(struct bh_json_writer *w, const char *key, const char *text)
{
    const char *line = text ? text : "";

    bh_json_open(w, key, '[');
    for (size_t length; *line; line += length + 1) {
        length = strcspn(line, "\n");
        bh_json_strn(w, NULL, line, length);
    }
    bh_json_close(w, ']');
}

void
bh_answer_put_site(struct bh_json_writer *w, const struct bh_answer *answer, bool dry_run)
{
    bh_site_changes_put(w, &answer->changes);
    bh_json_bool(w, "dry_run", dry_run);
    answer_put_lines(w, "removes", answer->removes);
    bh_json_u64(w, "revision", answer->revision);
    answer_put_lines(w, "warnings", answer->warnings);
}

static void
put_token(struct bh_json_writer *w, const struct bh_command *command, const struct bh_answer *answer,
          bool keep)
{
    const char *id = command->op == BH_OP_TOKEN_REVOKE ? command->token_id : answer->token_id;

    bh_json_str(w, "id", id ? id : "");
    if (command->op == BH_OP_TOKEN_REVOKE)
        bh_json_bool(w, "revoked", true);
    else if (answer->secret && !keep)
        bh_json_str(w, "token", answer->secret);
}

static void
put_moved(struct bh_json_writer *w, const struct bh_command *command)
{
    bh_json_open(w, "moved", '[');
    for (uint32_t i = 0; i < command->move->move_count; i++)
        bh_json_u64(w, NULL, command->move->moves[i].job.v);
    bh_json_close(w, ']');
}

static void
put_declared(struct bh_json_writer *w, const struct bh_answer *answer)
{
    bh_json_u64(w, "change", answer->change);
    bh_json_u64(w, "gpus", answer->gpus);
}

static void
put_shredded(struct bh_json_writer *w, const struct bh_command *command, const struct bh_answer *answer)
{
    bool asked = answer->shred_token && answer->shred_token[0];

    if (asked)
        bh_json_ns(w, "expires_ns", answer->expires_ns);
    bh_json_u64(w, "keys", answer->keys);
    if (command->shred->name)
        bh_json_str(w, "name", command->shred->name);
    else
        bh_json_str(w, "month", command->shred->month);
    bh_json_str(w, "state", asked ? "asked" : "destroyed");
    if (!command->shred->name)
        bh_json_str(w, "tenant", command->shred->tenant);
    if (asked)
        bh_json_str(w, "token", answer->shred_token);
}

static void
put_held(struct bh_json_writer *w, const struct bh_command *command, const struct bh_answer *answer)
{
    bh_json_str(w, "held", bh_held_names[answer->held]);
    bh_json_str(w, "target", command->cordon->target);
}

static void
put_pruned(struct bh_json_writer *w, const struct bh_answer *answer)
{
    bh_json_u64(w, "minimum", answer->minimum);
    bh_json_bool(w, "more", answer->more);
    bh_json_u64(w, "pruned", answer->pruned);
}

void
bh_answer_encode(struct bh_buf *out, const struct bh_command *command, const struct bh_answer *answer,
                 bool keep)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    if (command->op == BH_OP_SITE_APPLY)
        bh_answer_put_site(&w, answer, command->dry_run);
    else if (command->op == BH_OP_DEFRAG_APPLY)
        put_moved(&w, command);
    else if (command->op == BH_OP_LAYOUT_APPLY || command->op == BH_OP_LAYOUT_ROLLBACK)
        put_declared(&w, answer);
    else if (command->cordon)
        put_held(&w, command, answer);
    else if (command->op == BH_OP_KEY_SHRED)
        put_shredded(&w, command, answer);
    else if (command->op == BH_OP_JOB_VERIFY || command->op == BH_OP_NODE_VERIFY)
        bh_json_u64(&w, "request", answer->verify_request);
    else if (command->op == BH_OP_KEY_ROTATE)
        bh_json_u64(&w, "keys", answer->keys);
    else if (command->op == BH_OP_AUDIT_PRUNE)
        put_pruned(&w, answer);
    else if (command->op == BH_OP_TOKEN_CREATE || command->op == BH_OP_TOKEN_REVOKE)
        put_token(&w, command, answer, keep);
    else
        answer_put_job(&w, command, answer);
    bh_json_close(&w, '}');
}

uint32_t
bh_answer_status(const struct bh_command *command)
{
    bool makes = command->op == BH_OP_JOB_SUBMIT || command->op == BH_OP_TOKEN_CREATE;

    return makes && !command->dry_run ? 201 : 200;
}
