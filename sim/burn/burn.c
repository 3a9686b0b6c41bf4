#include "sim/burn/burn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

uint64_t
bh_burn_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void
bh_burn_sleep_until(uint64_t when_ns)
{
    struct timespec when = { (time_t)(when_ns / 1000000000u), (long)(when_ns % 1000000000u) };

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR && !interrupted) {
    }
}

bool
bh_burn_is_over(struct burn *burn)
{
    return interrupted || burn->stop || bh_burn_now() >= burn->end_ns;
}

void
bh_burn_must(struct burn *burn, const char *call, CUresult result)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "bulkhead-burn: %s: %s\n", call, bh_burn_error_name(&burn->driver, result));
    fflush(stdout);
    _exit(BURN_EXIT_FAILED);
}

void
bh_burn_interrupt(int number)
{
    interrupted = 1;
}

bool
bh_burn_is_interrupted(void)
{
    return interrupted != 0;
}
