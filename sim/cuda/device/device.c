/* Devices: which there are, and calls about their identity. */
#include "sim/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "sim/nvml/nvml.h"
#include "sim/machine/identity.h"
#include "sim/machine/partition.h"
#include "sim/machine/publish.h"
#include "sim/machine/session.h"

#define UUID_TEXT 64

/* A device as cuInit found it. */
struct seen {
    uint32_t gpu;    /* as the session numbers them */
    uint64_t gi, ci; /* births; 0: the whole GPU */
    uint64_t birth;
};

static struct {
    bool ready;
    int count;
    struct seen device[SIM_CUDA_DEVICES_MAX];
} driver;

bool
sim_cuda_ready(void)
{
    return __atomic_load_n(&driver.ready, __ATOMIC_ACQUIRE);
}

/* ---- what CUDA_VISIBLE_DEVICES leaves ---- */

static void
add_device(uint32_t gpu_index, const struct sim_gpu *gpu, const struct sim_gi *gi, const struct sim_ci *ci)
{
    if (driver.count == SIM_CUDA_DEVICES_MAX)
        return;
    driver.device[driver.count++] = (struct seen){ .gpu = gpu_index,
                                                   .gi = gi == NULL ? 0 : gi->birth,
                                                   .ci = ci == NULL ? 0 : ci->birth,
                                                   .birth = gpu->birth };
}

/* The first MIG device of a GPU: more than one CUDA does not show. */
static bool
device_add_first_mig(uint32_t index, const struct sim_gpu *gpu)
{
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        for (unsigned c = 0; gpu->gi[i].birth != 0 && c < SIM_CIS_MAX; c++)
            if (gpu->gi[i].ci[c].birth != 0) {
                add_device(index, gpu, &gpu->gi[i], &gpu->gi[i].ci[c]);
                return true;
            }
    return false;
}

static void
device_add_gpu(uint32_t index, const struct sim_gpu *gpu, bool *mig)
{
    if (gpu->lost)
        return;
    if (gpu->mig_current == 0)
        add_device(index, gpu, NULL, NULL);
    else if (!*mig)
        *mig = device_add_first_mig(index, gpu);
}

/* The device whose UUID begins with `text`; false when there is none. */
static bool
device_add_named(const char *text)
{
    char uuid[UUID_TEXT];
    struct sim_gpu gpu;
    size_t length = strlen(text);

    for (unsigned index = 0; index < sim_session_gpus(); index++) {
        if (sim_session_gpu(index, &gpu) != NVML_SUCCESS)
            continue;
        sim_uuid_format("GPU", &gpu.uuid, uuid, sizeof(uuid));
        if (gpu.mig_current == 0 && strncasecmp(uuid, text, length) == 0) {
            add_device(index, &gpu, NULL, NULL);
            return true;
        }
        for (unsigned at = 0; at < SIM_GIS_MAX * SIM_CIS_MAX; at++) {
            const struct sim_gi *gi = &gpu.gi[at / SIM_CIS_MAX];
            const struct sim_ci *ci = &gi->ci[at % SIM_CIS_MAX];

            sim_uuid_format("MIG", &ci->uuid, uuid, sizeof(uuid));
            if (gi->birth == 0 || ci->birth == 0 || strncasecmp(uuid, text, length) != 0)
                continue;
            add_device(index, &gpu, gi, ci);
            return true;
        }
    }
    return false;
}

static bool
device_add_numbered(const char *text)
{
    char *end;
    unsigned long index = strtoul(text, &end, 10);
    struct sim_gpu gpu;
    bool mig = false;
    int before = driver.count;

    if (end == text || *end != '\0' || index >= sim_session_gpus()
        || sim_session_gpu((unsigned)index, &gpu) != NVML_SUCCESS)
        return false;
    device_add_gpu((uint32_t)index, &gpu, &mig);
    return driver.count > before;
}

/* Up to the first word that names nothing, as CUDA does it. */
static void
device_add_visible(const char *wanted)
{
    char text[1024], *rest = NULL;

    snprintf(text, sizeof(text), "%s", wanted);
    for (char *word = strtok_r(text, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest)) {
        bool named = strncasecmp(word, "GPU-", 4) == 0 || strncasecmp(word, "MIG-", 4) == 0;

        if (!(named ? device_add_named(word) : device_add_numbered(word)))
            return;
    }
}

