#include "shim/process/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t
bh_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct timespec
span(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

void
bh_clock_sleep(uint64_t ns)
{
    struct timespec wait = span(ns);
    int saved = errno;

    clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
    errno = saved;
}

void
bh_clock_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec wait = span(ns);
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAIT, value, &wait, NULL, 0);
    errno = saved;
}

void
bh_clock_wake(const _Atomic uint32_t *word)
{
    int saved = errno;

    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    errno = saved;
}
