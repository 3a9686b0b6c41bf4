#ifndef BH_ENGINE_READ_WHY_SHARE_H
#define BH_ENGINE_READ_WHY_SHARE_H

#include "engine/placement/placement.h"

/* Why a job has no share: what an ordinary answer would not tell. */

/* Whether only shares keep the SKU, and no managed GPU of its models may be shared. */
bool bh_why_unshared(const struct bh_engine *engine, uint32_t sku);

/* What is in the way on the GPU that is nearest to having room, when only shares keep the SKU:
 * BH_REASON_SHARE_MEMORY where compute would do, BH_REASON_SHARE_MODE where all that may be shared are carved
 * or whole; its holder is not named.  False, without a reason: something else is in the way. */
bool bh_why_share(const struct bh_search *search, const struct bh_need *need, struct bh_reason *ret_reason);

#endif
