/* Handles of the driver, and a word that we keep for each: a table of buckets without
 * locks.
 *
 * A handle is there once.  Cells are used again and never given back. */
#ifndef BH_SHIM_PROCESS_HANDLES_H
#define BH_SHIM_PROCESS_HANDLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/process/state.h"

enum { BH_HANDLE_CELLS = 3, BH_HANDLE_BUCKETS = 512 };

struct bh_handle_bucket {
    _Alignas(64) struct {
        _Atomic uint64_t key, word;
    } cell[BH_HANDLE_CELLS];
    struct bh_handle_bucket *_Atomic next;
};

/* Zero is empty. */
struct bh_handles {
    BH_STATE struct bh_handle_bucket bucket[BH_HANDLE_BUCKETS];
};

/* At the first join. */
void bh_handles_init(struct bh_handles *handles);

/* Note a handle.  What was noted for the same one is replaced.  False: no
 * memory. */
bool bh_handles_put(struct bh_handles *handles, uint64_t handle, uint64_t word);

bool bh_handles_find(struct bh_handles *handles, uint64_t handle, uint64_t *ret_word);

/* Take it out; one caller gets it. */
bool bh_handles_take(struct bh_handles *handles, uint64_t handle, uint64_t *ret_word);

/* The word, to change it in place; NULL when the handle is not there. */
_Atomic uint64_t *bh_handles_at(struct bh_handles *handles, uint64_t handle);

/* The next handle after the position *at (0 first); false when there is none.  What comes or
 * goes meanwhile may or may not be seen. */
bool bh_handles_next(struct bh_handles *handles, uint64_t *at, uint64_t *ret_handle, uint64_t *ret_word);

#endif
