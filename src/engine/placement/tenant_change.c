#include "engine/placement/tenant_change.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/account/tenant.h"
#include "engine/account/usage.h"
#include "engine/gpu/capacity.h"
#include "engine/gpu/dedication.h"
#include "engine/gpu/gpu_form.h"
#include "engine/gpu/ledger.h"
#include "engine/state/slots.h"

static void
change_write_settings(struct bh_engine *engine, struct tenant *tenant, const struct bh_ev_tenant *event)
{
    BH_ASSERT(engine->core.dedicated >= tenant->dedicated && tenant->dedicated <= 1);
    BH_ASSERT(engine->core.withholders >= bh_tenant_withholds(tenant));
    engine->core.dedicated -= tenant->dedicated;
    engine->core.withholders -= bh_tenant_withholds(tenant);
    tenant->kind = (uint8_t)event->kind;
    tenant->boundary_set = (uint8_t)event->boundary;
    tenant->boundary =
        (uint8_t)(event->boundary == BH_BOUNDARY_UNSET ? bh_boundary_default(event->kind) : event->boundary);
    tenant->dedicated = event->dedicated_nodes;
    engine->core.dedicated += tenant->dedicated;
    tenant->min_runtime_ns = event->min_runtime_ns;
    tenant->limit = event->limit;
    tenant->guarantee = event->guarantee;
    tenant->withhold = event->withhold;
    tenant->user_limit = event->user_limit;
    tenant->weight = event->weight ? event->weight : BH_WEIGHT_DEFAULT;
    memset(tenant->quotas, 0, sizeof(tenant->quotas));
    tenant->quota_count = event->quota_count;
    for (uint32_t i = 0; i < event->quota_count; i++) {
        const struct bh_tenant_quota *quota = &event->quotas[i];

        tenant->quotas[i] = (struct quota){ .scope = quota->scope,
                                            .of = quota->of,
                                            .limit = quota->limit,
                                            .withhold = quota->withhold,
                                            .guarantee = quota->guarantee };
    }
    engine->core.withholders += bh_tenant_withholds(tenant);
}

void
bh_tenant_expect(struct bh_engine *engine, uint32_t slot, uint64_t expected)
{
    struct tenant *tenant = tenant_at(engine, slot);

    BH_ASSERT(tenant->id != 0 && engine->core.withholders >= bh_tenant_withholds(tenant));
    engine->core.withholders -= bh_tenant_withholds(tenant);
    tenant->expected = expected;
    engine->core.withholders += bh_tenant_withholds(tenant);
}

static void
tenant_attach(struct bh_engine *engine, struct tenant *tenant, uint32_t parent)
{
    BH_ASSERT(tenant->parent == 0 || tenant_at(engine, tenant->parent)->children > 0);
    BH_ASSERT(parent == 0 || tenant_at(engine, parent)->id != 0);
    if (tenant->parent)
        tenant_at(engine, tenant->parent)->children--;
    tenant->parent = parent;
    if (parent)
        tenant_at(engine, parent)->children++;
}

/* Whether two leases on one GPU or node would stand closer than allowed. */
static bool
change_too_close(const struct bh_engine *engine, struct bh_reason *ret_why)
{
    for (uint32_t a = 0; bh_slot_next(engine, TABLE_LEASE, &a);)
        if (!bh_capacity_lease_apart(engine, a, ret_why))
            return true;
    return false;
}

/* Try the change on the tree and take it back: are all leases still apart? */
static bool
change_allowed(struct bh_engine *engine, uint32_t slot, const struct bh_ev_tenant *event,
               struct bh_reason *ret_why)
{
    struct tenant *tenant = tenant_at(engine, slot);
    struct tenant before;
    uint32_t dedicated = engine->core.dedicated, withholders = engine->core.withholders;
    bool allowed;

    memcpy(&before, tenant, sizeof(before));
    change_write_settings(engine, tenant, event);
    tenant->parent = tenant_find(engine, event->parent.v);
    allowed = !change_too_close(engine, ret_why);
    memcpy(tenant, &before, sizeof(before));
    engine->core.dedicated = dedicated;
    engine->core.withholders = withholders;
    return allowed;
}

/* Each SKU and model is counted once, or it would not be clear by which number. */
static bool
change_quotas_in_range(const struct bh_ev_tenant *event)
{
    if (event->quota_count > BH_TENANT_QUOTAS_MAX)
        return false;
    for (uint32_t i = 0; i < event->quota_count; i++) {
        const struct bh_tenant_quota *quota = &event->quotas[i];

        if ((uint32_t)quota->scope >= BH_QUOTA_SCOPES || quota->withhold > quota->guarantee
            || quota->guarantee > BH_AMOUNT_MAX
            || (quota->scope == BH_QUOTA_MODEL && quota->of >= BH_GPU_MODELS))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (event->quotas[k].scope == quota->scope && event->quotas[k].of == quota->of)
                return false;
    }
    return true;
}

