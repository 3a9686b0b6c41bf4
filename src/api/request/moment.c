#include "api/request/moment.h"

#include "base/num.h"

bh_rc
bh_moment_read(const struct bh_call *call, const char *name, const char *text, uint64_t *ret_ns,
               struct bh_err *err)
{
    uint64_t now_ns = bh_call_now(call), span_ns;

    if (!text || bh_parse_utc(text, ret_ns, err) == BH_OK)
        return BH_OK;
    if (bh_parse_span(text, &span_ns, err) == BH_OK) {
        *ret_ns = span_ns < now_ns ? now_ns - span_ns : 0;
        return BH_OK;
    }
    bh_err_set(err, BH_INVALID, "%s: \"%.40s\" is neither a moment nor a span", name, text);
    return bh_err_hint(err, "write 2026-11-20T09:27:00Z, or 2h for two hours ago");
}
