/* Exported calls about what a device is: names, ids, place on the bus. */
#include "sim/nvml/nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/machine/identity.h"

#define ANY (SIM_GPU | SIM_MIG)

NVML_API nvmlReturn_t
nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, ANY, &target);
    char instance[32], text[NVML_DEVICE_NAME_V2_BUFFER_SIZE];

    if (rc != NVML_SUCCESS)
        return rc;
    if (!target.is_mig)
        return sim_put_text(name, length, target.model->product);
    sim_identity_instance(&target.gpu, target.gi, target.ci, instance, sizeof(instance));
    snprintf(text, sizeof(text), "%s MIG %s", target.model->product, instance);
    return sim_put_text(name, length, text);
}

NVML_API nvmlReturn_t
nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, ANY | SIM_LOST_TOO, &target);
    char text[64];

    if (rc != NVML_SUCCESS)
        return rc;
    if (target.is_mig)
        sim_uuid_format("MIG", &target.ci->uuid, text, sizeof(text));
    else
        sim_uuid_format("GPU", &target.gpu.uuid, text, sizeof(text));
    return sim_put_text(uuid, length, text);
}

SIM_GET(nvmlDeviceGetIndex, unsigned int, ANY | SIM_LOST_TOO,
        target.is_mig ? target.ci->mig_index : target.gpu.index)

SIM_GET(nvmlDeviceGetMinorNumber, unsigned int, SIM_GPU | SIM_LOST_TOO, target.gpu.minor)

NVML_API nvmlReturn_t
nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned int length)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);
    char text[NVML_DEVICE_SERIAL_BUFFER_SIZE];

    if (rc != NVML_SUCCESS)
        return rc;
    sim_identity_serial(&target.gpu, text, sizeof(text));
    return sim_put_text(serial, length, text);
}

SIM_GET_TEXT(nvmlDeviceGetVbiosVersion, SIM_GPU, "96.00.74.00.01")

NVML_API nvmlReturn_t
nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char *partNumber, unsigned int length)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);
    char text[32];

    if (rc != NVML_SUCCESS)
        return rc;
    snprintf(text, sizeof(text), "SIM-%04X-885-000", target.model->pci_device);
    return sim_put_text(partNumber, length, text);
}

SIM_GET_TWO(nvmlDeviceGetCudaComputeCapability, int, ANY, (int)target.model->cc_major,
            (int)target.model->cc_minor)

SIM_GET(nvmlDeviceGetBrand, nvmlBrandType_t, ANY, NVML_BRAND_NVIDIA)
SIM_GET(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, ANY, target.model->arch)
SIM_GET(nvmlDeviceGetNumGpuCores, unsigned int, SIM_GPU, target.model->sms * 128)
SIM_GET(nvmlDeviceGetBoardId, unsigned int, SIM_GPU, target.gpu.bus << 8)
SIM_GET(nvmlDeviceGetMultiGpuBoard, unsigned int, SIM_GPU, 0)
SIM_GET(nvmlDeviceGetModuleId, unsigned int, SIM_GPU, target.gpu.index + 1)
SIM_GET(nvmlDeviceGetNumaNodeId, unsigned int, SIM_GPU, 0)
SIM_GET(nvmlDeviceGetIrqNum, unsigned int, SIM_GPU, 100 + target.gpu.index)
SIM_GET(nvmlDeviceGetMemoryBusWidth, unsigned int, SIM_GPU, 5120)
SIM_GET(nvmlDeviceGetBusType, nvmlBusType_t, SIM_GPU, 2 /* PCIe */)
SIM_GET(nvmlDeviceIsMigDeviceHandle, unsigned int, ANY | SIM_LOST_TOO, target.is_mig)
SIM_GET(nvmlDeviceGetGpuInstanceId, unsigned int, SIM_MIG, target.gi->id)
SIM_GET(nvmlDeviceGetComputeInstanceId, unsigned int, SIM_MIG, target.ci->id)
SIM_GET(nvmlDeviceGetMaxMigDeviceCount, unsigned int, SIM_GPU | SIM_MIG_INVALID,
        target.gpu.mig_current != 0 ? target.model->slices : 0)
SIM_GET(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, SIM_GPU,
        NVML_GPU_VIRTUALIZATION_MODE_NONE)

NVML_API nvmlReturn_t
nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard)
{
    struct sim_target first, second;
    nvmlReturn_t rc = sim_open(__func__, device1, SIM_GPU, &first);

    if (rc == NVML_SUCCESS)
        rc = sim_open(__func__, device2, SIM_GPU, &second);
    return rc == NVML_SUCCESS ? SIM_PUT(onSameBoard, first.gpu.index == second.gpu.index) : rc;
}

