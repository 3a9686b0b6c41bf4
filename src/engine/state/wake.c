#include "engine/state/wake.h"

#include "base/assert.h"
#include "engine/state/slots.h"

void
bh_wake_class(struct bh_engine *engine, uint32_t class)
{
    BH_ASSERT(class_at(engine, class)->id != 0);
    BH_ASSERT(class_at(engine, class)->jobs > 0);
    *bh_class_hint(engine, class) = (struct hint){ 0 };
    engine->hints.settled = false;
}

void
bh_wake_queue(struct bh_engine *engine)
{
    engine->core.generation++;
    engine->core.turned_ns = engine->core.now_ns;
    engine->hints.settled = false;
}

void
bh_wake_below(struct bh_engine *engine, uint32_t tenant)
{
    uint64_t now = ++engine->hints.changes;

    if (tenant == 0)
        engine->hints.all_changes = now;
    for (; tenant; tenant = tenant_at(engine, tenant)->parent)
        bh_tenant_hint(engine, tenant)->changes = now;
}

void
bh_wake_window(struct bh_engine *engine)
{
    engine->core.window++;
    bh_wake_queue(engine);
}

/* Whether a guarantee says something of what the tenant uses. */
static bool
is_guaranteed(const struct tenant *tenant)
{
    bool guaranteed = tenant->guarantee > 0;

    for (uint32_t i = 0; i < tenant->quota_count; i++)
        guaranteed = guaranteed || tenant->quotas[i].guarantee > 0;
    return guaranteed;
}

void
bh_wake_after_taking(struct bh_engine *engine, uint32_t tenant)
{
    const struct core *core = &engine->core;
    bool matters = core->withholders > 0 || (core->reserved > 0 && core->settings.order != BH_ORDER_FIFO);

    for (uint32_t at = tenant; at && !matters; at = tenant_at(engine, at)->parent)
        matters = is_guaranteed(tenant_at(engine, at));
    if (matters)
        bh_wake_queue(engine);
}
