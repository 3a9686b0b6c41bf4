#ifndef BH_BASE_SEARCH_H
#define BH_BASE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

/* Sorted arrays of structs, ascending by a member of type uint64_t: where the first item is whose
 * member is not below `wanted`, `count` when there is none.  So it is where `wanted` stands, or
 * would be inserted. */
#define bh_search(items, count, member, wanted)                                                              \
    bh_search_at(sizeof *(items), (count),                                                                   \
                 (count) ? (const char *)(items) + offsetof(__typeof__(*(items)), member) : NULL,            \
                 _Generic((items)->member, uint64_t                                                          \
                          : (wanted)))

/* The same: the members are `stride` bytes apart, the first at `first`. */
size_t bh_search_at(size_t stride, size_t count, const void *first, uint64_t wanted);

#endif
