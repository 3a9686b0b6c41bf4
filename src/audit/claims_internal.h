#ifndef BH_AUDIT_CLAIMS_INTERNAL_H
#define BH_AUDIT_CLAIMS_INTERNAL_H

#include "audit/binding.h"
#include "audit/claims.h"
#include "audit/job_status.h"

/* Shared by the parts of claims alone. */

/* What is known by a key of 32 bytes; every claim begins so. */
struct log_claim {
    uint8_t key[32];
    uint64_t record; /* that says it */
    bool seen;       /* a row of it was given */
};

struct name_claim {
    struct log_claim claim;
    uint8_t commitment[BH_BINDING_BYTES];
    bool bound, erased;
    uint64_t erased_by;
    const char *name; /* as a row had it that fits; NULL: none did yet */
};

/* Words of records are no longer than that. */
enum { CLAIM_WORD_BYTES = 24 };

/* What the submission of a job says. */
struct job_submission {
    uint32_t tenant, principal, sku, count;
    uint64_t submitted_ns;
    uint8_t spec[32];
    /* Since records of version 4, else zero: */
    uint32_t priority, gang, checkpoint_signal;
    char kind[CLAIM_WORD_BYTES], contract[CLAIM_WORD_BYTES];
    uint64_t time_limit_ns, deadline_ns;
};

struct job_claim {
    struct log_claim claim;
    struct job_submission said;
    bool submitted; /* the record of it is there; else it was pruned */
    bool stated;    /* `state` is known: since records of version 3 */
    uint64_t started_ns, stated_by;
    struct bh_job_status state;
    /* Since records of version 4: */
    bool filled; /* all that `said` has is known */
    bool placed; /* `place` is known */
    uint64_t placed_by;
    uint8_t place[32]; /* bh_job_placement_digest */
};

struct text_claim {
    struct log_claim claim;
    bool named; /* by claim.record, at that time, first */
    uint64_t at_ns;
    uint32_t tenant;
    bool older;        /* it may be from before texts were sealed */
    bool elsewhere;    /* the record whose it is was pruned */
    bool for_ever;     /* another record than one of the site file names it */
    uint64_t revision; /* the newest that has it, by `nth`; 0: none */
};

/* A tenant: its keys, and the last record that destroyed any, or texts that had none. */
struct tenant_claim {
    struct log_claim claim;
    bool shredded;
    struct key_claim *keys;
};

struct document_claim {
    struct log_claim claim; /* by kind and number: of the record, or of the job */
    enum bh_claimed_kind kind;
    uint64_t number;
    uint8_t digest[32];
    uint64_t at_ns; /* of a revision; 0: no record says */
    uint32_t principal;
    uint64_t nth;  /* of the revisions, from 1 */
    bool optional; /* it may be missing */
};

struct key_claim {
    struct log_claim claim;
    bool made, destroyed; /* by claim.record; by destroyed_by */
    uint64_t made_ns, destroyed_by, destroyed_ns;
    bool destroyed_since; /* the last record, as an export's row says */
    uint32_t tenant;
    bool filled;        /* `digest` is known */
    uint8_t digest[32]; /* bh_key_facts_digest */
    bool dated;         /* `month` is known, from the row; 0: it seals no texts */
    uint32_t month;
    bool linked;
    struct key_claim *next; /* of the same tenant */
};

struct token_claim {
    struct log_claim claim;
    bool made, revoked; /* by claim.record; by revoked_by */
    uint64_t revoked_by;
    bool filled;        /* what follows is known */
    uint8_t digest[32]; /* of bh_token_facts_put */
    uint64_t expires_ns;
    uint32_t owner;
};

/* Whose tokens that were dead, some or all, the store forgot, and when last. */
struct owner_claim {
    struct log_claim claim; /* by that record */
    uint64_t at_ns;
};

/* The site file in force, as records say. */
struct site_claim {
    bool known;
    bool sure;                 /* whether it was a new revision */
    uint64_t record, revision; /* that says so; that put it in force */
    uint32_t version;          /* of that record */
    uint8_t digest[32];
};

/* Open addressing; a slot is empty or points to what begins with a struct log_claim. */
struct claim_table {
    void **slots;
    size_t capacity, count; /* room: 0, or a power of two */
};

/* The first version of records that binds all columns of jobs. */
enum { BH_CLAIMS_ROWS_VERSION = 4 };

enum { BH_CLAIMS_REPORTED_MAX = 20, BH_CLAIMS_REPORTED_BYTES = 8192 };

