#ifndef BH_MODEL_LAYOUT_H
#define BH_MODEL_LAYOUT_H

#include "base/err.h"
#include "base/fields.h"
#include "model/geometry.h"

/* Which MIG instances shall stand ready on which GPUs, as an operator declares it
 * (docs/mig.md).  GPUs that a document does not name are left alone. */

enum { BH_LAYOUT_PARTITIONS_MAX = 7, BH_LAYOUT_ENTRIES_MAX = 4096 };

struct bh_layout_entry {
    const char *gpu;            /* "GPU-...", "node/0", or "all" */
    struct bh_texts partitions; /* "1g.10gb x7", "3g.40gb@4"; none: no instance at all */
    bool forget;                /* nothing is declared; existing instances are left alone */
};

struct bh_layouts {
    struct bh_list layouts; /* struct bh_layout_entry */
};
extern const struct bh_fields bh_layout_fields;

struct bh_layout_partition {
    const struct bh_profile *profile;
    uint32_t start;
};

struct bh_layout_plan {
    struct bh_layout_partition partitions[BH_LAYOUT_PARTITIONS_MAX]; /* by start */
    uint32_t count;
};

/* Where the partitions of an entry stand on a GPU of the model: as they say, and those that do not
 * say it where they fit, the largest first.  BH_INVALID: no such profile, no such start, or not
 * all at once; the message names the partition. */
BH_MUST_USE bh_rc bh_layout_plan_partitions(enum bh_gpu_model model, const struct bh_texts *partitions,
                                            struct bh_layout_plan *ret_plan, struct bh_err *err);

#endif
