/* Exported calls about PCIe, topology and fabric.  NVLink is not simulated. */
#include "sim/nvml/nvml.h"

#include "sim/machine/handle.h"

#define PCIE_GENERATION (target.model->arch >= NVML_DEVICE_ARCH_HOPPER ? 5 : 4)
SIM_GET(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, SIM_GPU, PCIE_GENERATION)
SIM_GET(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, SIM_GPU, PCIE_GENERATION)
SIM_GET(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, SIM_GPU, PCIE_GENERATION)
SIM_GET(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, SIM_GPU, 16)
SIM_GET(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, SIM_GPU, 16)
SIM_GET(nvmlDeviceGetPcieReplayCounter, unsigned int, SIM_GPU, 0)

NVML_API nvmlReturn_t
nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *value)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(value, 0) : rc;
}

/* Four boards hang on each host bridge. */
static nvmlGpuTopologyLevel_t
level_between(const struct sim_gpu *a, const struct sim_gpu *b)
{
    if (a->index == b->index)
        return NVML_TOPOLOGY_INTERNAL;
    return a->index / 4 == b->index / 4 ? NVML_TOPOLOGY_HOSTBRIDGE : NVML_TOPOLOGY_SYSTEM;
}

NVML_API nvmlReturn_t
nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                    nvmlGpuTopologyLevel_t *pathInfo)
{
    struct sim_target first, second;
    nvmlReturn_t rc = sim_open(__func__, device1, SIM_GPU, &first);

    if (rc == NVML_SUCCESS)
        rc = sim_open(__func__, device2, SIM_GPU, &second);
    return rc == NVML_SUCCESS ? SIM_PUT(pathInfo, level_between(&first.gpu, &second.gpu)) : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level, unsigned int *count,
                                 nvmlDevice_t *deviceArray)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);
    unsigned found = 0, gpus = rc == NVML_SUCCESS ? sim_session_gpus() : 0;
    struct sim_gpu other;

    if (rc != NVML_SUCCESS)
        return rc;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < gpus; i++) {
        if (i == target.gpu.index || sim_session_gpu(i, &other) != NVML_SUCCESS
            || level_between(&target.gpu, &other) != level)
            continue;
        if (deviceArray != NULL && found < *count)
            deviceArray[found] = (nvmlDevice_t)(uintptr_t)sim_handle_get(SIM_HANDLE_GPU, i, 0, 0);
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuP2PCapsIndex_t p2pIndex,
                       nvmlGpuP2PStatus_t *p2pStatus)
{
    struct sim_target first, second;
    nvmlReturn_t rc = sim_open(__func__, device1, SIM_GPU, &first);

    if (rc == NVML_SUCCESS)
        rc = sim_open(__func__, device2, SIM_GPU, &second);
    return rc == NVML_SUCCESS ? SIM_PUT(p2pStatus, NVML_P2P_STATUS_NOT_SUPPORTED) : rc;
}

SIM_GET(nvmlDeviceGetGpuFabricInfo, nvmlGpuFabricInfo_t, SIM_GPU, (nvmlGpuFabricInfo_t){ 0 })

NVML_API nvmlReturn_t
nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *gpuFabricInfo)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (gpuFabricInfo == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (gpuFabricInfo->version == nvmlGpuFabricInfo_v2_t_WORD) {
        *(nvmlGpuFabricInfo_v2_t *)gpuFabricInfo =
            (nvmlGpuFabricInfo_v2_t){ .version = nvmlGpuFabricInfo_v2_t_WORD };
        return NVML_SUCCESS;
    }
    if (gpuFabricInfo->version != nvmlGpuFabricInfo_v3_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *gpuFabricInfo = (nvmlGpuFabricInfoV_t){ .version = nvmlGpuFabricInfo_v3_t_WORD };
    return NVML_SUCCESS;
}
