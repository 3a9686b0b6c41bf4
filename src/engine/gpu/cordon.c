#include "engine/gpu/cordon.h"

#include "base/assert.h"
#include "engine/gpu/health.h"
#include "engine/gpu/ledger.h"
#include "engine/gpu/unchecked.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

bh_rc
bh_cordon_check(const struct bh_engine *engine, const struct bh_ev_cordon *cordon)
{
    uint32_t gpu = gpu_find(engine, cordon->gpu.v);

    if ((uint32_t)cordon->held >= BH_HELDS || (cordon->gpu.v == 0) == (cordon->node.v == 0))
        return BH_RANGE;
    if (cordon->gpu.v ? !gpu : !node_find(engine, cordon->node.v))
        return BH_NOT_FOUND;
    if (cordon->clear_fault && gpu && gpu_at(engine, gpu)->health.waiting)
        return BH_CONFLICT;
    return BH_OK;
}

static void
clear_fault(struct work *work, uint32_t slot)
{
    BH_ASSERT(gpu_at(work->engine, slot)->id != 0);
    if (!gpu_at(work->engine, slot)->health.waiting)
        bh_health_clear(work, slot);
}

void
bh_cordon_set(struct work *work, const struct bh_ev_cordon *cordon)
{
    struct bh_engine *engine = work->engine;
    uint32_t gpu = gpu_find(engine, cordon->gpu.v), node = node_find(engine, cordon->node.v);

    BH_ASSERT(gpu != 0 || node != 0);
    BH_ASSERT((uint32_t)cordon->held < BH_HELDS);
    if (gpu)
        gpu_at(engine, gpu)->held = (uint8_t)cordon->held;
    else
        node_at(engine, node)->held = (uint8_t)cordon->held;
    if (node && cordon->held == BH_HELD_NOT)
        bh_unchecked_clear(work, node);
    for (uint32_t at = gpu ? gpu : node_at(engine, node)->first_gpu; at;
         at = gpu ? 0 : gpu_at(engine, at)->next_on_node) {
        bh_ledger_refresh(engine, at);
        if (cordon->clear_fault)
            clear_fault(work, at);
    }
    engine->hints.swept = false;
    bh_wake_window(engine);
}
