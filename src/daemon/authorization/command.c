#include "daemon/authorization/command.h"

#include <stdio.h>

#include "daemon/authorization/objects.h"
#include "daemon/batch/record.h"
#include "daemon/state/job_owner.h"
#include "policy/explain.h"
#include "policy/operations.h"

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

/* What a command tries, and what it was decided so far. */
static struct bh_refused_request
command_refused_request_by(const struct bh_core *core, const struct bh_command *command)
{
    struct bh_refused_request refused = {
        .op = command->op, .verdict = core->decided, .job = command->job, .tenant = command->tenant
    };
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
    struct bh_entry entry = bh_command_entry(&command->caller, command->op, tenant, denial.verdict);
    struct bh_refused_request refused = command_refused_request_by(core, command);
    struct bh_err ignored;

    entry.phase = BH_PHASE_EVENT;
    entry.obj = bh_objects_of_request(core, &refused);
    if (bh_core_record(core, &entry, BH_DENIED, &ignored) != BH_OK)
        return bh_err_set(err, ignored.rc, "the denial could not be recorded: %.160s", ignored.msg);
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
        return bh_err_set(err, ignored.rc, "the refusal could not be recorded: %.160s", ignored.msg);
    return rc;
}

void
bh_command_explain(const struct bh_core *core, bh_rc rc, const struct bh_reason *reason, struct bh_err *err)
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

bh_rc
bh_command_record_failure(struct bh_core *core, const struct bh_command *command, struct bh_err *err)
{
    const struct bh_counted_refusal what = { command_refused_request_by(core, command), err->rc, 1 };
    bh_rc rc = bh_command_refused(core, &command->caller, &what);

    return rc == BH_OK ? err->rc : bh_err_set(err, rc, "the refusal could not be recorded");
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
    entry.obj = bh_objects_of_request(core, refused);
    return bh_core_record_times(core, &entry, what->res, what->times, &err);
}
