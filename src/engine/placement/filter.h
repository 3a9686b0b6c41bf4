#ifndef BH_ENGINE_PLACEMENT_FILTER_H
#define BH_ENGINE_PLACEMENT_FILTER_H

#include "engine/account/quota.h"
#include "engine/gpu/capacity.h"

/* What is held and claimed of what a limit or a guarantee counts, in what a search imagines. */

/* What is counted, and of which jobs. */
struct bh_filter {
    uint32_t tenant;           /* slot: with all below it; 0: all tenants */
    const struct quota *quota; /* counts by it; NULL counts equivalents */
    uint32_t principal;        /* id; 0: all principals */
};

/* How much of it that is. */
uint64_t bh_filter_counts(const struct bh_engine *engine, const struct bh_filter *filter,
                          const struct bh_wanted *held);

/* What those hold of it that are imagined gone. */
uint64_t bh_filter_freed(const struct bh_search *search, const struct bh_filter *filter);

/* Whether `why->used`, less what is imagined gone, and with what others claim, leaves room
 * for `why->wanted` below `why->limit`; `used` becomes what is left of it. */
bool bh_filter_fits(const struct bh_search *search, const struct bh_filter *filter, struct bh_reason *why);

#endif
