#ifndef BH_IDENTITY_FORM_H
#define BH_IDENTITY_FORM_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "identity/fault.h"

/* application/x-www-form-urlencoded, in both directions. */

enum { BH_FORM_BYTES_MAX = 8192, BH_FORM_PAIRS_MAX = 32 };

/* Parameters, decoded; texts lie in `memory`. */
struct bh_form {
    char memory[BH_FORM_BYTES_MAX + BH_FORM_PAIRS_MAX + 1];
    struct {
        const char *name, *value;
    } pairs[BH_FORM_PAIRS_MAX];
    uint32_t count;
};

/* Read a query (without '?') or a body.  No name may come twice, known or not: with two,
 * two readers of one request could see different values.
 *   FORM            longer than BH_FORM_BYTES_MAX, too many pairs, an empty name, a broken
 *                   %XX, a NUL or control character, or no UTF-8
 *   FORM_DUPLICATE  a name comes twice
 * On failure `ret_form` holds nothing of use. */
BH_MUST_USE enum bh_identity_fault bh_form_parse(const char *text, size_t length, struct bh_form *ret_form);

/* The same where values may be of several lines, as those of a textarea: tabs and ends of lines, which become
 * "\n", are allowed in them. */
BH_MUST_USE enum bh_identity_fault bh_form_parse_lines(const char *text, size_t length,
                                                       struct bh_form *ret_form);

/* The value of that name, or NULL. */
const char *bh_form_get(const struct bh_form *form, const char *name);

/* Append name=value, encoded, with '&' or, behind an address, '?' before it as needed. */
void bh_form_put(struct bh_buf *out, const char *name, const char *value);

/* Append a text with everything but letters, digits, '-', '.', '_' and '~' as %XX. */
void bh_form_put_encoded(struct bh_buf *out, const char *text);

/* The same for a path: its slashes stay. */
void bh_form_put_path(struct bh_buf *out, const char *path);

#endif
