/* nvmlDeviceGetFieldValues: one table row per field. */
#include "sim/nvml/nvml.h"

#include "sim/machine/partition.h"
#include "sim/machine/usage.h"

#define FIELD(name, value)                                                                                   \
    case name:                                                                                               \
        *ret_value = (value);                                                                                \
        return NVML_SUCCESS;

/* Fields about rows are blank while MIG instances exist. */
#define ROW_FIELD(name, value)                                                                               \
    case name:                                                                                               \
        if (sim_gi_count(gpu) > 0)                                                                           \
            return NVML_ERROR_NOT_SUPPORTED;                                                                 \
        *ret_value = (value);                                                                                \
        return NVML_SUCCESS;

static nvmlReturn_t
get_field(const struct sim_target *target, unsigned id, unsigned long long *ret_value)
{
    const struct sim_gpu *gpu = &target->gpu;

    switch (id) {
        FIELD(NVML_FI_DEV_ECC_CURRENT, 1)
        FIELD(NVML_FI_DEV_ECC_PENDING, gpu->ecc_mode)
        FIELD(NVML_FI_DEV_ECC_SBE_VOL_TOTAL, gpu->ecc.corrected[NVML_VOLATILE_ECC])
        FIELD(NVML_FI_DEV_ECC_DBE_VOL_TOTAL, gpu->ecc.uncorrected[NVML_VOLATILE_ECC])
        FIELD(NVML_FI_DEV_ECC_SBE_AGG_TOTAL, gpu->ecc.corrected[NVML_AGGREGATE_ECC])
        FIELD(NVML_FI_DEV_ECC_DBE_AGG_TOTAL, gpu->ecc.uncorrected[NVML_AGGREGATE_ECC])
        FIELD(NVML_FI_DEV_MEMORY_TEMP, sim_temperature_c(gpu) + 6)
        FIELD(NVML_FI_DEV_PCIE_REPLAY_COUNTER, 0)
        FIELD(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0) /* no simulated work sends by it */
        FIELD(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 0)
        ROW_FIELD(NVML_FI_DEV_REMAPPED_COR, 0)
        ROW_FIELD(NVML_FI_DEV_REMAPPED_UNC, gpu->ecc.remap_pending)
        ROW_FIELD(NVML_FI_DEV_REMAPPED_PENDING, gpu->ecc.remap_pending)
        ROW_FIELD(NVML_FI_DEV_REMAPPED_FAILURE, gpu->ecc.remap_failure)
        FIELD(NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, target->model->arch >= NVML_DEVICE_ARCH_HOPPER)
        FIELD(NVML_FI_DEV_POWER_AVERAGE, sim_power_mw(gpu))
        FIELD(NVML_FI_DEV_POWER_INSTANT, sim_power_mw(gpu))
        FIELD(NVML_FI_DEV_POWER_MIN_LIMIT, target->model->board_w * 500u)
        FIELD(NVML_FI_DEV_POWER_MAX_LIMIT, target->model->board_w * 1000u)
        FIELD(NVML_FI_DEV_POWER_DEFAULT_LIMIT, target->model->board_w * 1000u)
        FIELD(NVML_FI_DEV_POWER_CURRENT_LIMIT, gpu->power_limit_mw)
        FIELD(NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE, 1)
        FIELD(NVML_FI_DEV_PERF_POLICY_POWER, 0)
        FIELD(NVML_FI_DEV_PERF_POLICY_THERMAL, gpu->ecc.thermal_ms * 1000000ull)
        FIELD(NVML_FI_DEV_RESET_STATUS, gpu->ecc.recovery == NVML_GPU_RECOVERY_ACTION_GPU_RESET)
        FIELD(NVML_FI_DEV_DRAIN_AND_RESET_STATUS,
              gpu->ecc.recovery == NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET)
        FIELD(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, gpu->ecc.recovery)
    default:
        return NVML_ERROR_NOT_SUPPORTED;
    }
}

NVML_API nvmlReturn_t
nvmlDeviceGetFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (values == NULL || valuesCount <= 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < valuesCount; i++) {
        unsigned long long number = 0;

        values[i].nvmlReturn = get_field(&target, values[i].fieldId, &number);
        values[i].timestamp = (long long)sim_wall_us();
        values[i].latencyUsec = 0;
        values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        values[i].value.ullVal = number;
    }
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceClearFieldValues(nvmlDevice_t device, int valuesCount, nvmlFieldValue_t *values)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    for (int i = 0; values != NULL && i < valuesCount; i++)
        values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    return values == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}
