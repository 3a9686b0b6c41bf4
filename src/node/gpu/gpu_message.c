#include "node/gpu/gpu_message.h"

static const char *const rc_names[] = {
#define BH_ERROR(code, name, http, exit_status, retryable, doc) [BH_##code] = name,
#include "tables/errors.tbl"
#undef BH_ERROR
};

static const char *const sys_names[] = {
    [BH_SYS_NONE] = "none", [BH_SYS_ERRNO] = "errno", [BH_SYS_NVML] = "nvml",
    [BH_SYS_CUDA] = "cuda", [BH_SYS_SQL] = "sql",     [BH_SYS_TLS] = "tls",
};

static const struct bh_field activity_fields[] = {
    BH_F(struct bh_device_activity, busy_bp, BH_FIELD_U32),
    BH_F(struct bh_device_activity, dram_bp, BH_FIELD_U32),
    BH_F(struct bh_device_activity, sm_bp, BH_FIELD_U32),
    BH_F(struct bh_device_activity, tensor_bp, BH_FIELD_U32),
};
static const struct bh_fields activity = BH_FIELDS("activity", struct bh_device_activity, activity_fields);

static const struct bh_field gpu_fields[] = {
    BH_F(struct bh_device_gpu, activity, BH_FIELD_STRUCT, .of = &activity),
    BH_F(struct bh_device_gpu, ecc_uncorrected, BH_FIELD_U64),
    BH_F(struct bh_device_gpu, index, BH_FIELD_U32),
    BH_F(struct bh_device_gpu, lost, BH_FIELD_BOOL),
    BH_F(struct bh_device_gpu, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_device_gpu, memory_used_mib, BH_FIELD_U64),
    BH_F(struct bh_device_gpu, mig_capable, BH_FIELD_BOOL),
    BH_F(struct bh_device_gpu, mig_enabled, BH_FIELD_BOOL),
    BH_F(struct bh_device_gpu, minor, BH_FIELD_U32),
    BH_F(struct bh_device_gpu, pci, BH_FIELD_STR),
    BH_F(struct bh_device_gpu, power_mw, BH_FIELD_U32),
    BH_F(struct bh_device_gpu, product, BH_FIELD_STR),
    BH_F(struct bh_device_gpu, temperature_c, BH_FIELD_U32),
    BH_F(struct bh_device_gpu, utilisation, BH_FIELD_U32),
    BH_F(struct bh_device_gpu, uuid, BH_FIELD_STR),
};
static const struct bh_fields gpu = BH_FIELDS("gpu", struct bh_device_gpu, gpu_fields);

static const struct bh_field instance_fields[] = {
    BH_F(struct bh_device_instance, activity, BH_FIELD_STRUCT, .of = &activity),
    BH_F(struct bh_device_instance, ci, BH_FIELD_U32),
    BH_F(struct bh_device_instance, ci_minor, BH_FIELD_U32),
    BH_F(struct bh_device_instance, gi, BH_FIELD_U32),
    BH_F(struct bh_device_instance, gi_minor, BH_FIELD_U32),
    BH_F(struct bh_device_instance, gpu, BH_FIELD_STR),
    BH_F(struct bh_device_instance, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_device_instance, memory_used_mib, BH_FIELD_U32),
    BH_F(struct bh_device_instance, profile, BH_FIELD_STR),
    BH_F(struct bh_device_instance, size, BH_FIELD_U32),
    BH_F(struct bh_device_instance, start, BH_FIELD_U32),
    BH_F(struct bh_device_instance, uuid, BH_FIELD_STR),
};
static const struct bh_fields instance = BH_FIELDS("instance", struct bh_device_instance, instance_fields);

static const struct bh_field sensors_fields[] = {
    BH_F(struct bh_device_sensors, decoder_percent, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, encoder_percent, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, energy_mj, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, gpu, BH_FIELD_STR),
    BH_F(struct bh_device_sensors, memory_clock_mhz, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, memory_percent, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, memory_temperature_c, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, nvlink_kib, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, pcie_receive_bytes_s, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, pcie_replays, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, pcie_transmit_bytes_s, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, remap_failed, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, remapped_correctable, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, remapped_uncorrectable, BH_FIELD_U64),
    BH_F(struct bh_device_sensors, reserved_mib, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, sm_clock_mhz, BH_FIELD_U32),
    BH_F(struct bh_device_sensors, vgpu_licensed, BH_FIELD_U32),
};
static const struct bh_fields sensors = BH_FIELDS("sensors", struct bh_device_sensors, sensors_fields);

static const struct bh_field process_fields[] = {
    BH_F(struct bh_device_process, ci, BH_FIELD_U32),
    BH_F(struct bh_device_process, gi, BH_FIELD_U32),
    BH_F(struct bh_device_process, memory_mib, BH_FIELD_U64),
    BH_F(struct bh_device_process, pid, BH_FIELD_U32),
};
static const struct bh_fields process = BH_FIELDS("process", struct bh_device_process, process_fields);

