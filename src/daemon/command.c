#include "daemon/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/answer.h"
#include "base/assert.h"
#include "daemon/cordon.h"
#include "daemon/layout.h"
#include "daemon/accounts.h"
#include "daemon/record.h"
#include "daemon/retention.h"
#include "daemon/rotate.h"
#include "daemon/shred.h"
#include "daemon/site_apply.h"
#include "daemon/step.h"
#include "daemon/stream_record.h"
#include "daemon/submit.h"
#include "daemon/tokens.h"
#include "daemon/verify.h"
#include "daemon/job_owner.h"
#include "policy/explain.h"
#include "policy/operations.h"

enum { REPLY_BYTES_MAX = 1 << 20 };

struct bh_entry
bh_command_entry(const struct bh_caller *caller, enum bh_operation op, bh_tenant_id tenant,
                 struct bh_verdict verdict)
{
    struct bh_entry entry = {
        .actor = { .id = caller->subject.principal.v,
                   .via = (enum bh_via)caller->via,
                   .uid = caller->via == BH_VIA_PEER ? caller->subject.uid : 0 },
        .dec = { .allow = verdict.allow, .rule = verdict.rule },
        .phase = BH_PHASE_INTENT,
        .tenant = tenant.v,
        .req = caller->request_id,
        .verb = bh_operation_recorded_verb(op),
    };

    if (caller->token)
        snprintf(entry.actor.token, sizeof entry.actor.token, "%s", caller->token);
    return entry;
}

static struct bh_record_object
object_called(const struct bh_core *core, enum bh_name_kind kind, const char *type,
              const char *name)
{
    struct bh_record_object object = { .id = bh_catalog_find(core->catalog, kind, name) };

    if (object.id)
        snprintf(object.type, sizeof object.type, "%s", type);
    return object;
}

/* What was named and there is, by its number; what was typed and there is not stays out. */
static struct bh_record_object
object_named(const struct bh_core *core, const struct bh_refused_request *refused)
{
    if (refused->object.type[0])
        return refused->object;
    if (refused->job.v > 0 && refused->job.v < core->next_job)
        return (struct bh_record_object){ .type = "job", .id = refused->job.v };
    if (!refused->target)
        return (struct bh_record_object){ .id = 0 };
    switch ((int)refused->op) {
    case BH_OP_TOKEN_REVOKE:
        return bh_token_object(core, refused->target);
    case BH_OP_ACCOUNT_ENROL:
    case BH_OP_ACCOUNT_RESET:
        return object_called(core, BH_NAME_PRINCIPAL, "account", refused->target);
    case BH_OP_NODE_VERIFY:
        return object_called(core, BH_NAME_NODE, "node", refused->target);
    default:
        return bh_cordon_object(core, refused->target);
    }
}

/* What a command tries, and what it was decided so far. */
static struct bh_refused_request
command_refused_request_by(const struct bh_core *core, const struct bh_command *command)
{
    struct bh_refused_request refused = { .op = command->op, .verdict = core->decided, .job = command->job,
                              .tenant = command->tenant };
    struct bh_job_owner whose;
    struct bh_err ignored;

    if (command->accounts)
        refused.object = command->accounts->object;
    if (command->cordon)
        refused.target = command->cordon->target;
    else if (command->token_id)
        refused.target = command->token_id;
    else if (command->op == BH_OP_NODE_VERIFY)
        refused.target = command->text;
    if (command->job.v && bh_job_owner_find(core, command->job, &whose, &ignored) == BH_OK)
        refused.tenant = whose.tenant;
    return refused;
}

bh_rc
bh_command_deny(struct bh_core *core, const struct bh_command *command, bh_tenant_id tenant,
                struct bh_denial denial, struct bh_err *err)
{
    const char *path = bh_catalog_name_of(core->catalog, BH_NAME_TENANT, tenant.v);
    struct bh_entry entry =
        bh_command_entry(&command->caller, command->op, tenant, denial.verdict);
    struct bh_refused_request refused = command_refused_request_by(core, command);
    struct bh_err ignored;

