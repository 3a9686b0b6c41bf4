/* The bytes of simulated device memory.
 *
 * They belong to the GPU and not to an instance: each memory unit of a GPU is a
 * file, and an instance's folder has links to the units that it lies on.  What
 * was written stays there when the instance is destroyed, and the next owner of
 * that memory finds it, unless it was cleared: as in a real GPU.
 *
 * A unit's file is sparse.  It begins with a record for each page of 2 MiB: the
 * word that the page is filled with, and which of its blocks of 4 KiB hold
 * bytes of their own behind that.  So a fill of 80 GiB costs 3 MiB.
 *
 * Which slot has which page is in the ledger (sim/machine/ledger.h), in the same file. */
#ifndef BH_SIM_MACHINE_VRAM_H
#define BH_SIM_MACHINE_VRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/sim.h"

#define SIM_PAGE_BYTES (2ull << 20)
#define SIM_BLOCK_BYTES 4096u
#define SIM_SLOTS_MAX 1024u

/* What can have pages: a process, or an object that several processes share.  Its number
 * is its index.  64 bytes, in a file that several processes map. */
struct sim_slot {
    uint64_t held;       /* how often it changed << 32, and the pages it has */
    uint64_t bytes;      /* a shared object's size, as it was asked for */
    uint32_t kind;       /* enum sim_slot_kind */
    uint32_t generation; /* how often the slot was taken */
    uint32_t creator;    /* of a shared object: the slot of the process that made it */
    int32_t pid;         /* as its own name space numbers it */
    uint32_t gate;       /* CUprocessState: what a checkpoint made of the process */
    uint32_t busy;       /* its calls that are under way */
    uint32_t moves;      /* how often a restore gave it other pages */
    uint32_t location;   /* of a shared object: what it was made as, for its importer */
    uint32_t creator_generation;
    uint32_t aside; /* a process's descriptor for its bytes while it is checkpointed, plus 1 */
};

/* Memory of one instance, as a process opened it.  Not for several threads at once. */
struct sim_vram;

/* A run of pages, numbered from the first of the instance. */
struct sim_extent {
    uint32_t page, count;
};

/* Whether the folder `vram` of `dir` is a file system of its own (sim/machine/vram_mount.h). */
bool sim_vram_is_mounted(const char *dir);

/* Put the units of an instance (`gi` NULL: of the whole GPU) into its folder below `dir`;
 * units of the GPU that are missing are made; their pages are free then.  Only where the
 * memory is mounted may others than root enter the folder; none but root makes files in it.
 * False: errno. */
bool sim_vram_publish(const char *dir, const struct sim_gpu *gpu, const struct sim_gi *gi);

/* A whole GPU that no process has open begins anew, as its driver's state goes with the last one: what
 * a job wrote into its record of work and its ledger, and where no page's bytes lie, is gone, and the
 * pages are free.  Their bytes are what they were where the driver leaves them.  False: errno. */
bool sim_vram_renew(const char *dir, const struct sim_gpu *gpu);

/* Open the folder of an instance of `bytes`.  NULL: errno. */
struct sim_vram *sim_vram_open(const char *folder, const struct sim_gpu *gpu, uint64_t bytes);
void sim_vram_close(struct sim_vram *vram);

/* Bytes [offset, offset + length) of one page.  False: errno. */
bool sim_vram_read(struct sim_vram *vram, uint32_t page, uint64_t offset, void *target, size_t length);
bool sim_vram_write(struct sim_vram *vram, uint32_t page, uint64_t offset, const void *source, size_t length);
/* Whether the page was never written since it was filled with zero: all of it is zero. */
bool sim_vram_is_clear(struct sim_vram *vram, uint32_t page);
/* Fill with a word; offset and length are multiples of 4. */
bool sim_vram_fill(struct sim_vram *vram, uint32_t page, uint64_t offset, size_t length, uint32_t word);

/* Forget the bytes of all GPUs: for a new simulated server. */
bool sim_vram_forget(const char *dir);

#endif
