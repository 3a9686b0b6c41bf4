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

/* The operations that change something, and who carries them out. */
static const struct {
    enum bh_operation op;
    bh_rc (*run)(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                 struct bh_answer *ret_answer, struct bh_err *err);
} commands[] = {
    { BH_OP_JOB_SUBMIT, bh_submit_run },         { BH_OP_JOB_CANCEL, bh_job_changes_run },
    { BH_OP_JOB_RELEASE, bh_job_changes_run },   { BH_OP_SITE_APPLY, bh_site_run },
    { BH_OP_DEFRAG_APPLY, bh_job_changes_move }, { BH_OP_LAYOUT_APPLY, bh_layout_run },
    { BH_OP_LAYOUT_ROLLBACK, bh_layout_run },    { BH_OP_CORDON, bh_cordon_run },
    { BH_OP_UNCORDON, bh_cordon_run },           { BH_OP_DRAIN, bh_cordon_run },
    { BH_OP_JOB_VERIFY, bh_verify_run },         { BH_OP_NODE_VERIFY, bh_verify_run },
    { BH_OP_KEY_SHRED, bh_shred_run },           { BH_OP_KEY_ROTATE, bh_rotate_run },
    { BH_OP_AUDIT_PRUNE, bh_retention_run },     { BH_OP_JOB_EXEC, bh_stream_record },
    { BH_OP_JOB_ATTACH, bh_stream_record },      { BH_OP_JOB_FORWARD, bh_stream_record },
    { BH_OP_TOKEN_CREATE, bh_token_create },     { BH_OP_TOKEN_REVOKE, bh_token_revoke },
};

static bh_rc
dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
             struct bh_answer *ret_answer, struct bh_err *err)
{
    if (command->accounts)
        return bh_accounts_change(core, command, arena, ret_answer, err);
    for (size_t i = 0; i < BH_COUNT(commands); i++)
        if (commands[i].op == command->op)
            return commands[i].run(core, command, arena, ret_answer, err);
    return bh_err_set(err, BH_INVALID, "operation %d is no command", (int)command->op);
}

bh_rc
bh_dispatch_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                struct bh_answer *ret_answer, struct bh_err *err)
{
    bool keyed = command->caller.idempotency_key && !command->dry_run;
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
    if (rc == BH_OK && keyed)
        rc = bh_replies_put(core, command, ret_answer, err);
    if (rc != BH_OK && !bh_core_is_fatal(rc) && core->journal.next_seq == seq && core->refusals.seen == seen)
        rc = bh_command_record_failure(core, command, err);
    return rc;
}
