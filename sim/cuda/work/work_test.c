/* The contract of what the simulated libcuda.so.1 does with work, through its exported
 * names: modules, launches, streams, events, and several processes on one GPU. */
#include "sim/cuda/work/work_test.h"

#include <signal.h>

/* ---- kernels: what they are called is how long they take ---- */

static const struct {
    const char *name;
    double us;
} kernels[] = {
    { "k_500us", 500 }, { "k_10ms", 10000 }, { "k_2us_sm50", 2 },       { "k_7000ns", 7 },
    { "k_", 5 },        { "k_x", 5 },        { "_Z9something_new", 5 },
};

static void
times_kernels(void)
{
    CUevent start, end;
    CUstream stream;
    uint64_t ns = 1234 * US;
    void *parameters[] = { &ns };

    open_module();
    start = event();
    end = event();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < BH_COUNT(kernels); i++) {
        hold(stream);
        OK(cuEventRecord(start, stream));
        OK(launch(kernel(kernels[i].name), stream));
        OK(cuEventRecord(end, stream));
        let_go();
        MUST(fabs(between(start, end) - kernels[i].us) < 0.01);
    }
    MUST(launch(kernel("burn"), stream) == CUDA_ERROR_INVALID_VALUE);
    hold(stream);
    OK(cuEventRecord(start, stream));
    OK(cuLaunchKernel(kernel("burn"), 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL));
    OK(cuEventRecord(end, stream));
    let_go();
    MUST(fabs(between(start, end) - 1234) < 0.01);
}

static void
test_kernels(void **state)
{
    in_process(times_kernels);
}

