#ifndef BH_BASE_VEC_H
#define BH_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/* Growing arrays.  An array is its owner's pointer and how many items it has room for; its
 * maximum is stated where it grows.
 *
 *     if (!bh_vec_reserve(&links->items, &links->capacity, links->count + 1, LINKS_MAX))
 *         return bh_err_set(err, BH_FULL, ...);
 *     links->items[links->count++] = link;
 */

/* Room for `wanted` items in the array at `items`, whose room is at `capacity` (of any unsigned
 * type that holds `most`): false, and nothing changed, when that is more than `most` or memory
 * is out.  Room doubles; items that are new in it are zero. */
#define bh_vec_reserve(items, capacity, wanted, most)                                                        \
    ({                                                                                                       \
        size_t capacity_ = *(capacity);                                                                      \
        void *grown_ = bh_vec_grow(*(items), sizeof **(items), &capacity_, (wanted), (most));                \
                                                                                                             \
        if (grown_) {                                                                                        \
            *(items) = grown_;                                                                               \
            *(capacity) = (__typeof__(*(capacity)))capacity_;                                                \
        }                                                                                                    \
        grown_ != NULL;                                                                                      \
    })

/* The same for items of `item_bytes` bytes: where they lie now, or NULL. */
BH_MUST_USE void *bh_vec_grow(void *items, size_t item_bytes, size_t *capacity, size_t wanted, size_t most);

#endif
