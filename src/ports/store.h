#ifndef BH_PORTS_STORE_H
#define BH_PORTS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/slice.h"
#include "ports/key_row.h"

/* The embedded store: the journal (the truth) and the query tables made from it,
 * changed together in one transaction by the owner thread.
 *
 * Writer calls belong to the owner thread, between begin and commit.  Reader calls
 * are for any thread, see the last commit and never wait for the writer. */

struct bh_digest {
    uint8_t bytes[32];
};

/* A text to be kept under its digest.  Where it is a tenant's and sealed, it names the key that
 * sealed it (audit/sealed.h), and goes with that (erase_sealed). */
struct bh_text_row {
    struct bh_digest digest;
    uint32_t tenant_id; /* the tenant that it counts against (count_texts); 0: none */
    struct bh_slice text;
};

/* A job as people look it up.  Texts are never NULL when read; "" means none. */
struct bh_job_row {
    uint64_t job, lease;
    uint32_t tenant_id, principal_id, count, priority, restarts;
    const char *name, *tenant, *principal, *sku, *kind, *state, *contract;
    const char *reason; /* reason code's name while pending, end cause after */
    const char *node, *partitions, *grade;
    uint64_t submitted_ns, started_ns, ended_ns, time_limit_ns; /* 0: not yet, none */
    uint64_t deadline_ns;                                       /* 0: none */
    uint64_t ended_by;          /* the record that says that it ended, which may be long after
                                   ended_ns; 0: it has not, or did in a store of before */
    uint32_t checkpoint_signal; /* 0: it is ordered to write none */
    uint32_t gang;              /* members; 0 is 1 */
    int32_t exit_status;        /* -1 while it has none */
    struct bh_digest spec;
    bool misfiled; /* read: lists take it for one that has ended, or has not, against ended_ns: the store was
                    * changed from outside */
};

/* What changes in a job's row after its submission. */
struct bh_job_change {
    uint64_t job, lease;
    uint32_t restarts;
    const char *state, *reason;            /* never NULL; "" is none */
    const char *node, *partitions, *grade; /* NULL keeps what the row has, as do the zeros
                                    of lease, restarts and started_ns then */
    uint64_t started_ns, ended_ns;
    uint64_t ended_by;   /* as in the row */
    int32_t exit_status; /* -1 while it has none */
};

/* How many jobs of a tenant wait for one reason. */
struct bh_reason_row {
    uint32_t tenant_id, jobs;
    const char *reason;
};

/* Which jobs to list; zero or NULL fields do not filter. */
struct bh_job_filter {
    const uint32_t *tenants; /* only these tenants */
    uint32_t tenant_count;
    uint32_t principal_id;
    bool active_only; /* not ended */
    bool ended_only;
    const char *state;
    uint64_t after;  /* only ids greater than this: the page's cursor */
    bool newest;     /* lists only: descending by ids, and only ids less than `before` in place of `after` */
    uint64_t before; /* at most INT64_MAX */
    uint32_t limit;  /* at most this many; 0 takes 100 */
};

enum bh_name_kind {
    BH_NAME_TENANT,
    BH_NAME_SKU,
    BH_NAME_PRINCIPAL,
    BH_NAME_NODE,
    BH_NAME_GPU,   /* the name is the UUID */
    BH_NAME_GROUP, /* of a provider: "corp/ml-admins" */
    BH_NAME_DATASET,
    BH_NAME_KINDS
};

struct bh_name_row {
    enum bh_name_kind kind;
    uint32_t id;
    const char *name;
    bool gone;            /* kept so that old records can be read */
    struct bh_digest key; /* with the name it opens the commitment that binds it to the
                             log (audit/binding.h); zero: it is not bound, or erased */
    uint64_t record;      /* that binds it, or, when it is erased, that says so */
};

/* An API token: the secret is never stored, only its SHA-256. */
struct bh_token_row {
    char id[16]; /* public part, for people and records */
    struct bh_digest secret;
    uint32_t principal_id;
    const char *scopes; /* verbs separated by blanks; "" is all its owner may */
    const char *note;
    uint64_t created_ns, expires_ns, last_used_ns;
    bool revoked;
};

