#ifndef BH_API_JOBS_START_ESTIMATES_H
#define BH_API_JOBS_START_ESTIMATES_H

#include "api/request/call.h"

/* When jobs that wait are expected to start: a future of the whole queue, played on the
 * thread of a request that asks and kept for those that ask next.  It is made again when
 * it has become old; the costlier it is, the longer it is kept (0.2 to 5 seconds), so that
 * asking often costs little.  Thread-safe. */
struct bh_start_estimates;

struct bh_start_estimates *bh_start_estimates_new(void);
void bh_start_estimates_free(struct bh_start_estimates *start_estimates);

/* Have a future at hand that is fit to answer for `job` (0: for lists).  What fails leaves
 * the one there was: estimates are a help, and never a failure. */
void bh_start_estimates_refresh(const struct bh_call *call, bh_job_id job);

/* When the job is expected to start, in nanoseconds since the epoch; 0: not known, or it
 * has started. */
uint64_t bh_start_estimates_of(const struct bh_call *call, bh_job_id job);

#endif
