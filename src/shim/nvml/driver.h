/* The driver's own libnvidia-ml.so.1, behind the view (library.h). */
#ifndef BH_SHIM_NVML_DRIVER_H
#define BH_SHIM_NVML_DRIVER_H

#pragma GCC visibility push(default)
#include "bulkhead/nvml_abi.h"
#pragma GCC visibility pop

#include "shim/process/library.h"

/* One slot for each name, in the order of tables/nvml_names.tbl.  One that the driver lacks answers
 * FUNCTION_NOT_FOUND; every one answers LIBRARY_NOT_FOUND without a driver. */
#define NVML_NAME(name) extern BH_HIDDEN void *bh_real_##name;
#include "tables/nvml_names.tbl"
#undef NVML_NAME

/* What answers.S jumps to. */
nvmlReturn_t bh_nvml_refused(void);
nvmlReturn_t bh_nvml_hidden(void);

#endif
