#include "device/nvml_internal.h"

#include "device/holders.h"

/* Ampere boards reset themselves to change the mode and keep it pending when they
 * cannot; later ones change at once.  SetMigMode answers SUCCESS in every case: only
 * the activation status and the mode read back tell. */

static const char *
mode_name(bool enabled)
{
    return enabled ? "enabled" : "disabled";
}

static bool
has_instances(struct bh_nvml *nvml, struct bh_nvml_gpu *gpu)
{
    struct bh_device_instance items[BH_NVML_INSTANCES_MAX];
    struct bh_inventory found = { .instances = items };
    struct bh_err err;

    bh_nvml_load_profiles(nvml, gpu);
    return bh_nvml_instances(nvml, gpu, &found, BH_COUNT(items), &err) == BH_FULL || found.instance_count > 0;
}

static bh_rc
in_use(struct bh_nvml *nvml, struct bh_nvml_gpu *gpu, bool enabled, struct bh_err *err)
{
    if (!enabled && has_instances(nvml, gpu))
        return bh_err_hint(err, "destroy its MIG instances first");
    return bh_nvml_blame(nvml, gpu, err);
}

static bh_rc
not_activated(struct bh_nvml *nvml, struct bh_nvml_gpu *gpu, bool enabled, nvmlReturn_t activation,
              struct bh_err *err)
{
    bh_nvml_fail(err, activation, "%s: MIG mode is not %s", gpu->uuid, mode_name(enabled));
    err->rc = BH_CONFLICT;
    if (activation == NVML_ERROR_IN_USE)
        return in_use(nvml, gpu, enabled, err);
    if (bh_holders_has_drm("/proc"))
        return bh_err_hint(err,
                           "nvidia_drm keeps it from being reset: rmmod nvidia_drm, "
                           "nvidia-smi --gpu-reset -i %.48s, modprobe nvidia_drm",
                           gpu->uuid);
    return bh_err_hint(err, "it takes a reset: stop what uses it, nvidia-smi --gpu-reset -i %.48s",
                       gpu->uuid);
}

bh_rc
bh_nvml_set_mig(void *self, const char *uuid, bool enabled, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    unsigned int wanted = enabled ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    unsigned int current = 0, pending = 0;
    nvmlReturn_t activation = NVML_SUCCESS, result;
    struct bh_nvml_gpu gpu;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err);

    if (rc != BH_OK)
        return rc;
    result = nvml_call(nvml, mig_mode, gpu.handle, &current, &pending);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot read its MIG mode", uuid);
    if (current == wanted && pending == wanted)
        return BH_OK;
    bh_nvml_activity_forget_gpu(nvml, &gpu);
    result = nvml_call(nvml, set_mig_mode, gpu.handle, wanted, &activation);
    if (result != NVML_SUCCESS) {
        bh_nvml_fail(err, result, "%s: cannot have MIG mode %s", uuid, mode_name(enabled));
        return result == NVML_ERROR_IN_USE ? in_use(nvml, &gpu, enabled, err) : err->rc;
    }
    if (activation != NVML_SUCCESS)
        return not_activated(nvml, &gpu, enabled, activation, err);

    rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err); /* the handle may have gone stale */
    if (rc != BH_OK)
        return rc;
    result = nvml_call(nvml, mig_mode, gpu.handle, &current, &pending);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot read its MIG mode back", uuid);
    if (current != wanted)
        return not_activated(nvml, &gpu, enabled, NVML_ERROR_RESET_REQUIRED, err);
    return BH_OK;
}
