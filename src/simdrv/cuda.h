/* What the files of the simulated libcuda.so.1 share: devices, contexts and the
 * memory that calls work on.
 *
 * A device is what NVML shows of it: the same state file, the same UUIDs.  A
 * job sees the one instance whose view was mounted for it while its device
 * nodes open, and of that what CUDA_VISIBLE_DEVICES leaves. */
#ifndef BH_SIMDRV_CUDA_H
#define BH_SIMDRV_CUDA_H

#include <stdbool.h>

#include "bulkhead/cuda_abi.h"
#include "simdrv/geometry.h"
#include "simdrv/sim.h"
#include "simdrv/vram.h"

#define CUDA_API __attribute__((visibility("default")))
#define SIM_CUDA_VERSION 13000
#define SIM_CUDA_DEVICES_MAX SIM_GPUS_MAX

/* What a device's number names, as it stands now. */
struct sim_cuda_device {
    struct sim_gpu gpu;
    const struct sim_model *model;
    const struct sim_gi *gi; /* in `gpu`; NULL: the whole GPU */
    const struct sim_ci *ci;
};

/* NOT_INITIALIZED before cuInit; INVALID_DEVICE; DEVICE_UNAVAILABLE: its instance is gone,
 * or the GPU is lost. */
CUresult sim_cuda_device(CUdevice number, struct sim_cuda_device *ret_device);
bool sim_cuda_ready(void);

/* Bytes of its memory. */
uint64_t sim_cuda_bytes(const struct sim_cuda_device *device);

/* A context, counted: the memory it holds counts as its process's while it lives. */
struct CUctx_st {
    uint32_t magic;
    unsigned references;
    bool primary;
    CUdevice device;
    struct sim_vram *vram;
    void *presence;             /* the mapping that shows in NVML's process list */
    uint32_t faults;            /* of its GPU, as last looked at */
    uint64_t looked_ns;         /* when its device was; 0: never */
    struct sim_cuda_work *work; /* simdrv/cuda_work.h; NULL: nothing submitted yet */
};

/* The calling thread's current context; INVALID_CONTEXT without one. */
CUresult sim_cuda_current(struct CUctx_st **ret_context);

/* Free what was allocated in it; for its destruction. */
void sim_cuda_memory_drop(const struct CUctx_st *context);

/* Map `bytes` of the device's memory file: so much of it is used by this process then. */
void *sim_cuda_map(const struct sim_cuda_device *device, size_t bytes);

#endif
