/* Preloaded: the wall clock of this process is ahead of the machine's by the nanoseconds, an int64_t,
 * that stand in the file BULKHEAD_TEST_CLOCK, at each look.  No other clock is touched: Linux has no
 * namespace for the wall clock, and a test never steps the machine's. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

__attribute__((visibility("default"))) int
bh_step_clock_gettime(clockid_t clock, struct timespec *now) __asm__("clock_gettime");

static const _Atomic int64_t *ahead_ns;

__attribute__((constructor)) static void
map_file(void)
{
    const char *path = getenv("BULKHEAD_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead_ns, PROT_READ, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (mapped != MAP_FAILED)
        ahead_ns = mapped;
}

int
bh_step_clock_gettime(clockid_t clock, struct timespec *now)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, now);

    if (rc == 0 && clock == CLOCK_REALTIME && ahead_ns) {
        int64_t at = now->tv_sec * NS_PER_S + now->tv_nsec + *ahead_ns;

        *now = (struct timespec){ (time_t)(at / NS_PER_S), (long)(at % NS_PER_S) };
    }
    return rc;
}
