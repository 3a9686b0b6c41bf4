#include "daemon/owner/dispatch.h"

#include "base/time.h"
#include "daemon/authorization/command.h"
#include "daemon/changes/accounts.h"
#include "daemon/changes/cordon.h"
#include "daemon/changes/job_changes.h"
#include "daemon/changes/layout.h"
#include "daemon/changes/retention.h"
#include "daemon/changes/rotate.h"
#include "daemon/changes/shred.h"
#include "daemon/changes/stream_record.h"
#include "daemon/changes/submit.h"
#include "daemon/changes/tokens.h"
#include "daemon/changes/verify.h"
#include "daemon/owner/replies.h"
#include "daemon/site/site_apply.h"

/* The functions that carry out changes; NULL: the operation changes nothing, or is a change of
 * src/accounts. */
#define NONE NULL
static bh_rc (*const runners[BH_OPERATIONS])(struct bh_core *core, const struct bh_command *command,
                                             struct bh_arena *arena, struct bh_answer *ret_answer,
                                             struct bh_err *err) = {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    [BH_OP_##id] = runner,
#include "tables/operations.tbl"
#undef BH_OPERATION
};
#undef NONE

static bh_rc
dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
             struct bh_answer *ret_answer, struct bh_err *err)
{
    if (command->accounts)
        return bh_accounts_change(core, command, arena, ret_answer, err);
    if (!runners[command->op])
        return bh_err_set(err, BH_INVALID, "operation %d is no command", (int)command->op);
    return runners[command->op](core, command, arena, ret_answer, err);
}

bh_rc
bh_dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                struct bh_answer *ret_answer, struct bh_err *err)
{
    bool keyed = command->caller.idempotency_key;
    uint64_t seq, seen = core->refusals.seen;
    bh_rc rc;

    *ret_answer = (struct bh_answer){ 0 };
    core->decided = (struct bh_verdict){ false, 0 };
    seq = core->journal.next_seq;
    bh_work_get()->tenant = command->tenant.v;
    if (bh_quarantine_check(core->quarantine, bh_work_get(), bh_time_now(), err) != BH_OK)
        return bh_command_record_failure(core, command, err);
    if (keyed) {
        rc = bh_replies_find(core, command, arena, ret_answer, err);
        if (rc == BH_CONFLICT)
            return bh_command_record_failure(core, command, err);
        if (rc != BH_NOT_FOUND)
            return rc;
    }
    rc = dispatch_run(core, command, arena, ret_answer, err);
    if (rc == BH_OK && keyed && !command->dry_run)
        rc = bh_replies_put(core, command, ret_answer, err);
    if (rc != BH_OK && !bh_core_is_fatal(rc) && core->journal.next_seq == seq && core->refusals.seen == seen)
        rc = bh_command_record_failure(core, command, err);
    return rc;
}
