#ifndef BH_CLI_VERIFIER_VERIFY_ROWS_H
#define BH_CLI_VERIFIER_VERIFY_ROWS_H

#include "audit/claims.h"
#include "cli/verifier/verify.h"

/* Rows of the tables, held against the log. */

struct bh_verify_rows;

/* With claims for bh_audit_verifier; owned by the caller. */
BH_MUST_USE struct bh_verify_rows *bh_verify_rows_new(void);
void bh_verify_rows_free(struct bh_verify_rows *rows);
struct bh_claims *bh_verify_rows_claims(struct bh_verify_rows *rows);

/* All rows of that table will be given; there may be none.  BH_CONFLICT: there is no such table. */
BH_MUST_USE bh_rc bh_verify_rows_begin(struct bh_verify_rows *rows, const char *table, struct bh_err *err);

/* Take a row of the table "names", "jobs" or "texts" (audit/rows.h).  BH_CONFLICT: it is none;
 * BH_FULL. */
BH_MUST_USE bh_rc bh_verify_rows_add(struct bh_verify_rows *rows, const char *table, const char *line,
                                     size_t length, struct bh_err *err);

/* All rows were taken: put what came out into the verdict, and what a store alone has to compare. */
void bh_verify_rows_end(struct bh_verify_rows *rows, struct bh_verdict_text *verdict);

/* Those of an exported folder, likewise.  BH_NOT_FOUND: a file of them is missing, in an export
 * of a time that wrote them. */
BH_MUST_USE bh_rc bh_verify_rows_folder(struct bh_verify_rows *rows, const char *folder,
                                        struct bh_verdict_text *verdict, struct bh_err *err);

/* Those of a store that was walked are in `result`. */
void bh_verify_rows_put(struct bh_verdict_text *verdict, const struct bh_claims_result *result);

#endif
