#ifndef BH_AUDIT_JOB_STATUS_H
#define BH_AUDIT_JOB_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fields.h"
#include "base/slice.h"

/* What became of jobs by a record (its member "jobs"): the state that each is in since, so
 * that a job's row can be held against the log without an engine.
 *
 *   [{"job":6,"row":"3f2a...","started":"1795...","state":"running"},
 *    {"cause":"exited","ended":"1795...","job":7,"state":"failed","status":3}]
 *
 * What is 0 or empty is left out. */

struct bh_crypto_ops;

enum { BH_JOB_STATUS_TEXT_MAX = 24, BH_JOB_STATUS_ITEM_MAX = 240 };

/* Where a job is, as the columns of its row say.  Records have the digest of its canonical JSON,
 * since it holds names. */
struct bh_job_placement {
    uint64_t lease;
    uint32_t restarts;
    const char *node, *partitions, *grade; /* NULL or "": none */
};
void bh_job_placement_digest(const struct bh_crypto_ops *crypto, const struct bh_job_placement *place,
                             uint8_t ret_digest[32]);

struct bh_job_status {
    uint64_t job;
    uint64_t started_ns; /* of the present run; 0: it has none; unused when
                            it has ended: it stays what it was */
    uint64_t ended_ns;   /* 0: it has not */
    int32_t exit_status;
    uint8_t row[32];                    /* bh_job_placement_digest; zero when it has ended: it stays
                                           what it was; or in a record before version 4 */
    char state[BH_JOB_STATUS_TEXT_MAX]; /* words of small letters and underscores */
    char cause[BH_JOB_STATUS_TEXT_MAX]; /* "" while it has not ended */
};

/* Append an item of the list in a record, with a comma before all but the first: at most
 * BH_JOB_STATUS_ITEM_MAX bytes. */
void bh_job_status_put(struct bh_buf *list, const struct bh_job_status *state);

/* The next item; start with *cursor = 0.  False at the end, with *cursor BH_SLICE_END, and
 * where an item is none. */
bool bh_job_status_next(struct bh_slice list, size_t *cursor, struct bh_job_status *ret);

/* Whether it is a list of one or more, each written the one way. */
bool bh_job_status_is_list(struct bh_slice list);

/* Whether an item says "row". */
bool bh_job_status_has_row(struct bh_slice list);

#endif
