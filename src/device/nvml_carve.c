#include "device/nvml_internal.h"

#include <string.h>

#include "base/time.h"

/* A GPU instance being made: what of it stands already. */
struct half_made {
    nvmlGpuInstance_t gi;
    nvmlComputeInstance_t ci;
};

/* Take back what stands.  Returns the failure that led here, or BH_UNCERTAIN when
 * something is left. */
static bh_rc
nvml_carve_undo(struct bh_nvml *nvml, const struct half_made *half, struct bh_err *err)
{
    nvmlReturn_t result = NVML_SUCCESS;

    if (half->ci)
        result = nvml_call(nvml, destroy_ci, half->ci);
    if (half->gi && result == NVML_SUCCESS)
        result = nvml_call(nvml, destroy_gi, half->gi);
    if (result == NVML_SUCCESS)
        return err->rc;
    err->rc = BH_UNCERTAIN;
    return bh_err_wrap(err, "a half-made instance is left");
}

static bh_rc
carve_find_profile(const struct bh_nvml_gpu *gpu, const char *name, struct bh_nvml_profile *ret_profile,
                   struct bh_err *err)
{
    const struct bh_nvml_profiles *profiles = &gpu->profiles;

    for (uint32_t i = 0; i < profiles->count; i++) {
        if (strcmp(profiles->items[i].name, name) != 0)
            continue;
        *ret_profile = profiles->items[i];
        return BH_OK;
    }
    return bh_err_set(err, BH_INVALID, "%s has no MIG profile %s", gpu->uuid, name);
}

/* The driver's own placement that begins at `start`; the size comes with it. */
static bh_rc
carve_find_placement(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu,
                     const struct bh_nvml_profile *profile, nvmlGpuInstancePlacement_t *placement,
                     struct bh_err *err)
{
    nvmlGpuInstancePlacement_t places[32];
    unsigned int count = BH_COUNT(places), start = placement->start;
    nvmlReturn_t result = nvml_call(nvml, placements, gpu->handle, profile->id, NULL, &count);

    if (result == NVML_SUCCESS && count > BH_COUNT(places))
        return bh_err_set(err, BH_RANGE, "%s: %u placements of %s", gpu->uuid, count, profile->name);
    if (result == NVML_SUCCESS)
        result = nvml_call(nvml, placements, gpu->handle, profile->id, places, &count);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot list the places of %s", gpu->uuid, profile->name);
    for (unsigned int i = 0; i < count; i++) {
        if (places[i].start != start)
            continue;
        *placement = places[i];
        return BH_OK;
    }
    return bh_err_set(err, BH_INVALID, "%s: %s cannot start at %u", gpu->uuid, profile->name, start);
}

