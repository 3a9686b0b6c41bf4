#ifndef BH_ENGINE_PLACEMENT_GUARANTEE_H
#define BH_ENGINE_PLACEMENT_GUARANTEE_H

#include "engine/account/quota.h"
#include "engine/gpu/capacity.h"

/* What tenants are guaranteed, which jobs that protects, and what of it is lent. */

/* Against which jobs guarantees cover a request; more is better. */
enum bh_cover {
    BH_COVER_NONE,   /* no tenant: none does, or one below those that do would be exceeded */
    BH_COVER_WITHIN, /* others within the lowest tenant whose guarantee would be exceeded: they use what the
                      * one below was promised */
    BH_COVER_ALL,    /* all jobs: no tenant above would be exceeded either */
};

/* A tenant's guarantee of the SKU or of the GPU model covers it as well as that of all
 * GPU-equivalents.  `ret_within` is the tenant (slot) of BH_COVER_WITHIN, else 0. */
enum bh_cover bh_guarantee_cover(const struct bh_engine *engine, const struct bh_wanted *wanted,
                                 uint32_t *ret_within);

/* The same, what is being made room for others of those tenants (but not for this job, by
 * slot) counted as used. */
enum bh_cover bh_guarantee_cover_with_claims(const struct bh_engine *engine, const struct bh_wanted *wanted,
                                             uint32_t job, uint32_t *ret_within);

/* What room is being made for within the tenant (slot), in parts: for all but that job. */
uint64_t bh_guarantee_claimed(const struct bh_engine *engine, uint32_t tenant, uint32_t but_job);

/* Whether the tenant (slot) itself is guaranteed anything that counts what is wanted. */
bool bh_guarantee_concerns(const struct bh_engine *engine, uint32_t tenant, const struct bh_wanted *wanted);

/* Whether a guarantee of the job's tenant, or of one above it, covers what is used there in what is imagined,
 * and does not cover the searching tenant: the job is not preempted. */
bool bh_quota_protects(const struct bh_search *search, uint32_t job);

/* Whether enough stays of what tenants with a guarantee do not lend; true where a guarantee
 * covers what is wanted. */
bool bh_guarantee_lends(const struct bh_search *search, const struct bh_wanted *wanted,
                        struct bh_reason *ret_why);

#endif
