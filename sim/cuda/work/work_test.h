#ifndef BH_SIM_CUDA_WORK_WORK_TEST_H
#define BH_SIM_CUDA_WORK_WORK_TEST_H

/* Programs of the simulated libcuda.so.1, each in a process of its own.  Tests only. */

#include "sim/nvml/sim_test.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include "bulkhead/cuda_abi.h"

#define US 1000ull
#define MS 1000000ull

static inline pid_t
start_process(void (*body)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        body();
        _exit(0);
    }
    return pid;
}

static inline void
end_well(pid_t pid)
{
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void
in_process(void (*body)(void))
{
    end_well(start_process(body));
}

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define OK(call) MUST((call) == CUDA_SUCCESS)

static CUmodule module;

static inline CUfunction
kernel(const char *name)
{
    CUfunction function;

    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline void
open_device(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&module, "anything"));
}

static inline CUresult
launch(CUfunction function, CUstream stream)
{
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static inline uint64_t
now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline CUevent
event(void)
{
    CUevent made;

    OK(cuEventCreate(&made, CU_EVENT_DEFAULT));
    return made;
}

/* Microseconds between two events that have been recorded. */
static inline double
between(CUevent start, CUevent end)
{
    float ms;

    OK(cuEventSynchronize(end));
    OK(cuEventElapsedTime(&ms, start, end));
    return (double)ms * 1000;
}

/* ---- work that waits until it is told to begin ---- */

/* What the processes of a test share: whether all may begin, and what each measured. */
static struct {
    volatile unsigned ready, go;
    uint64_t began_ns, given_ns, taken_ns; /* around a process's start and its launch */
    double us[8];
} * board;

static inline void
wait_for_go(void *self)
{
    struct timespec pause = { 0, 100000 };

    (void)self;
    __atomic_fetch_add(&board->ready, 1, __ATOMIC_SEQ_CST);
    while (!board->go)
        nanosleep(&pause, NULL);
}

/* What is given to the stream now begins at let_go(). */
static inline void
hold(CUstream stream)
{
    board->go = 0;
    OK(cuLaunchHostFunc(stream, wait_for_go, NULL));
}

static inline void
let_go(void)
{
    board->go = 1;
}

/* The server of a test, and the board. */
static inline int
set_up(void **state)
{
    (void)state;
    server_new("node: 1x H100-80GB\n");
    memset(board, 0, sizeof(*board));
    return 0;
}

static inline int
tear_down(void **state)
{
    (void)state;
    server_free();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static inline bool
can_test(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() != 0) {
        puts("1..0 # SKIP needs root: privileged calls cannot be tested");
        return false;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return board != MAP_FAILED;
}

#endif
