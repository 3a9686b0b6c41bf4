#include "node/placement/health_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/core/state_check.h"

struct bh_health_watch *
bh_health_watch_new(void)
{
    struct bh_health_watch *watch = calloc(1, sizeof *watch);

    BH_ASSERT(watch);
    return watch;
}

void
bh_health_watch_free(struct bh_health_watch *watch)
{
    free(watch);
}

static void
health_state_assert(const struct bh_health_state *state)
{
    BH_STATE_ASSERT_TEXT(state->gpu);
    BH_STATE_ASSERT_TEXT(state->why);
    BH_ASSERT(!state->unresponsive || (state->pause && state->retry_at));
    BH_ASSERT(state->given_up <= BH_HEALTH_ASKED_SINCE);
}

void
bh_health_watch_assert(const struct bh_health_watch *watch)
{
    BH_ASSERT(watch->count <= BH_COUNT(watch->gpu_state));
    BH_ASSERT(watch->missed_count <= BH_COUNT(watch->missed));
    BH_ASSERT(watch->xids.next < BH_XID_WINDOW_MAX);
}

struct bh_health_state *
bh_health_state_find(const struct bh_node *node, const char *gpu)
{
    struct bh_health_watch *watch = node->health;

    bh_health_watch_assert(watch);
    for (uint32_t i = 0; i < watch->count; i++) {
        health_state_assert(&watch->gpu_state[i]);
        if (strcmp(watch->gpu_state[i].gpu, gpu) == 0)
            return &watch->gpu_state[i];
    }
    return NULL;
}

void
bh_health_state_learn(struct bh_node *node)
{
    struct bh_health_watch *watch = node->health;

    bh_health_watch_assert(watch);
    for (uint32_t i = 0; i < node->inventory.gpu_count; i++) {
        const struct bh_device_gpu *gpu = &node->inventory.gpus[i];
        struct bh_health_state *gpu_state = bh_health_state_find(node, gpu->uuid);

        if (!gpu_state && watch->count < BH_HEALTH_GPUS_MAX && *gpu->uuid) {
            gpu_state = &watch->gpu_state[watch->count++];
            gpu_state->announce = true;
        }
        if (!gpu_state || !*gpu->pci)
            continue;
        snprintf(gpu_state->gpu, sizeof gpu_state->gpu, "%s", gpu->uuid);
        snprintf(gpu_state->pci, sizeof gpu_state->pci, "%s", gpu->pci);
    }
}

const char *
bh_health_pci(const struct bh_node *node, const char *gpu)
{
    const struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);

    return gpu_state ? gpu_state->pci : "";
}

void
bh_health_forget(struct bh_node *node, const char *gpu)
{
    struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);

    if (gpu_state) {
        gpu_state->checked_at = 0;
        gpu_state->unresponsive = false;
    }
}

bool
bh_health_is_unresponsive(const struct bh_node *node, const char *gpu)
{
    const struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);

    return gpu_state && gpu_state->unresponsive;
}

const char *
bh_health_why(const struct bh_node *node, const char *gpu)
{
    const struct bh_health_state *gpu_state = bh_health_state_find(node, gpu);

    return gpu_state && gpu_state->unresponsive ? gpu_state->why : NULL;
}
