/* Exported calls about GPU instances. */
#include "sim/nvml/nvml.h"

#include <stdio.h>

#include "sim/machine/handle.h"
#include "sim/machine/partition.h"
#include "sim/machine/usage.h"

/* What every change asks: root, a GPU's handle, MIG mode. */
#define CHANGE (SIM_GPU | SIM_PRIVILEGED | SIM_MIG_ON)

static nvmlGpuInstance_t
gi_handle(const struct sim_gpu *gpu, uint64_t birth)
{
    return (nvmlGpuInstance_t)(uintptr_t)sim_handle_get(SIM_HANDLE_GI, gpu->index, birth, 0);
}

/* A GPU and one of its profiles, as a call names them. */
struct gi_opened {
    struct sim_target target;
    const struct sim_profile *profile;
};

/* INVALID_ARGUMENT past the last number that NVML knows, NOT_SUPPORTED for one
 * that this board does not have. */
static nvmlReturn_t
gi_find_number(unsigned number, struct gi_opened *opened)
{
    int at = sim_profile_by_number(opened->target.gpu.model, number);

    if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (at < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    opened->profile = sim_profile_at(opened->target.gpu.model, (uint32_t)at);
    return NVML_SUCCESS;
}

static nvmlReturn_t
gi_find_id(unsigned id, struct gi_opened *opened)
{
    int at = sim_profile_by_id(opened->target.gpu.model, id);

    if (at < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    opened->profile = sim_profile_at(opened->target.gpu.model, (uint32_t)at);
    return NVML_SUCCESS;
}

static nvmlReturn_t
gi_open(const char *function, nvmlDevice_t device, unsigned wants, unsigned id, struct gi_opened *ret_opened)
{
    nvmlReturn_t rc = sim_open(function, device, wants, &ret_opened->target);

    return rc == NVML_SUCCESS ? gi_find_id(id, ret_opened) : rc;
}

/* What all three versions of the struct hold. */
#define COMMON_FIELDS(p)                                                                                     \
    .id = (p)->id, .sliceCount = (p)->slices, .instanceCount = (p)->most, .multiprocessorCount = (p)->sms,   \
    .copyEngineCount = (p)->copy, .decoderCount = (p)->nvdec, .encoderCount = (p)->nvenc,                    \
    .jpegCount = (p)->jpeg, .ofaCount = (p)->ofa, .memorySizeMB = (p)->memory_mib

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                    nvmlGpuInstanceProfileInfo_t *info)
{
    struct gi_opened opened;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &opened.target);

    if (rc == NVML_SUCCESS)
        rc = gi_find_number(profile, &opened);
    if (rc != NVML_SUCCESS)
        return rc;
    return SIM_PUT(info, ((nvmlGpuInstanceProfileInfo_t){ COMMON_FIELDS(opened.profile) }));
}

/* One call, two structs: the version word says which. */
static nvmlReturn_t
gi_fill_by_version(const struct sim_profile *p, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    nvmlGpuInstanceProfileInfo_v3_t *third = (void *)info;

    if (info->version == nvmlGpuInstanceProfileInfo_v2_t_WORD) {
        *info = (nvmlGpuInstanceProfileInfo_v2_t){ .version = info->version, COMMON_FIELDS(p) };
        snprintf(info->name, sizeof(info->name), "MIG %s", p->name);
        return NVML_SUCCESS;
    }
    if (info->version != nvmlGpuInstanceProfileInfo_v3_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *third = (nvmlGpuInstanceProfileInfo_v3_t){
        .version = info->version,
        COMMON_FIELDS(p),
        .capabilities = sim_profile_is_graphics(p) ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX : 0,
    };
    snprintf(third->name, sizeof(third->name), "MIG %s", p->name);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                     nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct gi_opened opened;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &opened.target);

    if (rc == NVML_SUCCESS)
        rc = info == NULL ? NVML_ERROR_INVALID_ARGUMENT : gi_find_number(profile, &opened);
    return rc == NVML_SUCCESS ? gi_fill_by_version(opened.profile, info) : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int profileId,
                                         nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct gi_opened opened;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &opened.target);

    if (rc == NVML_SUCCESS)
        rc = info == NULL ? NVML_ERROR_INVALID_ARGUMENT : gi_find_id(profileId, &opened);
    return rc == NVML_SUCCESS ? gi_fill_by_version(opened.profile, info) : rc;
}

