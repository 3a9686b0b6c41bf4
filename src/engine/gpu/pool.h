#ifndef BH_ENGINE_GPU_POOL_H
#define BH_ENGINE_GPU_POOL_H

#include "engine/state/mig.h"
#include "engine/state/state_internal.h"

/* The GPUs of one model as a pool: what it has room for, what is asked of it, and so what a
 * place for a MIG instance costs the jobs to come (engine/state/mig.h).
 *
 * Sums and demand are state: they follow from events and stand in core.pools.  The model's
 * figures are a constant; the block keeps those of POOLS_MAX models, made when a GPU of the
 * model is first seen.  GPUs of further models are judged by fragmentation alone. */

/* Bytes that one model's figures take in the block. */
uint64_t bh_pool_bytes(void);

/* A GPU of the model is there: have its figures.  And all that were had, in a new block. */
void bh_pool_add_model(struct bh_engine *engine, uint32_t model);
void bh_pool_restore(struct bh_engine *engine);

/* The GPU's occupancy, or whether it gets new work, has changed. */
void bh_pool_follow(struct bh_engine *engine, uint32_t gpu, bool offered);

/* A job asks for so many partitions of a SKU. */
void bh_pool_demand_add(struct bh_engine *engine, uint32_t sku, uint32_t partitions);

/* As bh_view_demand; a model below MODELS_MAX. */
bool bh_pool_demand(const struct bh_engine *engine, uint32_t model, struct bh_demand_view *ret_view);

/* What room is worth now, and the figures to choose with (bh_mig_choose); NULL where the
 * model has none. */
const struct bh_mig *bh_pool_prices(const struct bh_engine *engine, uint32_t model,
                                    struct bh_mig_prices *ret_prices);

#endif
