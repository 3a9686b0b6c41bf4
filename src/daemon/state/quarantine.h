#ifndef BH_DAEMON_STATE_QUARANTINE_H
#define BH_DAEMON_STATE_QUARANTINE_H

#include "api/request/work.h"
#include "base/err.h"
#include "base/fields.h"

/* What made the daemon fail an assert lately, and is therefore not done again
 * (docs/adr/0079-a-failed-assert-is-not-repeated.md).
 *
 * Each failure is one file "assert-NN.json" of the folder crash/, written by daemon/owner/crash.h.  The
 * daemon reads them at its start; nothing here changes after that, so any thread may ask.  A failure counts
 * for 24 hours and for the version that wrote it. */

enum { BH_CRASHES_MAX = 64, BH_CRASH_BLOCKS_MAX = 4, BH_CRASH_JSON_MAX = 16 << 10 };

/* One failure.  No text of a tenant is in it: digests, numbers, and names of tables. */
struct bh_crash {
    uint64_t at_ns;      /* wall clock */
    char assertion[200]; /* the condition, and where it is */
    char place[120];
    enum bh_work_kind kind;
    struct bh_work_keys keys; /* REQUEST */
    char operation[40];
    uint32_t principal, uid, tenant_id;
    char socket[256]; /* NODE */
    uint32_t message;
    uint64_t record;  /* REPLAY: its number; else: of the next record */
    char event[4096]; /* JSON of the event in the engine; "": none was */
    char version[32];
};
extern const struct bh_fields bh_crash_fields;

struct bh_quarantine {
    const struct bh_crypto_ops *crypto;
    struct bh_crash *crashes; /* those that count, oldest first */
    uint32_t count;
    uint32_t next; /* number of the file for the next one */
};

/* Read the folder, and remove the engine blocks of all but the newest failures.  A file that cannot be read
 * counts for nothing and is written over first.  Free with bh_quarantine_fini.
 *
 * All others take NULL for one without failures. */
void bh_quarantine_load(struct bh_quarantine *quarantine, const char *folder, const char *version,
                        const struct bh_crypto_ops *crypto, uint64_t now_ns);
void bh_quarantine_fini(struct bh_quarantine *quarantine);

/* Whether a request may be tried.  BH_BUG, with a line that says for how long and what to report: the same
 * request failed an assert before; or two of this caller with this operation, or four of this tenant, lately.
 */
BH_MUST_USE bh_rc bh_quarantine_check(const struct bh_quarantine *quarantine, const struct bh_work *work,
                                      uint64_t now_ns, struct bh_err *err);

/* Whether the journal may be replayed.  BH_BUG, with the way back: it failed an assert twice. */
BH_MUST_USE bh_rc bh_quarantine_check_replay(const struct bh_quarantine *quarantine, struct bh_err *err);

/* For how long from now the node behind `socket` is not connected: a minute after its first failure,
 * twice as long after each further one, at most an hour. */
uint64_t bh_quarantine_node_ns(const struct bh_quarantine *quarantine, const char *socket, uint64_t now_ns);

/* For how long from now nothing is changed, because the daemon's own work fails: from the third failure on,
 * the same way. */
uint64_t bh_quarantine_own_ns(const struct bh_quarantine *quarantine, uint64_t now_ns);

#endif
