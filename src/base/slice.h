#ifndef BH_BASE_SLICE_H
#define BH_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Walking JSON text in place, without parsing it whole: journal records are read
 * this way at replay.  Nothing is allocated and nothing outside the slice is read.
 *
 * Every function answers false on malformed text.  What a walk steps over is only
 * checked for closed strings and matching brackets; a caller that must refuse bad text
 * decodes it with base/json.h.  Nesting beyond BH_SLICE_DEPTH_MAX is malformed. */
struct bh_slice {
    const char *text;
    size_t length;
};

enum { BH_SLICE_DEPTH_MAX = 64 };
#define BH_SLICE_END SIZE_MAX

/* The value of `key` in an object, without blanks around it; with duplicate keys
 * the first.  False: no such key.  `ret` is untouched on failure. */
bool bh_slice_get(struct bh_slice object, const char *key, struct bh_slice *ret);

/* The first key of an object, NUL-terminated in `size` bytes, and its value.
 * False: the object is empty or the key does not fit. */
bool bh_slice_first_key(struct bh_slice object, char *ret_key, size_t size, struct bh_slice *ret_value);

/* The next item of an array, in order; start with *cursor = 0.  After the last item
 * the answer is false and *cursor is BH_SLICE_END; any other *cursor then means that
 * the array is malformed there. */
bool bh_slice_next_item(struct bh_slice array, size_t *cursor, struct bh_slice *ret_item);

/* A number or quoted digits, up to 2^64 - 1; no sign, fraction or leading zero. */
bool bh_slice_u64(struct bh_slice value, uint64_t *ret);

/* A string, unescaped and NUL-terminated in `size` bytes.  False also when it does
 * not fit or holds \u0000 or half a surrogate pair; `ret` holds nothing of use then. */
bool bh_slice_str(struct bh_slice value, char *ret, size_t size);

#endif
