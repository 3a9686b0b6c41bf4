#include "node/share/share_over.h"

#include "base/assert.h"

enum bh_share_action
bh_share_over_check(struct bh_share_over *at, enum bh_over_cap policy, bool over, bh_ns now)
{
    static const enum bh_share_action actions[BH_OVER_CAPS] = {
        [BH_OVER_CAP_WARN] = BH_SHARE_WARN,
        [BH_OVER_CAP_THROTTLE] = BH_SHARE_THROTTLE,
        [BH_OVER_CAP_STOP] = BH_SHARE_STOP,
    };

    BH_ASSERT(policy < BH_OVER_CAPS);
    if (at->since == 0 || over != at->over)
        *at = (struct bh_share_over){ .since = now, .over = over, .done = at->done };
    if (over == at->done || now - at->since < BH_SHARE_OVER_NS)
        return BH_SHARE_LEAVE;
    at->done = over;
    if (over)
        return actions[policy];
    return policy == BH_OVER_CAP_THROTTLE ? BH_SHARE_RELEASE : BH_SHARE_LEAVE;
}
