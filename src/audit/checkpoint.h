#ifndef BH_AUDIT_CHECKPOINT_H
#define BH_AUDIT_CHECKPOINT_H

#include <stdint.h>

#include "audit/note.h"

/* Signed statements about the log: "it has this many records and this root".  The
 * format is C2SP's tlog-checkpoint, so that other people's verifiers read it. */
struct bh_checkpoint {
    char origin[BH_NODE_RECORD_NAME_MAX + 1]; /* which log; the name of its key */
    uint64_t size;
    uint8_t root[32];
};

/* Append the checkpoint's three lines, unsigned. */
void bh_checkpoint_format(struct bh_buf *out, const struct bh_checkpoint *checkpoint);

/* Append the signed note of `checkpoint` to `out`, which is empty (check
 * out->overflow; BH_NODE_RECORD_BYTES_MAX is plenty).
 * BH_INVALID: bad origin; failures of the crypto port. */
BH_MUST_USE bh_rc bh_checkpoint_sign(const struct bh_crypto_ops *crypto,
                                     const struct bh_checkpoint *checkpoint, const uint8_t private_key[32],
                                     struct bh_buf *out, struct bh_err *err);

/* Verify a signed note by `key` and read the checkpoint in it.
 *   BH_INVALID  not a note, or no checkpoint in it
 *   BH_DENIED   not signed by `key`, a bad signature, or of another log */
BH_MUST_USE bh_rc bh_checkpoint_open(const struct bh_crypto_ops *crypto, const struct bh_note_key *key,
                                     const char *note, struct bh_checkpoint *ret_checkpoint,
                                     struct bh_err *err);

#endif
