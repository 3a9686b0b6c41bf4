#ifndef BH_AUDIT_ROWS_H
#define BH_AUDIT_ROWS_H

#include <stdint.h>

#include "base/fields.h"

/* Rows of the tables as an export has them beside the log, one JSON object a line, in the files
 * "names", "jobs", "texts", "documents" and "keys": what the records' ids and digests stand for.  They are
 * not signed; the log binds them (audit/claims.h). */

/* The files' names, as /v1/log/rows/NAME has them too. */
#define BH_ROWS_NAMES "names"
#define BH_ROWS_JOBS "jobs"
#define BH_ROWS_TEXTS "texts"
#define BH_ROWS_DOCUMENTS "documents"
#define BH_ROWS_KEYS "keys"

struct bh_row_name {
    char kind[16]; /* of bh_binding_kinds */
    uint32_t id;
    const char *name;   /* NULL: it was erased */
    uint8_t key[32];    /* opens the commitment; zero: it is not bound, or erased */
    uint64_t erased_by; /* the record that erased it; 0: none */
};
extern const struct bh_fields bh_row_name_fields;

/* A job that had ended. */
struct bh_row_job {
    uint64_t job;
    uint32_t tenant_id, principal_id, count;
    const char *tenant, *principal, *sku, *state, *reason;
    uint64_t submitted_ns, started_ns, ended_ns;
    int32_t exit_status;
    uint8_t spec[32];
    uint32_t priority, gang, checkpoint_signal;
    const char *kind, *contract;
    uint64_t time_limit_ns, deadline_ns;
    uint64_t lease;
    uint32_t restarts;
    const char *node, *partitions, *grade;
};
extern const struct bh_fields bh_row_job_fields;

/* A document that a record has the digest of; a scrub's receipt, the site file's revisions, the
 * images of jobs that had ended. */
struct bh_row_document {
    uint64_t number; /* where the next page continues */
    char kind[16];   /* of bh_claimed_kinds */
    const char *key, *value;
};
extern const struct bh_fields bh_row_document_fields;

/* A key, without its bytes. */
struct bh_row_key {
    uint64_t id;
    uint32_t kind, tenant_id, month;
    uint64_t created_ns, destroyed_ns;
};
extern const struct bh_fields bh_row_key_fields;

/* A text under its digest, most of them sealed. */
struct bh_row_text {
    uint64_t number;
    uint8_t digest[32];
    const char *text;
};
extern const struct bh_fields bh_row_text_fields;

#endif
