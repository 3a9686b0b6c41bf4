#include "daemon/state/gpu_facts.h"

#include "base/assert.h"
#include "base/vec.h"
#include "daemon/names/catalog.h"

struct bh_gpu_facts *
bh_gpu_facts_of(struct bh_core *core, bh_gpu_id gpu)
{
    if (gpu.v >= core->gpu_facts_count) {
        bool fits =
            bh_vec_reserve(&core->gpu_facts, &core->gpu_facts_count, (size_t)gpu.v + 1, BH_CATALOG_NAMES_MAX);

        BH_ASSERT(fits);
    }
    return &core->gpu_facts[gpu.v];
}
