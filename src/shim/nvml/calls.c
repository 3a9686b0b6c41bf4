/* How a program begins, which devices it is shown, and their memory. */
#include <stddef.h>

#include "shim/nvml/view.h"

/* ---- beginning ---- */

static nvmlReturn_t
calls_begun(nvmlReturn_t rc)
{
    nvmlReturn_t seen = rc == NVML_SUCCESS ? bh_view_open() : rc;

    if (rc == NVML_SUCCESS && seen != NVML_SUCCESS)
        (void)REAL(nvmlShutdown)();
    return seen;
}

nvmlReturn_t
nvmlInit_v2(void)
{
    return calls_begun(REAL(nvmlInit_v2)());
}

nvmlReturn_t
nvmlInit(void)
{
    return calls_begun(REAL(nvmlInit)());
}

nvmlReturn_t
nvmlInitWithFlags(unsigned int flags)
{
    return calls_begun(REAL(nvmlInitWithFlags)(flags));
}

const char *
nvmlErrorString(nvmlReturn_t result)
{
    return HAS(nvmlErrorString) ? REAL(nvmlErrorString)(result) : "no NVML library";
}

/* ---- devices ---- */

/* The driver knows whether it was initialised. */
nvmlReturn_t
nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
    unsigned all;
    nvmlReturn_t rc = REAL(nvmlDeviceGetCount_v2)(&all);

    if (rc != NVML_SUCCESS || deviceCount == NULL)
        return rc == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : rc;
    *deviceCount = bh_view_count();
    return NVML_SUCCESS;
}

nvmlReturn_t
nvmlDeviceGetCount(unsigned int *deviceCount)
{
    return nvmlDeviceGetCount_v2(deviceCount);
}

nvmlReturn_t
nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    return bh_view_device(index, device);
}

nvmlReturn_t
nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return bh_view_device(index, device);
}

/* What the driver found, if it is of the lease. */
static nvmlReturn_t
calls_found(nvmlReturn_t rc, nvmlDevice_t one, nvmlDevice_t *ret_device)
{
    unsigned index;

    if (rc != NVML_SUCCESS || ret_device == NULL)
        return rc == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : rc;
    rc = bh_view_index(one, &index);
    if (rc != NVML_SUCCESS)
        return rc == NVML_ERROR_INVALID_ARGUMENT ? NVML_ERROR_NOT_FOUND : rc;
    *ret_device = one;
    return NVML_SUCCESS;
}

#define FOUND_BY(name, type)                                                                                 \
    nvmlReturn_t name(type what, nvmlDevice_t *device)                                                       \
    {                                                                                                        \
        nvmlDevice_t one = NULL;                                                                             \
        nvmlReturn_t rc = REAL(name)(what, &one);                                                            \
                                                                                                             \
        return calls_found(rc, one, device);                                                                 \
    }

FOUND_BY(nvmlDeviceGetHandleByUUID, const char *)
FOUND_BY(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *)
FOUND_BY(nvmlDeviceGetHandleByPciBusId, const char *)
FOUND_BY(nvmlDeviceGetHandleByPciBusId_v2, const char *)
FOUND_BY(nvmlDeviceGetHandleBySerial, const char *)

nvmlReturn_t
nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    unsigned at;
    nvmlReturn_t rc = bh_view_answer(device, index, &at);

    if (rc != NVML_SUCCESS)
        return rc;
    *index = at;
    return NVML_SUCCESS;
}

/* ---- memory ---- */

nvmlReturn_t
nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    uint64_t total, used;
    unsigned index;
    nvmlReturn_t rc = bh_view_answer(device, memory, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    bh_view_memory(index, &total, &used);
    *memory = (nvmlMemory_t){ .total = total, .free = total - used, .used = used };
    return NVML_SUCCESS;
}

nvmlReturn_t
nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    uint64_t total, used;
    unsigned index;
    nvmlReturn_t rc = bh_view_answer(device, memory, &index);

    if (rc != NVML_SUCCESS)
        return rc;
    if (memory->version != nvmlMemory_v2_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    bh_view_memory(index, &total, &used);
    *memory = (nvmlMemory_v2_t){
        .version = nvmlMemory_v2_t_WORD,
        .total = total,
        .free = total - used,
        .used = used,
    };
    return NVML_SUCCESS;
}
