#include "node/placement/inventory.h"

#include <string.h>

#include "base/assert.h"
#include "model/share.h"
#include "node/core/state_check.h"
#include "node/placement/placement.h"

const struct bh_device_gpu *
bh_node_inventory_gpu(const struct bh_node *node, const char *uuid)
{
    bh_node_assert(node);
    for (uint32_t i = 0; i < node->inventory.gpu_count; i++) {
        BH_STATE_ASSERT_TEXT(node->inventory.gpus[i].uuid);
        if (strcmp(node->inventory.gpus[i].uuid, uuid) == 0)
            return &node->inventory.gpus[i];
    }
    return NULL;
}

bool
bh_node_inventory_is_unread(const struct bh_node *node, const char *uuid)
{
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, uuid);

    return !node->inventory_known || !gpu || gpu->lost;
}

uint32_t
bh_node_inventory_units(const struct bh_node *node, const struct bh_node_partition *wanted)
{
    const struct bh_device_gpu *gpu = bh_node_inventory_gpu(node, wanted->gpu);
    enum bh_gpu_model model = gpu ? bh_model_by_product(gpu->product) : BH_GPU_MODEL_NONE;
    const struct bh_profile *profile = model ? bh_profile_find(model, wanted->profile) : NULL;

    if (!bh_placement_makes_instance(wanted) && model)
        return (1u << bh_model_facts(model)->memory_units) - 1;
    if (!bh_placement_makes_instance(wanted) || !profile
        || wanted->start + profile->memory_units > BH_OWNERSHIP_UNITS)
        return BH_OWNERSHIP_ALL;
    return ((1u << profile->memory_units) - 1) << wanted->start;
}
