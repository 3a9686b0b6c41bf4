/* The file that a process keeps open for its bytes while it is checkpointed: a record for
 * each page, and behind the records the pages. */
#ifndef BH_SIM_CUDA_MEMORY_ASIDE_H
#define BH_SIM_CUDA_MEMORY_ASIDE_H

#include <stdint.h>
#include <sys/types.h>

#define SIM_ASIDE_NAME "bulkhead-sim-aside"

/* A page as the file has it: a record, and at a fixed place its bytes. */
struct sim_saved {
    uint32_t before, after; /* its number, and what a restore made of it */
};

/* A new one, empty.  -1: errno. */
int sim_aside_new(void);

/* Where the bytes of a page stand in a file of `count`. */
off_t sim_aside_at(uint32_t index, uint32_t count);

/* How many pages the file has: its last one ends it. */
uint32_t sim_aside_count(int fd);

/* What a restore made of a page; the page itself where it did not move.  The records stand
 * by `before`. */
uint32_t sim_saved_find(const struct sim_saved *saved, uint32_t count, uint32_t page);

#endif
