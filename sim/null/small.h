/* The null driver's small allocations. */
#ifndef BH_SIM_NULL_SMALL_H
#define BH_SIM_NULL_SMALL_H

#include "sim/null/driver.h"

/* Of less than 1 MiB.  0: no room.  Any thread. */
CUdeviceptr bh_null_small_take(struct CUctx_st *context, uint64_t bytes);

/* Whether the null driver allocated the address here. */
bool bh_null_small_has(CUdeviceptr address);

/* False: none begins there. */
bool bh_null_small_free(CUdeviceptr address);

/* All of a context, under bh_null_lock. */
void bh_null_small_drop(const struct CUctx_st *context);

/* Without a watcher: give the same addresses again. */
void bh_null_small_begin_anew(void);

extern bool bh_null_small_anew; /* NULL_SMALL_ANEW: no address comes twice */

#endif
