/* The driver's own libnvidia-ml.so.1, behind the view (library.h). */
#ifndef BH_SHIM_NVML_DRIVER_H
#define BH_SHIM_NVML_DRIVER_H

#include <stdbool.h>

#pragma GCC visibility push(default)
#include "bulkhead/nvml_abi.h"
#pragma GCC visibility pop

#define BH_HIDDEN __attribute__((visibility("hidden")))

/* One slot for each name, in the order of tables/nvml_names.tbl. */
#define NVML_NAME(name) extern BH_HIDDEN void *bh_real_##name;
#include "tables/nvml_names.tbl"
#undef NVML_NAME

extern BH_HIDDEN void *bh_driver_slots[]; /* all of them */

/* The driver's call of that name.  One that it lacks answers FUNCTION_NOT_FOUND; every one
 * answers LIBRARY_NOT_FOUND without a driver. */
#define REAL(name) ((__typeof__(&(name)))__atomic_load_n(&bh_real_##name, __ATOMIC_RELAXED))

/* Does the driver have the call of this slot? */
bool bh_driver_has(void **slot);
#define HAS(name) bh_driver_has(&bh_real_##name)

/* The call of this slot, which is filled; for trampolines.S.  Never NULL. */
void *bh_driver_find(void **slot);

/* What answers.S jumps to. */
nvmlReturn_t bh_nvml_refused(void);
nvmlReturn_t bh_nvml_hidden(void);

#endif
