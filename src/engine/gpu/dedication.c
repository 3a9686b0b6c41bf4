#include "engine/gpu/dedication.h"

#include "base/assert.h"
#include "engine/account/separation.h"
#include "engine/account/tenant.h"
#include "engine/gpu/ledger.h"
#include "engine/state/slots.h"

static void
dedication_charge(struct bh_engine *engine, uint32_t node, uint32_t tenant)
{
    BH_ASSERT(node_at(engine, node)->id != 0);
    BH_ASSERT(tenant == 0 || tenant_at(engine, tenant)->id != 0);
    node_at(engine, node)->dedicated_to = tenant;
    for (uint32_t gpu = node_at(engine, node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        bh_ledger_refresh(engine, gpu);
}

void
bh_dedication_arrive(struct bh_engine *engine, uint32_t lease)
{
    uint32_t node = lease_at(engine, lease)->node;
    uint32_t tenant = bh_separation_dedicated(engine, lease_at(engine, lease)->tenant);

    BH_ASSERT(lease_at(engine, lease)->id != 0 && node_at(engine, node)->id != 0);
    if (tenant == 0)
        return;
    if (node_at(engine, node)->dedicating++ == 0)
        dedication_charge(engine, node, tenant);
    BH_ASSERT(node_at(engine, node)->dedicated_to == tenant);
}

void
bh_dedication_leave(struct bh_engine *engine, uint32_t lease)
{
    uint32_t node = lease_at(engine, lease)->node;

    BH_ASSERT(lease_at(engine, lease)->id != 0 && node_at(engine, node)->id != 0);
    if (!bh_separation_dedicated(engine, lease_at(engine, lease)->tenant))
        return;
    BH_ASSERT(node_at(engine, node)->dedicating > 0);
    if (--node_at(engine, node)->dedicating == 0)
        dedication_charge(engine, node, 0);
}

void
bh_dedication_suspend(struct bh_engine *engine)
{
    for (uint32_t node = 0; engine->core.dedicated && bh_slot_next(engine, TABLE_NODE, &node);) {
        node_at(engine, node)->dedicating = 0;
        if (node_at(engine, node)->dedicated_to)
            dedication_charge(engine, node, 0);
    }
}

void
bh_dedication_restore(struct bh_engine *engine)
{
    for (uint32_t lease = 0; engine->core.dedicated && bh_slot_next(engine, TABLE_LEASE, &lease);)
        if (lease_at(engine, lease)->state != LEASE_DONE)
            bh_dedication_arrive(engine, lease);
}

/* ---- checks ---- */

static bool
node_is_right(const struct bh_engine *engine, uint32_t slot)
{
    const struct node *node = node_at(engine, slot);
    uint32_t leases = 0;

    for (uint32_t at = 0; engine->core.dedicated && bh_slot_next(engine, TABLE_LEASE, &at);) {
        const struct lease *lease = lease_at(engine, at);
        uint32_t tenant = bh_separation_dedicated(engine, lease->tenant);

        if (lease->node != slot || lease->state == LEASE_DONE || !tenant)
            continue;
        leases++;
        if (tenant != node->dedicated_to)
            return false;
    }
    return leases == node->dedicating && (leases > 0) == (node->dedicated_to != 0);
}

static bool
tenant_is_right(const struct bh_engine *engine, uint32_t slot)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    const struct metered *metered = metered_at(engine, tenant->metered);
    uint64_t equivalents = 0, own = 0, compute = 0, memory = 0;

    for (uint32_t at = 0; bh_slot_next(engine, TABLE_GPU, &at);) {
        const struct gpu *gpu = gpu_at(engine, at);

        if (!gpu->dedicated_to || !bh_tenant_within(engine, slot, gpu->dedicated_to))
            continue;
        equivalents += gpu->dedicated_equivalent;
        if (gpu->dedicated_to != slot)
            continue;
        own += gpu->dedicated_equivalent;
        compute += gpu->dedicated_compute;
        memory += gpu->dedicated_memory;
    }
    return equivalents == tenant->dedicated_parts && own == tenant->dedicated_parts_own
           && compute == metered->rate_dedicated_compute && memory == metered->rate_dedicated_memory;
}

const char *
bh_dedication_broken(const struct bh_engine *engine, uint64_t *ret_id)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);) {
        *ret_id = node_at(engine, slot)->id;
        if (!node_is_right(engine, slot))
            return "node is not dedicated as its leases say";
    }
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        *ret_id = tenant_at(engine, slot)->id;
        if (!tenant_is_right(engine, slot))
            return "tenant is not charged for its nodes as they are dedicated";
    }
    return NULL;
}
