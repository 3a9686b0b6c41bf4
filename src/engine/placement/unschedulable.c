#include "engine/placement/unschedulable.h"

#include "base/assert.h"
#include "engine/gpu/capacity.h"
#include "engine/state/slots.h"

/* A place of it gets no new work. */
static bool
has_unclean(const struct bh_engine *engine, const struct gpu *gpu)
{
    for (uint32_t at = gpu->stuck ? gpu->first_partition : 0; at; at = bh_partition_after(engine, at))
        if (partition_at(engine, at)->state == BH_PARTITION_CLEARING && partition_at(engine, at)->unclean)
            return true;
    return false;
}

enum bh_reason_code
bh_unschedulable_reason(const struct bh_engine *engine, const struct gpu *gpu)
{
    const struct node *node = node_at(engine, gpu->node);

    BH_ASSERT(gpu->id != 0 && gpu->health.state < BH_HEALTHS);
    if (!node->up)
        return BH_REASON_NODE_DOWN;
    if (gpu->cordoned)
        return BH_REASON_CORDONED_SITE;
    if (node->held)
        return BH_REASON_CORDONED_NODE;
    if (gpu->held)
        return BH_REASON_CORDONED;
    if (node->unchecked)
        return BH_REASON_UNCHECKED;
    if (node->reboots) /* a GPU that is cleared would wait for it, too */
        return BH_REASON_NEEDS_REBOOT;
    if (gpu->health.state == BH_HEALTH_QUARANTINED)
        return BH_REASON_QUARANTINED;
    if (gpu->fenced)
        return BH_REASON_FENCED;
    if (!bh_capacity_is_healthy(gpu))
        return BH_REASON_IN_REPAIR;
    return has_unclean(engine, gpu) ? BH_REASON_UNCLEAN : BH_REASON_NONE;
}

/* In the order in which tables/reasons.tbl has them; a node that is down may never come back. */
enum bh_reason_code
bh_unschedulable_first(enum bh_reason_code a, enum bh_reason_code b)
{
    bool lasts = a == BH_REASON_NONE || (a == BH_REASON_NODE_DOWN && b != BH_REASON_NONE);

    BH_ASSERT(a < BH_REASONS && b < BH_REASONS);
    if (lasts || b == BH_REASON_NONE || b == BH_REASON_NODE_DOWN)
        return lasts ? b : a;
    return a < b ? a : b;
}
