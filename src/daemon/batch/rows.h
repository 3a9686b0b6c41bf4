#ifndef BH_DAEMON_BATCH_ROWS_H
#define BH_DAEMON_BATCH_ROWS_H

#include "audit/job_status.h"
#include "daemon/state/core.h"

/* Rows of the jobs table, written in the same transaction as the record that changed
 * them. */

/* A job that was just submitted: name and times come from `spec` and `event`. */
BH_MUST_USE bh_rc bh_rows_add(struct bh_core *core, const struct bh_event *event,
                              const struct bh_caller *caller, const char *name, struct bh_err *err);

/* What a job's row will say after `effect`, of kind JOB, as the record has it. */
void bh_rows_status(const struct bh_core *core, const struct bh_effect *effect, uint64_t now_ns,
                    struct bh_job_status *ret_state);

/* A job's public state changed: `effect` is of kind JOB, `recorded_by` the number of the record that
 * says so. */
BH_MUST_USE bh_rc bh_rows_change(struct bh_core *core, const struct bh_effect *effect, uint64_t recorded_by,
                                 uint64_t now_ns, struct bh_err *err);

/* A lease of a job was found to be isolated as its grade says, or not to be shown to be: what the
 * row will say, for the record, and the row. */
void bh_rows_regraded(const struct bh_core *core, const struct bh_job_view *view, bool verified,
                      struct bh_job_status *ret_state);
BH_MUST_USE bh_rc bh_rows_regrade(struct bh_core *core, const struct bh_job_view *view, bool verified,
                                  struct bh_err *err);

/* Some of the waiting jobs, the next few at each call: rows that show another reason than
 * the engine now gives are written anew.  Clears core->reasons_stale after the last. */
BH_MUST_USE bh_rc bh_rows_refresh(struct bh_core *core, uint64_t now_ns, struct bh_err *err);

#endif