/* The compute instance that fills the GPU instance: as many slices. */
static nvmlReturn_t
carve_create_full_ci(struct bh_nvml *nvml, nvmlGpuInstance_t gi, uint32_t slices,
                     nvmlComputeInstance_t *ret_ci)
{
    for (uint32_t number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; number++) {
        nvmlComputeInstanceProfileInfo_t profile = { 0 };
        nvmlReturn_t result =
            nvml_call(nvml, ci_profile, gi, number, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &profile);

        if (bh_nvml_lost(result))
            return result;
        if (result == NVML_SUCCESS && profile.sliceCount == slices)
            return nvml_call(nvml, create_ci, gi, profile.id, ret_ci);
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

/* What the driver says it made, against what was asked.  Memory may differ by what a
 * driver release reserves; the next profile has half or double. */
static bh_rc
nvml_carve_compare(const struct bh_nvml_profile *profile, nvmlGpuInstancePlacement_t place,
                   const struct bh_device_instance *made, struct bh_err *err)
{
    uint32_t slack = profile->memory_mib / 8;

    if (made->start != place.start || made->size != place.size)
        return bh_err_set(err, BH_IO, "the driver made %s at %u:%u instead of %u:%u", profile->name,
                          made->start, made->size, place.start, place.size);
    if (strcmp(made->profile, profile->name) != 0)
        return bh_err_set(err, BH_IO, "the driver made a %s instead of %s", made->profile, profile->name);
    if (made->memory_mib + slack < profile->memory_mib || made->memory_mib > profile->memory_mib + slack)
        return bh_err_set(err, BH_IO, "the driver made %s with %u MiB instead of %u", profile->name,
                          made->memory_mib, profile->memory_mib);
    if (strncmp(made->uuid, "MIG-", 4) != 0)
        return bh_err_set(err, BH_IO, "the driver named the instance \"%s\"", made->uuid);
    return BH_OK;
}

/* What is to be made, and where. */
struct plan {
    struct bh_nvml_gpu gpu;
    struct bh_nvml_profile profile;
    nvmlGpuInstancePlacement_t place;
};

static bh_rc
nvml_carve_build(struct bh_nvml *nvml, const struct plan *plan, struct half_made *half,
                 struct bh_device_instance *ret_instance, struct bh_err *err)
{
    const struct bh_nvml_gpu *gpu = &plan->gpu;
    const char *name = plan->profile.name;
    nvmlReturn_t result = nvml_call(nvml, create_gi, gpu->handle, plan->profile.id, &plan->place, &half->gi);

    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot carve %s at %u on %s", name, plan->place.start, gpu->uuid);
    result = carve_create_full_ci(nvml, half->gi, plan->profile.slices, &half->ci);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot make the compute instance of %s on %s", name, gpu->uuid);
    result = bh_nvml_describe(nvml, gpu, half->gi, half->ci, ret_instance);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "cannot read %s on %s back", name, gpu->uuid);
    return nvml_carve_compare(&plan->profile, plan->place, ret_instance, err);
}

bh_rc
bh_nvml_carve(void *self, const char *uuid, const char *profile, uint32_t start,
              struct bh_device_instance *ret_instance, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    struct plan plan = { .place = { .start = start } };
    struct half_made half = { NULL };
    struct bh_device_instance made;
    unsigned int current = 0, pending = 0;
    nvmlReturn_t result;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &plan.gpu, err);

    if (rc != BH_OK)
        return rc;
    result = nvml_call(nvml, mig_mode, plan.gpu.handle, &current, &pending);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot read its MIG mode", uuid);
    if (current != NVML_DEVICE_MIG_ENABLE)
        return bh_err_set(err, BH_CONFLICT, "%s: MIG mode is not enabled", uuid);
    bh_nvml_load_profiles(nvml, &plan.gpu);
    rc = carve_find_profile(&plan.gpu, profile, &plan.profile, err);
    if (rc != BH_OK)
        return rc;
    rc = carve_find_placement(nvml, &plan.gpu, &plan.profile, &plan.place, err);
    if (rc != BH_OK)
        return rc;
    rc = nvml_carve_build(nvml, &plan, &half, &made, err);
    if (rc != BH_OK)
        return nvml_carve_undo(nvml, &half, err);
    *ret_instance = made;
    return BH_OK;
}

/* Monitoring programs hold an instance for moments: try twice more.  The node waits for programs that hold it
 * longer, because it has other things to do meanwhile. */
static nvmlReturn_t
carve_destroy_patiently(struct bh_nvml *nvml, nvmlGpuInstance_t gi)
{
    bh_ns pause = 50 * BH_NS_PER_MS;
    nvmlReturn_t result = nvml_call(nvml, destroy_gi, gi);

    for (int turn = 0; turn < 2 && result == NVML_ERROR_IN_USE; turn++, pause *= 2) {
        bh_time_sleep(pause);
        result = nvml_call(nvml, destroy_gi, gi);
    }
    return result;
}

static bh_rc
carve_not_destroyed(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, uint32_t gi, nvmlReturn_t result,
                    struct bh_err *err)
{
    bh_nvml_fail(err, result, "cannot destroy GPU instance %u of %s", gi, gpu->uuid);
    return result == NVML_ERROR_IN_USE ? bh_nvml_blame(nvml, gpu, err) : err->rc;
}

bh_rc
bh_nvml_destroy(void *self, const char *uuid, uint32_t gi, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    nvmlComputeInstance_t cis[BH_NVML_INSTANCES_MAX] = { NULL };
    nvmlGpuInstance_t instance = NULL;
    uint32_t count = 0;
    struct bh_nvml_gpu gpu;
    nvmlReturn_t result;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err);

    if (rc != BH_OK)
        return rc;
    bh_nvml_activity_forget(nvml, &gpu, gi);
    result = nvml_call(nvml, gi_by_id, gpu.handle, gi, &instance);
    if (result == NVML_SUCCESS)
        result = bh_nvml_cis(nvml, instance, cis, &count);
    for (uint32_t i = 0; i < count && result == NVML_SUCCESS; i++) {
        result = nvml_call(nvml, destroy_ci, cis[i]);
        if (result == NVML_ERROR_NOT_FOUND) /* gone already */
            result = NVML_SUCCESS;
    }
    if (result == NVML_SUCCESS)
        result = carve_destroy_patiently(nvml, instance);
    return result == NVML_SUCCESS ? BH_OK : carve_not_destroyed(nvml, &gpu, gi, result, err);
}
