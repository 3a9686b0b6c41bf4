/* The driver's API as this library exports it: what is defined here under one of its names
 * is seen from outside. */
#ifndef BH_SHIM_PROCESS_ABI_H
#define BH_SHIM_PROCESS_ABI_H

#pragma GCC visibility push(default)
#include "bulkhead/cuda_abi.h"
#pragma GCC visibility pop

#include "shim/process/library.h"

#endif
