#ifndef BH_AUDIT_NOTE_H
#define BH_AUDIT_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* Signed notes as C2SP's signed-note has them, with Ed25519: a text, a blank line
 * and one line per signature. */
struct bh_crypto_ops;

enum {
    BH_NODE_RECORD_NAME_MAX = 128,       /* bytes of a key's name */
    BH_NODE_RECORD_BYTES_MAX = 16384,    /* bytes of a note */
    BH_NODE_RECORD_SIGNATURES_MAX = 100, /* lines under a note; 16 must be accepted */
    BH_NODE_RECORD_VKEY_MAX = 192,       /* bytes of a key in text form, with its NUL */
    BH_NODE_RECORD_KEYS_MAX = 8          /* keys that followed each other */
};

/* A key to verify with, and those of the same name that it took over from: what one of them
 * signed is signed. */
struct bh_note_key {
    char name[BH_NODE_RECORD_NAME_MAX + 1];
    uint8_t id[4];
    uint8_t public_key[32];
    const struct bh_note_key *older; /* NULL: there was none; the caller's */
};

/* Whether `name` may name a key: not empty, not too long, printable ASCII without
 * blanks and plus signs. */
bool bh_note_name_valid(const char *name);

/* The key of that name.  BH_INVALID: the name is not allowed. */
BH_MUST_USE bh_rc bh_note_key_make(const struct bh_crypto_ops *crypto, const char *name,
                                   const uint8_t public_key[32], struct bh_note_key *ret_key,
                                   struct bh_err *err);

/* Append "name+0a1b2c3d+base64", the vkey that other verifiers are given. */
void bh_note_key_format(struct bh_buf *out, const struct bh_note_key *key);

/* Read a vkey.  BH_INVALID: malformed, not Ed25519, or its id does not belong to the
 * key. */
BH_MUST_USE bh_rc bh_note_key_parse(const struct bh_crypto_ops *crypto, const char *vkey,
                                    struct bh_note_key *ret_key, struct bh_err *err);

/* Read vkeys, one a line, the newest first: ret_keys[0] is it, and leads to the others.
 * BH_INVALID: none, more than BH_NODE_RECORD_KEYS_MAX, of several names, or one is malformed. */
BH_MUST_USE bh_rc bh_note_keys_parse(const struct bh_crypto_ops *crypto, const char *vkeys,
                                     struct bh_note_key ret_keys[BH_NODE_RECORD_KEYS_MAX],
                                     struct bh_err *err);

/* Read the vkey of a witness (C2SP's tlog-cosignature, Ed25519).  BH_INVALID as above. */
BH_MUST_USE bh_rc bh_note_witness_parse(const struct bh_crypto_ops *crypto, const char *vkey,
                                        struct bh_note_key *ret_witness, struct bh_err *err);

/* Whether the witness cosigned the note, which was opened before, and when (seconds since
 * the epoch, as it says).
 *   BH_NOT_FOUND  it did not
 *   BH_DENIED     its cosignature is bad */
BH_MUST_USE bh_rc bh_note_cosigned(const struct bh_crypto_ops *crypto, const struct bh_note_key *witness,
                                   const char *note, uint64_t *ret_time_s, struct bh_err *err);

/* Sign the text that `note` holds (it ends with a newline): append the blank line and
 * the signature line.  Check note->overflow.
 * BH_INVALID: bad name or text; failures of the crypto port. */
BH_MUST_USE bh_rc bh_note_sign(const struct bh_crypto_ops *crypto, const char *name,
                               const uint8_t private_key[32], struct bh_buf *note, struct bh_err *err);

/* Add the signature of another key to a note that is signed already: a verifier that trusts either key
 * accepts it.  As bh_note_sign; BH_INVALID also when the note has no signature. */
BH_MUST_USE bh_rc bh_note_sign_too(const struct bh_crypto_ops *crypto, const char *name,
                                   const uint8_t private_key[32], struct bh_buf *note, struct bh_err *err);

/* Verify a note by `key` or an older one; its text is then the first `ret_text_length` bytes.
 * Signatures of unknown keys are ignored.
 *   BH_INVALID  not a note
 *   BH_DENIED   none of the keys signed it, or a signature by one of them is bad */
BH_MUST_USE bh_rc bh_note_open(const struct bh_crypto_ops *crypto, const struct bh_note_key *key,
                               const char *note, size_t *ret_text_length, struct bh_err *err);

#endif