    entry.phase = BH_PHASE_EVENT;
    entry.obj = object_named(core, &refused);
    if (bh_core_record(core, &entry, BH_DENIED, &ignored) != BH_OK)
        return bh_err_set(err, ignored.rc, "the denial could not be recorded: %.160s",
                          ignored.msg);
    return bh_authz_explain(&denial, command->caller.name ? command->caller.name : "the caller",
                            &command->caller.subject, path, err);
}

bh_rc
bh_command_refusal(struct bh_core *core, const struct bh_entry *entry, bh_rc rc,
                   const struct bh_reason *reason, struct bh_err *err)
{
    struct bh_entry event = *entry;
    struct bh_err ignored;

    event.phase = BH_PHASE_EVENT;
    if (event.job_name || event.submitter)
        event.obj.id = 0; /* the number was not given out */
    bh_command_explain(core, rc, reason, err);
    if (bh_core_record(core, &event, rc, &ignored) != BH_OK)
        return bh_err_set(err, ignored.rc, "the refusal could not be recorded: %.160s",
                          ignored.msg);
    return rc;
}

void
bh_command_explain(const struct bh_core *core, bh_rc rc, const struct bh_reason *reason,
                   struct bh_err *err)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    struct bh_explain how = { .dir = dir, .all = true, .now_ns = bh_core_now(core) };
    struct bh_buf text;

    bh_err_set(err, rc, "refused");
    bh_buf_init_fixed(&text, err->msg, sizeof err->msg);
    bh_explain_sentence(&text, &how, reason);
    bh_buf_text(&text);
    bh_buf_init_fixed(&text, err->hint, sizeof err->hint);
    bh_explain_next(&text, &how, reason);
    bh_buf_text(&text);
    bh_catalog_put(core->catalog, dir);
}

struct bh_verdict
bh_command_authz(struct bh_core *core, const struct bh_command *command, const char *verb,
                 bh_tenant_id tenant)
{
    core->decided = bh_command_holds(core, command, verb, tenant);
    return core->decided;
}

struct bh_verdict
bh_command_holds(struct bh_core *core, const struct bh_command *command, const char *verb,
                 bh_tenant_id tenant)
{
    const struct bh_directory *dir = bh_catalog_get(core->catalog);
    struct bh_verdict verdict = bh_authz_check(dir, &command->caller.subject, verb, tenant);

    bh_catalog_put(core->catalog, dir);
    return verdict;
}

/* Why the job cannot be cancelled or released: what it is instead. */
static bh_rc
command_explain_state(bh_job_id job, const char *state, bool ended, struct bh_err *err)
{
    if (ended) {
        bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " has ended already: %.20s", job.v, state);
        return bh_err_hint(err, "`bulkhead why %" PRIu64 "` says how", job.v);
    }
    bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is %.20s, and not held", job.v, state);
    return bh_err_hint(err, "only a job of `submit --hold` is released");
}

/* The refusal is recorded, and names the state. */
static bh_rc
refuse_state(struct bh_core *core, const struct bh_entry *entry, const struct bh_job_view *view,
             struct bh_err *err)
{
    bh_rc rc = bh_command_refusal(core, entry, BH_CONFLICT, &core->step.verdict, err);

    if (rc != BH_CONFLICT || core->step.verdict.code != BH_REASON_WRONG_STATE)
        return rc;
    return command_explain_state(view->job, bh_job_state_names[view->state], view->state >= BH_JOB_COMPLETED,
                     err);
}

/* CANCEL and RELEASE: one's own jobs, or anybody's with job.cancel.any.  Who may not is not told
 * what state it is in. */
