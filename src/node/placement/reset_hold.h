#ifndef BH_NODE_PLACEMENT_RESET_HOLD_H
#define BH_NODE_PLACEMENT_RESET_HOLD_H

#include <sys/types.h>

#include "node/core/node.h"

/* Which GPUs a reset holds (node/partition/reset.h): read by all that would use them meanwhile. */

struct bh_reset {
    enum { BH_RESET_IDLE, BH_RESET_RUNS, BH_RESET_OVER } state; /* of the order */
    struct bh_msg_gpu_order order;
    bool together; /* all GPUs of the node are reset */
    bool killed;
    pid_t pid; /* of the program, until it has gone; 0: none */
    int pidfd;
    bh_ns until;       /* monotonic */
    struct bh_err err; /* when over */
    struct bh_device_gpu before[BH_GPU_HIDDEN_MAX];
    uint32_t before_count; /* 0: no GPU is hidden */
};

/* Asserts what holds of it between two calls. */
void bh_reset_hold_assert(const struct bh_reset *reset);

/* Whether the reset program holds that GPU: no other program opens it meanwhile. */
bool bh_reset_hold_has(const struct bh_node *node, const char *gpu);

/* GPUs that the driver does not show while they are reset stay in the inventory as they were.
 * Of a scan that lives in `arena`. */
void bh_reset_hold_complete(const struct bh_node *node, struct bh_arena *arena,
                            struct bh_inventory *inventory);

#endif
