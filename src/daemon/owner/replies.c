#include "daemon/owner/replies.h"

#include <string.h>

#include "api/request/answer.h"

enum { REPLY_BYTES_MAX = 1 << 20 };

static bool
replies_find_fresh(const struct bh_core *core, const struct bh_caller *caller, struct bh_reply_row *ret_row)
{
    for (const struct bh_batch_reply *kept = core->replies; kept; kept = kept->next)
        if (kept->row.principal_id == caller->subject.principal.v
            && strcmp(kept->row.key, caller->idempotency_key) == 0) {
            *ret_row = kept->row;
            return true;
        }
    return false;
}

bh_rc
bh_replies_find(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                struct bh_answer *ret_answer, struct bh_err *err)
{
    const struct bh_caller *caller = &command->caller;
    struct bh_reply_row row;
    bh_rc rc = BH_OK;

    if (!replies_find_fresh(core, caller, &row))
        rc = core->store.ops->get_reply(core->store.self, caller->subject.principal.v,
                                        caller->idempotency_key, arena, &row, err);
    if (rc != BH_OK)
        return rc;
    if (memcmp(row.request.bytes, caller->request.bytes, sizeof row.request.bytes) != 0) {
        bh_err_set(err, BH_CONFLICT, "the idempotency key was used for another request before");
        return bh_err_hint(err, "take another key: one is for repeats of the same request");
    }
    ret_answer->replayed = bh_arena_strdup(arena, row.body); /* a kept one goes at commit */
    if (!ret_answer->replayed)
        return bh_err_set(err, BH_RANGE, "the remembered answer is too large");
    ret_answer->replayed_status = row.status;
    return BH_OK;
}

static bool
replies_add(struct bh_core *core, const struct bh_reply_row *row)
{
    struct bh_batch_reply *kept = bh_arena_alloc(core->arena, sizeof *kept);

    if (!kept)
        return false;
    *kept = (struct bh_batch_reply){ core->replies, *row };
    kept->row.key = bh_arena_strdup(core->arena, row->key);
    core->replies = kept;
    return kept->row.key != NULL;
}

bh_rc
bh_replies_put(struct bh_core *core, const struct bh_command *command, const struct bh_answer *answer,
               struct bh_err *err)
{
    struct bh_reply_row row = {
        .principal_id = command->caller.subject.principal.v,
        .key = command->caller.idempotency_key,
        .request = command->caller.request,
        .status = bh_answer_status(command),
        .at_ns = bh_core_now(core),
    };
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = REPLY_BYTES_MAX };
    bh_rc rc;

    bh_answer_encode(&body, command, answer, true);
    row.body = bh_buf_text(&body) ? bh_arena_strdup(core->arena, bh_buf_text(&body)) : NULL;
    if (row.body && replies_add(core, &row))
        rc = core->store.ops->put_reply(core->store.self, &row, err);
    else
        rc = bh_err_set(err, BH_BUG, "the answer is too long to be remembered");
    return rc;
}
