/* Exported calls about memory errors and their repair. */
#include "sim/nvml/nvml.h"

#include <string.h>

#include "sim/machine/partition.h"

static const uint64_t *
ecc_counts_of(const struct sim_gpu *gpu, nvmlMemoryErrorType_t type)
{
    return type == NVML_MEMORY_ERROR_TYPE_CORRECTED ? gpu->ecc.corrected : gpu->ecc.uncorrected;
}

/* A MIG device counts volatile uncorrected errors only. */
static nvmlReturn_t
ecc_put_count(const char *function, nvmlDevice_t device, nvmlMemoryErrorType_t type,
              nvmlEccCounterType_t counter, unsigned long long *count)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, SIM_GPU | SIM_MIG, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if ((unsigned)type >= NVML_MEMORY_ERROR_TYPE_COUNT || (unsigned)counter >= NVML_ECC_COUNTER_TYPE_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (!target.is_mig)
        return SIM_PUT(count, ecc_counts_of(&target.gpu, type)[counter]);
    if (type != NVML_MEMORY_ERROR_TYPE_UNCORRECTED || counter != NVML_VOLATILE_ECC)
        return NVML_ERROR_NOT_SUPPORTED;
    return SIM_PUT(count, target.gi->ecc_uncorrected);
}

NVML_API nvmlReturn_t
nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
                            nvmlEccCounterType_t counterType, unsigned long long *eccCounts)
{
    return ecc_put_count(__func__, device, errorType, counterType, eccCounts);
}

/* All simulated errors lie in SRAM for a MIG device, in DRAM for a board. */
NVML_API nvmlReturn_t
nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
                                nvmlEccCounterType_t counterType, nvmlMemoryLocation_t locationType,
                                unsigned long long *count)
{
    unsigned is_mig = 0;
    nvmlReturn_t rc;

    if ((unsigned)locationType >= NVML_MEMORY_LOCATION_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = ecc_put_count(__func__, device, errorType, counterType, count);
    if (rc == NVML_SUCCESS)
        rc = nvmlDeviceIsMigDeviceHandle(device, &is_mig);
    if (rc == NVML_SUCCESS
        && locationType != (is_mig ? NVML_MEMORY_LOCATION_SRAM : NVML_MEMORY_LOCATION_DRAM))
        *count = 0;
    return rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t errorType,
                               nvmlEccCounterType_t counterType, nvmlEccErrorCounts_t *eccCounts)
{
    unsigned long long count = 0;
    nvmlReturn_t rc = ecc_put_count(__func__, device, errorType, counterType, &count);

    return rc == NVML_SUCCESS ? SIM_PUT(eccCounts, ((nvmlEccErrorCounts_t){ .deviceMemory = count })) : rc;
}

SIM_GET_VERSIONED(nvmlDeviceGetSramEccErrorStatus, nvmlEccSramErrorStatus_t, nvmlEccSramErrorStatus_v1_t_WORD,
                  SIM_GPU | SIM_MIG, .volatileUncSecDed = target.is_mig ? target.gi->ecc_uncorrected : 0)

SIM_GET_TWO(nvmlDeviceGetEccMode, nvmlEnableState_t, SIM_GPU, NVML_FEATURE_ENABLED,
            target.gpu.ecc_mode ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED)

SIM_GET(nvmlDeviceGetDefaultEccMode, nvmlEnableState_t, SIM_GPU, NVML_FEATURE_ENABLED)

NVML_API nvmlReturn_t
nvmlDeviceSetEccMode(nvmlDevice_t device, nvmlEnableState_t ecc)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED, &target);

    if (rc == NVML_SUCCESS)
        rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    draft->gpu[target.gpu.index].ecc_mode = ecc == NVML_FEATURE_ENABLED;
    return sim_change_end(NVML_SUCCESS);
}

NVML_API nvmlReturn_t
nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, nvmlEccCounterType_t counterType)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED, &target);

    if (rc == NVML_SUCCESS && (unsigned)counterType >= NVML_ECC_COUNTER_TYPE_COUNT)
        rc = NVML_ERROR_INVALID_ARGUMENT;
    if (rc == NVML_SUCCESS)
        rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    draft->gpu[target.gpu.index].ecc.corrected[counterType] = 0;
    draft->gpu[target.gpu.index].ecc.uncorrected[counterType] = 0;
    return sim_change_end(NVML_SUCCESS);
}

/* Row remapping took the place of page retirement on all these boards. */
static nvmlReturn_t
ecc_no_pages(const char *function, nvmlDevice_t device)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, SIM_GPU, &target);

    return rc == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetRetiredPages(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,
                          unsigned long long *addresses)
{
    return ecc_no_pages(__func__, device);
}

NVML_API nvmlReturn_t
nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,
                             unsigned long long *addresses, unsigned long long *timestamps)
{
    return ecc_no_pages(__func__, device);
}

NVML_API nvmlReturn_t
nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, nvmlEnableState_t *isPending)
{
    return ecc_no_pages(__func__, device);
}

/* Not answered while MIG instances exist. */
static nvmlReturn_t
ecc_open_rows(const char *function, nvmlDevice_t device, struct sim_target *target)
{
    nvmlReturn_t rc = sim_open(function, device, SIM_GPU, target);

    return rc == NVML_SUCCESS && sim_gi_count(&target->gpu) > 0 ? NVML_ERROR_NOT_SUPPORTED : rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *corrRows, unsigned int *uncRows,
                          unsigned int *isPending, unsigned int *failureOccurred)
{
    struct sim_target target;
    nvmlReturn_t rc = ecc_open_rows(__func__, device, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (corrRows == NULL || uncRows == NULL || isPending == NULL || failureOccurred == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *corrRows = 0;
    *uncRows = target.gpu.ecc.remap_pending;
    *isPending = target.gpu.ecc.remap_pending;
    *failureOccurred = target.gpu.ecc.remap_failure;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info)
{
    struct sim_target target;
    nvmlReturn_t rc = ecc_open_rows(__func__, device, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    return SIM_PUT(info, ((nvmlRemappedRowsInfo_v2_t){ .uncInactiveRemaps = target.gpu.ecc.remap_pending,
                                                       .bPending = target.gpu.ecc.remap_pending,
                                                       .bFailureOccurred = target.gpu.ecc.remap_failure }));
}

NVML_API nvmlReturn_t
nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values)
{
    struct sim_target target;
    nvmlReturn_t rc = ecc_open_rows(__func__, device, &target);

    return rc == NVML_SUCCESS ? SIM_PUT(values, ((nvmlRowRemapperHistogramValues_t){ .max = 640 })) : rc;
}

SIM_GET_VERSIONED(nvmlDeviceGetRepairStatus, nvmlRepairStatus_t, nvmlRepairStatus_v1_t_WORD, SIM_GPU, )

SIM_GET(nvmlDeviceGetUnrepairableMemoryFlag_v1, nvmlUnrepairableMemoryStatus_v1_t, SIM_GPU,
        ((nvmlUnrepairableMemoryStatus_v1_t){ target.gpu.ecc.remap_failure }))

NVML_API nvmlReturn_t
nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    struct sim_target target;

    return sim_open(__func__, device, SIM_GPU, &target);
}
