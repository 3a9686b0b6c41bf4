#ifndef BH_BASE_TIME_H
#define BH_BASE_TIME_H

#include <stdint.h>

#include "base/buf.h"

/* Time is integer nanoseconds since the epoch (bh_ns); deadlines in adapters use
 * the monotonic clock.  The pure layers get time as an argument: only mains and
 * adapters call the clock functions. */
typedef uint64_t bh_ns;

#define BH_NS_PER_S UINT64_C(1000000000)
#define BH_NS_PER_MS UINT64_C(1000000)

bh_ns bh_time_now(void);       /* the wall clock */
bh_ns bh_time_monotonic(void); /* never goes back, meaningless between boots */
bh_ns bh_time_boot(void);      /* the same, and advances while the machine is suspended */
void bh_time_sleep(bh_ns span);

/* Year and month of a moment, UTC, as 202611. */
uint32_t bh_time_month(bh_ns at);

/* "2026-11-20T09:27:00Z" */
void bh_time_put_utc(struct bh_buf *out, bh_ns at);

/* "45s", "12m05s", "3h07m", "2d04h": the two largest units. */
void bh_time_put_span(struct bh_buf *out, bh_ns span);

#endif
