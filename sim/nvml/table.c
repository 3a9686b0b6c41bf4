/* nvmlInternalGetExportTable: the table of functions that nvidia-smi cannot do without. */
#include "sim/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

#include "bulkhead/nvml_smi.h"

enum { LIST_MAX = 512 };

typedef __typeof__(nvmlDeviceGetComputeRunningProcesses_v3) list_call;

static void
table_put(struct bh_smi_process *process, const nvmlProcessInfo_t *info)
{
    process->pid = info->pid;
    process->used_bytes = info->usedGpuMemory;
    process->gpu_instance = info->gpuInstanceId;
    process->compute_instance = info->computeInstanceId;
    process->unknown = 0;
    if (nvmlSystemGetProcessName(info->pid, process->name, sizeof(process->name)) != NVML_SUCCESS)
        snprintf(process->name, sizeof(process->name), "[Not Found]");
}

/* The published list, with names. */
static nvmlReturn_t
list(list_call *call, nvmlDevice_t device, unsigned *count, struct bh_smi_process *processes)
{
    nvmlProcessInfo_t infos[LIST_MAX];
    nvmlReturn_t rc;

    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (*count > LIST_MAX)
        *count = LIST_MAX;
    rc = call(device, count, processes == NULL ? NULL : infos);
    for (unsigned i = 0; rc == NVML_SUCCESS && processes != NULL && i < *count; i++)
        table_put(&processes[i], &infos[i]);
    return rc;
}

#define LIST(name, call)                                                                                     \
    static nvmlReturn_t name(nvmlDevice_t device, unsigned *count, struct bh_smi_process *processes)         \
    {                                                                                                        \
        return list(call, device, count, processes);                                                         \
    }

LIST(list_compute, nvmlDeviceGetComputeRunningProcesses_v3)
LIST(list_graphics, nvmlDeviceGetGraphicsRunningProcesses_v3)
LIST(list_mps, nvmlDeviceGetMPSComputeRunningProcesses_v3)

static nvmlReturn_t
is_watched(nvmlDevice_t device, unsigned *watched)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(watched, 1) : rc;
}

NVML_API nvmlReturn_t
nvmlInternalGetExportTable(const void **table, const unsigned char uuid[16])
{
    static const unsigned char id[16] = BH_SMI_TABLE_ID;
    static void *const slots[BH_SMI_SLOTS] = {
        [BH_SMI_SIZE] = (void *)sizeof(slots),   [BH_SMI_IS_WATCHED] = (void *)is_watched,
        [BH_SMI_COMPUTE] = (void *)list_compute, [BH_SMI_GRAPHICS] = (void *)list_graphics,
        [BH_SMI_MPS] = (void *)list_mps,
    };

    if (table == NULL || uuid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memcmp(uuid, id, sizeof(id)) != 0)
        return NVML_ERROR_NOT_FOUND;
    *table = slots;
    return NVML_SUCCESS;
}
