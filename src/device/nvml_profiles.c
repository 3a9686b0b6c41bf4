#include "device/nvml_internal.h"

#include <stdio.h>
#include <string.h>

/* What stands behind the size in a profile's name, by NVML's profile enum. */
static const char *const suffixes[NVML_GPU_INSTANCE_PROFILE_COUNT] = {
    [0x7] = "+me", [0x8] = "+me", [0xa] = "+gfx",    [0xb] = "+gfx",     [0xc] = "+gfx",
    [0xd] = "-me", [0xe] = "-me", [0xf] = "+me.all", [0x10] = "+me.all", [0x11] = "+gfx",
};

void
bh_nvml_profile_name(uint32_t number, const nvmlGpuInstanceProfileInfo_t *profile, uint64_t total_bytes,
                     char ret_name[24])
{
    uint64_t total_gib = (total_bytes + (1ULL << 30) - 1) >> 30;
    uint64_t bytes = profile->memorySizeMB << 20;
    uint64_t eighths = total_bytes ? (bytes * 8 + total_bytes - 1) / total_bytes : 0;
    const char *suffix = number < BH_COUNT(suffixes) ? suffixes[number] : NULL;

    snprintf(ret_name, 24, "%ug.%ugb%s", profile->sliceCount, (unsigned)((eighths * total_gib + 4) / 8),
             suffix ? suffix : "");
}

/* The newer call also names the profile; some drivers put "MIG " before it. */
static nvmlReturn_t
describe_v2(struct bh_nvml *nvml, nvmlDevice_t gpu, uint32_t number, struct bh_nvml_profile *ret_profile)
{
    nvmlGpuInstanceProfileInfo_v2_t profile = { .version = nvmlGpuInstanceProfileInfo_v2_t_WORD };
    nvmlReturn_t result = nvml_call(nvml, profile_v2, gpu, number, &profile);
    const char *name = profile.name;

    if (result != NVML_SUCCESS)
        return result;
    profile.name[sizeof profile.name - 1] = '\0';
    if (strncmp(name, "MIG ", 4) == 0)
        name += 4;
    if (!name[0] || strlen(name) >= sizeof ret_profile->name)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret_profile = (struct bh_nvml_profile){ .id = profile.id,
                                             .slices = profile.sliceCount,
                                             .most = profile.instanceCount,
                                             .memory_mib = (uint32_t)profile.memorySizeMB };
    memcpy(ret_profile->name, name, strlen(name) + 1);
    return NVML_SUCCESS;
}

static nvmlReturn_t
describe_v1(struct bh_nvml *nvml, nvmlDevice_t gpu, uint32_t number, struct bh_nvml_profile *ret_profile)
{
    nvmlGpuInstanceProfileInfo_t profile = { 0 };
    nvmlMemory_t memory = { 0 };
    nvmlReturn_t result = nvml_call(nvml, profile, gpu, number, &profile);

    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, memory, gpu, &memory);
    if (result != NVML_SUCCESS)
        return result;
    *ret_profile = (struct bh_nvml_profile){ .id = profile.id,
                                             .slices = profile.sliceCount,
                                             .most = profile.instanceCount,
                                             .memory_mib = (uint32_t)profile.memorySizeMB };
    bh_nvml_profile_name(number, &profile, memory.total, ret_profile->name);
    return NVML_SUCCESS;
}

/* Two of NVML's numbers may stand for one profile of the driver. */
static bool
nvml_profiles_known(const struct bh_nvml_profiles *profiles, uint32_t id)
{
    for (uint32_t i = 0; i < profiles->count; i++)
        if (profiles->items[i].id == id)
            return true;
    return false;
}

void
bh_nvml_load_profiles(struct bh_nvml *nvml, struct bh_nvml_gpu *gpu)
{
    struct bh_nvml_profiles *profiles = &gpu->profiles;

    profiles->count = 0;
    for (uint32_t number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; number++) {
        struct bh_nvml_profile *profile = &profiles->items[profiles->count];

        if (describe_v2(nvml, gpu->handle, number, profile) != NVML_SUCCESS
            && describe_v1(nvml, gpu->handle, number, profile) != NVML_SUCCESS)
            continue;
        if (!nvml_profiles_known(profiles, profile->id))
            profiles->count++;
    }
}
