#ifndef BH_NODE_CORE_PENDING_NOTICE_H
#define BH_NODE_CORE_PENDING_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* When a job's submitter is notified of what its share did: at once, and then again after ten minutes at the
 * earliest, with the number of times since.  Pure: the time is an argument. */

#define BH_NOTICE_INTERVAL_NS (600 * BH_NS_PER_S)

/* What was seen of a kind, of one lease, and is not reported yet; all zero at first. */
struct bh_pending_notice {
    uint32_t count;
    bh_ns next_at; /* monotonic; not reported before */
    bool logged;   /* the node's log has it, no daemon was connected yet */
};

/* It was seen again. */
void bh_pending_notice_add(struct bh_pending_notice *notice);

/* How often it was, when that is to be reported now; else 0.  `ret_log`: the node's log is to have it,
 * also while no daemon `listens`.  When one does, it is reported with this. */
uint32_t bh_pending_notice_due(struct bh_pending_notice *notice, bh_ns now, bool listens, bool *ret_log);

#endif
