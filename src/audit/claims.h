#ifndef BH_AUDIT_CLAIMS_H
#define BH_AUDIT_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/job_status.h"
#include "audit/record.h"
#include "audit/token_facts.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/time.h"

/* What the records say of names, jobs and texts, gathered during a walk over the log; and the
 * rows of the tables held against it afterwards.
 *
 * The tables are not signed: ids resolve through them, so a changed row makes the log
 * say something else.  A difference is named with the row and the record.  What the log does
 * not determine (records of older versions, pruned ones) is counted as not bound. */
struct bh_claims;
struct bh_crypto_ops;

/* Nothing yet.  It lives in the arena, which is the caller's and needs room for what the log
 * names: about 600 bytes for each job, name and text. */
BH_MUST_USE struct bh_claims *bh_claims_new(struct bh_arena *arena, const struct bh_crypto_ops *crypto);

/* Take the next record, decoded.
 *   BH_CONFLICT  it binds an id to another name than an earlier record did
 *   BH_FULL      the arena has no room */
BH_MUST_USE bh_rc bh_claims_read(struct bh_claims *claims, const struct bh_record *record,
                                 struct bh_err *err);

/* The record was pruned. */
void bh_claims_skip(struct bh_claims *claims, uint64_t seq);

/* ---- the rows: names first, because jobs are held against those, too ---- */

struct bh_claimed_name {
    uint32_t kind, id; /* kind of bh_binding_kinds; another is a difference */
    const char *name;
    const uint8_t *key; /* 32 bytes; all zero: there is none */
    uint64_t erased_by; /* a record that the row says erased it; 0: none */
};

struct bh_claimed_job {
    uint64_t job;
    uint32_t tenant_id, principal_id, count;
    const char *tenant, *principal, *sku, *state, *reason;
    uint64_t submitted_ns, started_ns, ended_ns;
    int32_t exit_status;
    const uint8_t *spec; /* 32 bytes */
    uint32_t priority, gang, checkpoint_signal;
    const char *kind, *contract;
    uint64_t time_limit_ns, deadline_ns;
    uint64_t ended_by; /* the record that ended it, as a store says; 0: it does not */
    struct bh_job_placement place;
    bool exported; /* names in the row may have been erased since the last record */
};

/* BH_FULL: the arena has no room. */
BH_MUST_USE bh_rc bh_claims_name(struct bh_claims *claims, const struct bh_claimed_name *row,
                                 struct bh_err *err);
void bh_claims_job(struct bh_claims *claims, const struct bh_claimed_job *row);

/* A text is sealed, and its key made, at most so long before the record that says so: at the end of
 * a month the record may be of the next. */
#define BH_CLAIMS_MOMENT_NS (60 * BH_NS_PER_S)

/* The row of a key that is destroyed has the time of the record that says so; rows of before may have
 * one that is later, by no more than a moment.  What an export says of after its last record is of the
 * same day. */
#define BH_CLAIMS_LATE_NS (86400 * BH_NS_PER_S)

/* The text that stands under `digest` hashes to `found`. */
struct bh_claimed_text {
    const uint8_t *digest, *found; /* 32 bytes */
    uint64_t number;               /* texts that come later have a higher one */
    bool exported;                 /* the row may be younger than the last record */
};
void bh_claims_text(struct bh_claims *claims, const struct bh_claimed_text *row);

/* Documents that a record has the digest of, as the store keeps them: the rows of an export's file
 * "documents", too. */
enum bh_claimed_kind {
    BH_CLAIMED_RECEIPT,  /* of a scrub: {"digest","receipt","record"} */
    BH_CLAIMED_REVISION, /* of the site file: {"at_ns","changes","digest","principal"} */
    BH_CLAIMED_IMAGE,    /* of a job: {"digest"} */
    BH_CLAIMED_KINDS
};
extern const char *const bh_claimed_kinds[BH_CLAIMED_KINDS]; /* "receipt", ... */

struct bh_claimed_document {
    enum bh_claimed_kind kind;
    const char *key, *value;
};
void bh_claims_document(struct bh_claims *claims, const struct bh_claimed_document *row);

/* The revisions of the site file that must be there, the newest ones: older ones may be missing, and
 * texts that nothing but those names. */
enum { BH_CLAIMS_REVISIONS_MAX = 512 };

/* What a key is for; the record that made it has the digest, since version 4. */
struct bh_key_facts {
    uint32_t kind, tenant_id, month;
    uint64_t created_ns;
};
void bh_key_facts_digest(const struct bh_crypto_ops *crypto, const struct bh_key_facts *facts,
                         uint8_t ret_digest[32]);

struct bh_claimed_key {
    uint64_t id;
    struct bh_key_facts facts;
    uint64_t destroyed_ns; /* 0: it was not */
    bool empty;            /* its bytes are zero */
    bool exported;         /* the row may be younger than the last record */
};
/* BH_FULL: the arena has no room. */
BH_MUST_USE bh_rc bh_claims_key(struct bh_claims *claims, const struct bh_claimed_key *row,
                                struct bh_err *err);

/* An API token of a store, by the number that records have of it: 53 bits of its secret's digest. */
struct bh_claimed_token {
    const char *id; /* as it is shown */
    uint64_t number;
    struct bh_token_facts facts;
    bool revoked;
};
uint64_t bh_token_number(const uint8_t secret[32]);
void bh_claims_token(struct bh_claims *claims, const struct bh_claimed_token *row);

/* Which site file is in force: its digest in hexadecimal digits and its revision, as the store
 * says; NULL or "": it does not. */
void bh_claims_site(struct bh_claims *claims, const char *digest, const char *revision);

/* A difference that the caller found; `what` is a sentence. */
void bh_claims_differ(struct bh_claims *claims, const char *what);

/* ---- the end ---- */

/* ENDED: of the jobs, only those were given whose end is in the records. */
enum bh_claims_table {
    BH_CLAIMS_NAMES = 1,
    BH_CLAIMS_JOBS = 2,
    BH_CLAIMS_TEXTS = 4,
    BH_CLAIMS_ENDED = 8,
    BH_CLAIMS_DOCUMENTS = 16,
    BH_CLAIMS_KEYS = 32,
    BH_CLAIMS_TOKENS = 64
};

/* Whether an export of these records has that table: they bind rows of it. */
bool bh_claims_need(const struct bh_claims *claims, enum bh_claims_table table);

struct bh_claims_count {
    uint64_t good;    /* rows that are what the log says */
    uint64_t erased;  /* by a record; in an export, since the last of its records, too */
    uint64_t unbound; /* the log does not say what they should be */
};

struct bh_claims_result {
    struct bh_claims_count names, jobs, texts, documents, keys, tokens;
    uint64_t differences;
    const char *differing; /* sentences, one a line, of the first of them; "" for none */
    const char *erased;    /* "principal 3: erased by record 12", likewise */
    uint64_t bound_from;   /* the record that an upgrade bound the names in; UINT64_MAX:
                              there is none */
    uint64_t rows_from;    /* the first record that binds all columns of jobs, in a log that
                              has older ones; UINT64_MAX: there is none */
};

/* All rows of the `tables` (enum bh_claims_table) were given: what is missing shows now.  A text
 * may be missing when the key that sealed it was destroyed: one of its tenant and month. */
void bh_claims_end(struct bh_claims *claims, uint32_t tables, struct bh_claims_result *ret_result);

/* The name that the row gave and the log binds; NULL: there is none. */
const char *bh_claims_name_of(const struct bh_claims *claims, uint32_t kind, uint32_t id);

#endif
