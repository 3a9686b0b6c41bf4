/* Memory that calls of libcuda.so.1 hand out: pages of a device, or of the machine, and
 * the lock under which all of this process's is changed. */
#ifndef BH_SIM_CUDA_MEMORY_PHYSICAL_H
#define BH_SIM_CUDA_MEMORY_PHYSICAL_H

#include "sim/cuda/cuda.h"
#include "sim/machine/ledger.h"

/* A device's memory, as this process uses it: from the first context or allocation on. */
struct sim_memory {
    CUdevice number;
    uint64_t birth; /* of the instance, or of the GPU; 0: never opened */
    struct sim_vram *vram;
    uint32_t slot, moves; /* in the ledger; how many restores were followed */
    int aside;            /* the file for its bytes while it is checkpointed */
    void *presence;       /* the mapping that shows in NVML's list of processes */
    unsigned users;       /* contexts and objects that hold it */
    uint32_t faults;      /* SIM_FAULT_* of its GPU, as last looked at */
    uint64_t looked_ns;
};

/* Memory that is there once, however many addresses and handles name it. */
struct sim_physical {
    struct sim_physical *next, *previous; /* all of this process */
    unsigned references;
    struct sim_memory *memory; /* NULL: the machine's */
    uint32_t slot;             /* which has the pages: the process's or the object's own */
    int fd;                    /* of a shared object, or the machine's bytes; -1 */
    size_t bytes;              /* as taken: whole pages */
    struct sim_extents pages;
};

/* The lock of all that sim/cuda/memory keeps.  Taking it waits while the process is locked
 * for a checkpoint. */
void sim_memory_lock(void);
void sim_memory_unlock(void);

/* Wait while the process is locked for a checkpoint. */
void sim_memory_wait(void);

/* Forget what was taken from the parent, in a child of fork. */
void sim_memory_forget(void);

/* ---- under the lock ---- */

/* The memory of a device, opened where it was not.  As sim_cuda_device(); OPERATING_SYSTEM
 * when its files do not open. */
CUresult sim_memory_open(CUdevice number, struct sim_memory **ret_memory);

/* One user more, or one less: without any the process leaves NVML's list. */
CUresult sim_memory_use(struct sim_memory *memory);
void sim_memory_leave(struct sim_memory *memory);

/* Take pages of a device (`how`: SIM_TAKE_TOP, or 0) or of the machine.  OUT_OF_MEMORY. */
CUresult sim_physical_new(struct sim_memory *memory, size_t bytes, unsigned how,
                          struct sim_physical **ret_physical);
CUresult sim_physical_new_host(size_t bytes, struct sim_physical **ret_physical);

/* Drop one reference; NULL is fine. */
void sim_physical_release(struct sim_physical *physical);

/* Make it an object that other processes can open; it has an `fd` then.  `location` is
 * reported to them. */
CUresult sim_physical_share(struct sim_physical *physical, uint32_t location);

/* Take part in a shared object that this file stands for; the file stays the caller's.
 * INVALID_VALUE: it is none. */
CUresult sim_physical_adopt(int fd, struct sim_physical **ret_physical);

/* The same by slot and generation. */
CUresult sim_physical_reopen(struct sim_memory *memory, uint32_t slot, uint32_t generation,
                             struct sim_physical **ret_physical);

/* The device's page that holds byte `at`. */
uint32_t sim_physical_page(struct sim_physical *physical, uint64_t at);

/* The opened memories; NULL past the last. */
struct sim_memory *sim_memory_at(unsigned index);

#endif
