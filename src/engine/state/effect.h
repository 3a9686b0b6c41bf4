#ifndef BH_ENGINE_STATE_EFFECT_H
#define BH_ENGINE_STATE_EFFECT_H

#include "engine/state/work_internal.h"

/* What the owner must have done: numbered by the record and the position in it. */

/* An effect on a lease (slot), not answered until the lease hears of it. */
void bh_effect_lease(struct work *work, enum bh_effect_kind kind, uint32_t lease);

/* An effect on a partition (slot): CARVE or DESTROY. */
void bh_effect_partition(struct work *work, enum bh_effect_kind kind, uint32_t partition);

/* An effect on a GPU (slot): RESET or TEST. */
void bh_effect_gpu(struct work *work, enum bh_effect_kind kind, uint32_t gpu);

/* The job's (slot) public state changed; reported once in a step, as it is in the end. */
void bh_effect_job(struct work *work, uint32_t job);

/* The effect again that a lease, a partition or a GPU waits for. */
void bh_effect_of_lease(const struct bh_engine *engine, uint32_t lease, struct bh_effect *ret_effect);
void bh_effect_of_partition(const struct bh_engine *engine, uint32_t partition, struct bh_effect *ret_effect);
void bh_effect_of_gpu(const struct bh_engine *engine, uint32_t gpu, struct bh_effect *ret_effect);

#endif
