/* Pools: memory that is taken from the device in large segments and given out in parts. */
#ifndef BH_SIM_CUDA_MEMORY_POOL_H
#define BH_SIM_CUDA_MEMORY_POOL_H

#include "sim/cuda/memory/space.h"

/* Under the lock.  Take a part of what the pool has, or may take.  OUT_OF_MEMORY;
 * NOT_PERMITTED: the pool is another process's. */
CUresult sim_pool_take(CUmemoryPool pool, size_t bytes, uint64_t *ret_address);

/* Under the lock.  Free what begins at `address` in a pool's segment.  INVALID_VALUE. */
CUresult sim_pool_free(struct sim_region *segment, uint64_t address);

/* Under the lock.  The pool that a handle names; NULL: the present one of the device.
 * INVALID_VALUE. */
CUresult sim_pool_find(CUmemoryPool handle, CUdevice device, CUmemoryPool *ret_pool);

/* Under the lock.  The device that memory of a pool is on; `device` where the handle is
 * NULL or names none, and for a pool of the machine's memory. */
CUdevice sim_pool_find_device(CUmemoryPool handle, CUdevice device);

/* Under the lock: about pools that pass between processes. */
bool sim_pool_is_exportable(CUmemoryPool pool);
bool sim_pool_is_imported(CUmemoryPool pool);
CUdevice sim_pool_device(CUmemoryPool pool);
CUresult sim_pool_import(CUdevice device, CUmemoryPool *ret_pool);

/* What was asked for is done: pools give back what they hold above their thresholds.
 * Takes the lock. */
void sim_pool_synchronized(void);

/* Under the lock: a device's last context ends, and with it what pools gave out there. */
void sim_pool_drop(CUdevice device);

#endif
