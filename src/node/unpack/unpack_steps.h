#ifndef BH_NODE_UNPACK_UNPACK_STEPS_H
#define BH_NODE_UNPACK_UNPACK_STEPS_H

#include <stdbool.h>

#include "image/document.h"
#include "image/oci_layout.h"

/* The steps of unpacking an image, each in a child of its own within the cell (unpack_sandbox.h).  Their
 * results are in memory that they share with their parent, which believes only the amounts, and copies texts
 * within bounds. */

struct bh_unpack_shared {
    bh_rc rc;
    struct bh_err err;
    struct bh_image_blob manifest; /* by bh_unpack_resolve, or pull_steps.h */
    bool resolved;                 /* that is a manifest, and no longer an index */
    uint64_t total_bytes;          /* of its configuration and layers, as it says */
    _Atomic uint64_t read_bytes;   /* of these, by bh_unpack_stage */
    uint64_t bytes;                /* of the layers' archives, by bh_unpack_stage */
};

struct bh_pull;

struct bh_unpack_order {
    const struct bh_pull *pull; /* from a registry (pull.h); NULL: a layout */
    const char *tag, *digest;   /* "": not said */
    uint64_t bytes_max;         /* of the layers' archives */
    struct bh_oci_layout layout;
    struct bh_unpack_shared *shared;
};

/* Each takes a struct bh_unpack_order and gives an exit status: 0, or 1 with shared->err. */

/* Find the manifest.  With the submitter's rights. */
int bh_unpack_resolve(void *order);

/* Check the manifest that was found, its configuration and its layers; write to the stage a layout of plain
 * archives, with documents that Bulkhead makes, and the configuration. */
int bh_unpack_stage(void *order);

/* Become umoci, which unpacks that layout to rootfs of the stage. */
int bh_unpack_tool(void *order);

/* After it failed: what it said last. */
int bh_unpack_explain(void *order);

/* Write image.json (common/image_record.h). */
int bh_unpack_finish(void *order);

#endif
