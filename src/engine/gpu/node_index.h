#ifndef BH_ENGINE_GPU_NODE_INDEX_H
#define BH_ENGINE_GPU_NODE_INDEX_H

#include "engine/pack/pack.h"
#include "engine/state/state_internal.h"

/* Nodes as a stock of whole GPUs with cores and memory: how good each is for a job, and the best at once, by
 * the packing index (engine/pack/pack.h, policy bulkhead).
 *
 * The demand of jobs is state: core.demand follows from submissions.  The index is not: it lies in the block
 * as a hint and is made from the state, so that engines of equal state answer alike, however they came to it.
 * It knows what nodes have.  It knows nothing of capacity that is kept for a job, of boundaries or of links:
 * the finder checks those.
 *
 * Partitions of divided GPUs are not in it: engine/gpu/pool.h has an index for them. */

/* Bytes that the index takes in the block. */
uint64_t bh_node_index_bytes(const struct bh_engine_caps *caps);

/* A job asks for whole GPUs, or may. */
void bh_node_index_demand(struct bh_engine *engine, uint32_t job);

/* What the node has left is not what it was. */
void bh_node_index_invalidate(struct bh_engine *engine, uint32_t node);

/* Bring the index up to the state: nodes that were touched, and a new demand. */
void bh_node_index_update(struct bh_engine *engine);

/* Cores and memory of each member, whole GPUs, and the models that will do (bits). */
struct bh_node_request {
    uint32_t cpu_milli, memory_mib, gpus;
    uint64_t models;
};

/* What taking the node costs jobs to come, less being better; negative where they gain.  0
 * where it has no room, or GPUs of several models. */
int64_t bh_node_index_cost(const struct bh_engine *engine, uint32_t node, const struct bh_node_request *want);

/* The node that costs least (slot), of equals the lowest; 0: none has room.  False: not
 * known, for the index cannot say of all nodes. */
bool bh_node_index_find(struct bh_engine *engine, const struct bh_node_request *want, uint32_t *ret_node);

#endif
