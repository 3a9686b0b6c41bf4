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

/* A GPU instance and one of its profiles, as a call names them. */
struct ci_opened {
    struct sim_target target;
    const struct sim_ci_profile *profile;
};

/* NVML's number and the driver's id are the same for compute instances. */
static nvmlReturn_t
ci_open(const char *function, nvmlGpuInstance_t gi, unsigned wants, unsigned number,
        struct ci_opened *ret_opened)
{
    nvmlReturn_t rc = sim_open(function, gi, wants, &ret_opened->target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (number >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    ret_opened->profile = sim_ci_profile_find(ci_gi_profile(&ret_opened->target)->slices, number);
    return ret_opened->profile == NULL ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

/* What all versions of the struct hold. */
#define COMMON_FIELDS(gi, p)                                                                                 \
    .id = (p)->number, .sliceCount = (p)->slices, .instanceCount = (p)->most,                                \
    .multiprocessorCount = sim_ci_sms(gi, (p)->slices), SHARED_FIELDS(gi)
#define SHARED_FIELDS(gi)                                                                                    \
    .sharedCopyEngineCount = (gi)->copy, .sharedDecoderCount = (gi)->nvdec,                                  \
    .sharedEncoderCount = (gi)->nvenc, .sharedJpegCount = (gi)->jpeg, .sharedOfaCount = (gi)->ofa

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t gpuInstance, unsigned int profile,
                                             unsigned int engProfile, nvmlComputeInstanceProfileInfo_t *info)
{
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, SIM_GI, profile, &opened);

    if (rc != NVML_SUCCESS)
        return rc;
    if (engProfile >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct sim_profile *gi = ci_gi_profile(&opened.target);
    return SIM_PUT(info, ((nvmlComputeInstanceProfileInfo_t){ COMMON_FIELDS(gi, opened.profile) }));
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
    *info = (nvmlComputeInstanceProfileInfo_v2_t){ .version = version, COMMON_FIELDS(gi, p) };
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
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, SIM_GI, profile, &opened);

    if (rc != NVML_SUCCESS)
        return rc;
    if (engProfile >= NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT || info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ci_fill_by_version(ci_gi_profile(&opened.target), opened.profile, info);
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                                   unsigned int *count)
{
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, SIM_GI, profileId, &opened);

    return rc == NVML_SUCCESS ? SIM_PUT(count, sim_ci_capacity(opened.target.gi, opened.profile)) : rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                                    nvmlComputeInstancePlacement_t *placements,
                                                    unsigned int *count)
{
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, SIM_GI, profileId, &opened);
    unsigned found = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned start = 0; start < SIM_CIS_MAX; start++) {
        if ((opened.profile->starts >> start & 1) == 0)
            continue;
        if (placements != NULL && found >= *count)
            return NVML_ERROR_INSUFFICIENT_SIZE;
        if (placements != NULL)
            placements[found] = (nvmlComputeInstancePlacement_t){ start, opened.profile->slices };
        found++;
    }
    *count = found;
    return NVML_SUCCESS;
}

/* Create at `start`, or at the lowest that is free (SIM_NO_ID). */
static nvmlReturn_t
ci_create(const struct ci_opened *opened, uint32_t start, nvmlComputeInstance_t *ret_instance)
{
    const struct sim_target *target = &opened->target;
    struct sim_ci_request request = { target->gi->birth, opened->profile, start };
    struct sim_state *draft;
    nvmlReturn_t rc = sim_change_begin(&draft);
    uint64_t birth = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    if (start == SIM_NO_ID)
        request.start = sim_ci_first_start(target->gi, opened->profile);
    rc = request.start == SIM_NO_ID ? NVML_ERROR_INSUFFICIENT_RESOURCES
                                    : sim_ci_create(draft, &draft->gpu[target->gpu.index], &request, &birth);
    rc = sim_change_end(rc);
    if (rc == NVML_SUCCESS)
        *ret_instance = ci_handle(target, birth);
    return rc;
}

NVML_API nvmlReturn_t
nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                     nvmlComputeInstance_t *computeInstance)
{
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, CHANGE, profileId, &opened);

    if (rc != NVML_SUCCESS)
        return rc;
    return computeInstance == NULL ? NVML_ERROR_INVALID_ARGUMENT
                                   : ci_create(&opened, SIM_NO_ID, computeInstance);
}

NVML_API nvmlReturn_t
nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t gpuInstance, unsigned int profileId,
                                                  const nvmlComputeInstancePlacement_t *placement,
                                                  nvmlComputeInstance_t *computeInstance)
{
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, CHANGE, profileId, &opened);

    if (rc != NVML_SUCCESS)
        return rc;
    if (computeInstance == NULL || placement == NULL || placement->size != opened.profile->slices
        || placement->start >= SIM_CIS_MAX)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ci_create(&opened, placement->start, computeInstance);
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
    struct ci_opened opened;
    nvmlReturn_t rc = ci_open(__func__, gpuInstance, CHANGE, profileId, &opened);
    const struct sim_ci *ci;

    if (rc != NVML_SUCCESS)
        return rc;
    if (computeInstances == NULL || count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    for (unsigned i = 0; i < SIM_CIS_MAX; i++) {
        ci = &opened.target.gi->ci[i];
        if (ci->birth != 0 && ci->profile == opened.profile->number)
            computeInstances[(*count)++] = ci_handle(&opened.target, ci->birth);
    }
    return NVML_SUCCESS;
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
                                              SHARED_FIELDS(gi),
                                              .gpuInstanceSliceCount = gi->slices,
                                              .computeInstanceSliceCount = target.ci->size,
                                              .memorySizeMB = gi->memory_mib }));
}

SIM_ALIAS(nvmlDeviceGetAttributes, nvmlDeviceGetAttributes_v2);
