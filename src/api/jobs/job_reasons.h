#ifndef BH_API_JOBS_JOB_REASONS_H
#define BH_API_JOBS_JOB_REASONS_H

#include "api/request/why.h"
#include "api/request/call.h"

/* Why jobs do not run, asked of the engine for several at once: one visit to the owner's thread for a page of
 * a list. */
struct bh_job_reasons;

/* Jobs of one question: a sentence costs 15 us, of which the owner's thread has a part, and a page has 10 ms.
 */
enum { BH_JOB_REASONS_MAX = 50 };

/* None yet, for `capacity` jobs at most; in the call's arena.  BH_FULL. */
BH_MUST_USE bh_rc bh_job_reasons_new(const struct bh_call *call, uint32_t capacity,
                                     struct bh_job_reasons **ret_reasons, struct bh_err *err);

/* Ask about this job, too; false: there is no room for another. */
bool bh_job_reasons_add(struct bh_job_reasons *reasons, uint64_t job);

/* Have the engine answer for all.  Results of bh_call_ask and bh_visible_explain. */
BH_MUST_USE bh_rc bh_job_reasons_ask(const struct bh_call *call, struct bh_job_reasons *reasons,
                                     struct bh_err *err);

/* What it said of one, in words that the caller may read, in the call's arena; with its image's state where
 * it starts.  NULL: it was not asked, or there is no room. */
const struct bh_reply_reason *bh_job_reasons_of(const struct bh_call *call,
                                                const struct bh_job_reasons *reasons, uint64_t job);

#endif
