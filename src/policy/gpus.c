#include "policy/gpus.h"

#include "model/quantity.h"

static uint64_t
gpus_common(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Digits after the point: 4200 = 2^3 * 3 * 5^2 * 7, so a denominator without 3 and 7
 * divides 1000. */
static void
put_decimals(struct bh_buf *out, uint64_t thousandths)
{
    uint64_t digit = 100;

    for (bh_buf_putc(out, '.'); thousandths; digit /= 10) {
        bh_buf_putc(out, (char)('0' + thousandths / digit));
        thousandths %= digit;
    }
}

void
bh_gpus_put_amount(struct bh_buf *out, uint64_t parts)
{
    uint64_t shared = gpus_common(parts, BH_GPU_PARTS);
    uint64_t over = parts / shared, under = BH_GPU_PARTS / shared;

    if (under == 1) {
        bh_buf_put_u64(out, over);
    } else if (1000 % under == 0) {
        bh_buf_put_u64(out, over / under);
        put_decimals(out, over % under * (1000 / under));
    } else {
        bh_buf_put_u64(out, over);
        bh_buf_putc(out, '/');
        bh_buf_put_u64(out, under);
    }
}

void
bh_gpus_put(struct bh_buf *out, uint64_t parts)
{
    bh_gpus_put_amount(out, parts);
    bh_buf_puts(out, parts > 0 && parts <= BH_GPU_PARTS ? " GPU" : " GPUs");
}

void
bh_cores_put(struct bh_buf *out, uint64_t cpu_milli)
{
    bh_buf_put_u64(out, cpu_milli / 1000);
    if (cpu_milli % 1000)
        bh_buf_printf(out, ".%03u", (unsigned)(cpu_milli % 1000));
    bh_buf_puts(out, cpu_milli == 1000 ? " core" : " cores");
}

void
bh_memory_put(struct bh_buf *out, uint64_t mib)
{
    bool gibs = mib % 1024 == 0;

    bh_buf_put_u64(out, gibs ? mib / 1024 : mib);
    bh_buf_puts(out, gibs ? " GiB of memory" : " MiB of memory");
}
