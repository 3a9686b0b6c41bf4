/* The calls of libcuda.so.1 that bulkhead-burn uses, found when it starts: no toolkit is
 * needed, and a library that stands in for the driver is found as programs find it. */
#ifndef BH_SIM_BURN_DRIVER_H
#define BH_SIM_BURN_DRIVER_H

#include <stdbool.h>

#include "bulkhead/cuda_abi.h"

/* clang-format off */
#define BURN_CALLS(X) \
    X(cuInit, cuInit) X(cuDeviceGet, cuDeviceGet) X(cuDeviceGetName, cuDeviceGetName) \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute) \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent, cuCtxSetCurrent) \
    X(cuCtxSynchronize, cuCtxSynchronize) X(cuModuleLoadData, cuModuleLoadData) \
    X(cuModuleUnload, cuModuleUnload) X(cuModuleGetFunction, cuModuleGetFunction) \
    X(cuStreamCreate, cuStreamCreate) X(cuStreamBeginCapture, cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture, cuStreamEndCapture) X(cuStreamDestroy, cuStreamDestroy_v2) \
    X(cuEventCreate, cuEventCreate) X(cuEventDestroy, cuEventDestroy_v2) \
    X(cuEventRecord, cuEventRecord) X(cuEventQuery, cuEventQuery) \
    X(cuEventSynchronize, cuEventSynchronize) X(cuEventElapsedTime, cuEventElapsedTime) \
    X(cuLaunchKernel, cuLaunchKernel) X(cuGraphInstantiate, cuGraphInstantiateWithFlags) \
    X(cuGraphLaunch, cuGraphLaunch) X(cuGraphDestroy, cuGraphDestroy) \
    X(cuGraphExecDestroy, cuGraphExecDestroy) X(cuMemAlloc, cuMemAlloc_v2) \
    X(cuMemFree, cuMemFree_v2) X(cuMemAllocManaged, cuMemAllocManaged) \
    X(cuMemAllocAsync, cuMemAllocAsync) X(cuMemFreeAsync, cuMemFreeAsync) \
    X(cuMemHostAlloc, cuMemHostAlloc) X(cuMemFreeHost, cuMemFreeHost) X(cuMemCreate, cuMemCreate) \
    X(cuMemRelease, cuMemRelease) X(cuArray3DCreate, cuArray3DCreate_v2) \
    X(cuArrayDestroy, cuArrayDestroy) X(cuGetErrorName, cuGetErrorName)
/* clang-format on */

struct burn_driver {
#define CALL(name, symbol) __typeof__(symbol) *name;
    BURN_CALLS(CALL)
#undef CALL
};

/* Find them in the library of this name.  False: *ret_cause says what is missing. */
bool bh_burn_driver_open(const char *library, struct burn_driver *ret_driver, const char **ret_cause);

/* What an answer is called; never NULL. */
const char *bh_burn_error_name(const struct burn_driver *driver, CUresult result);

#endif
