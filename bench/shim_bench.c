/* What the shim adds to calls of a driver that answers at once.
 *
 *   shim_bench LIBCUDA NULL_DRIVER [RUNS]
 *
 * Each run times the driver's own calls and then the shim's, so that both see the same
 * machine; the medians of the runs, and of their differences, are printed in nanoseconds.
 * Needs root: the shim looks for its driver and door at fixed places. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "bulkhead/cuda_abi.h"
#include "tests/shim/box.h"

enum { RUNS_MAX = 101, LAUNCHES = 200000, PAIRS = 20000, LIVE = 10000, THREADS_MAX = 4 };

#define CALLS(X)                                                                           \
    X(cuInit)                                                                              \
    X(cuDevicePrimaryCtxRetain)                                                            \
    X(cuCtxSetCurrent)                                                                     \
    X(cuLaunchKernel)                                                                      \
    X(cuGraphLaunch)                                                                       \
    X(cuMemAlloc_v2)                                                                       \
    X(cuMemFree_v2)                                                                        \
    X(cuMemAllocAsync)                                                                     \
    X(cuMemFreeAsync)                                                                      \
    X(cuMemGetInfo_v2)

struct calls {
#define MEMBER(name) __typeof__(&(name)) name;
    CALLS(MEMBER)
#undef MEMBER
};

static struct CUgraphExec_st *graph;

static void
find_calls(const char *path, struct calls *ret_calls)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
#define FIND(name) ret_calls->name = (__typeof__(&(name)))dlsym(library, #name);
    CALLS(FIND)
#undef FIND
}

/* ---- what is timed: nanoseconds of one ---- */

/* Of this thread: what others do on the machine meanwhile is not counted. */
static uint64_t
cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double
time_launches(const struct calls *calls)
{
    uint64_t from = cpu_ns();

    for (int i = 0; i < LAUNCHES; i++)
        (void)calls->cuLaunchKernel((CUfunction)1, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    return (double)(cpu_ns() - from) / LAUNCHES;
}

static double
time_graphs(const struct calls *calls)
{
    uint64_t from = cpu_ns();

    for (int i = 0; i < LAUNCHES; i++)
        (void)calls->cuGraphLaunch(graph, NULL);
    return (double)(cpu_ns() - from) / LAUNCHES;
}

static double
time_pairs(const struct calls *calls)
{
    uint64_t from = cpu_ns();

    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr address;

        if (calls->cuMemAlloc_v2(&address, 2 << 20) != CUDA_SUCCESS)
            exit(3);
        (void)calls->cuMemFree_v2(address);
    }
    return (double)(cpu_ns() - from) / PAIRS;
}

static double
time_small_pairs(const struct calls *calls)
{
    uint64_t from = cpu_ns();

    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr address;

        if (calls->cuMemAlloc_v2(&address, 4096) != CUDA_SUCCESS)
            exit(3);
        (void)calls->cuMemFree_v2(address);
    }
    return (double)(cpu_ns() - from) / PAIRS;
}

static double
time_async_pairs(const struct calls *calls)
{
    uint64_t from = cpu_ns();

    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr address;

        if (calls->cuMemAllocAsync(&address, 2 << 20, NULL) != CUDA_SUCCESS)
            exit(3);
        (void)calls->cuMemFreeAsync(address, NULL);
    }
    return (double)(cpu_ns() - from) / PAIRS;
}

static double
time_infos(const struct calls *calls)
{
    uint64_t from = cpu_ns();
    size_t left, total;

    for (int i = 0; i < LAUNCHES; i++)
        (void)calls->cuMemGetInfo_v2(&left, &total);
    return (double)(cpu_ns() - from) / LAUNCHES;
}

/* ---- several threads ---- */

struct worker {
    double (*timed)(const struct calls *);
    const struct calls *calls;
    pthread_barrier_t *start;
    double ns;
};

