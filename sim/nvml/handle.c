/* Exported calls that find a GPU and give out its handle. */
#include "sim/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

#include "sim/machine/handle.h"
#include "sim/machine/identity.h"
#include "sim/machine/partition.h"

static nvmlReturn_t
put_handle(nvmlDevice_t *device, enum sim_handle_kind kind, unsigned gpu, uint64_t gi, uint64_t ci)
{
    const struct sim_handle *handle = sim_handle_get(kind, gpu, gi, ci);

    if (handle == NULL)
        return NVML_ERROR_MEMORY;
    *device = (nvmlDevice_t)(uintptr_t)handle;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetCount_v2(unsigned int *deviceCount)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? SIM_PUT(deviceCount, sim_session_gpus()) : rc;
}

SIM_ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2);

NVML_API nvmlReturn_t
nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct sim_gpu gpu;

    if (rc != NVML_SUCCESS)
        return rc;
    if (device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = sim_session_gpu(index, &gpu);
    return rc == NVML_SUCCESS ? put_handle(device, SIM_HANDLE_GPU, index, 0, 0) : rc;
}

SIM_ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);

static bool
handle_has_uuid(const char *prefix, const struct sim_uuid *uuid, const char *text)
{
    char own[64];

    sim_uuid_format(prefix, uuid, own, sizeof(own));
    return strcmp(own, text) == 0;
}

static nvmlReturn_t
handle_find_mig(const struct sim_gpu *gpu, unsigned index, const char *uuid, nvmlDevice_t *device)
{
    for (unsigned i = 0; i < SIM_GIS_MAX * SIM_CIS_MAX; i++) {
        const struct sim_gi *gi = &gpu->gi[i / SIM_CIS_MAX];
        const struct sim_ci *ci = &gi->ci[i % SIM_CIS_MAX];

        if (gi->birth != 0 && ci->birth != 0 && handle_has_uuid("MIG", &ci->uuid, uuid))
            return put_handle(device, SIM_HANDLE_MIG, index, gi->birth, ci->birth);
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlReturn_t
nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t rc = sim_enter(__func__);
    unsigned gpus = rc == NVML_SUCCESS ? sim_session_gpus() : 0;
    struct sim_gpu gpu;

    if (rc != NVML_SUCCESS)
        return rc;
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < gpus; i++) {
        if (sim_session_gpu(i, &gpu) != NVML_SUCCESS)
            continue;
        if (handle_has_uuid("GPU", &gpu.uuid, uuid))
            return put_handle(device, SIM_HANDLE_GPU, i, 0, 0);
        rc = handle_find_mig(&gpu, i, uuid, device);
        if (rc != NVML_ERROR_NOT_FOUND)
            return rc;
    }
    return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlReturn_t
nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t rc = sim_enter(__func__);
    struct sim_uuid binary;
    char text[64];

    if (rc != NVML_SUCCESS)
        return rc;
    if (uuid == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (uuid->version != nvmlUUID_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (uuid->type == NVML_UUID_TYPE_ASCII) {
        snprintf(text, sizeof(text), "%.*s", (int)sizeof(uuid->value.str), uuid->value.str);
        return nvmlDeviceGetHandleByUUID(text, device);
    }
    if (uuid->type != NVML_UUID_TYPE_BINARY)
        return NVML_ERROR_INVALID_ARGUMENT;
    memcpy(binary.bytes, uuid->value.bytes, sizeof(binary.bytes));
    sim_uuid_format("GPU", &binary, text, sizeof(text));
    rc = nvmlDeviceGetHandleByUUID(text, device);
    if (rc != NVML_ERROR_NOT_FOUND)
        return rc;
    sim_uuid_format("MIG", &binary, text, sizeof(text));
    return nvmlDeviceGetHandleByUUID(text, device);
}

/* A GPU by a property that `matches` compares. */
static nvmlReturn_t
handle_find_gpu(const char *text, bool (*matches)(const struct sim_gpu *gpu, const char *text),
                nvmlDevice_t *device)
{
    unsigned gpus = sim_session_gpus();
    struct sim_gpu gpu;

    if (text == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < gpus; i++)
        if (sim_session_gpu(i, &gpu) == NVML_SUCCESS && matches(&gpu, text))
            return put_handle(device, SIM_HANDLE_GPU, i, 0, 0);
    return NVML_ERROR_NOT_FOUND;
}

/* "00000000:3B:00.0", with a shorter domain or without one. */
static bool
handle_matches_bus(const struct sim_gpu *gpu, const char *text)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;

    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) {
        domain = 0;
        if (sscanf(text, "%x:%x.%x", &bus, &device, &function) != 3)
            return false;
    }
    return domain == 0 && bus == gpu->bus && device == 0 && function == 0;
}

static bool
handle_matches_serial(const struct sim_gpu *gpu, const char *text)
{
    char own[NVML_DEVICE_SERIAL_BUFFER_SIZE];

    sim_identity_serial(gpu, own, sizeof(own));
    return strcmp(own, text) == 0;
}

NVML_API nvmlReturn_t
nvmlDeviceGetHandleByPciBusId_v2(const char *pciBusId, nvmlDevice_t *device)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? handle_find_gpu(pciBusId, handle_matches_bus, device) : rc;
}

SIM_ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2);

NVML_API nvmlReturn_t
nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    nvmlReturn_t rc = sim_enter(__func__);

    return rc == NVML_SUCCESS ? handle_find_gpu(serial, handle_matches_serial, device) : rc;
}

NVML_API nvmlReturn_t
nvmlSystemGetTopologyGpuSet(unsigned int cpuNumber, unsigned int *count, nvmlDevice_t *deviceArray)
{
    nvmlReturn_t rc = sim_enter(__func__);
    unsigned gpus = rc == NVML_SUCCESS ? sim_session_gpus() : 0;

    (void)cpuNumber; /* all boards hang on the one socket */
    if (rc != NVML_SUCCESS)
        return rc;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; deviceArray != NULL && i < gpus && i < *count; i++)
        if (put_handle(&deviceArray[i], SIM_HANDLE_GPU, i, 0, 0) != NVML_SUCCESS)
            return NVML_ERROR_MEMORY;
    *count = gpus;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *migDevice)
{
    struct sim_target target;
    const struct sim_gi *gi = NULL;
    const struct sim_ci *ci;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (migDevice == NULL || index >= target.model->slices)
        return NVML_ERROR_INVALID_ARGUMENT;
    ci = sim_ci_by_mig_index(&target.gpu, index, &gi);
    if (ci == NULL)
        return NVML_ERROR_NOT_FOUND;
    return put_handle(migDevice, SIM_HANDLE_MIG, target.gpu.index, gi->birth, ci->birth);
}

NVML_API nvmlReturn_t
nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t migDevice, nvmlDevice_t *device)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, migDevice, SIM_MIG, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return put_handle(device, SIM_HANDLE_GPU, target.gpu.index, 0, 0);
}