static void
find_devices(void)
{
    const char *wanted = getenv("CUDA_VISIBLE_DEVICES");
    struct sim_gpu gpu;
    bool mig = false;

    driver.count = 0;
    if (wanted != NULL) {
        device_add_visible(wanted);
        return;
    }
    for (unsigned index = 0; index < sim_session_gpus(); index++)
        if (sim_session_gpu(index, &gpu) == NVML_SUCCESS)
            device_add_gpu(index, &gpu, &mig);
}

/* ---- a fault that was injected ---- */

static void
device_suffer(const struct sim_gpu *gpu)
{
    while ((gpu->memory_faults & SIM_FAULT_CUDA_HANG) != 0)
        sleep(3600);
}

static CUresult
device_check_faults(void)
{
    struct sim_gpu gpu;

    for (int i = 0; i < driver.count; i++) {
        if (sim_session_gpu(driver.device[i].gpu, &gpu) != NVML_SUCCESS)
            continue;
        device_suffer(&gpu);
        if ((gpu.memory_faults & SIM_FAULT_CUDA_FAIL) != 0)
            return CUDA_ERROR_UNKNOWN;
    }
    return CUDA_SUCCESS;
}

CUresult
sim_cuda_devices_open(void)
{
    CUresult rc;

    if (sim_session_open(0) != NVML_SUCCESS)
        return CUDA_ERROR_NO_DEVICE;
    sim_session_refresh();
    find_devices();
    rc = driver.count > 0 ? device_check_faults() : CUDA_ERROR_NO_DEVICE;
    __atomic_store_n(&driver.ready, rc == CUDA_SUCCESS, __ATOMIC_RELEASE);
    return rc;
}

void
sim_cuda_devices_forget(void)
{
    driver.ready = false;
}

/* ---- from a number to a device ---- */

static bool
device_find_instance(const struct seen *seen, struct sim_cuda_device *device)
{
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        if (seen->gi != 0 && device->gpu.gi[i].birth == seen->gi)
            device->gi = &device->gpu.gi[i];
    for (unsigned i = 0; device->gi != NULL && i < SIM_CIS_MAX; i++)
        if (device->gi->ci[i].birth == seen->ci)
            device->ci = &device->gi->ci[i];
    return seen->gi == 0 || device->ci != NULL;
}

CUresult
sim_cuda_device(CUdevice number, struct sim_cuda_device *ret_device)
{
    const struct seen *seen;

    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (number < 0 || number >= driver.count)
        return CUDA_ERROR_INVALID_DEVICE;
    seen = &driver.device[number];
    ret_device->gi = NULL;
    ret_device->ci = NULL;
    if (sim_session_gpu(seen->gpu, &ret_device->gpu) != NVML_SUCCESS || ret_device->gpu.lost
        || ret_device->gpu.birth != seen->birth || !device_find_instance(seen, ret_device))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    ret_device->model = sim_model_at(ret_device->gpu.model);
    return ret_device->model == NULL ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

uint64_t
sim_cuda_bytes(const struct sim_cuda_device *device)
{
    return sim_memory_bytes(&device->gpu, device->gi);
}

/* ---- what they are ---- */

CUDA_API CUresult
cuDriverGetVersion(int *version)
{
    if (version == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *version = SIM_CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGetCount(int *count)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *count = driver.count;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (device == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (ordinal < 0 || ordinal >= driver.count)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuDeviceGetName(char *name, int length, CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);
    char instance[32];

    if (rc != CUDA_SUCCESS)
        return rc;
    if (name == NULL || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (device.gi == NULL) {
        snprintf(name, (size_t)length, "%s", device.model->product);
        return CUDA_SUCCESS;
    }
    sim_identity_instance(&device.gpu, device.gi, device.ci, instance, sizeof(instance));
    snprintf(name, (size_t)length, "%s MIG %s", device.model->product, instance);
    return CUDA_SUCCESS;
}

static CUresult
device_get_uuid(CUuuid *uuid, CUdevice number, bool mig)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (uuid == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, mig && device.ci != NULL ? device.ci->uuid.bytes : device.gpu.uuid.bytes,
           sizeof(uuid->bytes));
    return CUDA_SUCCESS;
}

CUDA_ROW(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), device_get_uuid(uuid, device, false))
CUDA_ROW(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device), device_get_uuid(uuid, device, true))

CUDA_API CUresult
cuDeviceTotalMem_v2(size_t *bytes, CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = (size_t)sim_cuda_bytes(&device);
    return CUDA_SUCCESS;
}

uint32_t
sim_cuda_sms(const struct sim_cuda_device *device)
{
    return device->gi == NULL ? device->model->sms
                              : sim_ci_sms(sim_gi_profile(&device->gpu, device->gi), device->ci->size);
}
