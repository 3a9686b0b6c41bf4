#ifndef BH_IDENTITY_BASE64URL_H
#define BH_IDENTITY_BASE64URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"

/* RFC 4648 section 5 as RFC 7515 uses it: '-' and '_', never padding. */

/* Append `length` bytes as base64url. */
void bh_base64url_encode(struct bh_buf *out, const void *bytes, size_t length);

/* Append the bytes that `length` characters stand for.  Strict, so that equal bytes
 * have one text: padding, blanks, the standard alphabet's '+' and '/', and stray last
 * bits are refused.  False, and `out` as it was, on any of these or when `out` has no
 * room (then out->overflow is set). */
BH_MUST_USE bool bh_base64url_decode(struct bh_buf *out, const char *text, size_t length);

#endif
