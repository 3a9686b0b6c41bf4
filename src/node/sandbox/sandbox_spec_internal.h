#ifndef BH_NODE_SANDBOX_SANDBOX_SPEC_INTERNAL_H
#define BH_NODE_SANDBOX_SANDBOX_SPEC_INTERNAL_H

#include "node/common/image_record.h"
#include "node/core/driver.h"
#include "node/sandbox/sandbox_spec.h"

/* What sandbox_spec.c and sandbox_mounts.c share: a sandbox while it is described. */

enum { SANDBOX_MOUNTS_MAX = 200 + BH_DRIVER_COVERS_MAX, SANDBOX_CLONES_MAX = 200 };

struct sandbox_spec {
    struct bh_node *node;
    const struct bh_msg_start *start;
    const struct bh_msg_network *network;
    const struct bh_job *job;
    struct bh_arena *arena;
    struct bh_sandbox *sandbox;
    struct bh_sandbox_mount *mounts;
    struct bh_sandbox_device *devices;
    uint32_t clone_count;
    struct bh_image_record image; /* of an image of the store; else nothing */
    char *record;
};

static inline bh_rc
sandbox_spec_out_of_space(struct bh_err *err)
{
    return bh_err_set(err, BH_FULL, "the order is too long");
}

#endif
