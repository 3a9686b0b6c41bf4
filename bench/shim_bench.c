/* What the shim adds to calls of a driver that answers at once.
 *
 *   shim_bench LIBCUDA NULL_DRIVER [RUNS [PRELOAD NVML]]
 *
 * Each run times the driver's own calls and then the shim's, so that both see the same
 * machine; the medians of the runs, and of their differences, are printed in nanoseconds.
 * Needs root: the shim looks for its driver and socket at fixed paths.
 *
 * With PRELOAD, a library that is preloaded to the same end (HAMi-core's libvgpu.so), a second
 * process has it before the same driver, and is timed third in each run; NVML is the
 * libnvidia-ml.so.1 that it finds.  It gets a limit that is far away. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/clock.h"
#include "base/num.h"
#include "bulkhead/cuda_abi.h"
#include "sim/burn/kernel.h"
#include "tests/shim/sandbox.h"

enum { RUNS_MAX = 101, LAUNCHES = 200000, BATCH = 500, PAIRS = 20000, LIVE = 10000, THREADS_MAX = 4 };

/* clang-format off */
#define CALLS(X) \
    X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuLaunchKernel) \
    X(cuGraphLaunch) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocAsync) X(cuMemFreeAsync) \
    X(cuMemGetInfo_v2)
/* clang-format on */

/* What a driver that runs kernels wants before: one that takes no time, and a graph of it. */
/* clang-format off */
#define WORK_CALLS(X) \
    X(cuModuleLoadData) X(cuModuleGetFunction) X(cuStreamCreate) X(cuStreamBeginCapture_v2) \
    X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags)
/* clang-format on */

struct calls {
#define MEMBER(name) __typeof__(&(name)) name;
    CALLS(MEMBER)
#undef MEMBER
    void *library;
    CUfunction kernel;
    CUgraphExec graph;
};

static int to_preloaded = -1, from_preloaded = -1; /* -1: there is none */

static void
find_calls(const char *path, struct calls *ret_calls)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    ret_calls->library = library;
#define FIND(name) ret_calls->name = (__typeof__(&(name)))dlsym(library, #name);
    CALLS(FIND)
#undef FIND
}

/* The shortest there is: burn(ns, loops) without either. */
static CUresult
launch_into(const struct calls *calls, CUstream stream)
{
    static uint64_t none;
    void *parameters[] = { &none, &none };

    return calls->cuLaunchKernel(calls->kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

/* A driver that answers at once takes any handle; where one of these calls fails, it is that. */
static void
find_work(struct calls *calls)
{
    struct {
#define MEMBER(name) __typeof__(&(name)) name;
        WORK_CALLS(MEMBER)
#undef MEMBER
    } work;
    CUmodule module;
    CUgraph graph;
    CUstream stream;

    calls->kernel = (CUfunction)1;
    calls->graph = calloc(1, 64);
#define FIND(name) work.name = (__typeof__(&(name)))dlsym(calls->library, #name);
    WORK_CALLS(FIND)
#undef FIND
    if (work.cuModuleLoadData(&module, bh_burn_ptx) != CUDA_SUCCESS || work.cuModuleGetFunction == NULL
        || work.cuModuleGetFunction(&calls->kernel, module, "burn") != CUDA_SUCCESS)
        return;
    if (work.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS
        || work.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS
        || launch_into(calls, stream) != CUDA_SUCCESS
        || work.cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS
        || work.cuGraphInstantiateWithFlags(&calls->graph, graph, 0) != CUDA_SUCCESS) {
        fprintf(stderr, "shim_bench: no graph can be made\n");
        exit(4);
    }
}

/* ---- what is timed: nanoseconds of one ---- */

/* In batches, so that no launch waits for room in the driver's queue. */
static double
time_launches(const struct calls *calls)
{
    uint64_t ns = 0;

    for (int i = 0; i < LAUNCHES; i += BATCH) {
        uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

        for (int n = 0; n < BATCH; n++)
            (void)launch_into(calls, NULL);
        ns += bench_clock(CLOCK_THREAD_CPUTIME_ID) - from;
        (void)calls->cuCtxSynchronize();
    }
    return (double)ns / LAUNCHES;
}

static double
time_graphs(const struct calls *calls)
{
    uint64_t ns = 0;

    for (int i = 0; i < LAUNCHES; i += BATCH) {
        uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

        for (int n = 0; n < BATCH; n++)
            (void)calls->cuGraphLaunch(calls->graph, NULL);
        ns += bench_clock(CLOCK_THREAD_CPUTIME_ID) - from;
        (void)calls->cuCtxSynchronize();
    }
    return (double)ns / LAUNCHES;
}

static double
time_pairs(const struct calls *calls)
{
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr address;

        if (calls->cuMemAlloc_v2(&address, 2 << 20) != CUDA_SUCCESS)
            exit(3);
        (void)calls->cuMemFree_v2(address);
    }
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / PAIRS;
}

static double
time_small_pairs(const struct calls *calls)
{
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr address;

        if (calls->cuMemAlloc_v2(&address, 4096) != CUDA_SUCCESS)
            exit(3);
        (void)calls->cuMemFree_v2(address);
    }
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / PAIRS;
}

