/* The driver's own libcuda.so.1, behind the shim's (library.h). */
#ifndef BH_SHIM_DRIVER_DRIVER_H
#define BH_SHIM_DRIVER_DRIVER_H

#include <stddef.h>

#include "shim/process/abi.h"

/* One slot for each name, in the order of tables/cuda_names.tbl.  A call that the driver lacks answers
 * NOT_SUPPORTED; every one answers SHARED_OBJECT_INIT_FAILED without a driver. */
#define CUDA_NAME(name) extern BH_HIDDEN void *bh_real_##name;
#include "tables/cuda_names.tbl"
#undef CUDA_NAME

#endif
