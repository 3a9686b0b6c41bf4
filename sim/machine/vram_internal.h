/* What vram.c and ledger.c share: how a unit's file lies in memory.
 *
 * A unit's file begins with its slots, then the owner of each page, then a record for
 * each page; behind these, at a multiple of 2 MiB, the bytes. */
#ifndef BH_SIM_MACHINE_VRAM_INTERNAL_H
#define BH_SIM_MACHINE_VRAM_INTERNAL_H

#include "sim/machine/vram.h"

#define UNITS_MAX 16
#define BLOCKS (SIM_PAGE_BYTES / SIM_BLOCK_BYTES)
#define SLOTS_BYTES (SIM_SLOTS_MAX * sizeof(struct sim_slot))

struct page {
    uint32_t word, pad;
    uint64_t own[BLOCKS / 64]; /* blocks with bytes of their own */
};

struct unit {
    int fd;
    struct sim_slot *slots; /* mapped: the head of the file; unit 0's are the instance's */
    uint16_t *owner;        /* of each page: the number of a slot, 0: it is free */
    struct page *pages;
};

struct sim_vram {
    uint32_t units, unit_pages, pages;
    uint32_t slot;   /* this process's; 0: none */
    uint32_t lowest; /* no page below is known to be free */
    uint64_t data;   /* offset of the first page's bytes in a unit's file */
    char folder[SIM_PATH_MAX];
    struct unit unit[UNITS_MAX];
};

#endif
