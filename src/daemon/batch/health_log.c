#include "daemon/batch/health_log.h"

#include "base/log.h"
#include "daemon/state/gpu_facts.h"
#include "model/health.h"

static void
health_log_gpu(const struct bh_core *core, const struct bh_gpu_view *view)
{
    const char *uuid = bh_catalog_name_of(core->catalog, BH_NAME_GPU, view->gpu.v);

    if (view->health == BH_HEALTH_OK)
        bh_log(GPU_RETURNED, BH_STR("gpu", uuid ? uuid : ""));
    else
        bh_log(GPU_HEALTH, BH_STR("gpu", uuid ? uuid : ""),
               BH_STR("health", bh_gpu_health_names[view->health]), BH_U64("xid", view->xid),
               BH_STR("sign", bh_health_rule_names[view->sign < BH_HEALTH_RULES ? view->sign : 0]));
}

void
bh_health_log(struct bh_core *core)
{
    uint64_t moves = bh_view_health_moves(core->state.engine);
    struct bh_gpu_view view;
    uint32_t cursor = 0;

    if (moves == core->health_logged)
        return;
    core->health_logged = moves;
    while (bh_view_next_gpu(core->state.engine, &cursor, &view)) {
        struct bh_gpu_facts *facts = bh_gpu_facts_of(core, view.gpu);

        if (facts->logged_health == view.health)
            continue;
        facts->logged_health = (uint8_t)view.health;
        bh_tally_count(&core->tally, BH_TALLY_HEALTH + (uint32_t)view.health);
        health_log_gpu(core, &view);
    }
}
