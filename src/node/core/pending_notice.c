#include "node/core/pending_notice.h"

#include "base/assert.h"

void
bh_pending_notice_add(struct bh_pending_notice *notice)
{
    BH_ASSERT(!notice->logged || notice->count > 0);
    notice->count += notice->count < UINT32_MAX;
}

uint32_t
bh_pending_notice_due(struct bh_pending_notice *notice, bh_ns now, bool listens, bool *ret_log)
{
    uint32_t count = notice->count;

    BH_ASSERT(!notice->logged || notice->count > 0);
    *ret_log = false;
    if (count == 0 || now < notice->next_at)
        return 0;
    *ret_log = !notice->logged;
    notice->logged = true;
    if (listens)
        *notice = (struct bh_pending_notice){ .next_at = now + BH_NOTICE_INTERVAL_NS };
    return count;
}
