#include "api/request/amounts.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "engine/state/event.h"
#include "policy/gpus.h"

const char *
bh_gpus_text(uint64_t parts, char text[BH_AMOUNT_SIZE])
{
    struct bh_buf amount;

    if (parts == BH_UNLIMITED)
        return NULL;
    bh_buf_init_fixed(&amount, text, BH_AMOUNT_SIZE);
    bh_gpus_put_amount(&amount, parts);
    return bh_buf_text(&amount);
}

const char *
bh_decimal_text(uint64_t amount, uint64_t unit, char text[BH_AMOUNT_SIZE])
{
    if (amount == BH_UNLIMITED)
        return NULL;
    snprintf(text, BH_AMOUNT_SIZE, "%" PRIu64 ".%02" PRIu64, amount / unit, amount % unit * 100 / unit);
    return text;
}
