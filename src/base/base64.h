#ifndef BH_BASE_BASE64_H
#define BH_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"

/* RFC 4648 base 64: the standard alphabet with padding, and base64url as RFC 7515 uses it,
 * with '-' and '_' and never padding. */

/* Append `length` bytes as base 64. */
void bh_base64_encode(struct bh_buf *out, const void *bytes, size_t length);

/* Append the bytes that `length` characters of base 64 stand for.  Strict, so that
 * equal bytes have one text: padding is required, blanks and stray last bits are
 * refused.  False, and `out` as it was, on any of these or when `out` has no room
 * (then out->overflow is set). */
BH_MUST_USE bool bh_base64_decode(struct bh_buf *out, const char *text, size_t length);

/* The same in base64url: padding, '+' and '/' are refused, too. */
void bh_base64url_encode(struct bh_buf *out, const void *bytes, size_t length);
BH_MUST_USE bool bh_base64url_decode(struct bh_buf *out, const char *text, size_t length);

#endif