static void
fill_pci(const struct sim_target *target, nvmlPciInfo_t *pci)
{
    memset(pci, 0, sizeof(*pci));
    pci->bus = target->gpu.bus;
    pci->pciDeviceId = target->model->pci_device << 16 | 0x10DE;
    pci->pciSubSystemId = 0x16C110DE;
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus);
    snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus);
}

NVML_API nvmlReturn_t
nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_LOST_TOO, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    fill_pci(&target, pci);
    return NVML_SUCCESS;
}

/* The older calls know a struct that ends before busId: callers that pass it
 * must not be written past its end. */
NVML_API nvmlReturn_t
nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlPciInfo_t full;
    nvmlReturn_t rc = nvmlDeviceGetPciInfo_v3(device, &full);

    if (rc != NVML_SUCCESS)
        return rc;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(pci, &full, offsetof(nvmlPciInfo_t, busId));
    return NVML_SUCCESS;
}

SIM_ALIAS(nvmlDeviceGetPciInfo, nvmlDeviceGetPciInfo_v2);

NVML_API nvmlReturn_t
nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_LOST_TOO, &target);
    nvmlPciInfo_t plain;

    if (rc != NVML_SUCCESS)
        return rc;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (pci->version != nvmlPciInfoExt_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    fill_pci(&target, &plain);
    *pci = (nvmlPciInfoExt_t){ .version = pci->version,
                               .bus = plain.bus,
                               .pciDeviceId = plain.pciDeviceId,
                               .pciSubSystemId = plain.pciSubSystemId,
                               .baseClass = 0x03,
                               .subClass = 0x02 };
    memcpy(pci->busId, plain.busId, sizeof(pci->busId));
    return NVML_SUCCESS;
}

SIM_GET_VERSIONED(nvmlDeviceGetAddressingMode, nvmlDeviceAddressingMode_t, nvmlDeviceAddressingMode_v1_t_WORD,
                  SIM_GPU, .value = NVML_DEVICE_ADDRESSING_MODE_NONE)

SIM_GET_VERSIONED(nvmlDeviceGetCapabilities, nvmlDeviceCapabilities_t, nvmlDeviceCapabilities_v1_t_WORD,
                  SIM_GPU, .capMask = 0)

SIM_GET_VERSIONED(nvmlDeviceGetPlatformInfo, nvmlPlatformInfo_t, nvmlPlatformInfo_v2_t_WORD, SIM_GPU,
                  .moduleId = (unsigned char)(target.gpu.index + 1))

/* Every CPU that is there is near every board. */
static nvmlReturn_t
identity_put_cpus(const char *function, nvmlDevice_t device, unsigned size, unsigned long *set)
{
    const unsigned bits = 8 * sizeof(unsigned long);
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, SIM_GPU, &target);
    long cpus = sysconf(_SC_NPROCESSORS_CONF);

    if (rc != NVML_SUCCESS)
        return rc;
    if (set == NULL || size == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(set, 0, size * sizeof(*set));
    for (unsigned i = 0; (long)i < cpus && i < size * bits; i++)
        set[i / bits] |= 1ul << i % bits;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet)
{
    return identity_put_cpus(__func__, device, cpuSetSize, cpuSet);
}

NVML_API nvmlReturn_t
nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet,
                                    nvmlAffinityScope_t scope)
{
    return identity_put_cpus(__func__, device, cpuSetSize, cpuSet);
}

NVML_API nvmlReturn_t
nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int nodeSetSize, unsigned long *nodeSet,
                            nvmlAffinityScope_t scope)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (nodeSet == NULL || nodeSetSize == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(nodeSet, 0, nodeSetSize * sizeof(*nodeSet));
    nodeSet[0] = 1;
    return NVML_SUCCESS;
}

/* Boards of a server have nothing to show pictures on. */
SIM_GET(nvmlDeviceGetDisplayActive, nvmlEnableState_t, SIM_GPU, NVML_FEATURE_DISABLED)

SIM_GET(nvmlDeviceGetDisplayMode, nvmlEnableState_t, SIM_GPU, NVML_FEATURE_DISABLED)

/* The firmware comes with the driver. */
NVML_API nvmlReturn_t
nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    struct sim_target target;
    struct sim_system system;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    sim_session_system(&system);
    return sim_put_text(version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE, system.driver);
}

NVML_API nvmlReturn_t
nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int *isEnabled, unsigned int *defaultMode)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc == NVML_SUCCESS)
        rc = SIM_PUT(isEnabled, 1);
    return rc == NVML_SUCCESS ? SIM_PUT(defaultMode, 1) : rc;
}
