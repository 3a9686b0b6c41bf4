#ifndef BH_DAEMON_JOURNAL_JOURNAL_H
#define BH_DAEMON_JOURNAL_JOURNAL_H

#include "audit/merkle.h"
#include "audit/note.h"
#include "audit/record.h"
#include "daemon/journal/checkpoints.h"
#include "daemon/journal/config.h"
#include "ports/crypto.h"
#include "ports/store.h"

enum { BH_JOURNAL_KEYS_BYTES_MAX = 4096 };

/* The journal's writing end: numbers the records, encodes them, puts them into the
 * open transaction, carries the Merkle frontier and has checkpoints signed.  Owner thread
 * only.  After a failed commit its position is rebuilt with the rest of the state. */
struct bh_journal {
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    const char *origin; /* the site's name, also the key's */
    const char *state_dir;
    struct bh_note_key key; /* and, behind it, those before */
    struct bh_note_key keys[BH_NODE_RECORD_KEYS_MAX];
    char vkeys[BH_JOURNAL_KEYS_BYTES_MAX]; /* as audit.vkey has them, or shall have */
    bool unpublished;                      /* they are not in that file yet */
    struct bh_merkle_frontier frontier;
    uint64_t next_seq;
    uint32_t boot;
    uint64_t last_ts_ns;               /* no record is older than the one before */
    struct bh_merkle_frontier durable; /* of the records that are committed */
    struct bh_checkpoints checkpoints; /* its member `signing` is set before bh_journal_open */
    uint64_t signing_size;             /* records that the open transaction's checkpoint covers */
    uint64_t signed_size;              /* records that the last committed one covers */
    uint64_t asked_ns;                 /* when the signer was asked last */
    char leaf[BH_RECORD_BYTES_MAX + 1];
};

/* Ask the signer for its key; nothing is read from the log, and nothing is written.  As
 * bh_checkpoints_open; BH_CONFLICT: audit.vkey in the state folder does not have that key, and none
 * that it has vouches for it. */
BH_MUST_USE bh_rc bh_journal_open(struct bh_journal *journal, const struct bh_daemon_config *config,
                                  struct bh_err *err);

/* Append what audit.vkey in the state folder says.  Any thread: the file is replaced as a whole.  Failures of
 * bh_file_read. */
BH_MUST_USE bh_rc bh_journal_read_keys(const char *state_dir, struct bh_buf *ret_keys, struct bh_err *err);

/* Complete `record` (seq, boot, and a salt, without which a good guess of its content could be checked
 * against its public hash) and put it into the open transaction. */
BH_MUST_USE bh_rc bh_journal_append(struct bh_journal *journal, struct bh_record *record, struct bh_err *err);

/* Take in a record that is in the store already, at replay. */
void bh_journal_replayed(struct bh_journal *journal, const char *leaf, size_t length,
                         const struct bh_record *record);

/* Ask for a checkpoint over the committed records, unless nothing is new, the last one was
 * asked for less than `interval_ns` ago or is still on its way.  Before the first record of a
 * transaction: what a failed commit takes back was never signed. */
void bh_journal_ask(struct bh_journal *journal, uint64_t now_ns, uint64_t interval_ns);

/* Take the checkpoint that was signed meanwhile, if there is one; whether one waits to be
 * put into a transaction.  A key that the signer was given meanwhile is published. */
bool bh_journal_signed(struct bh_journal *journal);

/* Wait until all records, which are committed, are signed; at a clean stop.  See
 * bh_checkpoints_finish. */
BH_MUST_USE bh_rc bh_journal_finish(struct bh_journal *journal, struct bh_err *err);

/* Put it into the open transaction. */
BH_MUST_USE bh_rc bh_journal_checkpoint(struct bh_journal *journal, struct bh_err *err);

/* The transaction was committed: its checkpoint is published as audit.checkpoint in the state
 * folder, for those who keep copies elsewhere.  Or it was rolled back and the records
 * replayed. */
void bh_journal_committed(struct bh_journal *journal);
void bh_journal_aborted(struct bh_journal *journal);

/* The log that is in the store must cover what was signed before: BH_CONFLICT when
 * the last checkpoint is larger than the log, or has another root at its size, when it does
 * not begin with what the signer signed, or when the signer has no mark although something
 * was signed.  Then the signer's key is published as audit.vkey, unless it is there already. */
BH_MUST_USE bh_rc bh_journal_check_signed(struct bh_journal *journal, struct bh_err *err);

#endif
