#ifndef BH_SIM_CUDA_WORK_WORK_TEST_H
#define BH_SIM_CUDA_WORK_WORK_TEST_H

/* Programs of the simulated libcuda.so.1, each in a process of its own.  Tests only. */

#include "sim/cuda/program_test.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define US 1000ull
#define MS 1000000ull

static CUmodule module;

static inline CUfunction
kernel(const char *name)
{
    CUfunction function;

    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline void
open_module(void)
{
    (void)open_device();
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

/* ---- work that waits for the order to begin ---- */

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

/* Wait, in the test, until the processes set a word to so much; it fails when one ends before. */
static inline void
wait_for_word(const volatile unsigned *word, unsigned least)
{
    while (*word < least) {
        siginfo_t ended = { 0 };

        assert_int_equal(waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        assert_int_equal(ended.si_pid, 0);
        usleep(1000);
    }
}

static inline int
set_up_board(void **state)
{
    memset(board, 0, sizeof(*board));
    return set_up(state);
}

#define TEST(name)                                                                                           \
    cmocka_unit_test_prestate_setup_teardown(name, set_up_board, tear_down, (void *)"node: 1x H100-80GB\n")

static inline bool
can_test_work(void)
{
    if (!can_test())
        return false;
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return board != MAP_FAILED;
}

#endif
