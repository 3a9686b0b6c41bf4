#ifndef BH_KEYS_ROOT_H
#define BH_KEYS_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ports/crypto.h"

/* Where the root key comes from: 32 bytes in a file, never in the store. */
struct bh_root_options {
    const struct bh_crypto_ops *crypto;
    const char *path;        /* as configured; "" for the next two */
    const char *credentials; /* folder of systemd's credentials or NULL: bulkhead.root in
                                it, if it is there */
    const char *state_dir;   /* else root.key in here */
    bool make;               /* that one may be made: there are no keys yet */
};

struct bh_root {
    char path[4096];
    bool replaceable; /* a file, not a credential */
    bool made;
    bool staged; /* a rotation was begun: `next` is the other candidate */
    uint8_t key[32], next[32];
};

/* Read the root key, and the one that stands beside it while it is being replaced.  Wipe
 * with bh_root_wipe.
 *   BH_NOT_FOUND  there is none
 *   BH_DENIED     others may read it (a credential: the world); hint with the cure
 *   BH_INVALID    not 32 bytes, or no plain file; failures of base/fd.h */
BH_MUST_USE bh_rc bh_root_load(const struct bh_root_options *options, struct bh_root *ret_root,
                               struct bh_err *err);
void bh_root_wipe(struct bh_root *root);
static inline void
bh_root_wipe_auto(struct bh_root *root)
{
    bh_root_wipe(root);
}

/* The key in another file, by the same rules. */
BH_MUST_USE bh_rc bh_root_read(const char *path, uint8_t ret_key[32], struct bh_err *err);

/* Replacing the file in an order that a crash may cut anywhere: stage the next key beside the file
 * ("<path>.next"), commit what was wrapped anew, settle.  A program that starts in between finds both and
 * takes the one that fits.  BH_CONFLICT: not replaceable. */
BH_MUST_USE bh_rc bh_root_stage(struct bh_root *root, const uint8_t next[32], struct bh_err *err);
BH_MUST_USE bh_rc bh_root_commit(struct bh_root *root, struct bh_err *err);
/* The rotation did not come to pass: the staged key goes. */
BH_MUST_USE bh_rc bh_root_unstage(struct bh_root *root, struct bh_err *err);

#endif
