#ifndef BH_SIM_CUDA_PROGRAM_TEST_H
#define BH_SIM_CUDA_PROGRAM_TEST_H

/* Programs of the simulated libcuda.so.1, each in a process of its own.  Tests only. */

#include "sim/nvml/sim_test.h"

#include <stdint.h>

#include "bulkhead/cuda_abi.h"

#define MIB ((size_t)1 << 20)
#define PAGE (2 * MIB)

/* In such a process: the test fails when it is not so. */
#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define OK(call) MUST((call) == CUDA_SUCCESS)

static inline pid_t
start_process(void (*body)(void))
{
    pid_t pid = fork_child();

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

static inline CUcontext
open_device(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

/* A server of this topology for one test. */
static inline int
set_up(void **state)
{
    server_new(*state);
    return 0;
}

static inline int
tear_down(void **state)
{
    server_free();
    return 0;
}

#define TEST_ON(topology, name)                                                                              \
    cmocka_unit_test_prestate_setup_teardown(name, set_up, tear_down, (void *)(topology))

static inline bool
can_test(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (geteuid() == 0)
        return true;
    puts("1..0 # SKIP needs root: privileged calls cannot be tested");
    return false;
}

#endif
