#ifndef BH_ENGINE_STATE_CAPS_H
#define BH_ENGINE_STATE_CAPS_H

#include <stdint.h>

/* The engine's block of memory (engine/step/engine.h), and its sizes. */
struct bh_engine;

/* Of the block: one more whenever its rows or tables change, or what events make of them.
 * Digests of two layouts differ. */
enum { BH_ENGINE_LAYOUT = 16 };

/* Sizes of the slot tables, fixed when a block is made. */
struct bh_engine_caps {
    uint32_t tenants, skus, nodes, gpus, jobs, leases, partitions, classes;
    uint32_t metered; /* rows of the ledger: tenants, and removed ones that used something */
};

/* For a small site; grow by restoring into a bigger block. */
#define BH_ENGINE_CAPS_DEFAULT                                                                               \
    ((struct bh_engine_caps){ .tenants = 256,                                                                \
                              .skus = 64,                                                                    \
                              .nodes = 16,                                                                   \
                              .gpus = 256,                                                                   \
                              .jobs = 4096,                                                                  \
                              .leases = 2048,                                                                \
                              .partitions = 4096,                                                            \
                              .classes = 1024,                                                               \
                              .metered = 512 })

#endif
