#ifndef BH_ENGINE_PACK_BULKHEAD_H
#define BH_ENGINE_PACK_BULKHEAD_H

#include "engine/pack_internal.h"

/* Our own policy; see struct bh_pack_rule. */
int32_t bh_pack_bulkhead_score(const struct bh_pack *pack, const struct bh_pack_host *host,
                               const struct bh_pack_shape *want);
int32_t bh_pack_bulkhead_pick(const struct bh_pack *pack, const struct bh_pack_host *host,
                              const struct bh_pack_shape *want, uint32_t *ret_gpus);

#endif
