#ifndef BH_API_REQUEST_FACTS_H
#define BH_API_REQUEST_FACTS_H

#include "api/request/call.h"

/* What the connected nodes last said about themselves and their GPUs, by name. */
struct bh_node_facts {
    const char *name;
    bh_json_value root; /* an inventory with its samples */
    struct bh_json *json;
};

struct bh_gpu_facts_of {
    const char *uuid;
    bh_json_value gpu;
    const struct bh_node_facts *node;
};

struct bh_facts {
    struct bh_node_facts *nodes;  /* by name */
    struct bh_gpu_facts_of *gpus; /* by UUID */
    uint32_t node_count, node_capacity, gpu_count;
};

/* Ask the owner and read it all; what cannot be read is left out. */
void bh_facts_load(const struct bh_owner *owner, struct bh_facts *ret_facts);
void bh_facts_fini(struct bh_facts *facts);
static inline void
bh_facts_fini_auto(struct bh_facts *facts)
{
    bh_facts_fini(facts);
}

/* NULL when no such node is connected, or none has such a GPU. */
const struct bh_node_facts *bh_facts_node(const struct bh_facts *facts, const char *name);
const struct bh_gpu_facts_of *bh_facts_gpu(const struct bh_facts *facts, const char *uuid);

/* Why its node says that nothing new may be placed on it; "": it does not.  The node's own text names jobs:
 * only for a caller that sees all of the site; others get its kind. */
const char *bh_facts_fence_why(const struct bh_gpu_facts_of *gpu, bool sees_all);

/* The GPU as it was sampled last; as the inventory has it, before the first sample and where the driver did
 * not answer since. */
bh_json_value bh_facts_sample(const struct bh_gpu_facts_of *gpu);

/* The same for what its sensors read; NULL where the driver did not answer the last time: what the inventory
 * has is of when the node connected, then. */
bh_json_value bh_facts_reading(const struct bh_gpu_facts_of *gpu);

/* When the daemon got the node's last report; 0: not known. */
bh_ns bh_facts_reported_ns(const struct bh_node_facts *node);

#endif
