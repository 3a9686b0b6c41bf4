#ifndef BH_CLI_AUDIT_AUDIT_ROWS_H
#define BH_CLI_AUDIT_AUDIT_ROWS_H

#include "cli/command/cli.h"

/* Fetching what the ids and digests of records mean (audit/rows.h). */

/* "names", "jobs" and "texts"; NULL behind them. */
extern const char *const bh_audit_tables[];

/* What takes a page of whole lines. */
struct bh_row_pages {
    bh_rc (*append)(void *self, const char *table, const char *lines, size_t length, struct bh_err *err);
    void *self;
};

/* Fetch all rows of a table for the first `size` records.  Failures of the request and of
 * `pages`. */
BH_MUST_USE bh_rc bh_audit_rows_fetch(const struct bh_cli *cli, const char *table, uint64_t size,
                                      struct bh_row_pages pages, struct bh_err *err);

/* Write them into files of the folder, in the place of those of an earlier export. */
BH_MUST_USE bh_rc bh_audit_rows_save(const struct bh_cli *cli, const char *folder, uint64_t size,
                                     struct bh_err *err);

#endif
