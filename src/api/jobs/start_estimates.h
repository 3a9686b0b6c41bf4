#ifndef BH_API_JOBS_START_ESTIMATES_H
#define BH_API_JOBS_START_ESTIMATES_H

#include "api/request/call.h"

/* When jobs that wait are expected to start: a future of the whole queue, kept for those that ask.  A thread
 * plays it again when it is asked for, old and overtaken by a change; the costlier it is, the longer it is
 * kept (0.2 to 5 seconds).  So asking costs a request nothing, but for the first that asks and for one about
 * a job that is newer than the future.  Thread-safe. */
struct bh_start_estimates;

/* `owner` is copied; the thread runs from the first question on. */
BH_MUST_USE struct bh_start_estimates *bh_start_estimates_new(const struct bh_owner *owner);
void bh_start_estimates_free(struct bh_start_estimates *start_estimates); /* NULL is fine */

/* Have a future at hand that is fit to answer for `job` (0: for lists, which take the one there is and have
 * the thread see to a newer one).  What fails leaves the one there was: estimates are a help, and never a
 * failure. */
void bh_start_estimates_refresh(const struct bh_call *call, bh_job_id job);

/* When the job is expected to start, in nanoseconds since the epoch; 0: not known, or it
 * has started. */
uint64_t bh_start_estimates_of(const struct bh_call *call, bh_job_id job);

#endif
