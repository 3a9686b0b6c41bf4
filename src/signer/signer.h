#ifndef BH_SIGNER_SIGNER_H
#define BH_SIGNER_SIGNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "signer/message.h"
#include "signer/own.h"

/* The holder of the audit log's key.  It signs a tree only when that continues the largest one that it signed
 * before, by hashes that it computes itself; that one's frontier is kept in a file, written before each
 * signature (signer/mark.h).  It never sees a record, and an attacker who controls the daemon can make it
 * sign what is appended, and nothing shorter or changed. */
struct bh_crypto_ops;

struct bh_signer {
    const struct bh_crypto_ops *crypto;
    char folder[256]; /* of audit.key, audit.public and audit.signed */
    uint8_t private_key[32];
    uint8_t public_key[32];
    struct bh_own own; /* what audit.public names */
    bool made;         /* the key was made just now */
    bool has_old;      /* the key before signs, too: audit.key.old */
    uint8_t old_private_key[32];
    uint8_t old_public_key[32];
};

/* Load the key from `folder`, or make it, and the previous key, if that still signs.  As
 * bh_crypto_key_load_or_make; BH_INVALID also when the folder's name is too long, when there is no key
 * although audit.signed says that records were signed, and when a key is not the one that audit.public names.
 * That file is made with the first signature. */
BH_MUST_USE bh_rc bh_signer_open(struct bh_signer *signer, const struct bh_crypto_ops *crypto,
                                 const char *folder, struct bh_err *err);

/* The same without the key before, which may be lost or damaged: for bh_signer_retire alone. */
BH_MUST_USE bh_rc bh_signer_open_to_retire(struct bh_signer *signer, const struct bh_crypto_ops *crypto,
                                           const char *folder, struct bh_err *err);
void bh_signer_close(struct bh_signer *signer); /* wipes the key */

/* Sign with another key from now on; the present one signs beside it until it is retired.  A verifier that
 * trusts the old key sees the new one vouched for by each checkpoint of that time.  No other signer may have
 * the folder open.  BH_CONFLICT: an older key was not retired yet; failures of files. */
BH_MUST_USE bh_rc bh_signer_rotate(struct bh_signer *signer, struct bh_err *err);

/* The previous key no longer signs: remove its file and its name.  BH_NOT_FOUND: there is neither; failures
 * of files. */
BH_MUST_USE bh_rc bh_signer_retire(struct bh_signer *signer, struct bh_err *err);

/* Answer one question.  Everything in it is checked. */
void bh_signer_reply(struct bh_signer *signer, const struct bh_signer_request *question,
                     struct bh_signer_reply *ret_answer);

#endif