static bh_rc
change_job(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
           struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_event event = { .kind = command->op == BH_OP_JOB_CANCEL ? BH_EV_CANCEL
                                                                      : BH_EV_RELEASE,
                              .u.job = { .job = command->job, .at_once = command->at_once } };
    const char *verb = "job.cancel";
    struct bh_verdict verdict;
    struct bh_job_view view;
    struct bh_job_owner whose;
    struct bh_entry entry;
    bh_rc rc = bh_job_owner_find(core, command->job, &whose, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_same(whose.principal, command->caller.subject.principal))
        verb = "job.cancel.any";
    verdict = bh_command_authz(core, command, verb, whose.tenant);
    if (!verdict.allow)
        return bh_command_deny(core, command, whose.tenant,
                               (struct bh_denial){ verb, verdict, BH_REACH_OBJECT }, err);
    if (!bh_view_job(core->state.engine, command->job, &view)) /* the store has it alone */
        return command_explain_state(command->job, whose.state, true, err);
    entry = bh_command_entry(&command->caller, command->op, whose.tenant, verdict);
    entry.obj = (struct bh_record_object){ .type = "job", .id = command->job.v };
    rc = bh_core_step(core, &entry, &event, err);
    if (rc == BH_CONFLICT)
        return refuse_state(core, &entry, &view, err);
    if (rc == BH_NOT_FOUND)
        return bh_command_refusal(core, &entry, rc, &core->step.verdict, err);
    ret_answer->job = command->job;
    ret_answer->state = BH_JOB_CANCELLED;
    if (bh_view_job(core->state.engine, command->job, &view))
        ret_answer->state = view.state;
    return rc;
}

/* A plan of moves over the whole site: the engine says whether it still fits. */
static bh_rc
move_jobs(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
          struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_MOVE, .u.move = *command->move };
    struct bh_verdict verdict = { .allow = command->system };
    struct bh_entry entry;
    bh_rc rc;

    if (!command->system)
        verdict = bh_command_authz(core, command, "job.move", (bh_tenant_id){ 0 });
    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "job.move", verdict, BH_REACH_OBJECT }, err);
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    entry.obj = (struct bh_record_object){ .type = "site" };
    rc = bh_core_step(core, &entry, &event, err);
    if (rc != BH_CONFLICT && rc != BH_RANGE)
        return rc;
    ret_answer->reason = core->step.verdict;
    return bh_command_refusal(core, &entry, rc, &core->step.verdict, err);
}

/* The operations that change something, and who carries them out. */
static const struct {
    enum bh_operation op;
    bh_rc (*run)(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                 struct bh_answer *ret_answer, struct bh_err *err);
} commands[] = {
    { BH_OP_JOB_SUBMIT, bh_submit_run },     { BH_OP_JOB_CANCEL, change_job },
    { BH_OP_JOB_RELEASE, change_job },       { BH_OP_SITE_APPLY, bh_site_run },
    { BH_OP_DEFRAG_APPLY, move_jobs },
    { BH_OP_LAYOUT_APPLY, bh_layout_run },   { BH_OP_LAYOUT_ROLLBACK, bh_layout_run },
    { BH_OP_CORDON, bh_cordon_run },         { BH_OP_UNCORDON, bh_cordon_run },
    { BH_OP_DRAIN, bh_cordon_run },
    { BH_OP_JOB_VERIFY, bh_verify_run },     { BH_OP_NODE_VERIFY, bh_verify_run },
    { BH_OP_KEY_SHRED, bh_shred_run },       { BH_OP_KEY_ROTATE, bh_rotate_run },
    { BH_OP_AUDIT_PRUNE, bh_retention_run },
    { BH_OP_JOB_EXEC, bh_stream_record },    { BH_OP_JOB_ATTACH, bh_stream_record },
    { BH_OP_JOB_FORWARD, bh_stream_record },
    { BH_OP_TOKEN_CREATE, bh_token_create }, { BH_OP_TOKEN_REVOKE, bh_token_revoke },
};

static bh_rc
command_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
    struct bh_answer *ret_answer, struct bh_err *err)
{
    if (command->accounts)
        return bh_accounts_change(core, command, arena, ret_answer, err);
    for (size_t i = 0; i < BH_COUNT(commands); i++)
        if (commands[i].op == command->op)
            return commands[i].run(core, command, arena, ret_answer, err);
    return bh_err_set(err, BH_INVALID, "operation %d is no command", (int)command->op);
}

