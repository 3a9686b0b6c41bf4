#ifndef BH_DAEMON_JOURNAL_CHECKPOINTS_H
#define BH_DAEMON_JOURNAL_CHECKPOINTS_H

#include "audit/merkle.h"
#include "audit/range.h"
#include "daemon/journal/signing.h"
#include "ports/store.h"

/* Checkpoints of the audit log, from the signer.
 *
 * The signer is asked while more records are written: the request carries what was appended since its last
 * signature (audit/range.h), the answer is put into a later transaction.  Without a signer records are still
 * written, and checkpoints wait.  Owner thread only. */
struct bh_checkpoints {
    /* set by the owner before bh_checkpoints_open */
    struct bh_signing signing;
    const struct bh_crypto_ops *crypto;
    const char *name; /* the log's origin */
    /* what the signer said */
    char vkeys[BH_SIGNER_VKEYS_MAX]; /* one a line, the newest first */
    bool keys_changed;               /* since the caller looked: bh_checkpoints_poll */
    uint64_t watermark_size;         /* records of the largest tree that was ever signed */
    bool has_watermark;              /* there is a file that says so */
    /* what it must know */
    struct bh_range since, since_durable; /* behind what it signed; of committed records */
    struct bh_range after, after_durable; /* behind what it is signing */
    enum { BH_SIGNER_DISCONNECTED, BH_SIGNER_HELLO_SENT, BH_SIGNER_IDLE, BH_SIGNER_BUSY } state;
    uint64_t number;   /* of the question that waits for its answer */
    uint64_t sent_ns;  /* when it was sent */
    uint64_t hello_ns; /* it is not asked again before, when it refuses even to say hello */
    bool logged_lost, logged_refused;
    /* what it signed last, until that is in the store */
    uint64_t note_size; /* 0: none */
    char note[BH_SIGNER_NOTE_MAX];
    struct bh_signer_request question;
    struct bh_signer_reply answer;
};

/* Ask the signer for its identity and wait for it: vkeys, watermark_size and marked are known then.
 * BH_UNAVAILABLE: it does not answer; or why it refuses. */
BH_MUST_USE bh_rc bh_checkpoints_open(struct bh_checkpoints *checkpoints, struct bh_err *err);

/* Ask whether `tree`, the frontier of all records in the store, continues what was signed.
 *   BH_CONFLICT     it does not
 *   BH_UNAVAILABLE  the signer does not answer; failures of the store */
BH_MUST_USE bh_rc bh_checkpoints_check(struct bh_checkpoints *checkpoints, const struct bh_store *store,
                                       const struct bh_merkle_frontier *tree, struct bh_err *err);

/* A record was appended, by its leaf hash; those since the last commit were committed, or
 * were taken back. */
void bh_checkpoints_add(struct bh_checkpoints *checkpoints, const uint8_t leaf_hash[32]);
void bh_checkpoints_committed(struct bh_checkpoints *checkpoints);
void bh_checkpoints_aborted(struct bh_checkpoints *checkpoints);

/* Ask for a checkpoint over `tree`, all of whose records are committed and behind which
 * none was appended yet.  False when the signer cannot be asked now. */
bool bh_checkpoints_ask(struct bh_checkpoints *checkpoints, const struct bh_merkle_frontier *tree);

/* Wait until `tree`, all of whose records are committed, is signed: note_size is its size then.
 * For a clean stop; nothing else happens meanwhile.
 *   BH_UNAVAILABLE  the signer refuses or is gone
 *   BH_TIMEOUT      it took too long */
BH_MUST_USE bh_rc bh_checkpoints_finish(struct bh_checkpoints *checkpoints, const struct bh_store *store,
                                        const struct bh_merkle_frontier *tree, struct bh_err *err);

/* Take the answer, if there is one; note_size then shows what is signed.  A signer that is gone is looked
 * for; one that came back is asked how far it had signed, and `store` has what came since.  Its key may have
 * been replaced meanwhile: keys_changed says so. */
void bh_checkpoints_poll(struct bh_checkpoints *checkpoints, const struct bh_store *store);

/* Its keys cannot be taken, for `why`: it is said, it signs nothing, and is asked again after a while. */
void bh_checkpoints_refuse_keys(struct bh_checkpoints *checkpoints, const struct bh_err *why);

#endif