/* The same with another one in the block. */
static double
time_small_beside(const struct calls *calls)
{
    CUdeviceptr other;
    double ns;

    if (calls->cuMemAlloc_v2(&other, 4096) != CUDA_SUCCESS)
        exit(3);
    ns = time_small_pairs(calls);
    (void)calls->cuMemFree_v2(other);
    return ns;
}

static double
time_async_pairs(const struct calls *calls)
{
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);

    for (int i = 0; i < PAIRS; i++) {
        CUdeviceptr address;

        if (calls->cuMemAllocAsync(&address, 2 << 20, NULL) != CUDA_SUCCESS)
            exit(3);
        (void)calls->cuMemFreeAsync(address, NULL);
    }
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / PAIRS;
}

static double
time_infos(const struct calls *calls)
{
    uint64_t from = bench_clock(CLOCK_THREAD_CPUTIME_ID);
    size_t left, total;

    for (int i = 0; i < LAUNCHES; i++)
        (void)calls->cuMemGetInfo_v2(&left, &total);
    return (double)(bench_clock(CLOCK_THREAD_CPUTIME_ID) - from) / LAUNCHES;
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
time_threads(double (*timed)(const struct calls *), const struct calls *calls, unsigned threads)
{
    struct worker workers[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    pthread_barrier_t start;
    double sum = 0;

    if (threads == 1)
        return timed(calls);
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){ timed, calls, &start, 0 };
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

/* ---- rows ---- */

static const struct row {
    const char *what;
    double (*timed)(const struct calls *);
    unsigned threads;
} rows[] = {
    { "cuLaunchKernel", time_launches, 1 },
    { "cuLaunchKernel", time_launches, 4 },
    { "cuGraphLaunch", time_graphs, 1 },
    { "cuMemAlloc+cuMemFree 2 MiB", time_pairs, 1 },
    { "cuMemAlloc+cuMemFree 2 MiB", time_pairs, 4 },
    { "cuMemAlloc+cuMemFree 4 KiB", time_small_pairs, 1 },
    { "4 KiB with one beside it", time_small_beside, 1 },
    { "4 KiB with one beside it", time_small_beside, 4 },
    { "AllocAsync+FreeAsync 2 MiB", time_async_pairs, 1 },
    { "cuMemGetInfo", time_infos, 1 },
    { "pair with 10,000 live", time_pairs, 1 },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), LIVE_ROW = ROWS - 1 };

/* In the process with the preloaded library. */
static double
ask_preloaded(uint8_t row)
{
    double ns;

    if (write(to_preloaded, &row, 1) != 1 || read(from_preloaded, &ns, sizeof(ns)) != (ssize_t)sizeof(ns)) {
        fprintf(stderr, "shim_bench: the process with the preloaded library ended\n");
        exit(5);
    }
    return ns;
}

static void
compare(uint8_t number, const struct calls calls[2], unsigned runs)
{
    double bare[RUNS_MAX], shim[RUNS_MAX], added[RUNS_MAX], other[RUNS_MAX], theirs[RUNS_MAX];
    const struct row *row = &rows[number];
    double ours;

    for (unsigned i = 0; i < runs; i++) {
        bare[i] = time_threads(row->timed, &calls[0], row->threads);
        shim[i] = time_threads(row->timed, &calls[1], row->threads);
        added[i] = shim[i] - bare[i];
        other[i] = to_preloaded < 0 ? 0 : ask_preloaded(number);
        theirs[i] = other[i] - bare[i];
    }
    ours = median(added, runs);
    printf("%-28s %u thread%s  driver %7.1f  shim %7.1f  added %7.1f", row->what, row->threads,
           row->threads == 1 ? " " : "s", median(bare, runs), median(shim, runs), ours);
    if (to_preloaded >= 0)
        printf("  preload %9.1f  added %9.1f  ratio %6.1f", median(other, runs), median(theirs, runs),
               median(theirs, runs) / (ours > 0.1 ? ours : 0.1));
    printf("\n");
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

static bool
begin(struct calls *calls)
{
    CUcontext context;

    if (calls->cuInit(0) != CUDA_SUCCESS || calls->cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS
        || calls->cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return false;
    find_work(calls);
    return true;
}

/* ---- the process with a preloaded library: a row's number in, its time out ---- */

static int
serve(void)
{
    struct calls calls;
    uint8_t row;

    find_calls("libcuda.so.1", &calls);
    if (!begin(&calls))
        return 4;
    while (read(STDIN_FILENO, &row, 1) == 1) {
        static bool filled;
        double ns;

        if (row == LIVE_ROW && !filled)
            fill(&calls);
        filled = filled || row == LIVE_ROW;
        ns = time_threads(rows[row % ROWS].timed, &calls, rows[row % ROWS].threads);
        if (write(STDOUT_FILENO, &ns, sizeof(ns)) != (ssize_t)sizeof(ns))
            return 5;
    }
    return 0;
}

struct options {
    const char *libcuda, *preload;
    unsigned runs;
};

/* A simulated NVML wants to know what there is. */
static void
set_topology(void)
{
    FILE *file;

    mkdir("/run/sim", 0755);
    file = fopen("/run/sim/topology", "w");
    if (file == NULL || fputs("node: 1x H100-80GB\n", file) < 0 || fclose(file) != 0)
        exit(3);
    setenv("BULKHEAD_SIM_STATE", "/run/sim", 1);
}

static void
start_preloaded(const char *preload)
{
    int in[2], out[2];

    set_topology();

    if (pipe(in) != 0 || pipe(out) != 0)
        exit(3);
    if (fork() == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        close(out[0]);
        setenv("LD_PRELOAD", preload, 1);
        setenv("LD_LIBRARY_PATH", BH_SHARE_DRIVER_DIR, 1);
        setenv("CUDA_DEVICE_MEMORY_LIMIT", "79g", 1);
        setenv("CUDA_DEVICE_MEMORY_SHARED_CACHE", "/run/preload.cache", 1);
        execl("/proc/self/exe", "shim_bench", "--preloaded", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_preloaded = in[1];
    from_preloaded = out[0];
}

/* The share is of the device that there is. */
static void
learn_uuid(const struct calls *calls)
{
    __typeof__(&cuDeviceGetUuid) get = (__typeof__(get))dlsym(calls->library, "cuDeviceGetUuid");
    CUuuid uuid;

    if (get != NULL && get(&uuid, 0) == CUDA_SUCCESS)
        memcpy(bh_sandbox.limits->device[0].uuid, &uuid, sizeof(uuid));
}

static int
measure(void *self)
{
    const struct options *options = self;
    struct calls calls[2];

    find_calls(BH_SHARE_DRIVER_DIR "/libcuda.so.1", &calls[0]);
    find_calls(options->libcuda, &calls[1]);
    if (options->preload != NULL)
        start_preloaded(options->preload);
    if (!begin(&calls[0]))
        return 4;
    learn_uuid(&calls[0]);
    if (!begin(&calls[1]))
        return 4;
    for (uint8_t row = 0; row < ROWS; row++) {
        if (row == LIVE_ROW)
            fill(&calls[1]);
        compare(row, calls, options->runs);
    }
    return 0;
}

/* A first touch: no small address comes twice. */
static int
measure_anew(void *self)
{
    const struct options *options = self;
    struct calls calls[2];

    setenv("NULL_SMALL_ANEW", "1", 1);
    find_calls(BH_SHARE_DRIVER_DIR "/libcuda.so.1", &calls[0]);
    find_calls(options->libcuda, &calls[1]);
    if (!begin(&calls[0]) || !begin(&calls[1]))
        return 4;
    printf("each address for the first time:\n");
    compare(5, calls, options->runs);
    return 0;
}

int
main(int argc, char **argv)
{
    struct options options = { .runs = 21 };
    struct bh_err err;
    uint64_t runs;
    int rc;

    if (argc == 2 && strcmp(argv[1], "--preloaded") == 0)
        return serve();
    if (argc < 3 || argc == 5) {
        fprintf(stderr, "usage: shim_bench LIBCUDA NULL_DRIVER [RUNS [PRELOAD NVML]]\n");
        return 2;
    }
    options.libcuda = argv[1];
    if (argc > 3 && bh_parse_u64(argv[3], &runs, &err) == BH_OK && runs > 0 && runs < RUNS_MAX)
        options.runs = (unsigned)runs;
    if (!bh_sandbox_enter(argv[2]))
        return 77;
    unlink(NULL_WORLD_FILE); /* a driver without a watcher */
    if (argc > 5) {
        options.preload = argv[4];
        bh_sandbox_bring(argv[5], "libnvidia-ml.so.1");
    }
    bh_sandbox_share(1, 40960, 256);
    rc = bh_sandbox_run(measure, &options);
    /* Another driver gives out what addresses it likes. */
    return rc != 0 || strstr(argv[2], "nullcuda") == NULL ? rc : bh_sandbox_run(measure_anew, &options);
}