struct bh_claims {
    struct bh_arena *arena;
    const struct bh_crypto_ops *crypto;
    struct claim_table names, jobs, texts, tenants, documents, keys, tokens, owners;
    struct site_claim site;
    uint64_t revisions, last_key;
    uint64_t last_text;        /* the highest number of a text that a record names */
    uint64_t unnamed_text;     /* the lowest of one that none names; 0: none */
    uint8_t unnamed[32];       /* its digest */
    uint64_t gives;            /* records names.give right before this one */
    uint64_t size, last_ts_ns; /* records so far, and the time of the last */
    uint64_t first_ts_ns;      /* of the first that is left */
    uint64_t pruned_to;        /* records below it are hashes alone */
    uint64_t carried_to;       /* what those below it said of rows was carried on */
    uint64_t first_job;        /* the lowest that a record submitted; UINT64_MAX: none */
    uint64_t bindings;
    bool older, newer; /* there are records that do not bind all columns of jobs, that
                          do */
    struct bh_claims_result result;
    char differing_text[BH_CLAIMS_REPORTED_BYTES], erased_text[BH_CLAIMS_REPORTED_BYTES];
    struct bh_buf differing, erased;
};

/* Whether the record put a site file in force. */
bool bh_claims_is_site(const struct bh_record *record);

/* Whether the store may have dropped that revision (struct document_claim, `nth`): newer ones are as
 * many as are kept. */
bool bh_claims_is_behind(const struct bh_claims *claims, uint64_t nth);

/* The record names that text; `for_ever`: another record than one of the site file does. */
BH_MUST_USE bh_rc bh_claims_read_text(struct bh_claims *claims, const struct bh_record *record,
                                      const uint8_t digest[32], bool for_ever, struct bh_err *err);

/* What a record says of texts besides its submission's. */
BH_MUST_USE bh_rc bh_claims_read_texts(struct bh_claims *claims, const struct bh_record *record,
                                       struct bh_err *err);

/* What a record says of keys made and destroyed, and of tenants whose keys were. */
BH_MUST_USE bh_rc bh_claims_read_keys(struct bh_claims *claims, const struct bh_record *record,
                                      struct bh_err *err);

/* What a record says of documents and the site file. */
BH_MUST_USE bh_rc bh_claims_read_documents(struct bh_claims *claims, const struct bh_record *record,
                                           struct bh_err *err);
BH_MUST_USE bh_rc bh_claims_read_token(struct bh_claims *claims, const struct bh_record *record,
                                       struct bh_err *err);

/* What is missing of each table; `ended_alone`: rows of jobs that had ended were given. */
void bh_claims_end_names(struct bh_claims *claims);
void bh_claims_end_jobs(struct bh_claims *claims, bool ended_alone);
void bh_claims_end_documents(struct bh_claims *claims, bool ended_alone);
void bh_claims_end_texts(struct bh_claims *claims);
void bh_claims_end_keys(struct bh_claims *claims);
void bh_claims_end_tokens(struct bh_claims *claims);

/* What a record carries on of those that were pruned. */
BH_MUST_USE bh_rc bh_claims_read_bound(struct bh_claims *claims, const struct bh_record *record,
                                       struct bh_err *err);

/* Whether there were records of which nothing was carried on. */
static inline bool
bh_claims_has_lost(const struct bh_claims *claims)
{
    return claims->pruned_to > claims->carried_to;
}

/* Whether the row may be missing: a token of one whose dead ones were forgotten; a text whose key was
 * destroyed. */
bool bh_claims_is_forgotten(const struct bh_claims *claims, const struct token_claim *token);
bool bh_claims_is_erased(const struct bh_claims *claims, const struct text_claim *text);

/* That tenant's key, a new one where there is none. */
BH_MUST_USE bh_rc bh_claims_add_key(struct bh_claims *claims, uint64_t id, uint32_t tenant,
                                    struct key_claim **ret_key, struct bh_err *err);

/* Whether the job's row must have been given: of an export, if it had ended. */
bool bh_claims_is_wanted(const struct bh_claims *claims, const struct job_claim *job, bool ended_alone);

/* A line of the differences, if there is room for one more. */
bool bh_claims_reports(struct bh_claims *claims);
void bh_claims_end_line(struct bh_buf *lines, size_t from);
#define bh_claims_report(claims, ...)                                                                        \
    do {                                                                                                     \
        size_t from_ = (claims)->differing.length;                                                           \
                                                                                                             \
        if (!bh_claims_reports(claims))                                                                      \
            break;                                                                                           \
        bh_buf_printf(&(claims)->differing, __VA_ARGS__);                                                    \
        bh_claims_end_line(&(claims)->differing, from_);                                                     \
    } while (0)

/* ---- claims_table.c ---- */

/* BH_FULL. */
bh_rc bh_claims_full(struct bh_err *err);

bool bh_claim_is_zero(const uint8_t bytes[32]);

void bh_claim_put_word(char ret[CLAIM_WORD_BYTES], const char *word);

/* The object's member of that name; 0: it has none. */
uint64_t bh_claim_number(struct bh_slice object, const char *key);

/* A key from up to three numbers. */
void bh_claim_key(uint8_t ret_key[32], uint64_t first, uint64_t second);

/* The claim of that key, or NULL. */
void *bh_claim_find(const struct claim_table *table, const uint8_t key[32]);

/* The same, or a new one of `size` zeroed bytes; NULL: the arena has no room. */
void *bh_claim_add(struct bh_claims *claims, struct claim_table *table, const uint8_t key[32], size_t size);

#endif
