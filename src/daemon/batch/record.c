#include "daemon/batch/record.h"

#include "base/assert.h"
#include "daemon/batch/append.h"

static bool
record_is_refused(bh_rc res)
{
    return res == BH_DENIED || res == BH_UNAUTHENTICATED;
}

/* One record that stands for `count` refusals. */
static bh_rc
record_counted(struct bh_core *core, const struct bh_entry *entry, bh_rc res, uint64_t count,
               struct bh_err *err)
{
    struct bh_record record = { .ts_ns = bh_core_now(core),
                                .res = bh_rc_name(res),
                                .count = count > 1 ? count : 0 };

    BH_ASSERT(!record_is_refused(res) || !entry->dec.allow);
    return bh_core_append(core, entry, &record, err);
}

bh_rc
bh_core_record_times(struct bh_core *core, const struct bh_entry *entry, bh_rc res, uint64_t times,
                     struct bh_err *err)
{
    struct bh_entry recorded = *entry;
    uint64_t left;

    /* A rule that allows did not refuse: a caller with the right verb that is refused all the same is refused
     * by no rule. */
    if (record_is_refused(res) && recorded.dec.allow)
        recorded.dec = (struct bh_record_decision){ .allow = false };
    left = bh_refusals_count(&core->refusals, &(struct bh_refusal){ &recorded, res, times },
                             bh_core_now(core) + core->config->refusal_window);
    return left ? record_counted(core, &recorded, res, left, err) : BH_OK;
}

bh_rc
bh_core_record(struct bh_core *core, const struct bh_entry *entry, bh_rc res, struct bh_err *err)
{
    return bh_core_record_times(core, entry, res, 1, err);
}

static bh_rc
record_group(struct bh_core *core, struct bh_refusal_group *group, struct bh_err *err)
{
    struct bh_entry entry = { .actor = group->actor,
                              .dec = group->dec,
                              .obj = group->obj,
                              .phase = BH_PHASE_EVENT,
                              .tenant = group->tenant,
                              .req = group->req,
                              .verb = group->verb };
    bh_rc rc;

    if (entry.obj.type[0] && group->object)
        entry.obj.id = group->object;
    rc = record_counted(core, &entry, group->res, group->counted, err);
    if (rc != BH_OK)
        return rc;
    bh_refusals_written(&core->refusals, group);
    return BH_OK;
}

bh_rc
bh_core_record_refusals(struct bh_core *core, bool all, struct bh_err *err)
{
    uint64_t now_ns = bh_core_now(core);
    struct bh_refusal_sweep sweep = { .now_ns = all ? UINT64_MAX : now_ns,
                                      .until_ns = now_ns + core->config->refusal_window };
    struct bh_refusal_group *group;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (group = bh_refusals_next_due(&core->refusals, &sweep)))
        rc = record_group(core, group, err);
    return rc;
}
