#ifndef BH_ENGINE_GUARANTEE_H
#define BH_ENGINE_GUARANTEE_H

#include "engine/quota.h"

/* What tenants are guaranteed, whom that protects, and what of it is lent. */

/* Whether some guarantee covers it and none above is exceeded by it.  A tenant's guarantee
 * of the SKU or of the GPU model covers it as well as that of all GPU-equivalents. */
bool bh_quota_guaranteed(const struct bh_engine *engine, const struct bh_wanted *wanted);

/* The same, what is being made room for others of those tenants (but not for this job, by
 * slot) counted as used. */
bool bh_quota_guaranteed_with_claims(const struct bh_engine *engine,
                                     const struct bh_wanted *wanted, uint32_t job);

/* Whether the tenant (slot) itself is guaranteed anything that counts what is wanted. */
bool bh_guarantee_concerns(const struct bh_engine *engine, uint32_t tenant,
                           const struct bh_wanted *wanted);

/* Whether a guarantee of the job's tenant, or of one above it, covers what is used there
 * in what is imagined, and does not cover the one who searches: it is not taken away. */
bool bh_quota_protects(const struct bh_search *search, uint32_t job);

/* Whether enough stays of what tenants with a guarantee do not lend; true where a guarantee
 * covers what is wanted. */
bool bh_guarantee_lends(const struct bh_search *search, const struct bh_wanted *wanted,
                        struct bh_reason *ret_why);

#endif
