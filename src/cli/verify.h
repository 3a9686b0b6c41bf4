#ifndef BH_CLI_VERIFY_H
#define BH_CLI_VERIFY_H

#include <stdbool.h>

#include "audit/claims.h"
#include "audit/note.h"
#include "audit/orders.h"
#include "audit/verify.h"
#include "base/buf.h"

/* The parts of bulkhead-audit, the program that verifies audit logs. */

enum { BH_VERIFY_SAVED_MAX = 64 };

/* Its command line. */
struct bh_verify_args {
    const char *key, *store, *folder, *proof, *record; /* files; NULL: not given */
    const char *witness;                               /* file of witnesses' keys */
    const char *quorum_text;                           /* NULL: all of them */
    const char *old, *new;                             /* checkpoints */
    const char *kept[BH_VERIFY_SAVED_MAX];
    uint32_t kept_count;
    bool json;
};

/* What came out, as members of a JSON object and as a sentence. */
struct bh_verdict_text {
    struct bh_buf sentence, members; /* members: ",\"records\":12" */
    bool differs;                    /* the log is whole, and rows of the tables are others */
};

/* ---- rows of the tables, held against the log ---- */

struct bh_verify_rows;

/* With claims for bh_audit_verifier; owned by the caller. */
BH_MUST_USE struct bh_verify_rows *bh_verify_rows_new(void);
void bh_verify_rows_free(struct bh_verify_rows *rows);
struct bh_claims *bh_verify_rows_claims(struct bh_verify_rows *rows);

/* Take a row of the table "names", "jobs" or "texts" (audit/rows.h).  BH_CONFLICT: it is none;
 * BH_FULL. */
BH_MUST_USE bh_rc bh_verify_rows_add(struct bh_verify_rows *rows, const char *table,
                                      const char *line, size_t length, struct bh_err *err);

/* All rows were taken: put what came out into the verdict. */
void bh_verify_rows_end(struct bh_verify_rows *rows, struct bh_verdict_text *verdict);

/* Those of an exported folder, likewise.  BH_NOT_FOUND: a file of them is missing, in an export
 * of a time that wrote them. */
BH_MUST_USE bh_rc bh_verify_rows_folder(struct bh_verify_rows *rows, const char *folder,
                                        struct bh_verdict_text *verdict, struct bh_err *err);

/* Those of a store that was walked are in `result`. */
void bh_verify_rows_put(struct bh_verdict_text *verdict, const struct bh_claims_result *result);

/* Which orders are open at the end of a walk. */
void bh_verify_put_orders(struct bh_verdict_text *verdict,
                          const struct bh_audit_orders *orders);

/* ---- checkpoints that were kept elsewhere, with their witnesses ---- */

struct bh_verify_saved;

/* Open those of the command line; *ret_saved is always the caller's, to be freed.  BH_CONFLICT: one
 * is not signed, or not cosigned by as many witnesses as it needs; failures of reading. */
BH_MUST_USE bh_rc bh_verify_saved_open(const struct bh_verify_args *args,
                                      const struct bh_note_key *key,
                                      struct bh_verify_saved **ret_saved, struct bh_err *err);
void bh_verify_saved_free(struct bh_verify_saved *kept);

/* For bh_audit_verifier. */
struct bh_trusted_checkpoints bh_verify_saved_checkpoints(const struct bh_verify_saved *kept);

/* Where none was kept, the checkpoint in that file needs the witnesses. */
BH_MUST_USE bh_rc bh_verify_saved_check_own(const struct bh_verify_saved *kept, const char *path,
                                     struct bh_err *err);

/* That the log continues so many. */
void bh_verify_put_saved(struct bh_verdict_text *verdict, uint32_t count);

/* An exported log, with the checkpoints kept elsewhere.  BH_CONFLICT: it is not what was
 * signed; BH_NOT_FOUND: a file is missing; failures of reading. */
BH_MUST_USE bh_rc bh_verify_export(const struct bh_verify_args *args,
                                   const struct bh_note_key *key,
                                   struct bh_verdict_text *verdict, struct bh_err *err);

/* A proof with its record.  BH_CONFLICT: it does not hold; BH_INVALID: it is none. */
BH_MUST_USE bh_rc bh_verify_proof(const struct bh_verify_args *args,
                                  const struct bh_note_key *key,
                                  struct bh_verdict_text *verdict, struct bh_err *err);

/* Two checkpoints; the hashes that prove it stand on standard input, one a line.
 * BH_CONFLICT: the second does not continue the first, or is not signed. */
BH_MUST_USE bh_rc bh_verify_consistency(const struct bh_verify_args *args,
                                        const struct bh_note_key *key,
                                        struct bh_verdict_text *verdict, struct bh_err *err);

/* A whole file as NUL-terminated text in `out`; a NUL inside is BH_CONFLICT. */
BH_MUST_USE bh_rc bh_verify_read(const char *path, size_t max, struct bh_buf *out,
                                 struct bh_err *err);

#endif
