#include "cli/verifier/verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/fd.h"

bh_rc
bh_verify_read(const char *path, size_t max, struct bh_buf *out, struct bh_err *err)
{
    bh_rc rc;

    bh_buf_clear(out);
    rc = bh_file_read_given(path, max, out, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_buf_text(out) || memchr(out->bytes, 0, out->length))
        return bh_err_set(err, BH_CONFLICT, "%s: it is not text", path);
    return BH_OK;
}

void
bh_verify_put_orders(struct bh_verdict_text *verdict, const struct bh_audit_orders *orders)
{
    if (orders->open)
        bh_buf_printf(&verdict->sentence,
                      "\norders without an outcome: %" PRIu32 ", the oldest in record %" PRIu64
                      "; unknown after a start: %" PRIu32,
                      orders->open, orders->oldest_open, orders->unknown);
    bh_buf_printf(&verdict->members,
                  ",\"orders_abandoned\":%" PRIu32 ",\"orders_open\":%" PRIu32 ",\"orders_unknown\":%" PRIu32,
                  orders->abandoned, orders->open, orders->unknown);
}

void
bh_verify_put_saved(struct bh_verdict_text *verdict, uint32_t count)
{
    if (count)
        bh_buf_printf(&verdict->sentence, "; it continues %" PRIu32 " kept checkpoint%s", count,
                      count == 1 ? "" : "s");
    bh_buf_printf(&verdict->members, ",\"kept\":%" PRIu32, count);
}
