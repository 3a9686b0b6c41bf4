#ifndef BH_SIGNER_OWN_H
#define BH_SIGNER_OWN_H

#include <stdint.h>

#include "base/err.h"

/* Which keys are the signer's own: their public halves in the file audit.public beside them, as hex,
 * one a line, the newest first.  A private key says by nothing that a bit of it was flipped: it is
 * another good key, which would sign in the place of the one that was trusted. */

enum { BH_OWN_MAX = 2 }; /* the present key, and the one before until that is retired */

struct bh_own {
    uint32_t count; /* 0: no file, as in folders of before and before the first signature */
    uint8_t keys[BH_OWN_MAX][32];
};

/* Read the file in `folder`.  BH_INVALID: it is damaged; failures of reading. */
BH_MUST_USE bh_rc bh_own_load(const char *folder, struct bh_own *ret_own, struct bh_err *err);

/* Replace it, durably. */
BH_MUST_USE bh_rc bh_own_save(const char *folder, const struct bh_own *own, struct bh_err *err);

/* Remove it, if it is there: another key is made, on purpose. */
BH_MUST_USE bh_rc bh_own_forget(const char *folder, struct bh_err *err);

#endif
