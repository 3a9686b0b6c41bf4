#ifndef BH_ENGINE_ACCOUNT_QUOTA_H
#define BH_ENGINE_ACCOUNT_QUOTA_H

#include "engine/state/state_internal.h"

/* What a tenant, and all above it, use of what their quotas count. */

/* What a placement would use. */
struct bh_wanted {
    uint32_t tenant, sku; /* slots */
    uint32_t count;       /* partitions */
    uint64_t equivalent;  /* GPU-equivalents in parts, of all of them */
    uint32_t model;       /* of the GPUs: enum bh_gpu_model */
    uint32_t principal;   /* id: whose job it is */
};

/* The equivalents of `count` partitions of a profile. */
uint64_t bh_quota_equivalent(uint32_t profile, uint32_t count);

/* The least that the SKU could be kept with, over its models. */
uint64_t bh_quota_least(const struct bh_engine *engine, uint32_t sku, uint32_t count);

/* Count what a lease takes, or gives back, in the tenant and all above it. */
void bh_quota_charge(struct bh_engine *engine, const struct bh_wanted *wanted);
void bh_quota_release(struct bh_engine *engine, const struct bh_wanted *wanted);

/* What a lease holds just now; nothing while it is suspended. */
struct bh_wanted bh_quota_of_lease(const struct bh_engine *engine, uint32_t lease);

/* What a claim will take. */
struct bh_wanted bh_quota_of_claim(const struct bh_engine *engine, const struct claim *claim);

/* What a suspended lease would take when it resumes. */
struct bh_wanted bh_quota_to_resume(const struct bh_engine *engine, uint32_t lease);

/* What the members of a suspended job (slot) would that are not done. */
struct bh_wanted bh_quota_to_resume_all(const struct bh_engine *engine, uint32_t job);

/* Sums of all tenants anew, from the leases and jobs. */
void bh_quota_recount(struct bh_engine *engine);

/* Whether a quota is about that at all, and how much of what it counts is in it. */
bool bh_quota_concerns(const struct bh_engine *engine, const struct quota *quota,
                       const struct bh_wanted *wanted);
uint64_t bh_quota_counted(const struct bh_engine *engine, const struct quota *quota,
                          const struct bh_wanted *wanted);

#endif
