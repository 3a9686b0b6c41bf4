#ifndef BH_AUDIT_CLAIMS_H
#define BH_AUDIT_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/arena.h"
#include "base/buf.h"

/* What the records say of names, jobs and texts, gathered during a walk over the log; and the
 * rows of the tables held against it afterwards.
 *
 * The tables are not signed: ids resolve through them, so whoever changes a row makes the log
 * tell another story.  A difference is named with the row and the record.  What the log does
 * not determine (records of older versions, pruned ones) is counted as not bound. */
struct bh_claims;
struct bh_crypto_ops;

/* Nothing yet.  It lives in the arena, which is the caller's and needs room for what the log
 * names: about 600 bytes for each job, name and text. */
BH_MUST_USE struct bh_claims *bh_claims_new(struct bh_arena *arena,
                                            const struct bh_crypto_ops *crypto);

/* Take the next record, decoded.
 *   BH_CONFLICT  it binds an id to another name than an earlier record did
 *   BH_FULL      the arena has no room */
BH_MUST_USE bh_rc bh_claims_take(struct bh_claims *claims, const struct bh_record *record,
                                 struct bh_err *err);

/* The record was pruned. */
void bh_claims_skip(struct bh_claims *claims, uint64_t seq);

/* ---- the rows: names first, because jobs are held against those, too ---- */

struct bh_claimed_name {
    uint32_t kind, id;           /* kind of bh_binding_kinds; another is a difference */
    const char *name;
    const uint8_t *key;          /* 32 bytes; all zero: there is none */
    uint64_t erased_by;          /* a record that the row says erased it; 0: none */
};

struct bh_claimed_job {
    uint64_t job;
    uint32_t tenant_id, principal_id, count;
    const char *tenant, *principal, *sku, *state, *reason;
    uint64_t submitted_ns, started_ns, ended_ns;
    int32_t exit_status;
    const uint8_t *spec;         /* 32 bytes */
};

/* BH_FULL: the arena has no room. */
BH_MUST_USE bh_rc bh_claims_name(struct bh_claims *claims, const struct bh_claimed_name *row,
                                 struct bh_err *err);
void bh_claims_job(struct bh_claims *claims, const struct bh_claimed_job *row);

/* The text that stands under `digest` hashes to `found`. */
void bh_claims_text(struct bh_claims *claims, const uint8_t digest[32], const uint8_t found[32]);

/* Whether a record bound a name: the log is of a time in which all are. */
bool bh_claims_bound(const struct bh_claims *claims);

/* ---- the end ---- */

/* ENDED: of the jobs, only those that had ended before the last record were given. */
enum bh_claims_table {
    BH_CLAIMS_NAMES = 1, BH_CLAIMS_JOBS = 2, BH_CLAIMS_TEXTS = 4, BH_CLAIMS_ENDED = 8
};

struct bh_claims_count {
    uint64_t good;               /* rows that are what the log says */
    uint64_t erased;             /* by a record */
    uint64_t unbound;            /* the log does not say what they should be */
};

struct bh_claims_result {
    struct bh_claims_count names, jobs, texts;
    uint64_t differences;
    const char *differing;       /* sentences, one a line, of the first of them; "" for none */
    const char *erased;          /* "principal 3: erased by record 12", likewise */
    uint64_t bound_from;         /* the record that an upgrade bound the names in; UINT64_MAX:
                                    there is none */
};

/* All rows of the `tables` (enum bh_claims_table) were given: what is missing shows now. */
void bh_claims_end(struct bh_claims *claims, uint32_t tables, struct bh_claims_result *ret_result);

/* The name that the row gave and the log binds; NULL: there is none. */
const char *bh_claims_name_of(const struct bh_claims *claims, uint32_t kind, uint32_t id);

#endif
