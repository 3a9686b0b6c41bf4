#include "api/request/amounts.h"

#include <inttypes.h>

#include "base/buf.h"
#include "engine/state/event.h"
#include "policy/gpus.h"

enum { AMOUNT_MAX = 48 };

void
bh_put_gpus(struct bh_json_writer *w, const char *key, uint64_t parts)
{
    char text[AMOUNT_MAX];
    struct bh_buf amount;

    if (parts == BH_UNLIMITED) {
        bh_json_raw(w, key, "null");
        return;
    }
    bh_buf_init_fixed(&amount, text, sizeof text);
    bh_gpus_put_amount(&amount, parts);
    bh_json_str(w, key, bh_buf_text(&amount));
}

void
bh_put_decimal(struct bh_json_writer *w, const char *key, uint64_t amount, uint64_t unit)
{
    char text[AMOUNT_MAX];
    struct bh_buf out;

    if (amount == BH_UNLIMITED) {
        bh_json_raw(w, key, "null");
        return;
    }
    bh_buf_init_fixed(&out, text, sizeof text);
    bh_buf_printf(&out, "%" PRIu64 ".%02" PRIu64, amount / unit, amount % unit * 100 / unit);
    bh_json_str(w, key, bh_buf_text(&out));
}
