#ifndef BH_ENGINE_PACK_PACK_BULKHEAD_H
#define BH_ENGINE_PACK_PACK_BULKHEAD_H

#include "engine/pack/pack_internal.h"

/* Our own policy, docs/internals/packing.md: a node's points are the waste (pack_waste.h)
 * that placing the shape there saves, with a little best fit; pack_kind.c takes the price
 * of the node's model off (pack_price.h).  A part of a GPU goes where it saves most, whole
 * GPUs are the first.  Where nothing is expected it is best fit.  See struct bh_pack_rule.
 */
int32_t bh_pack_bulkhead_score(const struct bh_pack *pack, const struct bh_pack_host *host,
                               const struct bh_pack_shape *want);
int32_t bh_pack_bulkhead_pick(const struct bh_pack *pack, const struct bh_pack_host *host,
                              const struct bh_pack_shape *want, const struct bh_pack_rounding *rounding,
                              uint32_t *ret_gpus);

#endif
