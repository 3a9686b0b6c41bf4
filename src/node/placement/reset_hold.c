#include "node/placement/reset_hold.h"

#include <string.h>

#include "base/arena.h"
#include "base/assert.h"
#include "node/core/state_check.h"

void
bh_reset_hold_assert(const struct bh_reset *reset)
{
    BH_ASSERT(reset->state <= BH_RESET_OVER && reset->pid >= 0 && reset->pidfd >= -1);
    BH_ASSERT(reset->state != BH_RESET_RUNS || reset->pid > 0);
    BH_ASSERT(reset->pid > 0 || (reset->pidfd < 0 && reset->before_count == 0));
    BH_ASSERT(reset->before_count <= BH_COUNT(reset->before));
    BH_ASSERT(reset->pid == 0 || (reset->order.order != 0 && reset->until));
    BH_STATE_ASSERT_TEXT(reset->order.gpu);
}

bool
bh_reset_hold_has(const struct bh_node *node, const char *gpu)
{
    const struct bh_reset *reset = node->reset;

    bh_reset_hold_assert(reset);
    return reset->pid && (reset->together || strcmp(reset->order.gpu, gpu) == 0);
}

void
bh_reset_hold_complete(const struct bh_node *node, struct bh_arena *arena, struct bh_inventory *inventory)
{
    const struct bh_reset *reset = node->reset;
    uint32_t count = inventory->gpu_count;
    struct bh_device_gpu *gpus;

    if (!reset || reset->before_count == 0)
        return;
    gpus = bh_arena_alloc(arena, (count + reset->before_count) * sizeof *gpus);
    if (!gpus)
        return;
    memcpy(gpus, inventory->gpus, count * sizeof *gpus);
    for (uint32_t i = 0; i < reset->before_count; i++) {
        uint32_t at = 0;

        while (at < inventory->gpu_count && strcmp(gpus[at].uuid, reset->before[i].uuid) != 0)
            at++;
        if (at == inventory->gpu_count)
            gpus[count++] = reset->before[i];
        gpus[at < inventory->gpu_count ? at : count - 1].index = reset->before[i].index;
    }
    inventory->gpus = gpus;
    inventory->gpu_count = count;
}
