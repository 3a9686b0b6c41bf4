#ifndef BH_API_REQUEST_RATE_H
#define BH_API_REQUEST_RATE_H

#include "api/request/call.h"
#include "policy/rate.h"

/* How often a caller may ask (policy/rate.h), behind a lock: workers share it. */
struct bh_rate_limiter;

/* Owned by the caller. */
BH_MUST_USE struct bh_rate_limiter *bh_rate_limiter_new(const uint32_t per_second[BH_RATE_CLASSES]);
void bh_rate_limiter_free(struct bh_rate_limiter *limiter);

/* Draw for the call, a change by its length (bh_rate_change), from the bucket of its caller, or, of an
 * unknown one, of the Unix user or the address block it comes from.  Local root always may. BH_TOO_MANY  it
 * holds too few; call->retry_after_s says when it has them */
BH_MUST_USE bh_rc bh_rate_limiter_check(struct bh_call *call, struct bh_err *err);

#endif
