/* Parts of one partition of device memory: which of its units of 512 bytes are taken.  Pure:
 * offsets only. */
#ifndef BH_SIM_CUDA_MEMORY_HEAP_H
#define BH_SIM_CUDA_MEMORY_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#define SIM_HEAP_UNIT ((size_t)512)

struct sim_heap;

/* For a partition of `bytes`, a multiple of the unit.  NULL: out of memory.  free(NULL) is
 * fine. */
struct sim_heap *sim_heap_new(size_t bytes);
void sim_heap_free(struct sim_heap *heap);

/* Take a part, at the lowest offset where it fits.  False: there is no such gap. */
bool sim_heap_take(struct sim_heap *heap, size_t bytes, size_t *ret_offset);

/* The part that holds byte `at`: where it begins, and its size as it was asked for.
 * False: that byte is free. */
bool sim_heap_find(const struct sim_heap *heap, size_t at, size_t *ret_offset, size_t *ret_bytes);

/* Free the part that begins at `offset`; the bytes that it took, with the rest of its
 * last unit.  0: none begins there. */
size_t sim_heap_release(struct sim_heap *heap, size_t offset);

/* Bytes that are taken, in whole units. */
size_t sim_heap_used(const struct sim_heap *heap);

#endif
