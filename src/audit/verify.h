#ifndef BH_AUDIT_VERIFY_H
#define BH_AUDIT_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/checkpoint.h"
#include "audit/claims.h"
#include "audit/merkle.h"
#include "audit/orders.h"
#include "audit/record.h"
#include "base/attr.h"
#include "base/err.h"

/* The auditor: a walk over the journal, record by record and checkpoint by
 * checkpoint, that finds the first thing wrong with it.
 *
 * Checked are: records are numbered from 0 without gaps; each is canonical; times,
 * boots and versions never go back; outcomes, and nothing else, answer an order, one that an
 * earlier record gave and none answered before (audit/orders.h); each record has the hash stored beside it;
 * each signed checkpoint has the root of the records before it; where only a hash is left of a record, a
 * later one says that it was pruned. */
/* Checkpoints of the same log that were kept elsewhere, opened with its key: it must begin with
 * the records that they were signed over. */
struct bh_trusted_checkpoints {
    const struct bh_checkpoint *checkpoints;
    uint32_t count;
};

struct bh_audit_verifier {
    const struct bh_crypto_ops *crypto;
    struct bh_note_key key;
    struct bh_merkle_frontier frontier; /* of all records so far */
    uint64_t sealed;                    /* records that the last good checkpoint covers */
    uint64_t checkpoints;               /* good ones so far */
    uint64_t last_ts_ns;
    uint32_t last_boot, last_version;
    uint64_t hashes_to;                 /* behind the last record that was a hash alone; 0: none was */
    uint64_t pruned_to;                 /* records below it were pruned, as records say */
    bool faulty;                        /* a fault was found; nothing more is accepted */
    uint64_t bad_first, bad_last;       /* faulty: the record, or the range it lies in */
    struct bh_audit_orders orders;      /* what is open, when the walk is over */
    struct bh_trusted_checkpoints kept; /* the caller's; none to begin with */
    struct bh_claims *claims;           /* what the records say of rows; NULL: it is not gathered */
    char scratch[BH_RECORD_BYTES_MAX + 64];
};

/* A verifier for the log that `key` signs, before its first record. */
void bh_audit_verifier_init(struct bh_audit_verifier *verifier, const struct bh_crypto_ops *crypto,
                            const struct bh_note_key *key);

/* Take the next record.  `stored_hash` is the leaf hash kept beside it, or NULL when
 * there is none.
 *   BH_CONFLICT  this record is wrong; the message begins with "record N: " */
BH_MUST_USE bh_rc bh_audit_verifier_record(struct bh_audit_verifier *verifier, const char *leaf,
                                           size_t length, const uint8_t *stored_hash, struct bh_err *err);

/* Take the next record by its hash alone: its bytes were pruned.  Whether they should have
 * been shows at the end. */
BH_MUST_USE bh_rc bh_audit_verifier_hash(struct bh_audit_verifier *verifier, const uint8_t hash[32],
                                         struct bh_err *err);

/* Whether the bytes of a record are missing and no record says that they were pruned. */
bool bh_audit_verifier_lacks(const struct bh_audit_verifier *verifier);

/* Take a signed checkpoint that covers exactly the records so far.
 *   BH_CONFLICT  it does not hold: forged, or the records behind it were changed; the
 *                message names the records among which the change lies */
BH_MUST_USE bh_rc bh_audit_verifier_checkpoint(struct bh_audit_verifier *verifier, const char *note,
                                               struct bh_err *err);

/* BH_CONFLICT when a kept checkpoint speaks of more than `size` records: all that there are. */
BH_MUST_USE bh_rc bh_audit_verifier_reaches(struct bh_audit_verifier *verifier, uint64_t size,
                                            struct bh_err *err);

/* The walk is over.  BH_CONFLICT when records are missing at the end: the journal is
 * known to have held `expected` of them (0: nothing is known); or their bytes are, and no
 * record says that they were pruned. */
BH_MUST_USE bh_rc bh_audit_verifier_end(struct bh_audit_verifier *verifier, uint64_t expected,
                                        struct bh_err *err);

#endif