static bool
change_in_range(const struct bh_ev_tenant *event)
{
    return event->tenant.v != 0 && (uint32_t)event->kind < BH_TENANT_KINDS
           && (uint32_t)event->boundary < BH_BOUNDARIES && event->weight <= BH_WEIGHT_MAX
           && event->withhold <= event->guarantee && event->guarantee <= BH_AMOUNT_MAX
           && event->user_limit <= BH_AMOUNT_MAX && event->min_runtime_ns <= BH_SPAN_MAX_NS
           && (uint32_t)event->budget.period < BH_PERIODS && change_quotas_in_range(event);
}

bh_rc
bh_tenant_check(struct bh_engine *engine, const struct bh_ev_tenant *event, struct bh_reason *ret_why)
{
    uint32_t slot = tenant_find(engine, event->tenant.v);
    uint32_t parent = tenant_find(engine, event->parent.v);

    *ret_why = (struct bh_reason){ .code = BH_REASON_OUT_OF_RANGE, .tenant = event->tenant };
    if (!change_in_range(event))
        return BH_RANGE;
    *ret_why = (struct bh_reason){ .code = BH_REASON_UNKNOWN_TENANT, .tenant = event->parent };
    if (event->parent.v && (!parent || tenant_at(engine, parent)->removed))
        return BH_NOT_FOUND;
    for (uint32_t i = 0; i < event->quota_count; i++) {
        bool sku = event->quotas[i].scope == BH_QUOTA_SKU;

        *ret_why = (struct bh_reason){ .code = BH_REASON_UNKNOWN_SKU, .sku = { event->quotas[i].of } };
        if (sku && !sku_find(engine, event->quotas[i].of))
            return BH_NOT_FOUND;
    }
    if (!slot)
        return BH_OK;
    *ret_why = (struct bh_reason){ .code = BH_REASON_TENANT_CYCLE, .tenant = event->tenant };
    if (parent && bh_tenant_within(engine, slot, parent))
        return BH_CONFLICT;
    *ret_why = (struct bh_reason){ .code = BH_REASON_WRONG_STATE, .tenant = event->tenant };
    if (tenant_at(engine, slot)->removed)
        return BH_CONFLICT;
    return change_allowed(engine, slot, event, ret_why) ? BH_OK : BH_CONFLICT;
}

void
bh_tenant_set(struct bh_engine *engine, const struct bh_ev_tenant *event)
{
    uint32_t slot = tenant_find(engine, event->tenant.v);
    bool known = slot != 0;
    struct tenant *tenant;

    if (!known)
        slot = bh_slot_add(engine, TABLE_TENANT, event->tenant.v);
    tenant = tenant_at(engine, slot);
    if (!known) {
        tenant->usage_ns = engine->core.now_ns;
        bh_ledger_open(engine, slot);
    }
    bh_usage_update_all(engine);
    bh_dedication_suspend(engine);
    tenant_attach(engine, tenant, tenant_find(engine, event->parent.v));
    change_write_settings(engine, tenant, event);
    bh_dedication_restore(engine);
    bh_gpu_form_recount(engine);
    bh_usage_set_budget(engine, slot, &event->budget);
    if (known)
        bh_quota_recount(engine);
}

/* ---- remove ---- */

bh_rc
bh_tenant_check_remove(const struct bh_engine *engine, bh_tenant_id id, struct bh_reason *ret_why)
{
    uint32_t slot = tenant_find(engine, id.v);

    *ret_why = (struct bh_reason){ .code = BH_REASON_UNKNOWN_TENANT, .tenant = id };
    if (!slot || tenant_at(engine, slot)->removed)
        return BH_NOT_FOUND;
    *ret_why = (struct bh_reason){ .code = BH_REASON_TENANT_BUSY, .tenant = id };
    return tenant_at(engine, slot)->children ? BH_CONFLICT : BH_OK;
}

void
bh_tenant_remove(struct bh_engine *engine, bh_tenant_id id)
{
    uint32_t slot = tenant_find(engine, id.v);

    BH_ASSERT(slot != 0);
    BH_ASSERT(tenant_at(engine, slot)->children == 0 && !tenant_at(engine, slot)->removed);
    tenant_at(engine, slot)->removed = 1;
    bh_tenant_reap(engine, slot);
}

void
bh_tenant_reap(struct bh_engine *engine, uint32_t slot)
{
    struct tenant *tenant = tenant_at(engine, slot);

    BH_ASSERT(tenant->id != 0 && tenant->removed <= 1);
    if (!tenant->removed || tenant->jobs || tenant->children)
        return;
    bh_ledger_leave(engine, slot);
    engine->core.dedicated -= tenant->dedicated;
    engine->core.withholders -= bh_tenant_withholds(tenant);
    tenant_attach(engine, tenant, 0);
    bh_slot_remove(engine, TABLE_TENANT, slot);
    bh_gpu_form_recount(engine);
}
