#include "daemon/cordon.h"

#include <string.h>

#include "base/nearest.h"
#include "daemon/step.h"

enum { PREFIX_MIN = 8 }; /* "GPU-3f2a" */

/* The GPU of that UUID, or the only one whose UUID begins so. */
static bh_rc
find_gpu(const struct bh_core *core, const char *target, bh_gpu_id *ret_gpu, struct bh_err *err)
{
    uint32_t cursor = 0, id, found = bh_catalog_find(core->catalog, BH_NAME_GPU, target);
    const char *name;

    ret_gpu->v = found;
    if (found || strlen(target) < PREFIX_MIN)
        return BH_OK;
    while ((name = bh_catalog_next(core->catalog, BH_NAME_GPU, &cursor, &id))) {
        if (strncmp(name, target, strlen(target)) != 0)
            continue;
        if (ret_gpu->v)
            return bh_err_set(err, BH_INVALID, "several GPUs begin with %.80s", target);
        ret_gpu->v = id;
    }
    return BH_OK;
}

/* With the name that was probably meant, where one is like it. */
static bh_rc
refuse_target(const struct bh_core *core, const char *target, struct bh_err *err)
{
    static const enum bh_name_kind kinds[] = { BH_NAME_NODE, BH_NAME_GPU };
    struct bh_nearest nearest = { 0 };
    const char *name;

    for (size_t i = 0; i < BH_COUNT(kinds); i++) {
        uint32_t cursor = 0, id;

        while ((name = bh_catalog_next(core->catalog, kinds[i], &cursor, &id)))
            bh_nearest_try(&nearest, target, name);
    }
    bh_err_set(err, BH_NOT_FOUND, "no GPU or node %.119s", target);
    if (nearest.word)
        return bh_err_hint(err, "did you mean %s?", nearest.word);
    return bh_err_hint(err, "bulkhead node lists nodes, bulkhead gpu -o wide GPUs by UUID");
}

static bh_rc
find_target(const struct bh_core *core, const char *target, struct bh_ev_cordon *ret_cordon,
            struct bh_err *err)
{
    bh_rc rc;

    ret_cordon->node.v = bh_catalog_find(core->catalog, BH_NAME_NODE, target);
    if (ret_cordon->node.v)
        return BH_OK;
    rc = find_gpu(core, target, &ret_cordon->gpu, err);
    if (rc != BH_OK || ret_cordon->gpu.v)
        return rc;
    return refuse_target(core, target, err);
}

static enum bh_held
held_by(const struct bh_command *command)
{
    if (command->op == BH_OP_UNCORDON)
        return BH_HELD_NOT;
    if (command->op == BH_OP_CORDON)
        return BH_HELD_CORDONED;
    return command->cordon->now ? BH_HELD_DRAIN_NOW : BH_HELD_DRAINING;
}

static struct bh_record_object
object_of(const struct bh_ev_cordon *cordon)
{
    if (cordon->node.v)
        return (struct bh_record_object){ "node", cordon->node.v };
    return (struct bh_record_object){ "gpu", cordon->gpu.v };
}

struct bh_record_object
bh_cordon_object(const struct bh_core *core, const char *target)
{
    struct bh_ev_cordon cordon = { .gpu = { 0 } };
    struct bh_err ignored;

    if (find_target(core, target, &cordon, &ignored) != BH_OK)
        return (struct bh_record_object){ .id = 0 };
    return object_of(&cordon);
}

bh_rc
bh_cordon_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    static const char verb[] = "gpu.cordon";
    const struct bh_verdict verdict =
        bh_command_authz(core, command, verb, (bh_tenant_id){ 0 });
    struct bh_event event = { .kind = BH_EV_CORDON };
    struct bh_entry entry;
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ verb, verdict, BH_REACH_OBJECT }, err);
    rc = find_target(core, command->cordon->target, &event.u.cordon, err);
    if (rc != BH_OK)
        return rc;
    event.u.cordon.held = held_by(command);
    event.u.cordon.clear_fault = command->op == BH_OP_UNCORDON && command->cordon->clear_fault;
    entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    entry.obj = object_of(&event.u.cordon);
    entry.note = command->cordon->reason;
    rc = bh_core_step(core, &entry, &event, err);
    if (rc == BH_CONFLICT)
        return bh_err_set(err, BH_CONFLICT,
                          "the GPU is being reset or tested: clear its fault afterwards");
    if (rc == BH_OK)
        ret_answer->held = event.u.cordon.held;
    return rc;
}
