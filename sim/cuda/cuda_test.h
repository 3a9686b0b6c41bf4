#ifndef BH_SIM_CUDA_CUDA_TEST_H
#define BH_SIM_CUDA_CUDA_TEST_H

/* Processes that use the simulated libcuda.so.1, and what they take of it.  Tests only. */

#include "sim/machine/folder.h"
#include "sim/nvml/sim_test.h"

#include <signal.h>
#include <stdint.h>

#include "bulkhead/cuda_abi.h"
#include "sim/machine/meter.h"
#include "sim/machine/publish.h"
#include "sim/machine/session.h"

#define MIB ((size_t)1 << 20)
#define PAGE (2 * MIB)
#define CONTEXT_PAGES 16 /* context=32 */

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)
#define OK(call) MUST((call) == CUDA_SUCCESS)

static struct sim_meter *meter;

static inline void
open_meter(void)
{
    char folder[SIM_PATH_MAX];
    struct sim_gpu gpu;

    MUST(sim_session_open(0) == NVML_SUCCESS && sim_session_gpu(0, &gpu) == NVML_SUCCESS);
    MUST(sim_folder_vram_path(&gpu, NULL, folder));
    meter = sim_meter_open(folder, &gpu, sim_memory_bytes(&gpu, NULL));
    MUST(meter != NULL);
}

static inline size_t
pages_used(void)
{
    return (size_t)(sim_meter_used(meter) / PAGE);
}

static inline void
in_process(void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
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

static const CUmemAllocationProp on_device
    __attribute__((unused)) = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
static const CUmemAccessDesc both_ways
    __attribute__((unused)) = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static inline int
set_up(void **state)
{
    (void)state;
    server_new("node: 2x H100-80GB context=32\n");
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

#endif
