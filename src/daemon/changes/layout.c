#include "daemon/changes/layout.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/authorization/command.h"
#include "daemon/batch/step.h"

/* A change under way. */
struct layout_change {
    struct bh_core *core;
    struct bh_entry entry;
    uint32_t number, gpus;
};

static bh_rc
layout_declare(struct layout_change *change, const struct bh_ev_layout *gpu_layout, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_LAYOUT, .u.gpu_layout = *gpu_layout };
    bh_rc rc;

    event.u.gpu_layout.apply = change->number;
    change->entry.obj = (struct bh_record_object){ .type = "gpu", .id = gpu_layout->gpu.v };
    change->gpus++;
    rc = bh_core_step(change->core, &change->entry, &event, err);
    if (rc == BH_OK || bh_core_is_fatal(rc))
        return rc;
    return bh_err_set(err, BH_IO, "the layout of GPU %s could not be declared, so no layout was",
                      bh_catalog_name_of(change->core->catalog, BH_NAME_GPU, gpu_layout->gpu.v));
}

static bh_rc
layout_apply(struct layout_change *change, const struct bh_command *command, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < command->standing_count && rc == BH_OK; i++)
        rc = layout_declare(change, &command->gpu_layout[i], err);
    return rc;
}

/* What was before the last change of a GPU; false: it is not of the change, or went back, or
 * changed nothing. */
static bool
find_before(const struct bh_layout_view *view, uint32_t last, struct bh_ev_layout *gpu_layout)
{
    bool nothing = view->state == BH_LAYOUT_NONE && view->before.mode != BH_LAYOUT_DECLARED;

    if (view->apply != last || nothing
        || (view->state != BH_LAYOUT_APPLYING && view->state != BH_LAYOUT_READY
            && view->state != BH_LAYOUT_NONE)
        || view->before.mode == BH_LAYOUT_UNDECLARED)
        return false;
    gpu_layout->mode = view->before.mode;
    gpu_layout->partition_count = view->before.count;
    memcpy(gpu_layout->partitions, view->before.partitions, sizeof gpu_layout->partitions);
    return true;
}

static bh_rc
roll_back(struct layout_change *change, struct bh_err *err)
{
    uint32_t last = bh_view_applied(change->core->state.engine), cursor = 0;
    struct bh_gpu_view gpu;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && bh_view_next_gpu(change->core->state.engine, &cursor, &gpu)) {
        struct bh_ev_layout gpu_layout = { .gpu = gpu.gpu };
        struct bh_layout_view view;

        if (last && bh_view_layout(change->core->state.engine, gpu.gpu, &view)
            && find_before(&view, last, &gpu_layout))
            rc = layout_declare(change, &gpu_layout, err);
    }
    if (rc != BH_OK || change->gpus)
        return rc;
    if (!last)
        return bh_err_set(err, BH_CONFLICT, "no layout was ever applied");
    return bh_err_set(err, BH_CONFLICT, "change %" PRIu32 " was undone already", last);
}

bh_rc
bh_layout_run(struct bh_core *core, const struct bh_command *command, struct bh_arena *arena,
              struct bh_answer *ret_answer, struct bh_err *err)
{
    struct bh_verdict verdict = bh_command_authz(core, command, "layout.apply", (bh_tenant_id){ 0 });
    struct layout_change change = { .core = core };
    bh_rc rc;

    if (!verdict.allow)
        return bh_command_deny(core, command, (bh_tenant_id){ 0 },
                               (struct bh_denial){ "layout.apply", verdict, BH_REACH_OBJECT }, err);
    change.entry = bh_command_entry(&command->caller, command->op, (bh_tenant_id){ 0 }, verdict);
    change.number = bh_view_applied(core->state.engine) + 1;
    rc = command->op == BH_OP_LAYOUT_APPLY ? layout_apply(&change, command, err) : roll_back(&change, err);
    ret_answer->change = change.number;
    ret_answer->gpus = change.gpus;
    return rc;
}