static void *
work(void *self)
{
    struct worker *worker = self;
    CUcontext context;

    (void)worker->calls->cuDevicePrimaryCtxRetain(&context, 0);
    (void)worker->calls->cuCtxSetCurrent(context);
    pthread_barrier_wait(worker->start);
    worker->ns = worker->timed(worker->calls);
    return NULL;
}

/* Nanoseconds of one call of one thread, while `threads` make it. */
static double
time_threads(double (*timed)(const struct calls *), const struct calls *calls,
             unsigned threads)
{
    struct worker workers[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    pthread_barrier_t start;
    double sum = 0;

    if (threads == 1)
        return timed(calls);
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker) { timed, calls, &start, 0 };
        pthread_create(&thread[i], NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        sum += workers[i].ns;
    }
    return sum / threads;
}

/* ---- runs ---- */

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double
median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), by_size);
    return values[count / 2];
}

static void
compare(const char *what, double (*timed)(const struct calls *), unsigned threads,
        const struct calls calls[2], unsigned runs)
{
    double bare[RUNS_MAX], shim[RUNS_MAX], added[RUNS_MAX];

    for (unsigned i = 0; i < runs; i++) {
        bare[i] = time_threads(timed, &calls[0], threads);
        shim[i] = time_threads(timed, &calls[1], threads);
        added[i] = shim[i] - bare[i];
    }
    printf("%-28s %u thread%s  driver %7.1f  shim %7.1f  added %7.1f\n", what, threads,
           threads == 1 ? " " : "s", median(bare, runs), median(shim, runs),
           median(added, runs));
    fflush(stdout);
}

static void
fill(const struct calls *calls)
{
    CUdeviceptr address;

    for (int i = 0; i < LIVE; i++)
        if (calls->cuMemAlloc_v2(&address, 2 << 20) != CUDA_SUCCESS)
            exit(3);
}

struct options {
    const char *libcuda;
    unsigned runs;
};

static int
measure(void *self)
{
    const struct options *options = self;
    struct calls calls[2];
    CUcontext context;

    graph = calloc(1, 64);
    find_calls(BH_SHARE_DRIVER_DIR "/libcuda.so.1", &calls[0]);
    find_calls(options->libcuda, &calls[1]);
    for (int i = 0; i < 2; i++)
        if (calls[i].cuInit(0) != CUDA_SUCCESS ||
            calls[i].cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
            calls[i].cuCtxSetCurrent(context) != CUDA_SUCCESS)
            return 4;
    compare("cuLaunchKernel", time_launches, 1, calls, options->runs);
    compare("cuLaunchKernel", time_launches, 4, calls, options->runs);
    compare("cuGraphLaunch", time_graphs, 1, calls, options->runs);
    compare("cuMemAlloc+cuMemFree 2 MiB", time_pairs, 1, calls, options->runs);
    compare("cuMemAlloc+cuMemFree 2 MiB", time_pairs, 4, calls, options->runs);
    compare("cuMemAlloc+cuMemFree 4 KiB", time_small_pairs, 1, calls, options->runs);
    compare("AllocAsync+FreeAsync 2 MiB", time_async_pairs, 1, calls, options->runs);
    compare("cuMemGetInfo", time_infos, 1, calls, options->runs);
    fill(&calls[1]);
    compare("pair with 10,000 live", time_pairs, 1, calls, options->runs);
    return 0;
}

int
main(int argc, char **argv)
{
    struct options options = { .runs = 21 };
    struct bh_err err;
    uint64_t runs;

    if (argc < 3) {
        fprintf(stderr, "usage: shim_bench LIBCUDA NULL_DRIVER [RUNS]\n");
        return 2;
    }
    options.libcuda = argv[1];
    if (argc > 3 && bh_parse_u64(argv[3], &runs, &err) == BH_OK && runs > 0 &&
        runs < RUNS_MAX)
        options.runs = (unsigned)runs;
    if (!bh_box_enter(argv[2]))
        return 77;
    unlink(NULL_WORLD_FILE); /* a driver that nobody watches */
    bh_box_share(1, 40960, 256);
    return bh_box_run(measure, &options);
}
