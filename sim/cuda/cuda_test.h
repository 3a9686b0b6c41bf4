#ifndef BH_SIM_CUDA_CUDA_TEST_H
#define BH_SIM_CUDA_CUDA_TEST_H

/* Processes that use the simulated libcuda.so.1, and what they take of it.  Tests only. */

#include "sim/cuda/program_test.h"

#include <signal.h>

#include "sim/machine/folder.h"
#include "sim/machine/meter.h"
#include "sim/machine/publish.h"
#include "sim/machine/session.h"

#define CONTEXT_PAGES 16 /* context=32 */

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

static const CUmemAllocationProp on_device
    __attribute__((unused)) = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
static const CUmemAccessDesc both_ways
    __attribute__((unused)) = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

#define TEST(name) TEST_ON("node: 2x H100-80GB context=32\n", name)

#endif
