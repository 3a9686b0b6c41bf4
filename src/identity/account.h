#ifndef BH_IDENTITY_ACCOUNT_H
#define BH_IDENTITY_ACCOUNT_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"

/* Names of local accounts.
 *
 * A name is small ASCII letters, digits and "._@+-", so two names that look alike cannot
 * both exist.  What users type may look like a name without being one; it finds no
 * account, but attempts with it are counted on the name that it resembles, so that
 * spelling a name differently gives no more attempts. */

enum { BH_ACCOUNT_MAX = 64 };

/* The name that `text` means: blanks around it go, capitals become small.  False when it
 * can be no account's. */
BH_MUST_USE bool bh_account_name(const char *text, char ret_name[BH_ACCOUNT_MAX + 1]);

/* Append what attempts with `text` are counted under: beyond case and blanks it drops
 * combining marks and invisible characters, and takes the marks off Latin letters (composed
 * or not) and the width off wide ones.  Never longer than 3 bytes for each of `text`; for
 * what bh_account_name accepts it is the name. */
void bh_account_key(const char *text, struct bh_buf *out);

#endif