/* Small JSON objects, most of them about people, described where they are read and written. */
enum bh_document_kind {
    BH_DOCUMENT_ACCOUNT,        /* by principal's id: password, codes, identities at providers */
    BH_DOCUMENT_PASSKEY,        /* by credential id */
    BH_DOCUMENT_SESSION,        /* by session id */
    BH_DOCUMENT_LOCKOUT,        /* by what attempts are counted under */
    BH_DOCUMENT_STREAM,         /* by the record that an interactive stream began with: ids,
                                   as long as its end is not recorded */
    BH_DOCUMENT_RECEIPT,        /* of a scrub, by its order's number in 20 digits */
    BH_DOCUMENT_CARRIED,        /* what networks carried, of a job's leases that ended, by its */
    BH_DOCUMENT_CARRIED_TENANT, /* number in 20 digits; of all of a tenant, by its */
    BH_DOCUMENT_FAILURE,        /* to start, by the job's number in 20 digits */
    BH_DOCUMENT_IMAGE,          /* that a job has, by the same */
    BH_DOCUMENT_NOTICES,        /* of a job, by its number in 20 digits */
    BH_DOCUMENT_REVISION,       /* of the site file, by its number in 20 digits */
    BH_DOCUMENT_KINDS
};

struct bh_document_key {
    enum bh_document_kind kind;
    const char *key; /* 1 to BH_DOCUMENT_KEY_MAX bytes */
};
enum { BH_DOCUMENT_KEY_MAX = 1400, BH_DOCUMENT_VALUE_MAX = 64 << 10 };

struct bh_document_row {
    enum bh_document_kind kind;
    const char *key;
    uint64_t version;      /* how often it was put */
    uint32_t principal_id; /* whose; 0: no principal's */
    const char *value;     /* NULL or "": it is removed */
};

struct bh_document_filter {
    enum bh_document_kind kind;
    uint32_t principal_id; /* 0: all */
    const char *after;     /* only keys behind this one; NULL: all */
};

struct bh_checkpoint_row {
    uint64_t size;    /* records covered */
    const char *note; /* the signed note, as tlog-checkpoint has it */
};

/* A remembered answer to a mutation sent with an idempotency key. */
struct bh_reply_row {
    uint32_t principal_id;
    const char *key;
    struct bh_digest request; /* of method, path and body: a reused key is refused */
    uint32_t status;
    const char *body;
    uint64_t at_ns;
};

/* Called once for each row, in order; false stops the walk.  A sink calls nothing of the store: a back
 * end may hold a lock, or a connection, until the walk is over. */
typedef bool (*bh_job_sink)(void *self, const struct bh_job_row *row);
typedef bool (*bh_reason_sink)(void *self, const struct bh_reason_row *row);
typedef bool (*bh_record_sink)(void *self, uint64_t seq, const char *leaf, size_t length);
typedef bool (*bh_hash_sink)(void *self, uint64_t seq, const struct bh_digest *hash);
typedef bool (*bh_text_sink)(void *self, uint64_t number, const struct bh_digest *digest, const char *text,
                             size_t length);
typedef bool (*bh_name_sink)(void *self, const struct bh_name_row *row);
typedef bool (*bh_token_sink)(void *self, const struct bh_token_row *row);
/* Which tokens: the one with that id, or those of a principal; neither: all. */
struct bh_token_filter {
    const char *id;
    uint32_t principal_id;
};
typedef bool (*bh_key_sink)(void *self, const struct bh_key_row *row);
typedef bool (*bh_document_sink)(void *self, const struct bh_document_row *row);
typedef bool (*bh_checkpoint_sink)(void *self, const struct bh_checkpoint_row *row);

/* Which rows are looked at: all; or those of a start, which leaves out records, checkpoints and texts:
 * it reads them, and holds them against their digests, as it needs them. */
enum bh_store_rows { BH_STORE_ROWS_ALL, BH_STORE_ROWS_START };

