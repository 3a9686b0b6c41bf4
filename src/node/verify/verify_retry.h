#ifndef BH_NODE_VERIFY_VERIFY_RETRY_H
#define BH_NODE_VERIFY_VERIFY_RETRY_H

#include "base/time.h"
#include "node/common/conf.h"

/* When the node makes its isolation checks again by itself.
 *
 * Checks that could not begin, or not finish in time, are inconclusive: they neither pass nor
 * fail.  The GPUs are fenced, and they are made again after
 * verify_retry_ms of node.conf, then after twice as long, at most 5 minutes, verify_retries times.
 * After a check that failed an operator decides: none is planned then. */
struct bh_verify_retry {
    uint32_t made; /* planned since the last try that showed something */
    bh_ns at;      /* monotonic; 0: none is due */
};

/* A try that showed nothing ended at `now`. */
void bh_verify_retry_schedule(struct bh_verify_retry *retry, const struct bh_conf *conf, bh_ns now);

/* True, once, when it is time. */
bool bh_verify_retry_is_due(struct bh_verify_retry *retry, bh_ns now);

#endif
