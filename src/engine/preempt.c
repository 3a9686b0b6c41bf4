#include "engine/preempt.h"

bool
bh_preempt(struct work *work, const struct bh_need *need, struct bh_decision *ret_decision)
{
    return false;
}
