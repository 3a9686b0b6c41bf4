#ifndef BH_ENGINE_GPU_EXCLUSIVE_H
#define BH_ENGINE_GPU_EXCLUSIVE_H

#include "engine/gpu/capacity.h"

/* GPUs whose driver must not change instances beside another tenant's lease: tables/
 * driver_fixes.tbl has the reason.  On them a tenant gets new partitions while all leases there
 * are its own, and else only partitions that stand ready. */

/* Whether a partition of the profile may be made or destroyed on the GPU for the searching tenant (none: for
 * no tenant yet), without the jobs that are imagined gone; a share, which is made without the driver, always.
 * False: `ret_neighbor` is the job (slot) of another tenant that is in the way. */
bool bh_exclusive_may_stand(const struct bh_search *search, uint32_t gpu, uint32_t profile,
                            uint32_t *ret_neighbor);

/* The same of any MIG instance as things stand, for a tenant by its id; 0 is none. */
bool bh_exclusive_with(const struct bh_engine *engine, uint32_t gpu, uint32_t tenant_id);

/* A partition of the profile that stands ready for the searching tenant and that the occupancy
 * has room for, the one with the lowest start; 0: there is none. */
uint32_t bh_exclusive_ready(const struct bh_search *search, uint32_t gpu, uint32_t profile,
                            const struct bh_occupancy *occupancy);

#endif
