#ifndef BH_DAEMON_BATCH_MISSING_ROWS_H
#define BH_DAEMON_BATCH_MISSING_ROWS_H

#include "daemon/state/core.h"

/* Rows that the store must have and has not: somebody changed the file, or a copy of it was not whole. */

/* What to do about a store that lacks rows; a hint. */
#define BH_MISSING_ROWS_GO_BACK                                                                              \
    "put the folders daemon and signer back from a backup (docs/install.md); "                               \
    "bulkhead audit verify --store says of a copy what it lacks"

/* Hold the store's rows against the state that was replayed, before anything is written on top: records
 * and jobs are numbered without a gap and up to the numbers that the state has, and each id that it has, or
 * that is below one of its kind, has its name.  The store counts its rows, which takes half a second for
 * a million records.
 *   BH_CONFLICT  one is missing; the message names the first, the hint says what to do
 *   failures of the store */
BH_MUST_USE bh_rc bh_missing_rows_check(const struct bh_core *core, struct bh_err *err);

/* The row of a job that has one was not found: BH_UNCERTAIN, because only a fresh start reads what
 * the store has. */
bh_rc bh_missing_rows_refuse_job(bh_job_id job, struct bh_err *err);

#endif