static const struct bh_field busy_fields[] = {
    BH_F(struct bh_device_busy, percent, BH_FIELD_U32),
    BH_F(struct bh_device_busy, pid, BH_FIELD_U32),
};
static const struct bh_fields busy = BH_FIELDS("busy", struct bh_device_busy, busy_fields);

static const struct bh_field health_fields[] = {
    BH_F(struct bh_device_health, drain_wanted, BH_FIELD_BOOL),
    BH_F(struct bh_device_health, ecc_corrected, BH_FIELD_U64),
    BH_F(struct bh_device_health, ecc_uncorrected, BH_FIELD_U64),
    BH_F(struct bh_device_health, nvlink_crc, BH_FIELD_U64),
    BH_F(struct bh_device_health, nvlink_replays, BH_FIELD_U64),
    BH_F(struct bh_device_health, pcie_replays, BH_FIELD_U64),
    BH_F(struct bh_device_health, power_ns, BH_FIELD_U64),
    BH_F(struct bh_device_health, recovery, BH_FIELD_U32),
    BH_F(struct bh_device_health, remap_failed, BH_FIELD_BOOL),
    BH_F(struct bh_device_health, remap_pending, BH_FIELD_BOOL),
    BH_F(struct bh_device_health, reset_wanted, BH_FIELD_BOOL),
    BH_F(struct bh_device_health, retired_pending, BH_FIELD_BOOL),
    BH_F(struct bh_device_health, thermal_ns, BH_FIELD_U64),
};
static const struct bh_fields health = BH_FIELDS("health", struct bh_device_health, health_fields);

static const struct bh_field ask_fields[] = {
    BH_F(struct bh_gpu_request, call, BH_FIELD_U64),    BH_F(struct bh_gpu_request, enabled, BH_FIELD_BOOL),
    BH_F(struct bh_gpu_request, gi, BH_FIELD_U32),      BH_F(struct bh_gpu_request, gpu, BH_FIELD_STR),
    BH_F(struct bh_gpu_request, profile, BH_FIELD_STR), BH_F(struct bh_gpu_request, since_us, BH_FIELD_U64),
    BH_F(struct bh_gpu_request, start, BH_FIELD_U32),
};

static const struct bh_field answer_fields[] = {
    BH_F(struct bh_gpu_response, busy, BH_FIELD_LIST, .of = &busy),
    BH_F(struct bh_gpu_response, call, BH_FIELD_U64),
    BH_F(struct bh_gpu_response, driver, BH_FIELD_STR),
    BH_F(struct bh_gpu_response, gpus, BH_FIELD_LIST, .of = &gpu),
    BH_F(struct bh_gpu_response, healths, BH_FIELD_LIST, .of = &health),
    BH_F(struct bh_gpu_response, hint, BH_FIELD_STR),
    BH_F(struct bh_gpu_response, instances, BH_FIELD_LIST, .of = &instance),
    BH_F(struct bh_gpu_response, msg, BH_FIELD_STR),
    BH_F(struct bh_gpu_response, processes, BH_FIELD_LIST, .of = &process),
    BH_F_ENUM(struct bh_gpu_response, rc, rc_names),
    BH_F(struct bh_gpu_response, sensors, BH_FIELD_LIST, .of = &sensors),
    BH_F(struct bh_gpu_response, sys, BH_FIELD_I32),
    BH_F_ENUM(struct bh_gpu_response, sys_kind, sys_names),
};

static const struct bh_field event_fields[] = {
    BH_F(struct bh_device_event, gi, BH_FIELD_U32),
    BH_F(struct bh_device_event, gpu, BH_FIELD_STR),
    BH_F(struct bh_device_event, xid, BH_FIELD_U32),
};

static const struct bh_fields messages[] = {
    [BH_GPU_MSG_SCAN] = BH_FIELDS("scan", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_SET_MIG] = BH_FIELDS("set_mig", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_CARVE] = BH_FIELDS("carve", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_DESTROY] = BH_FIELDS("destroy", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_PROCESSES] = BH_FIELDS("processes", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_BUSY] = BH_FIELDS("busy", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_HEALTH] = BH_FIELDS("health", struct bh_gpu_request, ask_fields),
    [BH_GPU_MSG_RESPONSE] = BH_FIELDS("answer", struct bh_gpu_response, answer_fields),
    [BH_GPU_MSG_EVENT] = BH_FIELDS("event", struct bh_device_event, event_fields),
};

const struct bh_fields *
bh_gpu_message_fields(uint32_t number)
{
    if (number >= BH_COUNT(messages) || !messages[number].name)
        return NULL;
    return &messages[number];
}
