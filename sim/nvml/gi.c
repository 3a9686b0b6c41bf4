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

/* INVALID_ARGUMENT past the last number that NVML knows, NOT_SUPPORTED for one
 * that this board does not have. */
static nvmlReturn_t
gi_profile_by_number(const struct sim_target *target, unsigned number, const struct sim_profile **ret_profile)
{
    int at = sim_profile_by_number(target->gpu.model, number);

    if (number >= NVML_GPU_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (at < 0)
        return NVML_ERROR_NOT_SUPPORTED;
    *ret_profile = sim_profile_at(target->gpu.model, (uint32_t)at);
    return NVML_SUCCESS;
}

static nvmlReturn_t
gi_profile_by_id(const struct sim_target *target, unsigned id, const struct sim_profile **ret_profile)
{
    int at = sim_profile_by_id(target->gpu.model, id);

    if (at < 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret_profile = sim_profile_at(target->gpu.model, (uint32_t)at);
    return NVML_SUCCESS;
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
    struct sim_target target;
    const struct sim_profile *p = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &target);

    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_number(&target, profile, &p);
    if (rc != NVML_SUCCESS)
        return rc;
    return SIM_PUT(info, ((nvmlGpuInstanceProfileInfo_t){ COMMON_FIELDS(p) }));
}

static void
gi_fill_v2(const struct sim_profile *p, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    *info = (nvmlGpuInstanceProfileInfo_v2_t){ .version = nvmlGpuInstanceProfileInfo_v2_t_WORD,
                                               COMMON_FIELDS(p) };
    snprintf(info->name, sizeof(info->name), "MIG %s", p->name);
}

static void
gi_fill_v3(const struct sim_profile *p, nvmlGpuInstanceProfileInfo_v3_t *info)
{
    *info = (nvmlGpuInstanceProfileInfo_v3_t){ .version = nvmlGpuInstanceProfileInfo_v3_t_WORD,
                                               COMMON_FIELDS(p),
                                               .capabilities = sim_profile_is_graphics(p)
                                                                   ? NVML_GPU_INSTANCE_PROFILE_CAPS_GFX
                                                                   : 0 };
    snprintf(info->name, sizeof(info->name), "MIG %s", p->name);
}

/* One call, two structs: the version word says which. */
static nvmlReturn_t
gi_fill_by_version(const struct sim_profile *profile, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    if (info->version == nvmlGpuInstanceProfileInfo_v2_t_WORD)
        gi_fill_v2(profile, info);
    else if (info->version == nvmlGpuInstanceProfileInfo_v3_t_WORD)
        gi_fill_v3(profile, (void *)info);
    else
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                     nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct sim_target target;
    const struct sim_profile *found = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &target);

    if (rc == NVML_SUCCESS && info == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_number(&target, profile, &found);
    return rc == NVML_SUCCESS ? gi_fill_by_version(found, info) : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int profileId,
                                         nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct sim_target target;
    const struct sim_profile *found = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG_INVALID, &target);

    if (rc == NVML_SUCCESS && info == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_id(&target, profileId, &found);
    return rc == NVML_SUCCESS ? gi_fill_by_version(found, info) : rc;
}

/* All placements that the profile knows, free or not, also with MIG off. */
NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned int profileId,
                                              nvmlGpuInstancePlacement_t *placements, unsigned int *count)
{
    struct sim_target target;
    const struct sim_profile *profile = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED | SIM_MIG_INVALID, &target);
    unsigned found = 0;

    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_id(&target, profileId, &profile);
    if (rc == NVML_SUCCESS && count == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc != NVML_SUCCESS)
        return rc;
    for (unsigned start = 0; start < 32; start++) {
        if (!sim_profile_starts_at(profile, start))
            continue;
        if (placements != NULL && found >= *count)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (placements != NULL)
            placements[found] = (nvmlGpuInstancePlacement_t){ start, profile->units };
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

SIM_ALIAS(nvmlDeviceGetGpuInstancePossiblePlacements, nvmlDeviceGetGpuInstancePossiblePlacements_v2);

NVML_API nvmlReturn_t
nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profileId, unsigned int *count)
{
    struct sim_target target;
    const struct sim_profile *profile = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, CHANGE, &target);

    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_id(&target, profileId, &profile);
    return rc == NVML_SUCCESS ? SIM_PUT(count, sim_gi_capacity(&target.gpu, profile)) : rc;
}

/* Create at `start`, or where the driver likes (SIM_NO_ID). */
static nvmlReturn_t
gi_create(const struct sim_target *target, const struct sim_profile *profile, uint32_t start,
          nvmlGpuInstance_t *ret_instance)
{
    struct sim_state *draft;
    nvmlReturn_t rc = sim_change_begin(&draft);
    uint64_t birth = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    struct sim_gpu *gpu = &draft->gpu[target->gpu.index];
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
        *ret_instance = gi_handle(&target->gpu, birth);
    return rc;
}

NVML_API nvmlReturn_t
nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstance)
{
    struct sim_target target;
    const struct sim_profile *profile = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, CHANGE, &target);

    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_id(&target, profileId, &profile);
    if (rc == NVML_SUCCESS && gpuInstance == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc == NVML_SUCCESS ? gi_create(&target, profile, SIM_NO_ID, gpuInstance) : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profileId,
                                         const nvmlGpuInstancePlacement_t *placement,
                                         nvmlGpuInstance_t *gpuInstance)
{
    struct sim_target target;
    const struct sim_profile *profile = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, CHANGE, &target);

    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_id(&target, profileId, &profile);
    if (rc == NVML_SUCCESS
        && (gpuInstance == NULL || placement == NULL || placement->size != profile->units
            || placement->start >= 32))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc == NVML_SUCCESS ? gi_create(&target, profile, placement->start, gpuInstance) : rc;
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
    struct sim_target target;
    const struct sim_profile *profile = NULL;
    nvmlReturn_t rc = sim_open(__func__, device, CHANGE, &target);
    unsigned found = 0;

    if (rc == NVML_SUCCESS)
        rc = gi_profile_by_id(&target, profileId, &profile);
    if (rc == NVML_SUCCESS && (gpuInstances == NULL || count == NULL))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < SIM_GIS_MAX; i++) {
        const struct sim_gi *gi = &target.gpu.gi[i];

        /* The array is sized by the caller from instanceCount: no size comes in. */
        if (gi->birth != 0 && sim_gi_profile(&target.gpu, gi) == profile)
            gpuInstances[found++] = gi_handle(&target.gpu, gi->birth);
    }
    if (rc == NVML_SUCCESS)
        *count = found;
    return rc;
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
