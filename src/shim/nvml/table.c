/* The table of functions that nvidia-smi cannot do without.  It is the view's own: the driver's
 * would show the processes of all tenants, and what is not documented. */
#include <stddef.h>
#include <string.h>

#include "bulkhead/nvml_smi.h"
#include "shim/nvml/view.h"

static void
table_put(struct bh_smi_process *process, const struct bh_view_user *user)
{
    static const char unknown[] = "[Not Found]";

    process->pid = user->pid;
    process->used_bytes = user->bytes;
    process->gpu_instance = process->compute_instance = NVML_INSTANCE_ID_NONE;
    process->unknown = 0;
    if (REAL(nvmlSystemGetProcessName)(user->pid, process->name, BH_SMI_NAME_SIZE) != NVML_SUCCESS)
        memcpy(process->name, unknown, sizeof(unknown));
}

static nvmlReturn_t
list_compute(nvmlDevice_t device, unsigned *count, struct bh_smi_process *processes)
{
    struct bh_view_user users[BH_SHARE_SLOTS_MAX];
    unsigned index, room, there;
    nvmlReturn_t rc = bh_view_answer(device, count, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    room = *count;
    there = bh_view_users(index, users);
    *count = there;
    if (there > room)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    if (there > 0 && processes == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < there; i++)
        table_put(&processes[i], &users[i]);
    return NVML_SUCCESS;
}

static nvmlReturn_t
is_watched(nvmlDevice_t device, unsigned *watched)
{
    unsigned index;
    nvmlReturn_t rc = bh_view_answer(device, watched, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    *watched = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t
nvmlInternalGetExportTable(const void **table, const unsigned char uuid[16])
{
    static const unsigned char id[16] = BH_SMI_TABLE_ID;
    static void *const slots[BH_SMI_SLOTS] = {
        [BH_SMI_SIZE] = (void *)sizeof(slots),
        [BH_SMI_IS_WATCHED] = (void *)is_watched,
        [BH_SMI_COMPUTE] = (void *)list_compute,
        [BH_SMI_GRAPHICS] = (void *)nvmlDeviceGetGraphicsRunningProcesses_v3,
        [BH_SMI_MPS] = (void *)nvmlDeviceGetMPSComputeRunningProcesses_v3,
    };

    if (table == NULL || uuid == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memcmp(uuid, id, sizeof(id)) != 0)
        return NVML_ERROR_NOT_FOUND;
    *table = slots;
    return NVML_SUCCESS;
}
