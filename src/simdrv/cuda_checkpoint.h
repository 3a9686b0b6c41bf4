/* Checkpoints: a process's device memory leaves the GPU and comes back. */
#ifndef BH_SIMDRV_CUDA_CHECKPOINT_H
#define BH_SIMDRV_CUDA_CHECKPOINT_H

#include "simdrv/cuda_physical.h"

/* After a restore, under the lock: use the pages that this process has now. */
void sim_checkpoint_follow(struct sim_memory *memory);

#endif
