/* Pools: what the driver keeps reserved for stream-ordered allocations and for graphs.
 *
 * The physical truth of a pool is what it has reserved, not what is allocated from it: it
 * grows before an allocation and gives back later.  So a pool is charged for the larger of
 * what the driver says and what calls in progress may make it grow to.  Each device has one
 * pool more, for the memory of its graphs. */
#ifndef BH_SHIM_CHARGE_POOL_H
#define BH_SHIM_CHARGE_POOL_H

#include <stdbool.h>

#include "shim/process/abi.h"

/* At the first join. */
void bh_pools_init(void);

/* A call that may make a pool grow: before it, and after it.
 *
 * begin: `grains` more may be needed; OUT_OF_MEMORY: nothing was reserved.  end: settles
 * with what the driver has reserved now; `allocated` says if the memory was taken.  False:
 * the pool has grown past the cap and could not be made smaller; what was allocated must be
 * freed. */
CUresult bh_pool_begin(unsigned pool, uint64_t grains);
bool bh_pool_end(unsigned pool, uint64_t grains, bool allocated);

/* So many grains of it are free again. */
void bh_pool_freed(unsigned pool, uint64_t grains);

/* Number of the pool that allocations on a device's streams come from, and of one by its handle.
 * False: it cannot be known. */
bool bh_pool_of_device(unsigned device, unsigned *ret_pool);
bool bh_pool_of_handle(CUmemoryPool handle, unsigned *ret_pool);

/* The device's pool for graphs. */
unsigned bh_pool_of_graphs(unsigned device);

/* Another one when memory of graphs was given back: the next launch of each may need it anew. */
uint32_t bh_pools_era(void);

/* Learn again what the driver has reserved, where something was freed since. */
void bh_pools_settle(void);

/* Have a pool give back what it keeps without need. */
void bh_pool_shrink(unsigned pool);

/* Have the pools of a device give back what they keep without need.  True: something came.
 */
bool bh_pools_reclaim(unsigned device);

#endif