/* Tables whose rows are numbered without a gap, and never removed. */
enum bh_store_numbered { BH_STORE_RECORDS, BH_STORE_JOBS, BH_STORE_NUMBERED };

/* Every slot is required.  Failures of all: BH_IO, BH_FULL (disk), BH_UNAVAILABLE
 * (locked by another process); finds add BH_NOT_FOUND. */
struct bh_store_ops {
    const char *name; /* "sqlite", "memory" */

    /* ---- owner thread ---- */
    bh_rc (*begin)(void *self, struct bh_err *err);
    /* Durable when it returns BH_OK.  On any other result nothing was kept, except
     * BH_UNCERTAIN: what was kept is known only after the store was opened again. */
    bh_rc (*commit)(void *self, struct bh_err *err);
    void (*rollback)(void *self);
    /* `ret_hash`, where not NULL, becomes the leaf's hash (audit/merkle.h), as the row has it. */
    bh_rc (*put_record)(void *self, uint64_t seq, const struct bh_slice *leaf, uint8_t ret_hash[32],
                        struct bh_err *err);
    /* Drop the leaves of records first .. last inclusive; their hashes stay. */
    bh_rc (*prune_records)(void *self, uint64_t first, uint64_t last, struct bh_err *err);
    /* Idempotent: the same digest is the same text. */
    bh_rc (*put_text)(void *self, const struct bh_text_row *row, struct bh_err *err);
    /* Forget a text, where there is one. */
    bh_rc (*drop_text)(void *self, const struct bh_digest *digest, struct bh_err *err);
    bh_rc (*put_job)(void *self, const struct bh_job_row *row, struct bh_err *err);
    /* BH_NOT_FOUND when the job has no row. */
    bh_rc (*change_job)(void *self, const struct bh_job_change *change, struct bh_err *err);
    bh_rc (*put_name)(void *self, const struct bh_name_row *row, struct bh_err *err);
    bh_rc (*put_token)(void *self, const struct bh_token_row *row, struct bh_err *err);
    /* Forget a token, where there is one. */
    bh_rc (*drop_token)(void *self, const char *id, struct bh_err *err);
    bh_rc (*put_document)(void *self, const struct bh_document_row *row, struct bh_err *err);
    bh_rc (*put_checkpoint)(void *self, const struct bh_checkpoint_row *row, struct bh_err *err);
    /* Those a day older than this one may be forgotten. */
    bh_rc (*put_reply)(void *self, const struct bh_reply_row *row, struct bh_err *err);
    /* A key, or its present form in place of the old one, whose bytes are overwritten. */
    bh_rc (*put_key)(void *self, const struct bh_key_row *row, struct bh_err *err);
    /* Overwrite all texts of tenants that the key sealed, the open transaction's included. */
    bh_rc (*erase_sealed)(void *self, uint64_t key, struct bh_err *err);
    /* Overwrite what is kept of a tenant's jobs: their names, which become BH_ERASED, those of
     * their texts that no key sealed and no other job has, and all remembered replies. */
    bh_rc (*erase_jobs)(void *self, const struct bh_erasure *which, struct bh_err *err);
    /* Overwrite a tenant's or a principal's name in the rows of jobs with BH_ERASED, and drop all
     * remembered replies. */
    bh_rc (*erase_name)(void *self, enum bh_name_kind kind, uint32_t id, struct bh_err *err);
    /* Outside of a transaction: see to it that nothing that was overwritten or deleted
     * stays in the store's files.  BH_UNAVAILABLE: readers still look at it; come again. */
    bh_rc (*scrub)(void *self, struct bh_err *err);
    /* Small named values: "site", "site_revision", "snapshot", "boot", "minimum", ... */
    bh_rc (*put_meta)(void *self, const char *key, const char *value, struct bh_err *err);

