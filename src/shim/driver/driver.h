/* The driver's own libcuda.so.1, behind ours (library.h). */
#ifndef BH_SHIM_DRIVER_DRIVER_H
#define BH_SHIM_DRIVER_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/process/abi.h"

/* One slot for each name, in the order of tables/cuda_names.tbl. */
#define CUDA_NAME(name) extern BH_HIDDEN void *bh_real_##name;
#include "tables/cuda_names.tbl"
#undef CUDA_NAME

extern BH_HIDDEN void *bh_driver_slots[]; /* all of them */

/* The driver's call of that name, with the prototype of the tables.  A call that the driver
 * lacks answers NOT_SUPPORTED; every one answers SHARED_OBJECT_INIT_FAILED without a
 * driver. */
#define REAL(name) ((__typeof__(&(name)))__atomic_load_n(&bh_real_##name, __ATOMIC_RELAXED))

/* Does the driver have the call of this slot? */
bool bh_driver_has(void **slot);
#define HAS(name) bh_driver_has(&bh_real_##name)

/* The call of this slot, which is filled; for trampolines.S.  Never NULL. */
void *bh_driver_find(void **slot);

/* The call `name` of the driver; NULL when it has none. */
void *bh_driver_symbol(const char *name);

#endif
