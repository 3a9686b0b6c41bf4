#ifndef BH_ENGINE_PLACEMENT_LIMIT_H
#define BH_ENGINE_PLACEMENT_LIMIT_H

#include "engine/placement/filter.h"

/* Limits of a tenant and of all above it, in what a search imagines. */

/* Whether the limits allow it in what the search imagines, and, where no guarantee covers it, whether enough
 * is left of what tenants with a guarantee do not lend; capacity claimed by others counts as used.  False:
 * `ret_why` names the limit, and `ret_tenant` (slot) the tenant below which capacity must come free: the one
 * with the limit, or 0 where it is any tenant. */
bool bh_quota_allows(const struct bh_search *search, const struct bh_wanted *wanted,
                     struct bh_reason *ret_why, uint32_t *ret_tenant);

/* The same without the reason. */
bool bh_quota_permits(const struct bh_search *search, const struct bh_wanted *wanted);

/* A limit that is used up, whatever is claimed. */
struct bh_limit_shortage {
    struct bh_filter filter; /* whose it is, and what it counts */
    uint64_t by;             /* how much must be given back before it fits */
};

/* Whether a limit of the tenant or of one above it has no room for what is wanted: the lowest
 * such.  Those of users, and what is kept for others, are not asked. */
bool bh_quota_short(const struct bh_engine *engine, const struct bh_wanted *wanted,
                    struct bh_limit_shortage *ret_short);

/* Whether the limits would allow it if nothing else ran. */
bool bh_quota_ever(const struct bh_engine *engine, const struct bh_wanted *wanted, struct bh_reason *ret_why);

#endif
