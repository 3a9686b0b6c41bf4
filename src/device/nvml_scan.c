#include "device/nvml_internal.h"

#include <stdio.h>
#include <string.h>

/* A GPU's text in at most `size` bytes; NVML's texts have room for more than `size`. */
static void
scan_copy_text(char *ret_text, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
}

/* What identifies the GPU; a failure here leaves the GPU unnamed. */
static nvmlReturn_t
nvml_scan_identify(struct bh_nvml *nvml, nvmlDevice_t handle, struct bh_device_gpu *gpu)
{
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    nvmlPciInfo_t pci = { 0 };
    nvmlReturn_t result = nvml_call(nvml, uuid, handle, text, sizeof text);

    if (result == NVML_SUCCESS)
        scan_copy_text(gpu->uuid, sizeof gpu->uuid, text);
    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, pci, handle, &pci);
    if (result == NVML_SUCCESS)
        scan_copy_text(gpu->pci, sizeof gpu->pci, pci.busId);
    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, minor, handle, &gpu->minor);
    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, name, handle, text, NVML_DEVICE_NAME_BUFFER_SIZE);
    if (result == NVML_SUCCESS)
        scan_copy_text(gpu->product, sizeof gpu->product, text);
    return result;
}

/* Nothing was measured yet. */
static void
scan_forget(struct bh_device_gpu *gpu)
{
    gpu->temperature_c = gpu->power_mw = BH_DEVICE_UNKNOWN;
    gpu->memory_used_mib = gpu->ecc_uncorrected = BH_DEVICE_UNKNOWN_64;
    gpu->utilisation = 255;
    gpu->activity = bh_nvml_no_activity;
}

static nvmlReturn_t
scan_measure_memory(struct bh_nvml *nvml, nvmlDevice_t handle, struct bh_device_gpu *gpu)
{
    nvmlMemory_v2_t memory = { 0 };
    nvmlReturn_t result = bh_nvml_memory(nvml, handle, &memory);

    gpu->memory_mib = (uint32_t)(memory.total >> 20);
    if (result == NVML_SUCCESS)
        gpu->memory_used_mib = memory.used >> 20;
    return result;
}

static nvmlReturn_t
nvml_scan_measure(struct bh_nvml *nvml, nvmlDevice_t handle, struct bh_device_gpu *gpu)
{
    unsigned int number = 0;
    unsigned long long count = 0;
    nvmlUtilization_t rates = { 0 };
    nvmlReturn_t result = scan_measure_memory(nvml, handle, gpu);

    if (bh_nvml_lost(result))
        return result;
    if (nvml_call(nvml, temperature, handle, NVML_TEMPERATURE_GPU, &number) == NVML_SUCCESS)
        gpu->temperature_c = number;
    if (nvml_call(nvml, power, handle, &number) == NVML_SUCCESS)
        gpu->power_mw = number;
    if (nvml_call(nvml, utilisation, handle, &rates) == NVML_SUCCESS)
        gpu->utilisation = rates.gpu;
    result =
        nvml_call(nvml, ecc_errors, handle, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, &count);
    if (result == NVML_SUCCESS)
        gpu->ecc_uncorrected = count;
    return bh_nvml_lost(result) ? result : NVML_SUCCESS;
}

static nvmlReturn_t
nvml_read_gpu(struct bh_nvml *nvml, uint32_t index, nvmlDevice_t *ret_handle, struct bh_device_gpu *gpu)
{
    unsigned int current = 0, pending = 0;
    nvmlReturn_t result = nvml_call(nvml, by_index, index, ret_handle);

    if (result == NVML_SUCCESS)
        result = nvml_scan_identify(nvml, *ret_handle, gpu);
    if (result == NVML_SUCCESS)
        result = nvml_scan_measure(nvml, *ret_handle, gpu);
    if (result != NVML_SUCCESS)
        return result;
    result = nvml_call(nvml, mig_mode, *ret_handle, &current, &pending);
    gpu->mig_capable = result == NVML_SUCCESS;
    gpu->mig_enabled = gpu->mig_capable && current == NVML_DEVICE_MIG_ENABLE;
    return bh_nvml_lost(result) ? result : NVML_SUCCESS;
}

