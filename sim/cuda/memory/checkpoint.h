/* Checkpoints: a process's device memory leaves the GPU and comes back.
 *
 * Whoever asks does it all, in the files of the memory; the process itself need do nothing.
 * A lock closes the gate of its slots (sim/machine/vram.h), at which its calls wait, and waits
 * until none is under way.  A checkpoint copies its pages into a file in main memory, which the
 * process opened for it, and gives them back.  A restore takes as many pages, writes the bytes to
 * them, and leaves in the file which page became which; the process reads that at its next call. */
#ifndef BH_SIM_CUDA_MEMORY_CHECKPOINT_H
#define BH_SIM_CUDA_MEMORY_CHECKPOINT_H

#include "sim/cuda/memory/physical.h"

/* The file that a process keeps open for that.  -1: errno. */
int sim_checkpoint_file(void);

/* After a restore, under the lock: use the pages that this process has now. */
void sim_checkpoint_follow(struct sim_memory *memory);

#endif
