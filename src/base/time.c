#include "base/time.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

static bh_ns
read_clock(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (bh_ns)now.tv_sec * BH_NS_PER_S + (bh_ns)now.tv_nsec;
}

bh_ns
bh_time_now(void)
{
    return read_clock(CLOCK_REALTIME);
}

bh_ns
bh_time_monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

bh_ns
bh_time_boot(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

void
bh_time_sleep(bh_ns span)
{
    struct timespec left = { (time_t)(span / BH_NS_PER_S), (long)(span % BH_NS_PER_S) };

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

uint32_t
bh_time_month(bh_ns at)
{
    time_t seconds = (time_t)(at / BH_NS_PER_S);
    struct tm utc = { .tm_year = 70 };

    (void)!gmtime_r(&seconds, &utc);
    return (uint32_t)((utc.tm_year + 1900) * 100 + utc.tm_mon + 1);
}

void
bh_time_put_utc(struct bh_buf *out, bh_ns at)
{
    time_t seconds = (time_t)(at / BH_NS_PER_S);
    struct tm utc;
    char text[32];

    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    bh_buf_puts(out, text);
}

void
bh_time_put_span(struct bh_buf *out, bh_ns span)
{
    uint64_t s = span / BH_NS_PER_S;

    if (s < 60)
        bh_buf_printf(out, "%" PRIu64 "s", s);
    else if (s < 3600)
        bh_buf_printf(out, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    else if (s < 86400)
        bh_buf_printf(out, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s % 3600 / 60);
    else
        bh_buf_printf(out, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s % 86400 / 3600);
}