/* A lost GPU stays in the inventory under the name it had. */
static void
nvml_scan_remember(struct bh_nvml *nvml, struct bh_device_gpu *gpu)
{
    if (gpu->index >= BH_NVML_GPUS_MAX)
        return;
    if (!gpu->uuid[0])
        memcpy(gpu->uuid, nvml->known[gpu->index].uuid, sizeof gpu->uuid);
    if (!gpu->pci[0])
        memcpy(gpu->pci, nvml->known[gpu->index].pci, sizeof gpu->pci);
    memcpy(nvml->known[gpu->index].uuid, gpu->uuid, sizeof gpu->uuid);
    memcpy(nvml->known[gpu->index].pci, gpu->pci, sizeof gpu->pci);
}

static bh_rc
scan_gpu(struct bh_nvml *nvml, uint32_t index, struct bh_inventory *inventory, struct bh_err *err)
{
    struct bh_device_gpu *gpu = &inventory->gpus[index];
    uint32_t max = inventory->gpu_count * BH_NVML_INSTANCES_MAX;
    struct bh_nvml_gpu parent = { .uuid = gpu->uuid };
    nvmlReturn_t result;
    bh_rc rc;

    gpu->index = index;
    scan_forget(gpu);
    result = nvml_read_gpu(nvml, index, &parent.handle, gpu);
    gpu->lost = bh_nvml_lost(result);
    nvml_scan_remember(nvml, gpu);
    if (gpu->lost)
        return BH_OK;
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot look at GPU %u", index);
    parent.minor = gpu->minor;
    gpu->activity = bh_nvml_activity(nvml, &parent, BH_NVML_NO_ID);
    if (!gpu->mig_enabled)
        return BH_OK;
    bh_nvml_load_profiles(nvml, &parent);
    rc = bh_nvml_instances(nvml, &parent, inventory, max, err);
    gpu->lost = rc != BH_OK && err->sys_kind == BH_SYS_NVML && bh_nvml_lost((nvmlReturn_t)err->sys);
    return gpu->lost ? BH_OK : rc;
}

bh_rc
bh_nvml_scan(void *self, struct bh_arena *arena, struct bh_inventory *ret_inventory, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    struct bh_inventory inventory = { 0 };
    char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = "";
    unsigned int count = 0;
    nvmlReturn_t result = nvml_call(nvml, driver_version, version, sizeof version);
    bh_rc rc = BH_OK;

    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, count, &count);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot ask the driver for its GPUs");
    if (count > BH_NVML_GPUS_MAX)
        return bh_err_set(err, BH_RANGE, "%u GPUs, at most %d are supported", count, BH_NVML_GPUS_MAX);
    scan_copy_text(inventory.driver, sizeof inventory.driver, version);
    inventory.gpu_count = count;
    inventory.gpus = bh_arena_alloc(arena, sizeof *inventory.gpus * (count + 1));
    inventory.instances =
        bh_arena_alloc(arena, sizeof *inventory.instances * (count * BH_NVML_INSTANCES_MAX + 1));
    if (!inventory.gpus || !inventory.instances)
        return bh_err_set(err, BH_FULL, "no room for the inventory of %u GPUs", count);
    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = scan_gpu(nvml, i, &inventory, err);
    if (rc == BH_OK)
        *ret_inventory = inventory;
    return rc;
}

bh_rc
bh_nvml_gpu_find(struct bh_nvml *nvml, const char *uuid, struct bh_nvml_gpu *ret_gpu, struct bh_err *err)
{
    struct bh_nvml_gpu gpu = { .uuid = uuid };
    nvmlReturn_t result = NVML_ERROR_NOT_FOUND;

    if (strncmp(uuid, "GPU-", 4) == 0)
        result = nvml_call(nvml, by_uuid, uuid, &gpu.handle);
    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, minor, gpu.handle, &gpu.minor);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s", uuid);
    *ret_gpu = gpu;
    return BH_OK;
}
