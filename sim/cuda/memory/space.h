/* Device addresses: which belongs to which memory.
 *
 * They lie in ranges of this process's address space that nothing can be read from, so no
 * address is also the host's; in units of 2 MiB, each of which knows its region.  All
 * under sim_memory_lock(). */
#ifndef BH_SIM_CUDA_MEMORY_SPACE_H
#define BH_SIM_CUDA_MEMORY_SPACE_H

#include "sim/cuda/memory/heap.h"
#include "sim/cuda/memory/physical.h"

enum sim_region_kind {
    SIM_REGION_LINEAR,   /* one allocation */
    SIM_REGION_CHUNK,    /* several small ones */
    SIM_REGION_SEGMENT,  /* a pool's */
    SIM_REGION_IMPORTED, /* another process's allocation, by a handle */
    SIM_REGION_EXTERNAL, /* the same, freed as one's own */
    SIM_REGION_MANAGED,  /* bytes of the machine that may move to a device */
    SIM_REGION_RESERVED, /* addresses, with or without memory mapped to them */
};

/* What a granule of reserved addresses shows. */
struct sim_mapped {
    struct sim_physical *physical; /* NULL: nothing */
    size_t offset;
    uint64_t start, size; /* of the mapping that it is a part of */
    unsigned access;      /* CUmemAccess_flags */
};

struct sim_region {
    struct sim_region *next, *previous;
    enum sim_region_kind kind;
    bool low, readable; /* below 4 GiB; the host can read it */
    uint64_t address, id;
    size_t bytes, span;                 /* as asked for; in whole units */
    struct CUctx_st *context;           /* NULL: of none */
    struct sim_physical *physical;      /* NULL: mapped by granules, or managed and at home */
    size_t offset;                      /* of its first byte in it */
    struct sim_heap *heap;              /* of a chunk or a segment */
    struct sim_region *sibling, *elder; /* a context's chunks, a pool's segments */
    CUmemoryPool pool;                  /* of a segment */
    unsigned opened;                    /* how often an import was asked for */
    struct sim_mapped *mapped;          /* of reserved addresses: for each unit */
};

/* Addresses that a caller asks for. */
struct sim_region_request {
    size_t bytes, alignment; /* 0: any */
    uint64_t address;        /* rather here; 0: anywhere */
    bool low;                /* below 4 GiB, for the oldest calls */
};

/* A region of this kind, with addresses and nothing behind them.  NULL: there are none. */
struct sim_region *sim_region_new(enum sim_region_kind kind, const struct sim_region_request *request);

/* Free it, its physical memory and its addresses. */
void sim_region_free(struct sim_region *region);

/* The region that an address lies in, or NULL. */
struct sim_region *sim_region_find(uint64_t address);

/* Is this a device address, whatever is there? */
bool sim_space_has(uint64_t address);

/* One that `match` says; NULL: there is none. */
struct sim_region *sim_region_search(bool (*match)(const struct sim_region *region, const void *self),
                                     const void *self);

/* Free all that `match` says. */
void sim_region_drop(bool (*match)(const struct sim_region *region, const void *self), const void *self);

/* Let the host read and write [address, address + bytes): bytes of a file from `offset` on
 * (`fd` -1: of its own).  And no longer. */
bool sim_space_show(uint64_t address, size_t bytes, int fd, size_t offset);
void sim_space_hide(uint64_t address, size_t bytes);

#endif
