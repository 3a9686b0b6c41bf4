/* Exported calls about memory, utilisation, power, heat and clocks. */
#include "sim/nvml/nvml.h"

#include <string.h>

#include "sim/machine/publish.h"
#include "sim/machine/usage.h"

#define ANY (SIM_GPU | SIM_MIG)

nvmlReturn_t
sim_open_whole(const char *function, nvmlDevice_t device, struct sim_target *target)
{
    nvmlReturn_t rc = sim_open(function, device, ANY, target);

    if (rc == NVML_SUCCESS && !target->is_mig && target->gpu.mig_current != 0 && !target->privileged)
        return NVML_ERROR_NO_PERMISSION;
    return rc;
}

NVML_API nvmlReturn_t
nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open_whole(__func__, device, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    memory->total = sim_memory_bytes(&target.gpu, target.gi);
    memory->used = sim_used_bytes(&target.gpu, target.gi);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open_whole(__func__, device, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != nvmlMemory_v2_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memory->total = sim_memory_bytes(&target.gpu, target.gi);
    memory->reserved = 0;
    memory->used = sim_used_bytes(&target.gpu, target.gi);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

/* No virtual GPU: there is nothing to license. */
SIM_GET(nvmlDeviceGetGridLicensableFeatures_v4, nvmlGridLicensableFeatures_t, SIM_GPU,
        (nvmlGridLicensableFeatures_t){ 0 })

NVML_API nvmlReturn_t
nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *bar1Memory)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open_whole(__func__, device, &target);
    uint64_t total = 0;

    if (rc != NVML_SUCCESS)
        return rc;
    if (bar1Memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    total = sim_memory_bytes(&target.gpu, target.gi);
    *bar1Memory = (nvmlBAR1Memory_t){ .bar1Total = total, .bar1Free = total };
    return NVML_SUCCESS;
}

NVML_API nvmlReturn_t
nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_UNDIVIDED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (utilization == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    utilization->gpu = sim_utilization(&target.gpu, NULL);
    utilization->memory = utilization->gpu / 2;
    return NVML_SUCCESS;
}

/* No simulated work uses the media engines. */
SIM_GET_TWO(nvmlDeviceGetEncoderUtilization, unsigned int, SIM_GPU | SIM_UNDIVIDED, 0, 100000)
SIM_GET_TWO(nvmlDeviceGetDecoderUtilization, unsigned int, SIM_GPU | SIM_UNDIVIDED, 0, 100000)
SIM_GET_TWO(nvmlDeviceGetJpgUtilization, unsigned int, SIM_GPU | SIM_UNDIVIDED, 0, 100000)
SIM_GET_TWO(nvmlDeviceGetOfaUtilization, unsigned int, SIM_GPU | SIM_UNDIVIDED, 0, 100000)

/* One sample, of now. */
NVML_API nvmlReturn_t
nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long lastSeenTimeStamp,
                     nvmlValueType_t *sampleValType, unsigned int *sampleCount, nvmlSample_t *samples)
{
    struct sim_target target;
    unsigned wants = type == NVML_TOTAL_POWER_SAMPLES ? SIM_GPU : SIM_GPU | SIM_UNDIVIDED;
    nvmlReturn_t rc = sim_open(__func__, device, wants, &target);
    unsigned value;

    if (rc != NVML_SUCCESS)
        return rc;
    if (sampleCount == NULL || sampleValType == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (type == NVML_TOTAL_POWER_SAMPLES)
        value = sim_power_mw(&target.gpu);
    else if (type == NVML_GPU_UTILIZATION_SAMPLES)
        value = sim_utilization(&target.gpu, NULL);
    else
        return NVML_ERROR_NOT_SUPPORTED;
    *sampleValType = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples != NULL && *sampleCount >= 1)
        samples[0] = (nvmlSample_t){ .timeStamp = sim_wall_us(), .sampleValue = { .uiVal = value } };
    *sampleCount = 1;
    return NVML_SUCCESS;
}

SIM_GET(nvmlDeviceGetPowerUsage, unsigned int, SIM_GPU, sim_power_mw(&target.gpu))
SIM_GET(nvmlDeviceGetPowerManagementMode, nvmlEnableState_t, SIM_GPU, NVML_FEATURE_ENABLED)
SIM_GET(nvmlDeviceGetPowerManagementLimit, unsigned int, SIM_GPU, target.gpu.power_limit_mw)
SIM_GET(nvmlDeviceGetEnforcedPowerLimit, unsigned int, SIM_GPU, target.gpu.power_limit_mw)
SIM_GET(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, SIM_GPU, target.model->board_w * 1000)
SIM_GET(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, SIM_GPU,
        sim_utilization(&target.gpu, NULL) == 0 ? 1u : 0u)
