/* What the ledger of the driver's calls adds to one of them.
 *
 *   rm_ledger_bench [RUNS]
 *
 * The kernel is this program, so that what is timed is the ledger; the first row is a call
 * that it passes on without a look, the last a real call of the kernel for comparison.
 * Medians of the runs, in nanoseconds of this thread. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/clock.h"
#include "base/num.h"
#include "shim/driver/page.h"
#include "shim/driver/rm_ledger.h"
#include "tests/shim/rm_requests.h"

enum { RUNS_MAX = 101, CALLS = 100000, C = 0xc1d00001, D = 0x5c000001, M = 0x5c001000 };

__attribute__((visibility("default"))) int bh_bench_ioctl(int fd, unsigned long request,
                                                          ...) __asm__("ioctl");
int
bh_bench_ioctl(int fd, unsigned long request, ...)
{
    return fd == 3 ? 0 : -1;
}

static double
time_others(void)
{
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < CALLS; i++)
        (void)bh_rm_ledger_ioctl(4, 0x5401, NULL);
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / CALLS;
}

static double
time_controls(void)
{
    struct bh_rm_control control = { C, D, 0x20801303, 0, 0, 0, 0 };
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < CALLS; i++)
        (void)bh_rm_ledger_ioctl(3, RM_CONTROL, &control);
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / CALLS;
}

/* Handles as libcuda.so makes them: each is a new one. */
static double
time_pairs(void)
{
    static uint32_t handle = 0x10000000;
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < CALLS; i++) {
        struct rm_new made;

        (void)bh_rm_ledger_ioctl(3, RM_ALLOC, rm_memory(&made, C, D, handle, 2 << 20));
        (void)bh_rm_ledger_ioctl(3, RM_FREE, &(struct bh_rm_free){ C, D, handle++, 0 });
    }
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / CALLS;
}

static double
time_kernel(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < CALLS; i++)
        (void)syscall(SYS_ioctl, fd, 0x5401, NULL);
    from = bench_clock(CLOCK_THREAD_CPUTIME_ID) - from;
    close(fd);
    return (double)from / CALLS;
}

/* As after cuInit in a job: what changes is said in the lease's page. */
static void
join(void)
{
    static struct bh_share_limits limits = { .device_count = 1 };
    static struct bh_share_usage usage;

    bh_page->limits = &limits;
    bh_page->usage = &usage;
    atomic_store(&bh_page->joined, BH_PAGE_JOINED);
}

static void
fill(uint32_t live)
{
    struct rm_new made;

    (void)bh_rm_ledger_ioctl(3, RM_ALLOC, rm_client(&made, C));
    (void)bh_rm_ledger_ioctl(3, RM_ALLOC, rm_device(&made, C, D, 0));
    for (uint32_t i = 0; i < live; i++)
        (void)bh_rm_ledger_ioctl(3, RM_ALLOC, rm_memory(&made, C, D, M + i, 2 << 20));
}

static int
compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static void
print_median(const char *name, double (*time_it)(void), int runs)
{
    double seen[RUNS_MAX];

    for (int i = 0; i < runs; i++)
        seen[i] = time_it();
    qsort(seen, (size_t)runs, sizeof(*seen), compare);
    printf("%-44s %8.1f\n", name, seen[runs / 2]);
}

int
main(int argc, char **argv)
{
    struct bh_err err = { 0 };
    uint32_t runs = 21;

    if (argc > 1 && bh_parse_u32(argv[1], 1, RUNS_MAX, &runs, &err) != BH_OK)
        return 2;
    join();
    fill(0);
    print_median("a call of another kind", time_others, (int)runs);
    print_median("a control", time_controls, (int)runs);
    print_median("memory made and freed", time_pairs, (int)runs);
    fill(10000);
    print_median("memory made and freed, 10,000 live", time_pairs, (int)runs);
    print_median("ioctl of /dev/null, the kernel's own", time_kernel, (int)runs);
    return 0;
}
