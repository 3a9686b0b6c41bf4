#include "device/nvml_internal.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Fields of NVML and where their numbers go; two may go to one member: their sum. */
static const struct {
    unsigned int id, scope;
    size_t offset, size;
} fields[] = {
#define TO(member) offsetof(struct bh_device_sensors, member), sizeof(((struct bh_device_sensors *)0)->member)
    { NVML_FI_DEV_MEMORY_TEMP, 0, TO(memory_temperature_c) },
    { NVML_FI_DEV_PCIE_REPLAY_COUNTER, 0, TO(pcie_replays) },
    { NVML_FI_DEV_REMAPPED_UNC, 0, TO(remapped_uncorrectable) },
    { NVML_FI_DEV_REMAPPED_COR, 0, TO(remapped_correctable) },
    { NVML_FI_DEV_REMAPPED_FAILURE, 0, TO(remap_failed) },
    { NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FIELD_SCOPE_ALL, TO(nvlink_kib) },
    { NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_FIELD_SCOPE_ALL, TO(nvlink_kib) },
#undef TO
};

enum { FIELDS = sizeof fields / sizeof fields[0], BYTES_A_KB = 1000 };

static void
nvml_sensors_add_64(uint64_t *total, unsigned long long number)
{
    *total = *total == BH_DEVICE_UNKNOWN_64 ? number : *total + number;
}

static void
nvml_sensors_put_field(struct bh_device_sensors *sensors, size_t at, unsigned long long number)
{
    char *place = (char *)sensors + fields[at].offset;

    if (fields[at].size == sizeof(uint64_t))
        nvml_sensors_add_64((uint64_t *)(void *)place, number);
    else
        *(uint32_t *)(void *)place = (uint32_t)number;
}

static nvmlReturn_t
nvml_sensors_read_fields(struct bh_nvml *nvml, nvmlDevice_t gpu, struct bh_device_sensors *sensors)
{
    nvmlFieldValue_t values[FIELDS] = { 0 };
    nvmlReturn_t result;

    for (size_t i = 0; i < FIELDS; i++) {
        values[i].fieldId = fields[i].id;
        values[i].scopeId = fields[i].scope;
    }
    result = nvml_call(nvml, field_values, gpu, FIELDS, values);
    for (size_t i = 0; result == NVML_SUCCESS && i < FIELDS; i++)
        if (values[i].nvmlReturn == NVML_SUCCESS)
            nvml_sensors_put_field(sensors, i, bh_nvml_field_number(&values[i]));
    return result;
}

/* `*ret_number` stays as it is where the driver does not say. */
static void
nvml_sensors_put_number(nvmlReturn_t result, unsigned int number, uint32_t *ret_number)
{
    if (result == NVML_SUCCESS)
        *ret_number = number;
}

static void
nvml_sensors_read_use(struct bh_nvml *nvml, nvmlDevice_t gpu, struct bh_device_sensors *sensors)
{
    unsigned int number = 0, period_us = 0;
    nvmlUtilization_t rates = { 0 };
    nvmlReturn_t result = nvml_call(nvml, clock, gpu, NVML_CLOCK_SM, &number);

    nvml_sensors_put_number(result, number, &sensors->sm_clock_mhz);
    result = nvml_call(nvml, clock, gpu, NVML_CLOCK_MEM, &number);
    nvml_sensors_put_number(result, number, &sensors->memory_clock_mhz);
    result = nvml_call(nvml, utilisation, gpu, &rates);
    nvml_sensors_put_number(result, rates.memory, &sensors->memory_percent);
    result = nvml_call(nvml, encoder, gpu, &number, &period_us);
    nvml_sensors_put_number(result, number, &sensors->encoder_percent);
    result = nvml_call(nvml, decoder, gpu, &number, &period_us);
    nvml_sensors_put_number(result, number, &sensors->decoder_percent);
}

static void
nvml_sensors_read_memory(struct bh_nvml *nvml, nvmlDevice_t gpu, struct bh_device_sensors *sensors)
{
    nvmlMemory_v2_t memory = { .version = nvmlMemory_v2_t_WORD };
    unsigned long long energy_mj = 0;

    if (nvml_call(nvml, memory_v2, gpu, &memory) == NVML_SUCCESS)
        sensors->reserved_mib = (uint32_t)(memory.reserved >> 20);
    if (nvml_call(nvml, energy, gpu, &energy_mj) == NVML_SUCCESS)
        sensors->energy_mj = energy_mj;
}

/* Larger than the struct of today: a driver of tomorrow may know more features. */
static void
nvml_sensors_read_license(struct bh_nvml *nvml, nvmlDevice_t gpu, struct bh_device_sensors *sensors)
{
    union {
        nvmlGridLicensableFeatures_t features;
        char room[4096];
    } answer = { .room = "" };
    const nvmlGridLicensableFeatures_t *features = &answer.features;

    if (nvml_call(nvml, licenses, gpu, &answer.features) != NVML_SUCCESS)
        return;
    sensors->vgpu_licensed = 0;
    for (unsigned int i = 0; i < NVML_GRID_LICENSE_FEATURE_MAX_COUNT; i++)
        if (i < features->licensableFeaturesCount && features->gridLicensableFeatures[i].featureState != 0)
            sensors->vgpu_licensed = 1;
}

/* Where GPM does not say it the driver watches for 20 ms each. */
static void
nvml_sensors_read_pcie(struct bh_nvml *nvml, const struct bh_nvml_gpu *gpu, struct bh_device_sensors *sensors)
{
    unsigned int transmit_kb = 0, receive_kb = 0;

    bh_nvml_activity_pcie(nvml, gpu, &sensors->pcie_transmit_bytes_s, &sensors->pcie_receive_bytes_s);
    if (sensors->pcie_transmit_bytes_s != BH_DEVICE_UNKNOWN_64
        || nvml_call(nvml, pcie_rate, gpu->handle, NVML_PCIE_UTIL_TX_BYTES, &transmit_kb) != NVML_SUCCESS
        || nvml_call(nvml, pcie_rate, gpu->handle, NVML_PCIE_UTIL_RX_BYTES, &receive_kb) != NVML_SUCCESS)
        return;
    sensors->pcie_transmit_bytes_s = (uint64_t)transmit_kb * BYTES_A_KB;
    sensors->pcie_receive_bytes_s = (uint64_t)receive_kb * BYTES_A_KB;
}

bh_rc
bh_nvml_sensors(void *self, const char *uuid, struct bh_device_sensors *ret_sensors, struct bh_err *err)
{
    struct bh_nvml *nvml = self;
    struct bh_device_sensors sensors;
    struct bh_nvml_gpu gpu;
    bh_rc rc = bh_nvml_gpu_find(nvml, uuid, &gpu, err);

    if (rc != BH_OK)
        return rc;
    memset(&sensors, 0xff, sizeof sensors); /* unknown */
    snprintf(sensors.gpu, sizeof sensors.gpu, "%s", uuid);
    if (bh_nvml_lost(nvml_sensors_read_fields(nvml, gpu.handle, &sensors)))
        return bh_err_set(err, BH_NOT_FOUND, "%s has fallen off the bus", uuid);
    nvml_sensors_read_use(nvml, gpu.handle, &sensors);
    nvml_sensors_read_memory(nvml, gpu.handle, &sensors);
    nvml_sensors_read_license(nvml, gpu.handle, &sensors);
    nvml_sensors_read_pcie(nvml, &gpu, &sensors);
    *ret_sensors = sensors;
    return BH_OK;
}
