#ifndef BH_ENGINE_QUOTA_H
#define BH_ENGINE_QUOTA_H

#include "engine/room.h"

/* Limits and guarantees of a tenant and of all above it. */

/* What a placement would use. */
struct bh_wanted {
    uint32_t tenant, sku; /* slots */
    uint32_t count;       /* pieces */
    uint64_t equivalent;  /* GPU-equivalents in parts, of all of them */
};

/* The equivalents of `count` pieces of a profile. */
uint64_t bh_quota_equivalent(uint32_t profile, uint32_t count);

/* The least that the SKU could be kept with, over its models. */
uint64_t bh_quota_least(const struct bh_engine *engine, uint32_t sku, uint32_t count);

/* Count what a lease takes, or gives back, in the tenant and all above it. */
void bh_quota_take(struct bh_engine *engine, const struct bh_wanted *wanted);
void bh_quota_give(struct bh_engine *engine, const struct bh_wanted *wanted);

/* Whether the limits allow it in what the search imagines; room claimed by others
 * counts as used.  False: `ret_why` names the limit, `ret_tenant` (slot) whose. */
bool bh_quota_allows(const struct bh_search *search, const struct bh_wanted *wanted,
                     struct bh_reason *ret_why, uint32_t *ret_tenant);

/* What the leases that are imagined gone use within a tenant, in equivalents and in
 * pieces of a SKU. */
struct bh_wanted bh_quota_freed(const struct bh_search *search, uint32_t tenant, uint32_t sku);

/* Whether the limits would allow it if nothing else ran. */
bool bh_quota_ever(const struct bh_engine *engine, const struct bh_wanted *wanted,
                   struct bh_reason *ret_why);

/* Whether some guarantee covers it and none above is exceeded by it. */
bool bh_quota_guaranteed(const struct bh_engine *engine, const struct bh_wanted *wanted);

/* What a lease holds just now; nothing while it is suspended. */
struct bh_wanted bh_quota_of_lease(const struct bh_engine *engine, uint32_t lease);

/* What a suspended lease would take when it resumes. */
struct bh_wanted bh_quota_to_resume(const struct bh_engine *engine, uint32_t lease);

/* Sums of all tenants anew, from the leases and jobs. */
void bh_quota_recount(struct bh_engine *engine);

#endif
