#ifndef BH_AUDIT_ROWS_H
#define BH_AUDIT_ROWS_H

#include <stdint.h>

#include "base/fields.h"

/* Rows of the tables as an export has them beside the log, one JSON object a line, in the files
 * "names", "jobs" and "texts": what the records' ids and digests stand for.  They are not
 * signed; the log binds them (audit/claims.h). */

/* The files' names, as /v1/log/rows/NAME has them too. */
#define BH_ROWS_NAMES "names"
#define BH_ROWS_JOBS "jobs"
#define BH_ROWS_TEXTS "texts"

struct bh_row_name {
    char kind[16];               /* of bh_binding_kinds */
    uint32_t id;
    const char *name;            /* NULL: it was erased */
    uint8_t key[32];             /* opens the commitment; zero: it is not bound, or erased */
    uint64_t erased_by;          /* the record that erased it; 0: none */
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
};
extern const struct bh_fields bh_row_job_fields;

/* A text under its digest, most of them sealed. */
struct bh_row_text {
    uint64_t number;
    uint8_t digest[32];
    const char *text;
};
extern const struct bh_fields bh_row_text_fields;

#endif
