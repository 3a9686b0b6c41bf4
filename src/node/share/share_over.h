#ifndef BH_NODE_SHARE_SHARE_OVER_H
#define BH_NODE_SHARE_SHARE_OVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "model/share.h"

/* What is done about a lease that has more GPU memory than its share allows, as the driver says
 * (docs/shares.md).  Pure: the time comes in. */

/* So long it is over its cap before anything is done, and back within it before it is forgiven:
 * memory on its way in or out is no matter. */
#define BH_SHARE_OVER_NS (3 * BH_NS_PER_S)

/* Contexts and modules differ from what they are charged by less. */
#define BH_SHARE_OVER_BYTES (UINT64_C(64) << 20)

enum bh_share_action {
    BH_SHARE_LEAVE,    /* nothing new */
    BH_SHARE_WARN,     /* it is over: notify its submitter */
    BH_SHARE_THROTTLE, /* the same, and give it a tenth of its turns */
    BH_SHARE_STOP,     /* the same, and end it */
    BH_SHARE_RELEASE,  /* a throttled one is back: give it its turns again */
    BH_SHARE_ACTIONS
};

/* Of one lease; all zero at first. */
struct bh_share_over {
    bh_ns since; /* monotonic; of what it is now, over or not */
    bool over;   /* at the last check */
    bool done;   /* what is to be done was done; until it is forgiven */
};

/* What is to be done now, at a lease that is over its cap or is not.  Said once. */
enum bh_share_action bh_share_over_check(struct bh_share_over *at, enum bh_over_cap policy, bool over,
                                         bh_ns now);

#endif
