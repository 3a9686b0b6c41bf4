#include "daemon/state/gpu_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct bh_gpu_facts *
bh_gpu_facts_of(struct bh_core *core, bh_gpu_id gpu)
{
    if (gpu.v >= core->gpu_facts_count) {
        uint32_t count = gpu.v + 64;

        core->gpu_facts = realloc(core->gpu_facts, count * sizeof *core->gpu_facts);
        BH_ASSERT(core->gpu_facts);
        memset(core->gpu_facts + core->gpu_facts_count, 0,
               (count - core->gpu_facts_count) * sizeof *core->gpu_facts);
        core->gpu_facts_count = count;
    }
    return &core->gpu_facts[gpu.v];
}

struct bh_ev_gpu
bh_gpu_facts_known(const struct bh_gpu_view *view)
{
    return (struct bh_ev_gpu){ .gpu = view->gpu, .node = view->node, .model = view->model,
                               .managed = view->managed, .cordoned = view->cordoned,
                               .fenced = view->fenced, .keeps = view->keeps,
                               .link = view->link, .numa = view->numa, .layout = view->layout,
                               .mig_capable = view->mig_capable,
                               .lone_carve = view->lone_carve,
                               .share_limit = view->share_limit };
}
