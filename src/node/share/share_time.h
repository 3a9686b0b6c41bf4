#ifndef BH_NODE_SHARE_SHARE_TIME_H
#define BH_NODE_SHARE_SHARE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "share/message.h"

/* Whether a lease runs on a GPU out of its turns, judged from outside: the driver's samples of its
 * processes against what its turns took.  Pure.
 *
 * A sample counts for the one process that the driver finds at work, six times a second at most
 * (bh_device_busy), so a second's figure is off by twenty points and more, and one that meets the
 * same moment of each round of turns is off for as long as it does.  So what is beyond the turns
 * adds up over seconds, after an allowance, and what is below them takes it away again: a lease
 * that keeps to its turns comes back to nothing, also where samples come late, and one that does
 * not gets to the limit. */

/* Of the GPU's time, in parts of 10,000: what a lease may be seen beyond its turns at any time; and
 * one that had none, in which no sample can meet it. */
#define BH_SHARE_TIME_ALLOWED_BP 1500
#define BH_SHARE_TIME_ALLOWED_NONE_BP 200

/* So much of the GPU's time beyond that, added up, is no chance (docs/adr/0048). */
#define BH_SHARE_TIME_LIMIT_NS (4 * BH_NS_PER_S)

/* A longer look says nothing: the driver keeps no samples of all of it. */
#define BH_SHARE_TIME_SPAN_MOST_NS (3 * BH_NS_PER_S)

/* A span of time, and what was in it, in parts of 10,000 of it. */
struct bh_share_time_check {
    bh_ns span_ns;
    uint32_t busy_bp;    /* the lease's processes, as the driver says */
    uint32_t granted_bp; /* its time slices, also one that continues */
    uint32_t others_bp;  /* turns of others on the same GPU: while there are none all is its own */
};

/* Of one lease and GPU; all zero at first. */
struct bh_share_time {
    int64_t beyond_ns;                  /* added up; not below 0 */
    bh_ns span_ns, busy_ns, granted_ns; /* since there is something beyond: for the notice */
    bool notified;                      /* until it has come back to nothing */
};

/* Take the next look.  True once: it runs out of its turns. */
bool bh_share_time_check(struct bh_share_time *at, const struct bh_share_time_check *check);

/* What a lease's turns took between the last two times that bulkhead-share said it; all zero at
 * first. */
struct bh_share_granted {
    uint64_t granted_ns, at_ns;
    uint32_t bp; /* of the time between the two, in parts of 10,000 */
    bool known;  /* else the lease is not judged */
};

/* Take what it said last; NULL: nothing.  Not known after the first time, nor after that of another
 * bulkhead-share, which counts anew, nor while it says nothing for three seconds, nor of a lease whose
 * processes know no turns because their pages are of another version. */
void bh_share_granted_add(struct bh_share_granted *granted, const struct bh_share_lease_state *state,
                          bh_ns now);

/* What was seen since there is something beyond, in per cent of the time. */
uint32_t bh_share_time_busy(const struct bh_share_time *at);
uint32_t bh_share_time_granted(const struct bh_share_time *at);

#endif
