/* A management library from before MIG, events and everything with a version suffix:
 * one GPU and the few calls that name it.  For device_old_test.c. */
#include <stdio.h>

#include "base/attr.h"
#include "bulkhead/nvml_abi.h"

/* Our name for the function, the vendor's for the linker. */
#define OLD(name, symbol, ...)                                                                               \
    BH_EXPORT nvmlReturn_t bh_old_##name(__VA_ARGS__) __asm__(#symbol);                                      \
    nvmlReturn_t bh_old_##name(__VA_ARGS__)

static struct nvmlDevice_st {
    int unused;
} only;

OLD(init, nvmlInit, void)
{
    return NVML_SUCCESS;
}

OLD(shutdown, nvmlShutdown, void)
{
    return NVML_SUCCESS;
}

OLD(driver, nvmlSystemGetDriverVersion, char *version, unsigned int length)
{
    snprintf(version, length, "319.37");
    return NVML_SUCCESS;
}

OLD(count, nvmlDeviceGetCount, unsigned int *count)
{
    *count = 1;
    return NVML_SUCCESS;
}

OLD(by_index, nvmlDeviceGetHandleByIndex, unsigned int index, nvmlDevice_t *device)
{
    *device = &only;
    return index == 0 ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

OLD(by_uuid, nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
    *device = &only;
    return NVML_SUCCESS;
}

OLD(uuid, nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned int length)
{
    snprintf(uuid, length, "GPU-old");
    return NVML_SUCCESS;
}

OLD(name, nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned int length)
{
    snprintf(name, length, "Tesla K20");
    return NVML_SUCCESS;
}

OLD(minor, nvmlDeviceGetMinorNumber, nvmlDevice_t device, unsigned int *minorNumber)
{
    *minorNumber = 0;
    return NVML_SUCCESS;
}

OLD(memory, nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t *memory)
{
    *memory = (nvmlMemory_t){ .total = 5ULL << 30, .used = 1ULL << 30, .free = 4ULL << 30 };
    return NVML_SUCCESS;
}

OLD(pci, nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    *pci = (nvmlPciInfo_t){ .busId = "00000000:03:00.0" };
    return NVML_SUCCESS;
}
