#ifndef BH_FETCH_CACHE_CONTROL_H
#define BH_FETCH_CACHE_CONTROL_H

#include <stddef.h>
#include <stdint.h>

/* max-age of a Cache-Control field's value (RFC 9111, 5.2.2), which need not end in NUL.
 * 0: none is named, or it is no number, or the answer may not be kept (no-store, no-cache).
 * Of several the least counts; what is over 2^32 - 1 seconds is that. */
uint32_t bh_cache_control_max_age(const char *value, size_t length);

#endif
