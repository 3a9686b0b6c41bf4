#include "node/share_time.h"

#define ALL_BP 10000
#define SILENT_NS (3 * BH_NS_PER_S) /* bulkhead-share says it each second */

/* Parts of the GPU's time that the lease took from others, after what is allowed; below nothing: it
 * did not even use what it was given. */
static int64_t
beyond_bp(const struct bh_share_time_look *look)
{
    int64_t taken_bp = (int64_t)look->busy_bp - look->had_bp;

    return (taken_bp < look->others_bp ? taken_bp : look->others_bp) -
           (look->had_bp > 0 ? BH_SHARE_TIME_ALLOWED_BP : BH_SHARE_TIME_ALLOWED_NONE_BP);
}

static uint32_t
percent(bh_ns part_ns, bh_ns span_ns)
{
    return span_ns > 0 ? (uint32_t)((part_ns * 100 + span_ns / 2) / span_ns) : 0;
}

bool
bh_share_time_look(struct bh_share_time *at, const struct bh_share_time_look *look)
{
    if (look->span_ns == 0 || look->span_ns > BH_SHARE_TIME_SPAN_MOST_NS)
        return false;
    at->beyond_ns += beyond_bp(look) * (int64_t)look->span_ns / ALL_BP;
    if (at->beyond_ns <= 0) {
        *at = (struct bh_share_time){ .beyond_ns = 0 };
        return false;
    }
    at->span_ns += look->span_ns;
    at->busy_ns += look->busy_bp * look->span_ns / ALL_BP;
    at->had_ns += look->had_bp * look->span_ns / ALL_BP;
    if (at->told || at->beyond_ns < (int64_t)BH_SHARE_TIME_LIMIT_NS)
        return false;
    at->told = true;
    return true;
}

void
bh_share_had_take(struct bh_share_had *had, const struct bh_share_lease_state *state, bh_ns now)
{
    uint64_t past_ns, took_ns;

    if (!state || state->outdated) {
        *had = (struct bh_share_had){ .known = false };
        return;
    }
    if (state->at_ns == had->at_ns) {
        had->known = had->known && now < had->at_ns + SILENT_NS;
        return;
    }
    past_ns = state->at_ns - had->at_ns;
    took_ns = state->had_ns - had->had_ns;
    had->known = had->at_ns != 0 && state->at_ns > had->at_ns && state->had_ns >= had->had_ns;
    if (had->known)
        had->bp = took_ns < past_ns ? (uint32_t)(took_ns * ALL_BP / past_ns) : ALL_BP;
    had->had_ns = state->had_ns;
    had->at_ns = state->at_ns;
}

uint32_t
bh_share_time_busy(const struct bh_share_time *at)
{
    return percent(at->busy_ns, at->span_ns);
}

uint32_t
bh_share_time_had(const struct bh_share_time *at)
{
    return percent(at->had_ns, at->span_ns);
}
