#include "daemon/changes/job_changes.h"

#include <inttypes.h>

#include "daemon/authorization/command.h"
#include "daemon/batch/step.h"
#include "daemon/state/job_owner.h"
#include "policy/explain.h"

/* Why the job cannot be cancelled or released: what it is instead. */
static bh_rc
job_changes_explain_state(bh_job_id job, const char *state, bool ended, struct bh_err *err)
{
    if (ended)
        return bh_explain_ended(job, state, err);
    bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " is %.20s, not held", job.v, state);
    return bh_err_hint(err, "only a job from `submit --hold` can be released");
}

/* The refusal is recorded, and names the state. */
static bh_rc
job_changes_refuse(struct bh_core *core, const struct bh_entry *entry, const struct bh_job_view *view,
                   struct bh_err *err)
{
    bh_rc rc = bh_command_refusal(core, entry, BH_CONFLICT, &core->step.verdict, err);

    if (rc != BH_CONFLICT || core->step.verdict.code != BH_REASON_WRONG_STATE)
        return rc;
    return job_changes_explain_state(view->job, bh_job_state_names[view->state],
                                     view->state >= BH_JOB_COMPLETED, err);
}

bh_rc
bh_job_changes_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
                   struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_event event = { .kind = command->op == BH_OP_JOB_CANCEL ? BH_EV_CANCEL : BH_EV_RELEASE,
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
        return job_changes_explain_state(command->job, whose.state, true, err);
    entry = bh_command_entry(&command->caller, command->op, whose.tenant, verdict);
    entry.obj = (struct bh_record_object){ .type = "job", .id = command->job.v };
    rc = bh_core_step(core, &entry, &event, err);
    if (rc == BH_CONFLICT)
        return job_changes_refuse(core, &entry, &view, err);
    if (rc == BH_NOT_FOUND)
        return bh_command_refusal(core, &entry, rc, &core->step.verdict, err);
    ret_answer->job = command->job;
    ret_answer->state = BH_JOB_CANCELLED;
    if (bh_view_job(core->state.engine, command->job, &view))
        ret_answer->state = view.state;
    return rc;
}

bh_rc
bh_job_changes_move(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
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
