#include "node/share_untold.h"

void
bh_share_untold_add(struct bh_share_untold *untold)
{
    untold->count += untold->count < UINT32_MAX;
}

uint32_t
bh_share_untold_take(struct bh_share_untold *untold, bh_ns now, bool listens, bool *ret_log)
{
    uint32_t count = untold->count;

    *ret_log = false;
    if (count == 0 || now < untold->again_at)
        return 0;
    *ret_log = !untold->logged;
    untold->logged = true;
    if (listens)
        *untold = (struct bh_share_untold){ .again_at = now + BH_SHARE_AGAIN_NS };
    return count;
}
