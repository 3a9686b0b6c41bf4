/* The bytes of simulated device memory.
 *
 * They belong to the GPU and not to an instance: each memory unit of a GPU is a
 * file, and an instance's folder has links to the units that it lies on.  What
 * was written stays there when the instance is destroyed, and whoever gets
 * that memory next finds it, unless it was cleared: as in a real GPU.
 *
 * A unit's file is sparse.  It begins with a record for each page of 2 MiB: the
 * word that the page is filled with, and which of its blocks of 4 KiB hold
 * bytes of their own behind that.  So a fill of 80 GiB costs 3 MiB.
 *
 * A page is taken by a lock on its number in the unit's file: a process that
 * dies gives its pages back by dying. */
#ifndef BH_SIMDRV_VRAM_H
#define BH_SIMDRV_VRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simdrv/sim.h"

#define SIM_PAGE_BYTES (2ull << 20)
#define SIM_BLOCK_BYTES 4096u

/* Memory of one instance, as a process opened it.  Not for several threads at once. */
struct sim_vram;

/* A run of pages, numbered from the first of the instance. */
struct sim_extent {
    uint32_t page, count;
};

/* Put the units of an instance (`gi` NULL: of the whole GPU) into its folder below `dir`;
 * units of the GPU that are missing are made.  False: errno. */
bool sim_vram_publish(const char *dir, const struct sim_gpu *gpu, const struct sim_gi *gi);

/* Open the folder of an instance of `bytes`.  NULL: errno. */
struct sim_vram *sim_vram_open(const char *folder, const struct sim_gpu *gpu,
                               uint64_t bytes);
void sim_vram_close(struct sim_vram *vram);

/* Take `count` free pages, the lowest ones, in at most `most` runs.  `clear`: what they
 * hold is cleared, as the driver does.  How many runs; 0: so many are not free, errno. */
size_t sim_vram_take(struct sim_vram *vram, uint32_t count, bool clear,
                     struct sim_extent *extents, size_t most);
void sim_vram_release(struct sim_vram *vram, const struct sim_extent *extents,
                      size_t count);

/* Bytes [offset, offset + length) of one page.  False: errno. */
bool sim_vram_read(struct sim_vram *vram, uint32_t page, uint64_t offset, void *target,
                   size_t length);
bool sim_vram_write(struct sim_vram *vram, uint32_t page, uint64_t offset,
                    const void *source, size_t length);
/* Fill with a word; offset and length are multiples of 4. */
bool sim_vram_fill(struct sim_vram *vram, uint32_t page, uint64_t offset, size_t length,
                   uint32_t word);

/* Forget the bytes of all GPUs: for a new simulated server. */
bool sim_vram_forget(const char *dir);

#endif