/* All placements that the profile knows, free or not, also with MIG off. */
NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int profileId,
                                              nvmlGpuInstancePlacement_t *placements, unsigned int *count)
{
    struct gi_opened opened;
    nvmlReturn_t rc =
        gi_open(__func__, device, SIM_GPU | SIM_PRIVILEGED | SIM_MIG_INVALID, profileId, &opened);
    unsigned found = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned start = 0; start < 32; start++) {
        if (!sim_profile_starts_at(opened.profile, start))
            continue;
        if (placements != NULL && found >= *count)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (placements != NULL)
            placements[found] = (nvmlGpuInstancePlacement_t){ start, opened.profile->units };
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

SIM_ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDeviceGetGpuInstancePossiblePlacements_v2);

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profileId, unsigned int *count)
{
    struct gi_opened opened;
    nvmlReturn_t rc = gi_open(__func__, device, CHANGE, profileId, &opened);

    return rc == NVML_SUCCESS ? SIM_PUT(count, sim_gi_capacity(&opened.target.gpu, opened.profile)) : rc;
}

/* Create at `start`, or where the driver likes (SIM_NO_ID). */
static nvmlReturn_t
gi_create(const struct gi_opened *opened, uint32_t start, nvmlGpuInstance_t *ret_instance)
{
    const struct sim_profile *profile = opened->profile;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_change_begin(&draft);
    uint64_t birth = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    struct sim_gpu *gpu = &draft->gpu[opened->target.gpu.index];
    if (start == SIM_NO_ID)
        start = sim_gi_last_start(gpu, profile);
    if (gpu->mig_current == 0)
        rc = NVML_ERROR_NOT_SUPPORTED;
    else if (start == SIM_NO_ID)
        rc = NVML_ERROR_INSUFFICIENT_RESOURCES;
    else
        rc = sim_gi_create(draft, gpu, (uint32_t)sim_profile_by_id(gpu->model, profile->id), start, &birth);
    rc = sim_change_end(rc);
    if (rc == NVML_SUCCESS)
        *ret_instance = gi_handle(&opened->target.gpu, birth);
    return rc;
}

NVML_API nvmlReturn_t
nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstance)
{
    struct gi_opened opened;
    nvmlReturn_t rc = gi_open(__func__, device, CHANGE, profileId, &opened);

    if (rc != NVML_SUCCESS)
        return rc;
    return gpuInstance == NULL ? NVML_ERROR_INVALID_ARGUMENT : gi_create(&opened, SIM_NO_ID, gpuInstance);
}

NVML_API nvmlReturn_t
nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profileId,
                                         const nvmlGpuInstancePlacement_t *placement,
                                         nvmlGpuInstance_t *gpuInstance)
{
    struct gi_opened opened;
    nvmlReturn_t rc = gi_open(__func__, device, CHANGE, profileId, &opened);

    if (rc != NVML_SUCCESS)
        return rc;
    if (gpuInstance == NULL || placement == NULL || placement->size != opened.profile->units
        || placement->start >= 32)
        return NVML_ERROR_INVALID_ARGUMENT;
    return gi_create(&opened, placement->start, gpuInstance);
}

NVML_API nvmlReturn_t
nvmlGpuInstanceDestroy(nvmlGpuInstance_t gpuInstance)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, gpuInstance, SIM_GI | SIM_PRIVILEGED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (sim_users_any(&target.gpu, target.gi))
        return NVML_ERROR_IN_USE;
    rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    return sim_change_end(sim_gi_destroy(&draft->gpu[target.gpu.index], target.gi->birth));
}

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstances,
                          unsigned int *count)
{
    struct gi_opened opened;
    nvmlReturn_t rc = gi_open(__func__, device, CHANGE, profileId, &opened);
    const struct sim_gpu *gpu = &opened.target.gpu;

    if (rc != NVML_SUCCESS)
        return rc;
    if (gpuInstances == NULL || count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < SIM_GIS_MAX; i++)
        /* The array is sized by the caller from instanceCount: no size comes in. */
        if (gpu->gi[i].birth != 0 && sim_gi_profile(gpu, &gpu->gi[i]) == opened.profile)
            gpuInstances[(*count)++] = gi_handle(gpu, gpu->gi[i].birth);
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *gpuInstance)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, CHANGE, &target);
    const struct sim_gi *gi = rc == NVML_SUCCESS ? sim_gi_find(&target.gpu, id) : NULL;

    if (rc != NVML_SUCCESS)
        return rc;
    return gi == NULL ? NVML_ERROR_NOT_FOUND : SIM_PUT(gpuInstance, gi_handle(&target.gpu, gi->birth));
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetInfo(nvmlGpuInstance_t gpuInstance, nvmlGpuInstanceInfo_t *info)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, gpuInstance, SIM_GI, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    return SIM_PUT(info, ((nvmlGpuInstanceInfo_t){ .device = (nvmlDevice_t)(uintptr_t)sim_handle_get(
                                                       SIM_HANDLE_GPU, target.gpu.index, 0, 0),
                                                   .id = target.gi->id,
                                                   .profileId = sim_gi_profile(&target.gpu, target.gi)->id,
                                                   .placement = { target.gi->start, target.gi->size } }));
}
