/* The clocks of benches. */
#ifndef BH_BENCH_CLOCK_H
#define BH_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds; of CLOCK_THREAD_CPUTIME_ID what others do on the machine meanwhile is not counted. */
static inline uint64_t
bench_clock(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