    /* ---- any thread ---- */
    /* Whether what is written can be found when the store is opened again; some microseconds.
     *   BH_CONFLICT  its files were removed or replaced; the message names one */
    bh_rc (*check_files)(void *self, struct bh_err *err);
    /* Whether each row has the form that these slots give to it: types, bounds, no text with bytes
     * behind a NUL.  What the others do with one that has not is not said.
     *   BH_CONFLICT  one has not; the message names it */
    bh_rc (*check_rows)(void *self, enum bh_store_rows which, struct bh_err *err);
    /* How many rows there are, those of pruned records included; less than half a second for a million. */
    bh_rc (*count_rows)(void *self, enum bh_store_numbered table, uint64_t *ret_count, struct bh_err *err);
    bh_rc (*get_meta)(void *self, const char *key, struct bh_arena *arena, const char **ret_value,
                      struct bh_err *err);
    bh_rc (*get_text)(void *self, const struct bh_digest *digest, struct bh_arena *arena,
                      const char **ret_text, struct bh_err *err);
    /* How many bytes of texts are kept that count against the tenant. */
    bh_rc (*count_texts)(void *self, uint32_t tenant_id, uint64_t *ret_bytes, struct bh_err *err);
    /* All texts behind number `after`, ascending by numbers, which a text keeps. */
    bh_rc (*list_texts)(void *self, uint64_t after, bh_text_sink sink, void *sink_self, struct bh_err *err);
    bh_rc (*get_job)(void *self, uint64_t job, bh_job_sink sink, void *sink_self, struct bh_err *err);
    bh_rc (*list_jobs)(void *self, const struct bh_job_filter *filter, bh_job_sink sink, void *sink_self,
                       struct bh_err *err);
    /* How many jobs the filter would list without its limit, counting to at most
     * 100,000. */
    bh_rc (*count_jobs)(void *self, const struct bh_job_filter *filter, uint64_t *ret_count,
                        struct bh_err *err);
    /* Jobs that have not ended and are in that state, ascending by tenant and reason. */
    bh_rc (*count_reasons)(void *self, const char *state, bh_reason_sink sink, void *sink_self,
                           struct bh_err *err);
    /* Records first .. last inclusive, ascending; those that were pruned are passed over. */
    bh_rc (*list_records)(void *self, uint64_t first, uint64_t last, bh_record_sink sink, void *sink_self,
                          struct bh_err *err);
    /* The Merkle leaf hashes kept beside the records, made when they were put: from
     * record `first` on, those that were pruned included. */
    bh_rc (*list_hashes)(void *self, uint64_t first, bh_hash_sink sink, void *sink_self, struct bh_err *err);
    /* Number of the newest record; records are numbered from 0, so BH_NOT_FOUND
     * when there is none. */
    bh_rc (*last_record)(void *self, uint64_t *ret_seq, struct bh_err *err);
    bh_rc (*list_names)(void *self, bh_name_sink sink, void *sink_self, struct bh_err *err);
    /* Ascending by id; one token, and those of a principal, are found by an index. */
    bh_rc (*list_tokens)(void *self, const struct bh_token_filter *filter, bh_token_sink sink,
                         void *sink_self, struct bh_err *err);
    /* All there ever were, ascending by id. */
    bh_rc (*list_keys)(void *self, bh_key_sink sink, void *sink_self, struct bh_err *err);
    /* BH_NOT_FOUND; BH_FULL: the arena has no room. */
    bh_rc (*get_document)(void *self, const struct bh_document_key *key, struct bh_arena *arena,
                          struct bh_document_row *ret_row, struct bh_err *err);
    /* Ascending by key. */
    bh_rc (*list_documents)(void *self, const struct bh_document_filter *filter, bh_document_sink sink,
                            void *sink_self, struct bh_err *err);
    /* Checkpoints covering at least `min_size` records, ascending by size. */
    bh_rc (*list_checkpoints)(void *self, uint64_t min_size, bh_checkpoint_sink sink, void *sink_self,
                              struct bh_err *err);
    bh_rc (*get_reply)(void *self, uint32_t principal_id, const char *key, struct bh_arena *arena,
                       struct bh_reply_row *ret_row, struct bh_err *err);
    void (*close)(void *self);
};

struct bh_store {
    const struct bh_store_ops *ops;
    void *self;
};

#endif