/* PTX says which kernels there are; other images are not read. */
static void
loads_modules(void)
{
    static const char ptx[] = "  .version 7.0\n.target sm_50\n.visible .entry burn(\n"
                              ".param .u64 ns)\n{ ret; }\n.entry k_1ms() { ret; }\n";
    CUmodule text;
    CUfunction function;
    CUlibrary library;
    CUkernel of_library;
    const char *name;

    open_module();
    OK(cuModuleLoadData(&text, ptx));
    OK(cuModuleGetFunction(&function, text, "burn"));
    OK(cuFuncGetName(&name, function));
    MUST(strcmp(name, "burn") == 0);
    OK(cuModuleGetFunction(&function, text, "k_1ms"));
    MUST(cuModuleGetFunction(&function, text, "bur") == CUDA_ERROR_NOT_FOUND);
    MUST(cuModuleGetFunction(&function, text, "other") == CUDA_ERROR_NOT_FOUND);
    OK(cuModuleUnload(text));
    MUST(cuModuleLoad(&text, "/nowhere/at/all") == CUDA_ERROR_FILE_NOT_FOUND);
    OK(cuLibraryLoadData(&library, "x", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&of_library, library, "k_3us"));
    OK(cuKernelGetFunction(&function, of_library));
    OK(launch(function, NULL));
    OK(launch((CUfunction)of_library, NULL));
    OK(cuCtxSynchronize());
    MUST(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuLaunchKernel(function, 1, 1, 1, 1024, 2, 1, 0, NULL, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
}

static void
test_modules(void **state)
{
    in_process(loads_modules);
}

/* ---- streams ---- */

static void
orders_streams(void)
{
    CUstream a, b;
    CUevent done;
    CUcontext context, of_stream;
    unsigned flags;
    int priority;

    open_module();
    OK(cuStreamCreateWithPriority(&a, CU_STREAM_NON_BLOCKING, -9));
    OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    OK(cuStreamGetPriority(a, &priority));
    OK(cuStreamGetFlags(a, &flags));
    OK(cuStreamGetCtx(a, &of_stream));
    OK(cuCtxGetCurrent(&context));
    MUST(priority == -5 && flags == CU_STREAM_NON_BLOCKING && of_stream == context);
    done = event();
    OK(cuEventQuery(done)); /* never recorded */
    OK(launch(kernel("k_30ms"), a));
    OK(cuEventRecord(done, a));
    MUST(cuEventQuery(done) == CUDA_ERROR_NOT_READY);
    MUST(cuStreamQuery(a) == CUDA_ERROR_NOT_READY);
    OK(cuStreamQuery(b));
    OK(cuStreamWaitEvent(b, done, 0));
    MUST(cuStreamQuery(b) == CUDA_ERROR_NOT_READY);
    OK(cuStreamSynchronize(b));
    OK(cuStreamQuery(a));
    OK(cuEventQuery(done));
    OK(launch(kernel("k_20ms"), NULL)); /* the legacy stream */
    MUST(cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
    OK(launch(kernel("k_1us"), b));
    MUST(cuStreamQuery(b) == CUDA_ERROR_NOT_READY);
    MUST(cuStreamQuery_ptsz(NULL) == CUDA_SUCCESS);
    OK(cuStreamDestroy(b));
    MUST(cuStreamQuery(b) == CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSynchronize());
    OK(cuStreamQuery(NULL));
    OK(cuEventDestroy(done));
    MUST(cuEventQuery(done) == CUDA_ERROR_INVALID_HANDLE);
}

static void
test_streams(void **state)
{
    in_process(orders_streams);
}

static void *
let_go_later(void *self)
{
    struct timespec pause = { 0, 20000000 };

    nanosleep(&pause, NULL);
    let_go();
    return NULL;
}

/* 1024 works of a context may be in flight; the next launch waits for the first to end. */
static void
presses_back(void)
{
    CUfunction function;
    pthread_t thread;
    uint64_t start;

    open_module();
    function = kernel("k_20us");
    hold(NULL);
    for (unsigned i = 1; i < 1024; i++)
        OK(launch(function, NULL));
    MUST(pthread_create(&thread, NULL, let_go_later, NULL) == 0);
    OK(launch(function, NULL));
    MUST(board->go == 1);
    MUST(pthread_join(thread, NULL) == 0);
    start = now_ns();
    for (unsigned i = 0; i < 2048; i++)
        OK(launch(function, NULL));
    MUST(now_ns() - start >= 1000 * 20 * US);
}

static void
test_back_pressure(void **state)
{
    in_process(presses_back);
}

/* ---- the host's part ---- */

static char order[8];

static void
note_order(void *self)
{
    struct timespec pause = { 0, 2000000 };
    CUdevice unused;

    if (self == (void *)"b")
        nanosleep(&pause, NULL);
    (void)cuCtxGetDevice(&unused);
    if (cuStreamSynchronize(NULL) != CUDA_ERROR_NOT_PERMITTED)
        _exit(1);
    order[strlen(order)] = *(const char *)self;
}

static void
call_back(CUstream stream, CUresult status, void *self)
{
    if (status == CUDA_SUCCESS)
        order[strlen(order)] = *(const char *)self;
}

static void
calls_host(void)
{
    CUstream a, b;
    CUevent after;

    open_module();
    after = event();
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(launch(kernel("k_5ms"), a));
    OK(cuLaunchHostFunc(a, note_order, (void *)"b"));
    OK(cuLaunchHostFunc(b, note_order, (void *)"a"));
    OK(cuStreamAddCallback(a, call_back, (void *)"c", 0));
    OK(cuEventRecord(after, a));
    OK(cuStreamWaitEvent(b, after, 0));
    OK(cuLaunchHostFunc(b, note_order, (void *)"d"));
    OK(cuStreamSynchronize(b));
    MUST(strlen(order) == 4 && strchr(order, 'a') != NULL); /* at any time: a stream of its own */
    MUST(strchr(order, 'b') < strchr(order, 'c') && strchr(order, 'c') < strchr(order, 'd'));
    MUST(cuLaunchHostFunc(b, NULL, NULL) == CUDA_ERROR_INVALID_VALUE);
}

static void
test_host(void **state)
{
    in_process(calls_host);
}

/* A stream of another context waits for an event of this one. */
static void
waits_across_contexts(void)
{
    CUcontext other;
    CUstream there;
    CUevent done;
    uint64_t start;

    open_module();
    done = event();
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
    OK(cuCtxPopCurrent_v2(NULL));
    start = now_ns();
    OK(launch(kernel("k_20ms"), NULL));
    OK(cuEventRecord(done, NULL));
    OK(cuCtxPushCurrent_v2(other));
    OK(cuStreamWaitEvent(there, done, 0));
    OK(cuStreamSynchronize(there));
    MUST(now_ns() - start >= 20 * MS);
    OK(cuEventQuery(done));
    OK(cuCtxDestroy_v2(other));
    MUST(cuStreamQuery(there) == CUDA_ERROR_INVALID_HANDLE);
}

static void
test_contexts(void **state)
{
    in_process(waits_across_contexts);
}

static CUevent moved;
static volatile bool moves;

static void *
move_event(void *self)
{
    CUfunction function = kernel("k_20us");

    while (moves) {
        OK(launch(function, self));
        OK(cuEventRecord(moved, self));
    }
    return NULL;
}

/* A thread that waits for an event has one of its records to wait for, whatever others record. */
static void
waits_while_recorded(void)
{
    CUstream recorded, waiting;
    pthread_t thread;

    alarm(25); /* instead of waiting without an end */
    open_module();
    moved = event();
    OK(cuStreamCreate(&recorded, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
    OK(cuEventRecord(moved, recorded));
    moves = true;
    MUST(pthread_create(&thread, NULL, move_event, recorded) == 0);
    for (int i = 0; i < 5000; i++) {
        OK(cuEventSynchronize(moved));
        OK(cuStreamWaitEvent(waiting, moved, 0));
    }
    moves = false;
    MUST(pthread_join(thread, NULL) == 0);
    OK(cuStreamSynchronize(waiting));
}

static void
test_recorded_again(void **state)
{
    in_process(waits_while_recorded);
}

/* ---- several processes on one GPU ---- */

enum { TRIES = 20 }; /* of what a busy machine may keep waiting */

static unsigned self_index;

static void
works(void)
{
    CUevent start, end;
    CUstream stream;
    CUfunction function;

    open_module();
    start = event();
    end = event();
    function = kernel("k_1ms");
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(stream, wait_for_go, NULL));
    OK(cuEventRecord(start, stream));
    for (unsigned i = 0; i < 80; i++)
        OK(launch(function, stream));
    OK(cuEventRecord(end, stream));
    board->us[self_index] = between(start, end);
}

/* How much longer 80 ms of work take while so many processes have as much.  The last to
 * begin and the last to end work alone for a while, hence the room below. */
static const struct contention {
    unsigned processes;
    double least, most;
} contention[] = { { 1, 1.0, 1.0 }, { 2, 2.0, 2.24 }, { 7, 6.5, 7.8 } };

static double
work_together(unsigned processes)
{
    pid_t pid[8];
    double longest = 0;

    memset(board, 0, sizeof(*board));
    for (self_index = 0; self_index < processes; self_index++)
        pid[self_index] = start_process(works);
    wait_for_word(&board->ready, processes);
    board->go = 1;
    for (unsigned i = 0; i < processes; i++) {
        end_well(pid[i]);
        longest = board->us[i] > longest ? board->us[i] : longest;
    }
    print_message("# %u processes: %.4f\n", processes, longest / 80000);
    return longest / 80000;
}

static void
test_contention(void **state)
{
    for (size_t row = 0; row < BH_COUNT(contention); row++) {
        const struct contention *one = &contention[row];
        bool holds = false;

        /* Again where the machine let some begin late. */
        for (int i = 0; i < TRIES && !holds; i++) {
            double longer = work_together(one->processes);

            holds = longer >= one->least && longer <= one->most;
        }
        assert_true(holds);
    }
}

static void
holds_on(void)
{
    board->began_ns = now_ns();
    open_module();
    board->given_ns = now_ns();
    OK(launch(kernel("k_60s"), NULL));
    board->taken_ns = now_ns();
    board->ready = 1;
    pause();
}

static void
works_beside(void)
{
    uint64_t start, took = UINT64_MAX;

    open_module();
    start = now_ns();
    OK(launch(kernel("k_20ms"), NULL));
    while (now_ns() - start < 10 * MS)
        (void)cuStreamQuery(NULL);
    board->go = 1; /* the other is killed now */
    OK(cuCtxSynchronize());
    MUST(now_ns() - start >= 20 * MS);
    for (int i = 0; i < TRIES && took >= 300 * MS; i++) {
        start = now_ns();
        OK(launch(kernel("k_200ms"), NULL));
        OK(cuCtxSynchronize());
        took = now_ns() - start;
    }
    MUST(took < 300 * MS); /* else 440: beside the other's minute */
}

/* A process that is killed takes its work along. */
static void
test_death(void **state)
{
    pid_t held, beside;

    memset(board, 0, sizeof(*board));
    held = start_process(holds_on);
    wait_for_word(&board->ready, 1);
    beside = start_process(works_beside);
    wait_for_word(&board->go, 1);
    assert_int_equal(kill(held, SIGKILL), 0);
    assert_int_equal(waitpid(held, NULL, 0), held);
    end_well(beside);
}

/* ---- what NVML says of it ---- */

static unsigned
utilization(void)
{
    nvmlUtilization_t rates;

    assert_int_equal(nvmlDeviceGetUtilizationRates(gpu_at(0), &rates), NVML_SUCCESS);
    return rates.gpu;
}

/* At first NVML reports the share of the time since the process began, which /proc knows by a hundredth of a
 * second, that its kernel has run: the board says what that lies between. */
static void
check_first(uint64_t forked_ns)
{
    uint64_t before = now_ns();
    unsigned percent = utilization();
    uint64_t after = now_ns();

    print_message("# %u %%\n", percent);
    assert_true(percent <= (after - board->given_ns) * 100 / (after - board->began_ns));
    assert_true(percent + 1 >= (before - board->taken_ns) * 100 / (before - forked_ns + 10 * MS));
}

/* Samples end while they are asked for: those after the last are newer, until there is none. */
static void
check_samples(pid_t pid)
{
    nvmlProcessUtilizationSample_t sample[4];
    unsigned long long last = 0;
    unsigned count = BH_COUNT(sample);
    nvmlReturn_t rc;

    while ((rc = nvmlDeviceGetProcessUtilization(gpu_at(0), sample, &count, 0)) == NVML_ERROR_NOT_FOUND) {
        usleep(1000); /* until a sample is complete */
        count = BH_COUNT(sample);
    }
    assert_int_equal(rc, NVML_SUCCESS);
    do {
        assert_int_equal(count, 1);
        assert_int_equal(sample[0].pid, pid);
        assert_true(sample[0].timeStamp > last);
        last = sample[0].timeStamp;
        rc = nvmlDeviceGetProcessUtilization(gpu_at(0), sample, &count, last);
    } while (rc == NVML_SUCCESS);
    assert_int_equal(rc, NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetProcessUtilization(gpu_at(0), NULL, &count, 0),
                     NVML_ERROR_INSUFFICIENT_SIZE);
    assert_int_equal(count, 1);
}

/* The GPU works for a process that sleeps: with the one kernel that runs, and without any other process that
 * reads it. */
static void
test_utilization(void **state)
{
    uint64_t forked_ns = now_ns();
    pid_t held = start_process(holds_on);

    assert_int_equal(nvmlInit_v2(), NVML_SUCCESS);
    wait_for_word(&board->ready, 1);
    check_first(forked_ns);
    usleep(110000);
    assert_true(utilization() >= 99); /* all of a window, however long, but for what is rounded */
    check_samples(held);
    assert_int_equal(kill(held, SIGKILL), 0);
    assert_int_equal(waitpid(held, NULL, 0), held);
}

/* ---- finding the calls ---- */

static const struct {
    const char *name;
    int version;
    uint64_t flags;
    void *function;
} names[] = {
    { "cuLaunchKernel", 13000, 0, (void *)cuLaunchKernel },
    { "cuLaunchKernel", 13000, 1, (void *)cuLaunchKernel },
    { "cuLaunchKernel", 13000, 2, (void *)cuLaunchKernel_ptsz },
    { "cuLaunchKernel", 5000, 2, (void *)cuLaunchKernel },
    { "cuStreamDestroy", 2000, 0, (void *)cuStreamDestroy },
    { "cuStreamDestroy", 13000, 2, (void *)cuStreamDestroy_v2 },
    { "cuStreamBeginCapture", 10000, 0, (void *)cuStreamBeginCapture },
    { "cuStreamBeginCapture", 13000, 2, (void *)cuStreamBeginCapture_v2_ptsz },
    { "cuGraphInstantiateWithParams", 13000, 2, (void *)cuGraphInstantiateWithParams_ptsz },
    { "cuGraphInstantiateWithParams", 13000, 0, (void *)cuGraphInstantiateWithParams },
    { "cuInit", 13000, 2, (void *)cuInit },
    { "cuLaunchKernel_ptsz", 13000, 2, NULL },
};

static void
test_names(void **state)
{
    for (size_t i = 0; i < BH_COUNT(names); i++) {
        void *function = NULL;
        CUresult rc = cuGetProcAddress_v2(names[i].name, &function, names[i].version, names[i].flags, NULL);

        BH_CHECK_EQ(names[i].name, rc == CUDA_SUCCESS, names[i].function != NULL);
        BH_CHECK(names[i].name, function == names[i].function);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_kernels), TEST(test_modules),     TEST(test_streams),        TEST(test_back_pressure),
        TEST(test_host),    TEST(test_contexts),    TEST(test_recorded_again), TEST(test_contention),
        TEST(test_death),   TEST(test_utilization), TEST(test_names),
    };

    return can_test_work() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
