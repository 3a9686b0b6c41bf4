#include "daemon/state/gpu_facts.h"

#include "base/assert.h"
#include "base/vec.h"

struct bh_gpu_facts *
bh_gpu_facts_of(struct bh_core *core, bh_gpu_id gpu)
{
    if (gpu.v >= core->gpu_facts_count) {
        bool fits = bh_vec_reserve(&core->gpu_facts, &core->gpu_facts_count, (size_t)gpu.v + 1, UINT32_MAX);

        BH_ASSERT(fits);
    }
    return &core->gpu_facts[gpu.v];
}

struct bh_ev_gpu
bh_gpu_facts_known(const struct bh_gpu_view *view)
{
    return (struct bh_ev_gpu){ .gpu = view->gpu,
                               .node = view->node,
                               .model = view->model,
                               .managed = view->managed,
                               .cordoned = view->cordoned,
                               .fenced = view->fenced,
                               .keeps = view->keeps,
                               .link = view->link,
                               .numa = view->numa,
                               .layout = view->layout,
                               .mig_capable = view->mig_capable,
                               .lone_carve = view->lone_carve,
                               .share_limit = view->share_limit };
}