static bool
command_find_batch_reply(const struct bh_core *core, const struct bh_caller *caller,
                struct bh_reply_row *ret_row)
{
    for (const struct bh_batch_reply *kept = core->replies; kept; kept = kept->next)
        if (kept->row.principal_id == caller->subject.principal.v
            && strcmp(kept->row.key, caller->idempotency_key) == 0) {
            *ret_row = kept->row;
            return true;
        }
    return false;
}

/* The remembered answer of an earlier request with the same key, if there is one. */
static bh_rc
find_reply(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
           struct bh_answer *ret_answer, struct bh_err *err)
{
    const struct bh_caller *caller = &command->caller;
    struct bh_reply_row row;
    bh_rc rc = BH_OK;

    if (!command_find_batch_reply(core, caller, &row))
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
command_store_reply(struct bh_core *core, const struct bh_reply_row *row)
{
    struct bh_batch_reply *kept = bh_arena_alloc(core->arena, sizeof *kept);

    if (!kept)
        return false;
    *kept = (struct bh_batch_reply){ core->replies, *row };
    kept->row.key = bh_arena_strdup(core->arena, row->key);
    core->replies = kept;
    return kept->row.key != NULL;
}

/* The same bytes as the first answer, less a token's secret. */
static bh_rc
remember_reply(struct bh_core *core, const struct bh_command *command,
               const struct bh_answer *answer, struct bh_err *err)
{
    struct bh_reply_row row = {
        .principal_id = command->caller.subject.principal.v,
        .key = command->caller.idempotency_key,
        .request = command->caller.request,
        .status = bh_answer_status(command),
        .at_ns = bh_core_now(core),
    };
    struct bh_buf body;
    bh_rc rc;

    bh_buf_init(&body, REPLY_BYTES_MAX);
    bh_answer_encode(&body, command, answer, true);
    row.body = bh_buf_text(&body) ? bh_arena_strdup(core->arena, bh_buf_text(&body)) : NULL;
    if (row.body && command_store_reply(core, &row))
        rc = core->store.ops->put_reply(core->store.self, &row, err);
    else
        rc = bh_err_set(err, BH_BUG, "the answer is too long to be remembered");
    bh_buf_fini(&body);
    return rc;
}

/* Every attempt of a known principal is in the log, also one that failed early. */
static bh_rc
command_record_failure(struct bh_core *core, const struct bh_command *command, struct bh_err *err)
{
    const struct bh_counted_refusal what = { command_refused_request_by(core, command), err->rc, 1 };
    bh_rc rc = bh_command_refused(core, &command->caller, &what);

    return rc == BH_OK ? err->rc : bh_err_set(err, rc, "the refusal could not be recorded");
}

bh_rc
bh_command_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
               struct bh_answer *ret_answer, struct bh_err *err)
{
    bool keyed = command->caller.idempotency_key && !command->dry_run;
    uint64_t seq, seen = core->refusals.seen;
    bh_rc rc;

    *ret_answer = (struct bh_answer){ 0 };
    core->decided = (struct bh_verdict){ false, 0 };
    seq = core->journal.next_seq;
    if (keyed) {
        rc = find_reply(core, command, arena, ret_answer, err);
        if (rc == BH_CONFLICT)
            return command_record_failure(core, command, err);
        if (rc != BH_NOT_FOUND)
            return rc;
    }
    rc = command_run(core, command, arena, ret_answer, err);
    if (rc == BH_OK && keyed)
        rc = remember_reply(core, command, ret_answer, err);
    if (rc != BH_OK && !bh_core_is_fatal(rc) && core->journal.next_seq == seq
        && core->refusals.seen == seen)
        rc = command_record_failure(core, command, err);
    return rc;
}

bh_rc
bh_command_refused(struct bh_core *core, const struct bh_caller *caller,
                   const struct bh_counted_refusal *what)
{
    const struct bh_refused_request *refused = &what->what;
    struct bh_entry entry = bh_command_entry(caller, refused->op, refused->tenant, refused->verdict);
    struct bh_err err;

    entry.phase = BH_PHASE_EVENT;
    if (refused->verb)
        entry.verb = refused->verb;
    entry.obj = object_named(core, refused);
    return bh_core_record_times(core, &entry, what->res, what->times, &err);
}
