/* Exported calls about compute instances and the MIG devices they make. */
#include "sim/nvml/nvml.h"

#include <stdio.h>

#include "sim/machine/handle.h"
#include "sim/machine/partition.h"
#include "sim/machine/usage.h"

#define CHANGE (SIM_GI | SIM_PRIVILEGED)

static nvmlComputeInstance_t
ci_handle(const struct sim_target *target, uint64_t birth)
{
    return (nvmlComputeInstance_t)(uintptr_t)sim_handle_get(SIM_HANDLE_CI, target->gpu.index,
                                                            target->gi->birth, birth);
}

static const struct sim_profile *
ci_gi_profile(const struct sim_target *target)
{
    return sim_gi_profile(&target->gpu, target->gi);
}

/* NVML's number and the driver's id are the same for compute instances. */
static nvmlReturn_t
ci_find_profile(const struct sim_target *target, unsigned number, const struct sim_ci_profile **ret_profile)
{
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    *ret_profile = sim_ci_profile_find(ci_gi_profile(target)->slices, number);
    return *ret_profile == NULL ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

static nvmlReturn_t
ci_open_profile(const char *function, nvmlGpuInstance_t gi, unsigned profile, struct sim_target *target,
                const struct sim_ci_profile **ret_profile)
{
    nvmlReturn_t rc = sim_open(function, gi, SIM_GI, target);

    return rc == NVML_SUCCESS ? ci_find_profile(target, profile, ret_profile) : rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t gpuInstance, unsigned int profile,
                                             unsigned int engProfile, nvmlComputeInstanceProfileInfo_t *info)
{
    struct sim_target target;
    const struct sim_ci_profile *p = NULL;
    nvmlReturn_t rc = ci_open_profile(__func__, gpuInstance, profile, &target, &p);

    if (rc != NVML_SUCCESS)
        return rc;
    if (engProfile >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_profile *gi = ci_gi_profile(&target);
    return SIM_PUT(info,
                   ((nvmlComputeInstanceProfileInfo_t){ .id = p->number,
                                                        .sliceCount = p->slices,
                                                        .instanceCount = p->most,
                                                        .multiprocessorCount = sim_ci_sms(gi, p->slices),
                                                        .sharedCopyEngineCount = gi->copy,
                                                        .sharedDecoderCount = gi->nvdec,
                                                        .sharedEncoderCount = gi->nvenc,
                                                        .sharedJpegCount = gi->jpeg,
                                                        .sharedOfaCount = gi->ofa }));
}

/* The third version is the second with one more word at its end. */
static nvmlReturn_t
ci_fill_by_version(const struct sim_profile *gi, const struct sim_ci_profile *p,
                   nvmlComputeInstanceProfileInfo_v2_t *info)
{
    unsigned version = info->version;

    if (version != nvmlComputeInstanceProfileInfo_v2_t_WORD
        && version != nvmlComputeInstanceProfileInfo_v3_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *info = (nvmlComputeInstanceProfileInfo_v2_t){ .version = version,
                                                   .id = p->number,
                                                   .sliceCount = p->slices,
                                                   .instanceCount = p->most,
                                                   .multiprocessorCount = sim_ci_sms(gi, p->slices),
                                                   .sharedCopyEngineCount = gi->copy,
                                                   .sharedDecoderCount = gi->nvdec,
                                                   .sharedEncoderCount = gi->nvenc,
                                                   .sharedJpegCount = gi->jpeg,
                                                   .sharedOfaCount = gi->ofa };
    if (p->slices == gi->slices)
        snprintf(info->name, sizeof(info->name), "MIG %s", gi->name);
    else
        snprintf(info->name, sizeof(info->name), "MIG %uc.%s", p->slices, gi->name);
    if (version == nvmlComputeInstanceProfileInfo_v3_t_WORD)
        ((nvmlComputeInstanceProfileInfo_v3_t *)(void *)info)->capabilities =
            sim_profile_is_graphics(gi) ? NVML_COMPUTE_INSTANCE_PROFILE_CAPS_GFX : 0;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t gpuInstance, unsigned int profile,
                                              unsigned int engProfile,
                                              nvmlComputeInstanceProfileInfo_v2_t *info)
{
    struct sim_target target;
    const struct sim_ci_profile *p = NULL;
    nvmlReturn_t rc = ci_open_profile(__func__, gpuInstance, profile, &target, &p);

    if (rc != NVML_SUCCESS)
        return rc;
    if (engProfile >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT || info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ci_fill_by_version(ci_gi_profile(&target), p, info);
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                                   unsigned int *count)
{
    struct sim_target target;
    const struct sim_ci_profile *profile = NULL;
    nvmlReturn_t rc = ci_open_profile(__func__, gpuInstance, profileId, &target, &profile);

    return rc == NVML_SUCCESS ? SIM_PUT(count, sim_ci_capacity(target.gi, profile)) : rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                                    nvmlComputeInstancePlacement_t *placements,
                                                    unsigned int *count)
{
    struct sim_target target;
    const struct sim_ci_profile *profile = NULL;
    nvmlReturn_t rc = ci_open_profile(__func__, gpuInstance, profileId, &target, &profile);
    unsigned found = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned start = 0; start < SIM_CIS_MAX; start++) {
        if ((profile->starts >> start & 1) == 0)
            continue;
        if (placements != NULL && found >= *count)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (placements != NULL)
            placements[found] = (nvmlComputeInstancePlacement_t){ start, profile->slices };
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

/* Create at `start`, or at the lowest that is free (SIM_NO_ID). */
static nvmlReturn_t
ci_create(const struct sim_target *target, const struct sim_ci_profile *profile, uint32_t start,
          nvmlComputeInstance_t *ret_instance)
{
    struct sim_state *draft;
    nvmlReturn_t rc = sim_change_begin(&draft);
    uint64_t birth = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    if (start == SIM_NO_ID)
        start = sim_ci_first_start(target->gi, profile);
    struct sim_ci_request request = { target->gi->birth, profile, start };
    rc = start == SIM_NO_ID ? NVML_ERROR_INSUFFICIENT_RESOURCES
                            : sim_ci_create(draft, &draft->gpu[target->gpu.index], &request, &birth);
    rc = sim_change_end(rc);
    if (rc == NVML_SUCCESS)
        *ret_instance = ci_handle(target, birth);
    return rc;
}

static nvmlReturn_t
ci_open_create(const char *function, nvmlGpuInstance_t gi, unsigned profile, struct sim_target *target,
               const struct sim_ci_profile **ret_profile)
{
    nvmlReturn_t rc = sim_open(function, gi, CHANGE, target);

    return rc == NVML_SUCCESS ? ci_find_profile(target, profile, ret_profile) : rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                     nvmlComputeInstance_t *computeInstance)
{
    struct sim_target target;
    const struct sim_ci_profile *profile = NULL;
    nvmlReturn_t rc = ci_open_create(__func__, gpuInstance, profileId, &target, &profile);

    if (rc == NVML_SUCCESS && computeInstance == NULL)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc == NVML_SUCCESS ? ci_create(&target, profile, SIM_NO_ID, computeInstance) : rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                                  const nvmlComputeInstancePlacement_t *placement,
                                                  nvmlComputeInstance_t *computeInstance)
{
    struct sim_target target;
    const struct sim_ci_profile *profile = NULL;
    nvmlReturn_t rc = ci_open_create(__func__, gpuInstance, profileId, &target, &profile);

    if (rc == NVML_SUCCESS
        && (computeInstance == NULL || placement == NULL || placement->size != profile->slices
            || placement->start >= SIM_CIS_MAX))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    return rc == NVML_SUCCESS ? ci_create(&target, profile, placement->start, computeInstance) : rc;
}

NVML_API nvmlReturn_t
nvmlComputeInstanceDestroy(nvmlComputeInstance_t computeInstance)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, computeInstance, SIM_CI | SIM_PRIVILEGED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (sim_users_any(&target.gpu, target.gi))
        return NVML_ERROR_IN_USE;
    rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    return sim_change_end(sim_ci_destroy(&draft->gpu[target.gpu.index], target.ci->birth));
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                   nvmlComputeInstance_t *computeInstances, unsigned int *count)
{
    struct sim_target target;
    const struct sim_ci_profile *profile = NULL;
    nvmlReturn_t rc = ci_open_create(__func__, gpuInstance, profileId, &target, &profile);
    unsigned found = 0;

    if (rc == NVML_SUCCESS && (computeInstances == NULL || count == NULL))
        rc = NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; rc == NVML_SUCCESS && i < SIM_CIS_MAX; i++) {
        const struct sim_ci *ci = &target.gi->ci[i];

        if (ci->birth != 0 && ci->profile == profile->number)
            computeInstances[found++] = ci_handle(&target, ci->birth);
    }
    if (rc == NVML_SUCCESS)
        *count = found;
    return rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t gpuInstance, unsigned int id,
                                      nvmlComputeInstance_t *computeInstance)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, gpuInstance, CHANGE, &target);
    const struct sim_ci *ci = rc == NVML_SUCCESS ? sim_ci_find(target.gi, id) : NULL;

    if (rc != NVML_SUCCESS)
        return rc;
    return ci == NULL ? NVML_ERROR_NOT_FOUND : SIM_PUT(computeInstance, ci_handle(&target, ci->birth));
}

/* `device` is the MIG device that the instance makes. */
NVML_API nvmlReturn_t
nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t computeInstance, nvmlComputeInstanceInfo_t *info)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, computeInstance, SIM_CI, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    uint64_t gi = target.gi->birth, ci = target.ci->birth;
    unsigned gpu = target.gpu.index;
    return SIM_PUT(info,
                   ((nvmlComputeInstanceInfo_t){
                       .device = (nvmlDevice_t)(uintptr_t)sim_handle_get(SIM_HANDLE_MIG, gpu, gi, ci),
                       .gpuInstance = (nvmlGpuInstance_t)(uintptr_t)sim_handle_get(SIM_HANDLE_GI, gpu, gi, 0),
                       .id = target.ci->id,
                       .profileId = target.ci->profile,
                       .placement = { target.ci->start, target.ci->size } }));
}

SIM_ALIAS(nvmlComputeInstanceGetInfo, nvmlComputeInstanceGetInfo_v2);

NVML_API nvmlReturn_t
nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *attributes)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_MIG, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (!target.is_mig)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct sim_profile *gi = ci_gi_profile(&target);
    return SIM_PUT(attributes,
                   ((nvmlDeviceAttributes_t){ .multiprocessorCount = sim_ci_sms(gi, target.ci->size),
                                              .sharedCopyEngineCount = gi->copy,
                                              .sharedDecoderCount = gi->nvdec,
                                              .sharedEncoderCount = gi->nvenc,
                                              .sharedJpegCount = gi->jpeg,
                                              .sharedOfaCount = gi->ofa,
                                              .gpuInstanceSliceCount = gi->slices,
                                              .computeInstanceSliceCount = target.ci->size,
                                              .memorySizeMB = gi->memory_mib }));
}

SIM_ALIAS(nvmlDeviceGetAttributes, nvmlDeviceGetAttributes_v2);
