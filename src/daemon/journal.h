#ifndef BH_DAEMON_JOURNAL_H
#define BH_DAEMON_JOURNAL_H

#include "audit/merkle.h"
#include "audit/note.h"
#include "audit/record.h"
#include "daemon/config.h"
#include "ports/crypto.h"
#include "ports/store.h"

/* The journal's writing end: numbers the records, encodes them, puts them into the
 * open transaction, carries the Merkle frontier and signs checkpoints.  Owner thread
 * only.  After a failed commit its position is rebuilt with the rest of the state. */
struct bh_journal {
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    const char *origin;              /* the site's name, also the key's */
    const char *state_dir;
    uint8_t private_key[32];
    struct bh_note_key key;
    struct bh_merkle_frontier frontier;
    uint64_t next_seq;
    uint32_t boot;
    uint64_t last_ts_ns;             /* no record is older than the one before */
    struct bh_merkle_frontier durable; /* of the records that are committed */
    struct bh_merkle_frontier mark;  /* the largest tree ever signed; daemon/watermark.h */
    uint64_t signing_size;           /* records that the open transaction's checkpoint covers */
    char note[BH_NOTE_BYTES_MAX];    /* that checkpoint */
    uint64_t signed_size;            /* records that the last committed one covers */
    uint64_t signed_at_ns;
    char leaf[BH_RECORD_BYTES_MAX + 1];
};

/* Load or make the signing key in the state folder; nothing is read from the log. */
BH_MUST_USE bh_rc bh_journal_open(struct bh_journal *journal,
                                  const struct bh_daemon_config *config, struct bh_err *err);

/* Complete `record` (seq, ts, boot) and put it into the open transaction. */
BH_MUST_USE bh_rc bh_journal_append(struct bh_journal *journal, struct bh_record *record,
                                    struct bh_err *err);

/* Take in a record that is in the store already, at replay. */
void bh_journal_replayed(struct bh_journal *journal, const char *leaf, size_t length,
                         const struct bh_record *record);

/* Sign the tree of the committed records into the open transaction, unless nothing is new:
 * what a failed commit takes back was never signed.  The watermark is written first.
 * BH_CONFLICT: a larger or another tree was signed before. */
BH_MUST_USE bh_rc bh_journal_checkpoint(struct bh_journal *journal, uint64_t now_ns,
                                        struct bh_err *err);

/* The transaction was committed: its checkpoint is published as audit.checkpoint in the state
 * folder, for whoever keeps copies elsewhere.  Or it was rolled back and the records
 * replayed. */
void bh_journal_committed(struct bh_journal *journal);
void bh_journal_aborted(struct bh_journal *journal);

/* The log that is in the store must cover what was signed before: BH_CONFLICT when
 * the last checkpoint is larger than the log, or has another root at its size, when it does
 * not begin with the tree of the watermark, or when that is missing although something was
 * signed. */
BH_MUST_USE bh_rc bh_journal_check_signed(struct bh_journal *journal, struct bh_err *err);

#endif
