#include "node/share/share_time.h"

#include "base/assert.h"

#define ALL_BP 10000
#define SILENT_NS (3 * BH_NS_PER_S) /* bulkhead-share says it each second */

/* Parts of the GPU's time that the lease took from others, after what is allowed; below nothing: it
 * did not even use what it was given. */
static int64_t
beyond_bp(const struct bh_share_time_check *check)
{
    int64_t taken_bp = (int64_t)check->busy_bp - check->granted_bp;

    return (taken_bp < check->others_bp ? taken_bp : check->others_bp)
           - (check->granted_bp > 0 ? BH_SHARE_TIME_ALLOWED_BP : BH_SHARE_TIME_ALLOWED_NONE_BP);
}

static uint32_t
percent(bh_ns part_ns, bh_ns span_ns)
{
    return span_ns > 0 ? (uint32_t)((part_ns * 100 + span_ns / 2) / span_ns) : 0;
}

bool
bh_share_time_check(struct bh_share_time *at, const struct bh_share_time_check *check)
{
    BH_ASSERT(at->beyond_ns >= 0 && (at->beyond_ns > 0 || !at->notified));
    if (check->span_ns == 0 || check->span_ns > BH_SHARE_TIME_SPAN_MOST_NS)
        return false;
    at->beyond_ns += beyond_bp(check) * (int64_t)check->span_ns / ALL_BP;
    if (at->beyond_ns <= 0) {
        *at = (struct bh_share_time){ .beyond_ns = 0 };
        return false;
    }
    at->span_ns += check->span_ns;
    at->busy_ns += check->busy_bp * check->span_ns / ALL_BP;
    at->granted_ns += check->granted_bp * check->span_ns / ALL_BP;
    if (at->notified || at->beyond_ns < (int64_t)BH_SHARE_TIME_LIMIT_NS)
        return false;
    at->notified = true;
    return true;
}

void
bh_share_granted_add(struct bh_share_granted *granted, const struct bh_share_lease_state *state, bh_ns now)
{
    uint64_t past_ns, took_ns;

    if (!state || state->outdated) {
        *granted = (struct bh_share_granted){ .known = false };
        return;
    }
    if (state->at_ns == granted->at_ns) {
        granted->known = granted->known && now < granted->at_ns + SILENT_NS;
        return;
    }
    past_ns = state->at_ns - granted->at_ns;
    took_ns = state->granted_ns - granted->granted_ns;
    granted->known =
        granted->at_ns != 0 && state->at_ns > granted->at_ns && state->granted_ns >= granted->granted_ns;
    if (granted->known)
        granted->bp = took_ns < past_ns ? (uint32_t)(took_ns * ALL_BP / past_ns) : ALL_BP;
    granted->granted_ns = state->granted_ns;
    granted->at_ns = state->at_ns;
}

uint32_t
bh_share_time_busy(const struct bh_share_time *at)
{
    return percent(at->busy_ns, at->span_ns);
}

uint32_t
bh_share_time_granted(const struct bh_share_time *at)
{
    return percent(at->granted_ns, at->span_ns);
}
