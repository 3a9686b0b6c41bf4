#ifndef BH_AUDIT_TLOG_PROOF_H
#define BH_AUDIT_TLOG_PROOF_H

#include "audit/checkpoint.h"
#include "audit/proof.h"

/* A proof to hand on, as C2SP's tlog-proof has it: the number of a record, its inclusion
 * proof and the signed checkpoint, in one text that can be checked without the log. */

enum { BH_TLOG_PROOF_BYTES_MAX = BH_NODE_RECORD_BYTES_MAX + 8192 + 90000 };

struct bh_tlog_proof {
    const char *extra;   /* base 64; what goes with it: here, the record itself */
    size_t extra_length; /* 0: none */
    uint64_t index;
    struct bh_proof path;
    const char *note;          /* the checkpoint, signed; NUL-terminated */
    struct bh_checkpoint tree; /* what it says; set by bh_tlog_proof_check */
};

/* Append the text. */
void bh_tlog_proof_format(struct bh_buf *out, const struct bh_tlog_proof *proof);

/* Read it back; `extra` and `note` point into `text`.
 *   BH_INVALID  not such a text; nothing is known of the checkpoint yet */
BH_MUST_USE bh_rc bh_tlog_proof_parse(const char *text, struct bh_tlog_proof *ret_proof, struct bh_err *err);

/* Check the whole: that `key` signed the checkpoint and that the record of that leaf hash
 * is the one that is proved.  proof->tree is set when it holds.
 *   BH_INVALID   not a proof
 *   BH_DENIED    the checkpoint is not signed by `key`
 *   BH_CONFLICT  the proof does not hold for this record */
BH_MUST_USE bh_rc bh_tlog_proof_check(const struct bh_crypto_ops *crypto, const struct bh_note_key *key,
                                      struct bh_tlog_proof *proof, const uint8_t leaf_hash[32],
                                      struct bh_err *err);

#endif
