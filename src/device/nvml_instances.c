#include "device/nvml_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/num.h"

/* The minor of a capability's node.  The kernel module computes it like this (its
 * nv-caps.c); its own file, where there is one, has the last word. */
static uint32_t
instances_capability_minor(const struct bh_nvml *nvml, uint32_t formula, const char *place)
{
    static const char key[] = "DeviceFileMinor:";
    char path[512], memory[256];
    struct bh_buf file;
    struct bh_err err;
    uint64_t minor;
    const char *text, *found;

    snprintf(path, sizeof path, "%s/driver/nvidia/capabilities/%s/access", nvml->proc_root, place);
    bh_buf_init_fixed(&file, memory, sizeof memory);
    if (bh_file_read(path, sizeof memory - 1, &file, &err) != BH_OK)
        return formula;
    text = bh_buf_text(&file);
    found = text ? strstr(text, key) : NULL;
    if (!found)
        return formula;
    found += sizeof key - 1;
    found += strspn(found, " \t");
    memory[(size_t)(found - memory) + strspn(found, "0123456789")] = '\0';
    return bh_parse_u64(found, &minor, &err) == BH_OK ? (uint32_t)minor : formula;
}

static void
instances_find_minors(const struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu,
                      struct bh_device_instance *instance)
{
    uint32_t formula = 3 + 135 * gpu->minor + 9 * instance->gi;
    char place[96];

    snprintf(place, sizeof place, "gpu%u/mig/gi%u", gpu->minor, instance->gi);
    instance->gi_minor = instances_capability_minor(nvml, formula, place);
    if (instance->ci == BH_NVML_NO_ID)
        return;
    snprintf(place, sizeof place, "gpu%u/mig/gi%u/ci%u", gpu->minor, instance->gi, instance->ci);
    instance->ci_minor = instances_capability_minor(nvml, formula + 1 + instance->ci, place);
}

nvmlReturn_t
bh_nvml_cis(struct bh_nvml *nvml, nvmlGpuInstance_t gi, nvmlComputeInstance_t *ret_cis, uint32_t *ret_count)
{
    uint32_t count = 0;

    for (uint32_t number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; number++) {
        nvmlComputeInstance_t found[BH_NVML_INSTANCES_MAX * 2];
        nvmlComputeInstanceProfileInfo_t profile = { 0 };
        unsigned int n = BH_COUNT(found);
        nvmlReturn_t result =
            nvml_call(nvml, ci_profile, gi, number, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &profile);

        if (bh_nvml_lost(result))
            return result;
        if (result != NVML_SUCCESS || profile.instanceCount > BH_COUNT(found))
            continue;
        result = nvml_call(nvml, cis, gi, profile.id, found, &n);
        if (result != NVML_SUCCESS)
            return result;
        for (unsigned int i = 0; i < n && count < BH_NVML_INSTANCES_MAX; i++)
            ret_cis[count++] = found[i];
    }
    *ret_count = count;
    return NVML_SUCCESS;
}

/* The part that only a compute instance has: its MIG device. */
static nvmlReturn_t
instances_describe_ci(struct bh_nvml *nvml, nvmlComputeInstance_t ci, struct bh_device_instance *instance)
{
    nvmlComputeInstanceInfo_t about = { 0 };
    nvmlDeviceAttributes_t attributes = { 0 };
    nvmlMemory_v2_t memory = { 0 };
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    nvmlReturn_t result = nvml_call(nvml, ci_info, ci, &about);

    if (result != NVML_SUCCESS)
        return result;
    instance->ci = about.id;
    result = nvml_call(nvml, uuid, about.device, uuid, sizeof uuid);
    if (result != NVML_SUCCESS)
        return result;
    snprintf(instance->uuid, sizeof instance->uuid, "%.47s", uuid);
    if (bh_nvml_memory(nvml, about.device, &memory) == NVML_SUCCESS)
        instance->memory_used_mib = (uint32_t)(memory.used >> 20);
    result = nvml_call(nvml, attributes, about.device, &attributes);
    if (result == NVML_SUCCESS)
        instance->memory_mib = (uint32_t)attributes.memorySizeMB;
    return result == NVML_ERROR_FUNCTION_NOT_FOUND ? NVML_SUCCESS : result;
}

