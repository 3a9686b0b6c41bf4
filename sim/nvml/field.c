/* nvmlDeviceGetFieldValues: one table row per field. */
#include "sim/nvml/nvml.h"

#include "sim/machine/partition.h"
#include "sim/machine/usage.h"

struct field {
    unsigned id;
    nvmlReturn_t (*get)(const struct sim_target *target, unsigned long long *ret_value);
};

#define FIELD(name, value)                                                                                   \
    static nvmlReturn_t name(const struct sim_target *target, unsigned long long *ret_value)                 \
    {                                                                                                        \
        const struct sim_gpu *gpu = &target->gpu;                                                            \
                                                                                                             \
        (void)gpu;                                                                                           \
        *ret_value = (value);                                                                                \
        return NVML_SUCCESS;                                                                                 \
    }

/* Fields about rows are blank while MIG instances exist. */
#define ROW_FIELD(name, value)                                                                               \
    static nvmlReturn_t name(const struct sim_target *target, unsigned long long *ret_value)                 \
    {                                                                                                        \
        const struct sim_gpu *gpu = &target->gpu;                                                            \
                                                                                                             \
        if (sim_gi_count(gpu) > 0)                                                                           \
            return NVML_ERROR_NOT_SUPPORTED;                                                                 \
        *ret_value = (value);                                                                                \
        return NVML_SUCCESS;                                                                                 \
    }

FIELD(ecc_current, 1)
FIELD(ecc_pending, gpu->ecc_mode)
FIELD(corrected_volatile, gpu->ecc.corrected[NVML_VOLATILE_ECC])
FIELD(uncorrected_volatile, gpu->ecc.uncorrected[NVML_VOLATILE_ECC])
FIELD(corrected_aggregate, gpu->ecc.corrected[NVML_AGGREGATE_ECC])
FIELD(uncorrected_aggregate, gpu->ecc.uncorrected[NVML_AGGREGATE_ECC])
FIELD(memory_temperature, sim_temperature_c(gpu) + 6)
FIELD(no_errors, 0)
ROW_FIELD(rows_corrected, 0)
ROW_FIELD(rows_uncorrected, gpu->ecc.remap_pending)
ROW_FIELD(rows_pending, gpu->ecc.remap_pending)
ROW_FIELD(rows_failure, gpu->ecc.remap_failure)
FIELD(resetless, target->model->arch >= NVML_DEVICE_ARCH_HOPPER)
FIELD(power, sim_power_mw(gpu))
FIELD(power_least, target->model->board_w * 500u)
FIELD(power_most, target->model->board_w * 1000u)
FIELD(power_limit, gpu->power_limit_mw)
FIELD(independent_query, 1)
FIELD(recovery, gpu->ecc.recovery)
FIELD(reset_wanted, gpu->ecc.recovery == NVML_GPU_RECOVERY_ACTION_GPU_RESET)
FIELD(drain_wanted, gpu->ecc.recovery == NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET)
FIELD(thermal, gpu->ecc.thermal_ms * 1000000ull)

static const struct field fields[] = {
    { NVML_FI_DEV_ECC_CURRENT, ecc_current },
    { NVML_FI_DEV_ECC_PENDING, ecc_pending },
    { NVML_FI_DEV_ECC_SBE_VOL_TOTAL, corrected_volatile },
    { NVML_FI_DEV_ECC_DBE_VOL_TOTAL, uncorrected_volatile },
    { NVML_FI_DEV_ECC_SBE_AGG_TOTAL, corrected_aggregate },
    { NVML_FI_DEV_ECC_DBE_AGG_TOTAL, uncorrected_aggregate },
    { NVML_FI_DEV_MEMORY_TEMP, memory_temperature },
    { NVML_FI_DEV_PCIE_REPLAY_COUNTER, no_errors },
    { NVML_FI_DEV_REMAPPED_COR, rows_corrected },
    { NVML_FI_DEV_REMAPPED_UNC, rows_uncorrected },
    { NVML_FI_DEV_REMAPPED_PENDING, rows_pending },
    { NVML_FI_DEV_REMAPPED_FAILURE, rows_failure },
    { NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED, resetless },
    { NVML_FI_DEV_POWER_AVERAGE, power },
    { NVML_FI_DEV_POWER_INSTANT, power },
    { NVML_FI_DEV_POWER_MIN_LIMIT, power_least },
    { NVML_FI_DEV_POWER_MAX_LIMIT, power_most },
    { NVML_FI_DEV_POWER_DEFAULT_LIMIT, power_most },
    { NVML_FI_DEV_POWER_CURRENT_LIMIT, power_limit },
    { NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE, independent_query },
    { NVML_FI_DEV_PERF_POLICY_POWER, no_errors },
    { NVML_FI_DEV_PERF_POLICY_THERMAL, thermal },
    { NVML_FI_DEV_RESET_STATUS, reset_wanted },
    { NVML_FI_DEV_DRAIN_AND_RESET_STATUS, drain_wanted },
    { NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, recovery },
};

static nvmlReturn_t
get_field(const struct sim_target *target, unsigned id, unsigned long long *ret_value)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].id == id)
            return fields[i].get(target, ret_value);
    return NVML_ERROR_NOT_SUPPORTED;
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
