#include "device/nvml_internal.h"

#include <stddef.h>

/* A field of NVML and where it goes; one that the board or the driver does not have stays 0. */
static const struct {
    unsigned int id;
    size_t offset;
    enum { FLAG, COUNT, ACTION } kind;
} fields[] = {
#define TO(member) offsetof(struct bh_device_health, member)
    { NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, TO(recovery), ACTION },
    { NVML_FI_DEV_RESET_STATUS, TO(reset_wanted), FLAG },
    { NVML_FI_DEV_DRAIN_AND_RESET_STATUS, TO(drain_wanted), FLAG },
    { NVML_FI_DEV_REMAPPED_PENDING, TO(remap_pending), FLAG },
    { NVML_FI_DEV_REMAPPED_FAILURE, TO(remap_failed), FLAG },
    { NVML_FI_DEV_RETIRED_PENDING, TO(retired_pending), FLAG },
    { NVML_FI_DEV_ECC_DBE_VOL_TOTAL, TO(ecc_uncorrected), COUNT },
    { NVML_FI_DEV_ECC_SBE_VOL_TOTAL, TO(ecc_corrected), COUNT },
    { NVML_FI_DEV_PCIE_REPLAY_COUNTER, TO(pcie_replays), COUNT },
    { NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, TO(nvlink_replays), COUNT },
    { NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, TO(nvlink_replays), COUNT },
    { NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, TO(nvlink_crc), COUNT },
    { NVML_FI_DEV_PERF_POLICY_THERMAL, TO(thermal_ns), COUNT },
    { NVML_FI_DEV_PERF_POLICY_POWER, TO(power_ns), COUNT },
#undef TO
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

unsigned long long
bh_nvml_field_number(const nvmlFieldValue_t *value)
{
    if (value->valueType == NVML_VALUE_TYPE_UNSIGNED_INT)
        return value->value.uiVal;
    if (value->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG)
        return value->value.ulVal;
    return value->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG ? value->value.ullVal : 0;
}

/* Two fields may go to one member: their sum. */
static void
nvml_health_read(struct bh_device_health *health, size_t at, unsigned long long number)
{
    char *place = (char *)health + fields[at].offset;

    if (fields[at].kind == FLAG)
        *(bool *)place = number != 0;
    else if (fields[at].kind == COUNT)
        *(uint64_t *)(void *)place += number;
    else
        *(uint32_t *)(void *)place = (uint32_t)number;
}

bh_rc
bh_nvml_health(void *self, const char *uuid, struct bh_device_health *ret_health, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    struct bh_device_health health = { .recovery = UINT32_MAX };
    nvmlFieldValue_t values[FIELDS] = { 0 };
    struct bh_nvml_gpu gpu;
    nvmlReturn_t result;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err);

    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < FIELDS; i++)
        values[i].fieldId = fields[i].id;
    result = nvml_call(nvml, field_values, gpu.handle, FIELDS, values);
    if (bh_nvml_lost(result))
        return bh_err_set(err, BH_NOT_FOUND, "%s has fallen off the bus", uuid);
    if (result != NVML_SUCCESS)
        return bh_nvml_fail(err, result, "%s: cannot read its health", uuid);
    for (size_t i = 0; i < FIELDS; i++) {
        if (bh_nvml_lost(values[i].nvmlReturn))
            return bh_err_set(err, BH_NOT_FOUND, "%s has fallen off the bus", uuid);
        if (values[i].nvmlReturn == NVML_SUCCESS)
            nvml_health_read(&health, i, bh_nvml_field_number(&values[i]));
    }
    *ret_health = health;
    return BH_OK;
}
