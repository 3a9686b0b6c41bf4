#ifndef BH_AUDIT_CANONICAL_H
#define BH_AUDIT_CANONICAL_H

#include <stddef.h>

/* The one way to write a JSON value (RFC 8785 without fractions): no blanks, keys in
 * byte order and only once, integers within 2^53 - 1 either way, no escape where none
 * is needed, valid UTF-8, nesting at most BH_CANONICAL_DEPTH_MAX. */

enum { BH_CANONICAL_DEPTH_MAX = 32 };

/* Length of the canonical JSON value that `text` begins with, or 0 when it does not
 * begin with one. */
size_t bh_canonical_step(const char *text, size_t length);

#endif
