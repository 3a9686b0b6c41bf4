/* A preloaded library as tenants have them: it stands before malloc, dlsym and the clock, counts
 * who calls, and makes the wall clock jump.  Of libcuda's calls that are looked up it wraps
 * cuMemGetInfo, which takes a microsecond more then. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT _Atomic unsigned bh_meddler_wall_clocks; /* how often a program asked for it */
static _Atomic unsigned mallocs;

void *__libc_malloc(size_t bytes);
EXPORT void *bh_meddler_malloc(size_t bytes) __asm__("malloc");
EXPORT int bh_meddler_clock(clockid_t clock, struct timespec *now) __asm__("clock_gettime");
EXPORT void *bh_meddler_dlsym(void *library, const char *name) __asm__("dlsym");

static int (*real_info)(size_t *, size_t *);

void *
bh_meddler_malloc(size_t bytes)
{
    mallocs++;
    return __libc_malloc(bytes);
}

/* One second, one day, one year further at each look, and back. */
int
bh_meddler_clock(clockid_t clock, struct timespec *now)
{
    static __typeof__(&bh_meddler_clock) real;
    static const long jumps[] = { 1, 86400, 31536000, -31536000, -86400, -1 };

    if (real == NULL)
        real = (__typeof__(real))dlvsym(RTLD_NEXT, "clock_gettime", "GLIBC_2.17");
    if (real == NULL || real(clock, now) != 0)
        return -1;
    if (clock == CLOCK_REALTIME)
        now->tv_sec += jumps[bh_meddler_wall_clocks++ % 6];
    return 0;
}

static int
slow_info(size_t *left, size_t *total)
{
    struct timespec from, now;

    bh_meddler_clock(CLOCK_MONOTONIC, &from);
    do
        bh_meddler_clock(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 1000);
    return real_info(left, total);
}

void *
bh_meddler_dlsym(void *library, const char *name)
{
    static void *(*real)(void *, const char *);

    if (real == NULL)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (strcmp(name, "cuMemGetInfo_v2") != 0)
        return real(library, name);
    real_info = (int (*)(size_t *, size_t *))real(library, name);
    return (void *)slow_info;
}
