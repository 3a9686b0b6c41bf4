#ifndef BH_AUDIT_JOB_STATUS_H
#define BH_AUDIT_JOB_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

/* What became of jobs by a record (its member "jobs"): the state that each is in since, so
 * that a job's row can be held against the log without an engine.
 *
 *   [{"job":6,"started":"1795...","state":"running"},
 *    {"cause":"exited","ended":"1795...","job":7,"state":"failed","status":3}]
 *
 * What is 0 or empty is left out. */

enum { BH_JOB_STATUS_TEXT_MAX = 24, BH_JOB_STATUS_ITEM_MAX = 160 };

struct bh_job_status {
    uint64_t job;
    uint64_t started_ns;                 /* of the present run; 0: it has none; unused when
                                            it has ended: it stays what it was */
    uint64_t ended_ns;                   /* 0: it has not */
    int32_t exit_status;
    char state[BH_JOB_STATUS_TEXT_MAX];   /* words of small letters and underscores */
    char cause[BH_JOB_STATUS_TEXT_MAX];   /* "" while it has not ended */
};

/* Append an item of the list in a record, with a comma before all but the first: at most
 * BH_JOB_STATUS_ITEM_MAX bytes. */
void bh_job_status_put(struct bh_buf *list, const struct bh_job_status *state);

/* The next item; start with *cursor = 0.  False at the end, with *cursor BH_SLICE_END, and
 * where an item is none. */
bool bh_job_status_next(struct bh_slice list, size_t *cursor, struct bh_job_status *ret);

/* Whether it is a list of one or more, each written the one way. */
bool bh_job_status_is_list(struct bh_slice list);

#endif
