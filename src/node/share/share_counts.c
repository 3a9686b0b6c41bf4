#include "node/share/share_counts.h"

#include "base/assert.h"

static bool
differ(const struct bh_share_lease_state *state, uint32_t device)
{
    uint64_t charged = state->used_bytes[device] >> 20, seen = state->seen_mib[device];
    uint64_t driver = state->driver_mib[device], low = charged, high = charged;

    if (state->seen_kind == BH_SHARE_SEEN_PARTLY)
        return seen > charged + BH_SHARE_COUNTS_APART_MIB;
    if (state->seen_kind != BH_SHARE_SEEN_WHOLE)
        return false;
    low = seen < low ? seen : low;
    high = seen > high ? seen : high;
    low = driver < low ? driver : low;
    high = driver > high ? driver : high;
    return high - low > BH_SHARE_COUNTS_APART_MIB;
}

uint32_t
bh_share_counts_check(struct bh_share_counts *counts, const struct bh_share_lease_state *state)
{
    uint32_t found = 0;

    for (uint32_t d = 0; d < BH_SHARE_DEVICES_MAX; d++) {
        BH_ASSERT(counts->apart[d] <= BH_SHARE_COUNTS_STATES);
        BH_ASSERT(!counts->notified[d] || counts->apart[d] == BH_SHARE_COUNTS_STATES);
        if (!differ(state, d)) {
            counts->apart[d] = 0;
            counts->notified[d] = false;
        } else if (counts->apart[d] < BH_SHARE_COUNTS_STATES) {
            counts->apart[d]++;
        }
        if (counts->apart[d] == BH_SHARE_COUNTS_STATES && !counts->notified[d]) {
            counts->notified[d] = true;
            found |= UINT32_C(1) << d;
        }
    }
    return found;
}

bool
bh_share_counts_must_notify(const struct bh_share_lease_state *state, uint32_t device)
{
    return state->seen_kind == BH_SHARE_SEEN_WHOLE && state->driver_mib[device] > 0
           && state->seen_mib[device] > (state->used_bytes[device] >> 20) + BH_SHARE_COUNTS_APART_MIB;
}
