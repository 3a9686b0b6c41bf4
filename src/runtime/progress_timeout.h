#ifndef BH_RUNTIME_PROGRESS_TIMEOUT_H
#define BH_RUNTIME_PROGRESS_TIMEOUT_H

#include <stdbool.h>

#include "base/time.h"

/* How long to wait for work that takes time by its size, while the waiter has other work: as long as it makes
 * progress, within bounds.  Pure: the clock and the measure of progress are the caller's. */

#define BH_PROGRESS_TIMEOUT (2 * BH_NS_PER_S)      /* without getting on */
#define BH_PROGRESS_TIMEOUT_MAX (10 * BH_NS_PER_S) /* in any case */

struct bh_progress_timeout {
    bh_ns until, most;
    uint64_t reached;
};

struct bh_progress_timeout bh_progress_timeout_begin(bh_ns now);

/* Whether to wait on.  `reached` is any figure that changes as long as there is progress. */
bool bh_progress_timeout_is_left(struct bh_progress_timeout *timeout, bh_ns now, uint64_t reached);

#endif
