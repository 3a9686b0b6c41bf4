/* Exported calls that read and switch the modes of a GPU. */
#include "sim/nvml/nvml.h"

#include "sim/machine/partition.h"
#include "sim/machine/usage.h"

SIM_GET_TWO(nvmlDeviceGetMigMode, unsigned int, SIM_GPU, target.gpu.mig_current, target.gpu.mig_pending)

NVML_API nvmlReturn_t
nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activationStatus)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED | SIM_MIG_INVALID, &target);
    bool busy;

    if (rc != NVML_SUCCESS)
        return rc;
    if (mode > NVML_DEVICE_MIG_ENABLE || activationStatus == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    busy = sim_users_any(&target.gpu, NULL);
    rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    *activationStatus = sim_mig_request(draft, &draft->gpu[target.gpu.index], mode, busy);
    return sim_change_end(NVML_SUCCESS);
}

/* On a divided GPU the compute mode belongs to the MIG device; there only the
 * default can be had. */
SIM_GET(nvmlDeviceGetComputeMode, nvmlComputeMode_t, SIM_GPU | SIM_MIG,
        target.is_mig ? NVML_COMPUTEMODE_DEFAULT : (nvmlComputeMode_t)target.gpu.compute_mode)

NVML_API nvmlReturn_t
nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED | SIM_UNDIVIDED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (mode == NVML_COMPUTEMODE_EXCLUSIVE_THREAD)
        return NVML_ERROR_NOT_SUPPORTED;
    if ((unsigned)mode >= NVML_COMPUTEMODE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    draft->gpu[target.gpu.index].compute_mode = mode;
    return sim_change_end(NVML_SUCCESS);
}

SIM_GET(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, SIM_GPU,
        target.gpu.persistence ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED)

NVML_API nvmlReturn_t
nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED, &target);

    if (rc == NVML_SUCCESS)
        rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    draft->gpu[target.gpu.index].persistence = mode == NVML_FEATURE_ENABLED;
    return sim_change_end(NVML_SUCCESS);
}
