/* What the files of the simulated libcuda.so.1 share: devices, contexts and the
 * memory that calls work on.
 *
 * A device is what NVML shows of it: the same state file, the same UUIDs.  A
 * job sees the one instance whose view was mounted for it while its device
 * nodes open, and of that what CUDA_VISIBLE_DEVICES leaves. */
#ifndef BH_SIM_CUDA_CUDA_H
#define BH_SIM_CUDA_CUDA_H

#include <stdbool.h>

#include "bulkhead/cuda_abi.h"
#include "sim/machine/geometry.h"
#include "sim/machine/sim.h"

#define CUDA_API __attribute__((visibility("default")))

/* A call that is one expression of its parameters. */
#define CUDA_ROW(name, parameters, ...)                                                                      \
    CUDA_API CUresult name parameters                                                                        \
    {                                                                                                        \
        return __VA_ARGS__;                                                                                  \
    }
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

/* Find the devices that are visible here: they are ready then.  NO_DEVICE; UNKNOWN: a fault
 * that was injected. */
CUresult sim_cuda_devices_open(void);

/* Those of the parent are not ready in a child of fork. */
void sim_cuda_devices_forget(void);

/* Bytes of its memory. */
uint64_t sim_cuda_bytes(const struct sim_cuda_device *device);

/* Its multiprocessors. */
uint32_t sim_cuda_sms(const struct sim_cuda_device *device);

struct sim_memory;
struct sim_region;
struct sim_physical;

#define SIM_CUDA_LIMITS 10

/* A context, counted: the memory it holds counts as its process's while it lives. */
struct CUctx_st {
    uint32_t magic;
    unsigned references;
    bool primary, green; /* a green one shares what its primary one has */
    CUdevice device;
    unsigned flags, version;
    uint64_t id;
    struct sim_memory *memory;
    struct sim_physical *overhead;                  /* what the driver itself needs on the device */
    struct sim_physical *reserved[SIM_CUDA_LIMITS]; /* for limits above the usual */
    size_t limit[SIM_CUDA_LIMITS];
    struct sim_region *chunks[2]; /* of small allocations; [1]: below 4 GiB */
    struct {
        struct sim_physical **page;
        size_t pages, bytes;
    } code;                     /* sim/cuda/work/code.h */
    struct sim_cuda_work *work; /* sim/cuda/work/streams.h; NULL: nothing submitted yet */
};

/* The calling thread's current context; INVALID_CONTEXT without one.  Waits while the
 * process is locked for a checkpoint. */
CUresult sim_cuda_current(struct CUctx_st **ret_context);

/* The same, and its device still stands: looked at now and then. */
CUresult sim_cuda_enter(struct CUctx_st **ret_context);

/* Is it one that lives?  NULL is not. */
bool sim_cuda_is_context(const struct CUctx_st *context);

/* The handle that the device's primary context has, or will have. */
CUcontext sim_cuda_primary_handle(CUdevice device);

/* Forget contexts of the parent, in a child of fork. */
void sim_cuda_contexts_forget(void);

#endif
