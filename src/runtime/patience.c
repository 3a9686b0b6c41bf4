#include "runtime/patience.h"

struct bh_patience
bh_patience_begin(bh_ns now)
{
    return (struct bh_patience){ .until = now + BH_PATIENCE, .most = now + BH_PATIENCE_MOST };
}

bool
bh_patience_left(struct bh_patience *patience, bh_ns now, uint64_t reached)
{
    if (reached != patience->reached) {
        patience->reached = reached;
        patience->until = now + BH_PATIENCE;
    }
    return now <= patience->until && now <= patience->most;
}