nvmlReturn_t
bh_nvml_describe(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, nvmlGpuInstance_t gi,
                 nvmlComputeInstance_t ci, struct bh_device_instance *ret_instance)
{
    const struct bh_nvml_profiles *profiles = &gpu->profiles;
    nvmlGpuInstanceInfo_t about = { 0 };
    nvmlReturn_t result = nvml_call(nvml, gi_info, gi, &about);

    if (result != NVML_SUCCESS)
        return result;
    *ret_instance = (struct bh_device_instance){ .start = about.placement.start,
                                                 .size = about.placement.size,
                                                 .gi = about.id,
                                                 .ci = BH_NVML_NO_ID,
                                                 .memory_used_mib = BH_DEVICE_UNKNOWN,
                                                 .ci_minor = BH_NVML_NO_ID };
    snprintf(ret_instance->gpu, sizeof ret_instance->gpu, "%s", gpu->uuid);
    for (uint32_t i = 0; i < profiles->count; i++) {
        if (profiles->items[i].id != about.profileId)
            continue;
        memcpy(ret_instance->profile, profiles->items[i].name, sizeof ret_instance->profile);
        ret_instance->memory_mib = profiles->items[i].memory_mib;
    }
    ret_instance->activity = ci ? bh_nvml_activity(nvml, gpu, about.id) : bh_nvml_no_activity;
    result = ci ? instances_describe_ci(nvml, ci, ret_instance) : NVML_SUCCESS;
    if (result == NVML_SUCCESS)
        instances_find_minors(nvml, gpu, ret_instance);
    return result;
}

/* One GPU instance: an entry for each of its compute instances, or one for none. */
static nvmlReturn_t
nvml_instances_append(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, nvmlGpuInstance_t gi,
                      struct bh_inventory *inventory, uint32_t max)
{
    nvmlComputeInstance_t cis[BH_NVML_INSTANCES_MAX] = { NULL };
    uint32_t count = 0;
    nvmlReturn_t result = bh_nvml_cis(nvml, gi, cis, &count);

    for (uint32_t i = 0; result == NVML_SUCCESS && i < (count ? count : 1); i++) {
        if (inventory->instance_count == max)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        result = bh_nvml_describe(nvml, gpu, gi, count ? cis[i] : NULL,
                                  &inventory->instances[inventory->instance_count]);
        inventory->instance_count += result == NVML_SUCCESS;
    }
    return result;
}

bh_rc
bh_nvml_instances(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, struct bh_inventory *inventory,
                  uint32_t max, struct bh_err *err)
{
    nvmlReturn_t result = NVML_SUCCESS;

    for (uint32_t p = 0; p < gpu->profiles.count; p++) {
        const struct bh_nvml_profile *profile = &gpu->profiles.items[p];
        nvmlGpuInstance_t gis[BH_NVML_INSTANCES_MAX * 2] = { NULL };
        unsigned int n = BH_COUNT(gis);

        if (profile->most > n)
            return bh_err_set(err, BH_RANGE, "%s: up to %u instances of %s", gpu->uuid, profile->most,
                              profile->name);
        result = nvml_call(nvml, gis, gpu->handle, profile->id, gis, &n);
        for (unsigned int i = 0; result == NVML_SUCCESS && i < n; i++)
            result = nvml_instances_append(nvml, gpu, gis[i], inventory, max);
        if (result == NVML_ERROR_INSUFFICIENT_SIZE)
            return bh_err_set(err, BH_FULL, "%s: more than %u instances", gpu->uuid, max);
        if (result != NVML_SUCCESS)
            return bh_nvml_fail(err, result, "cannot list the instances of %s", gpu->uuid);
    }
    return BH_OK;
}
