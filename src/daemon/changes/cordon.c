#include "daemon/changes/cordon.h"

#include "daemon/authorization/objects.h"
#include "daemon/batch/step.h"

static enum bh_held
held_by(const struct bh_command *command)
{
    if (command->op == BH_OP_UNCORDON)
        return BH_HELD_NOT;
    if (command->op == BH_OP_CORDON)
        return BH_HELD_CORDONED;
    return command->cordon->now ? BH_HELD_DRAIN_NOW : BH_HELD_DRAINING;
}

bh_rc
bh_cordon_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    static const char verb[] = "gpu.cordon";
    const struct bh_verdict verdict = bh_command_authz(core, command, verb, (bh_tenant_id){ 0 });
    struct bh_event event = { .kind = BH_EV_CORDON };
    struct bh_entry entry;
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ verb, verdict, BH_REACH_OBJECT }, err);
    rc = bh_objects_find_target(core, command->cordon->target, &event.u.cordon, err);
    if (rc != BH_OK)
        return rc;
    event.u.cordon.held = held_by(command);
    event.u.cordon.clear_fault = command->op == BH_OP_UNCORDON && command->cordon->clear_fault;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    entry.obj = bh_objects_of_target(&event.u.cordon);
    entry.note = command->cordon->reason;
    rc = bh_core_step(core, &entry, &event, err);
    if (rc == BH_CONFLICT)
        return bh_err_set(err, BH_CONFLICT,
                          "the GPU is being reset or tested: clear its fault when that is done");
    if (rc != BH_OK)
        return rc;
    ret_answer->held = event.u.cordon.held;
    return BH_OK;
}