SIM_GET(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, SIM_GPU, 0x1ff)
SIM_GET(nvmlDeviceGetPerformanceState, nvmlPstates_t, SIM_GPU, NVML_PSTATE_0)
SIM_ALIAS(nvmlDeviceGetCurrentClocksThrottleReasons, nvmlDeviceGetCurrentClocksEventReasons);
SIM_ALIAS(nvmlDeviceGetSupportedClocksThrottleReasons, nvmlDeviceGetSupportedClocksEventReasons);
SIM_ALIAS(nvmlDeviceGetPowerState, nvmlDeviceGetPerformanceState);

/* Idle draw since the state file was made: never falls, whatever ends. */
NVML_API nvmlReturn_t
nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
    struct sim_target target;
    struct sim_system system;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    sim_session_system(&system);
    uint64_t seconds = sim_wall_us() / 1000000 - system.created_ns / 1000000000;
    return SIM_PUT(energy, seconds * target.model->board_w * 150);
}

SIM_GET_TWO(nvmlDeviceGetPowerManagementLimitConstraints, unsigned int, SIM_GPU,
            target.model->board_w * 1000 / 2, target.model->board_w * 1000)

NVML_API nvmlReturn_t
nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit)
{
    struct sim_target target;
    struct sim_state *draft;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU | SIM_PRIVILEGED, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (limit < target.model->board_w * 1000 / 2 || limit > target.model->board_w * 1000)
        return NVML_ERROR_INVALID_ARGUMENT;
    rc = sim_change_begin(&draft);
    if (rc != NVML_SUCCESS)
        return rc;
    draft->gpu[target.gpu.index].power_limit_mw = limit;
    return sim_change_end(NVML_SUCCESS);
}

NVML_API nvmlReturn_t
nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    return SIM_PUT(temp, sim_temperature_c(&target.gpu));
}

NVML_API nvmlReturn_t
nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if (temperature == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != nvmlTemperature_v1_t_WORD)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    temperature->temperature = (int)sim_temperature_c(&target.gpu);
    return NVML_SUCCESS;
}

static const unsigned thresholds_c[] = { 92, 89, 95, 87 }; /* by nvmlTemperatureThresholds_t */

NVML_API nvmlReturn_t
nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t thresholdType,
                                  unsigned int *temp)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if ((unsigned)thresholdType >= NVML_TEMPERATURE_THRESHOLD_COUNT)
        return NVML_ERROR_INVALID_ARGUMENT;
    if ((unsigned)thresholdType > NVML_TEMPERATURE_THRESHOLD_GPU_MAX)
        return NVML_ERROR_NOT_SUPPORTED;
    return SIM_PUT(temp, thresholds_c[thresholdType]);
}

SIM_GET_VERSIONED(nvmlDeviceGetMarginTemperature, nvmlMarginTemperature_t, nvmlMarginTemperature_v1_t_WORD,
                  SIM_GPU,
                  .marginTemperature = (int)(thresholds_c[NVML_TEMPERATURE_THRESHOLD_GPU_MAX]
                                             - sim_temperature_c(&target.gpu)))

/* MHz by nvmlClockType_t: idle and under load. */
static const unsigned clocks_mhz[][2] = { { 345, 1980 }, { 345, 1980 }, { 2619, 2619 }, { 765, 1545 } };

static nvmlReturn_t
usage_put_clock(const char *function, nvmlDevice_t device, nvmlClockType_t type, bool most, unsigned *clock)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(function, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    if ((unsigned)type >= sizeof(clocks_mhz) / sizeof(clocks_mhz[0]))
        return NVML_ERROR_INVALID_ARGUMENT;
    return SIM_PUT(clock, clocks_mhz[type][most || sim_utilization(&target.gpu, NULL) > 0]);
}

#define CLOCK(name, most)                                                                                    \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)               \
    {                                                                                                        \
        return usage_put_clock(__func__, device, type, most, clock);                                         \
    }

CLOCK(nvmlDeviceGetClockInfo, false)

CLOCK(nvmlDeviceGetMaxClockInfo, true)

/* None others were set: they are the most. */
CLOCK(nvmlDeviceGetDefaultApplicationsClock, true)

CLOCK(nvmlDeviceGetApplicationsClock, true)

NVML_API nvmlReturn_t
nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t clockType, nvmlClockId_t clockId,
                   unsigned int *clockMHz)
{
    return usage_put_clock(__func__, device, clockType, clockId != NVML_CLOCK_ID_CURRENT, clockMHz);
}

NVML_API nvmlReturn_t
nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t perfPolicyType,
                             nvmlViolationTime_t *violTime)
{
    struct sim_target target;
    nvmlReturn_t rc = sim_open(__func__, device, SIM_GPU, &target);

    if (rc != NVML_SUCCESS)
        return rc;
    return SIM_PUT(violTime, ((nvmlViolationTime_t){ .referenceTime = sim_wall_us() }));
}
