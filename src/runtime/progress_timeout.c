#include "runtime/progress_timeout.h"

struct bh_progress_timeout
bh_progress_timeout_begin(bh_ns now)
{
    return (struct bh_progress_timeout){ .until = now + BH_PROGRESS_TIMEOUT,
                                         .most = now + BH_PROGRESS_TIMEOUT_MAX };
}

bool
bh_progress_timeout_is_left(struct bh_progress_timeout *timeout, bh_ns now, uint64_t reached)
{
    if (reached != timeout->reached) {
        timeout->reached = reached;
        timeout->until = now + BH_PROGRESS_TIMEOUT;
    }
    return now <= timeout->until && now <= timeout->most;
}
