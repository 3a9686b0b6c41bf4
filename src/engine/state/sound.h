#ifndef BH_ENGINE_STATE_SOUND_H
#define BH_ENGINE_STATE_SOUND_H

#include "engine/state/state_internal.h"

/* Whether a row of the state is one that can be, as far as that shows without a search: its
 * values are in range, the rows that it names exist and name it, in turn, and no sum is less
 * than its part.  True of every row between two decisions, and before an event changes anything;
 * asserts rely on that where a row begins to be used.  bh_engine_check looks at all and adds up. */
bool bh_sound_core(const struct bh_engine *engine);
bool bh_sound_tenant(const struct bh_engine *engine, uint32_t tenant);
bool bh_sound_sku(const struct bh_engine *engine, uint32_t sku);
bool bh_sound_node(const struct bh_engine *engine, uint32_t node);
bool bh_sound_gpu(const struct bh_engine *engine, uint32_t gpu);
bool bh_sound_partition(const struct bh_engine *engine, uint32_t partition);
bool bh_sound_class(const struct bh_engine *engine, uint32_t class);
bool bh_sound_job(const struct bh_engine *engine, uint32_t job);
bool bh_sound_lease(const struct bh_engine *engine, uint32_t lease);
bool bh_sound_claim(const struct bh_engine *engine, const struct claim *claim);

/* What kind of row is not, and its slot; NULL: all are. */
const char *bh_sound_broken(const struct bh_engine *engine, uint64_t *ret_slot);

#endif
