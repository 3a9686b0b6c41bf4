#include "wire/message.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/attr.h"
#include "model/boundary.h"
#include "model/job.h"
#include "model/share.h"

static const char *const fault_names[BH_FAULTS] = {
    [BH_FAULT_NONE] = "none", [BH_FAULT_LOST] = "lost",        [BH_FAULT_HUNG] = "hung",
    [BH_FAULT_XID] = "xid",   [BH_FAULT_HEALTH_RULE] = "sign", [BH_FAULT_ISOLATION] = "isolation",
};

const char *const bh_check_result_names[BH_CHECK_RESULTS] = {
    [BH_CHECK_INCONCLUSIVE] = "inconclusive",
    [BH_CHECK_PASS] = "pass",
    [BH_CHECK_FAIL] = "fail",
};

static const char *const isolation_names[BH_ISOLATION_STATES] = {
    [BH_ISOLATION_UNCHECKED] = "untried",       [BH_ISOLATION_PASSED] = "verified",
    [BH_ISOLATION_INCONCLUSIVE] = "unfinished", [BH_ISOLATION_FAILED] = "broken",
    [BH_ISOLATION_PARTLY_FAILED] = "partly",
};

const char *const bh_job_notice_names[BH_JOB_NOTICES] = {
#define BH_JOB_NOTICE(id, number, name, sentence) [number] = name,
#include "tables/job_notices.tbl"
#undef BH_JOB_NOTICE
};
const char *const bh_job_notice_sentences[BH_JOB_NOTICES] = {
#define BH_JOB_NOTICE(id, number, name, sentence) [number] = sentence,
#include "tables/job_notices.tbl"
#undef BH_JOB_NOTICE
};

static const char *const outcome_names[] = { "done", "failed", "context-held", "unclean" };

const char *const bh_driver_scrub_names[BH_DRIVER_SCRUBS] = {
    [BH_DRIVER_SCRUB_UNKNOWN] = "unknown",
    [BH_DRIVER_SCRUB_ON] = "on",
    [BH_DRIVER_SCRUB_OFF] = "off",
};
const char *const bh_scrub_method_names[BH_SCRUB_METHODS] = {
    [BH_SCRUB_NONE] = "none",
    [BH_SCRUB_RECREATE] = "recreate",
    [BH_SCRUB_FILL] = "fill",
    [BH_SCRUB_EARLIER] = "earlier",
};
const char *const bh_scrub_result_names[BH_SCRUB_RESULTS] = {
    [BH_SCRUB_CLEAN] = "clean",     [BH_SCRUB_UNSAMPLED] = "unsampled",     [BH_SCRUB_FAILED] = "failed",
    [BH_SCRUB_PARTIAL] = "partial", [BH_SCRUB_INTERRUPTED] = "interrupted",
};

const char *const bh_image_stage_names[BH_IMAGE_STAGES] = {
    [BH_IMAGE_READY] = "ready",
    [BH_IMAGE_FETCHING] = "fetching",
    [BH_IMAGE_CHECKING] = "checking",
    [BH_IMAGE_UNPACKING] = "unpacking",
};

static const char *const rc_names[] = {
#define BH_ERROR(code, name, http, exit_status, retryable, doc) [BH_##code] = name,
#include "tables/errors.tbl"
#undef BH_ERROR
};

static const char *const stdio_names[BH_STDIOS] = { "none", "pipe", "terminal" };
static const char *const stream_names[BH_STREAM_WHATS] = { "exec", "attach", "forward", "watch" };

/* ---- bulkheadd to bulkhead-node ---- */

static const struct bh_field epoch_fields[] = {
    BH_F(struct bh_msg_epoch, id, BH_FIELD_U32),        BH_F(struct bh_msg_epoch, job, BH_FIELD_U64),
    BH_F(struct bh_msg_epoch, lease, BH_FIELD_U64),     BH_F(struct bh_msg_epoch, order, BH_FIELD_U64),
    BH_F(struct bh_msg_epoch, partition, BH_FIELD_U64),
};
static const struct bh_fields epoch_of_store = BH_FIELDS("epoch", struct bh_msg_epoch, epoch_fields);

static const struct bh_field hello_fields[] = {
    BH_F(struct bh_msg_hello, boot, BH_FIELD_U64),
    BH_F(struct bh_msg_hello, epochs, BH_FIELD_LIST, .of = &epoch_of_store, .max = BH_WIRE_EPOCHS_MAX),
    BH_F(struct bh_msg_hello, site, BH_FIELD_STR),
    BH_F(struct bh_msg_hello, version, BH_FIELD_U32),
};

static const struct bh_field carve_fields[] = {
    BH_F(struct bh_msg_carve, cap_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_carve, context_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_carve, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_carve, hard, BH_FIELD_BOOL),
    BH_F(struct bh_msg_carve, job, BH_FIELD_U64),
    BH_F(struct bh_msg_carve, latency, BH_FIELD_BOOL),
    BH_F(struct bh_msg_carve, multiplexed, BH_FIELD_BOOL),
    BH_F(struct bh_msg_carve, order, BH_FIELD_U64),
    BH_F(struct bh_msg_carve, partition, BH_FIELD_U64),
    BH_F(struct bh_msg_carve, profile, BH_FIELD_STR),
    BH_F(struct bh_msg_carve, start, BH_FIELD_U32),
    BH_F(struct bh_msg_carve, tenant, BH_FIELD_U32),
    BH_F(struct bh_msg_carve, weight, BH_FIELD_U32),
};

static const struct bh_field destroy_fields[] = {
    BH_F(struct bh_msg_destroy, order, BH_FIELD_U64),
    BH_F(struct bh_msg_destroy, partition, BH_FIELD_U64),
    BH_F(struct bh_msg_destroy, tenant, BH_FIELD_U32),
};

static const struct bh_field mount_fields[] = {
    BH_F(struct bh_msg_mount, source, BH_FIELD_TEXT),
    BH_F(struct bh_msg_mount, target, BH_FIELD_TEXT),
    BH_F(struct bh_msg_mount, write, BH_FIELD_BOOL),
};
static const struct bh_fields mount = BH_FIELDS("mount", struct bh_msg_mount, mount_fields);

static const struct bh_field partition_ref_fields[] = {
    BH_F(struct bh_msg_partition_ref, partition, BH_FIELD_U64),
};
static const struct bh_fields partition_ref =
    BH_FIELDS("piece", struct bh_msg_partition_ref, partition_ref_fields);

static const struct bh_field network_fields[] = {
    BH_F(struct bh_msg_network, allow, BH_FIELD_TEXTS, .max = BH_NET_RULES_MAX),
    BH_F(struct bh_msg_network, bandwidth_bps, BH_FIELD_U64),
    BH_F(struct bh_msg_network, deny, BH_FIELD_TEXTS, .max = BH_NET_RULES_MAX),
    BH_F_ENUM(struct bh_msg_network, mode, bh_network_mode_names),
    BH_F(struct bh_msg_network, name, BH_FIELD_TEXT),
    BH_F(struct bh_msg_network, resolvers, BH_FIELD_TEXTS, .max = BH_NET_RESOLVERS_MAX),
};
static const struct bh_fields network = BH_FIELDS("network", struct bh_msg_network, network_fields);

static const struct bh_field start_fields[] = {
    BH_F(struct bh_msg_start, args, BH_FIELD_TEXTS),
    BH_F_ENUM(struct bh_msg_start, boundary, bh_boundary_names),
    BH_F(struct bh_msg_start, cpu_milli, BH_FIELD_U32),
    BH_F(struct bh_msg_start, cwd, BH_FIELD_TEXT),
    BH_F(struct bh_msg_start, env, BH_FIELD_TEXTS),
    BH_F(struct bh_msg_start, epoch, BH_FIELD_U32),
    BH_F(struct bh_msg_start, gang, BH_FIELD_U32),
    BH_F(struct bh_msg_start, image, BH_FIELD_TEXT),
    BH_F(struct bh_msg_start, job, BH_FIELD_U64),
    BH_F(struct bh_msg_start, lease, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_start, managed, bh_managed_names),
    BH_F(struct bh_msg_start, member, BH_FIELD_U32),
    BH_F(struct bh_msg_start, memory_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_start, mounts, BH_FIELD_LIST, .of = &mount),
    BH_F(struct bh_msg_start, network, BH_FIELD_STRUCT, .of = &network),
    BH_F(struct bh_msg_start, order, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_start, over_cap, bh_over_cap_names),
    BH_F_ENUM(struct bh_msg_start, over_time, bh_over_time_names),
    BH_F(struct bh_msg_start, pids, BH_FIELD_U32),
    BH_F_ARRAY_AS(struct bh_msg_start, partitions, "pieces", partition_count, partition_ref,
                  BH_WIRE_PARTITIONS_MAX),
    BH_F(struct bh_msg_start, scratch_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_start, sku, BH_FIELD_STR),
    BH_F_ENUM(struct bh_msg_start, stdio, stdio_names),
    BH_F(struct bh_msg_start, submitter_gid, BH_FIELD_U32),
    BH_F(struct bh_msg_start, submitter_uid, BH_FIELD_U32),
    BH_F(struct bh_msg_start, tenant, BH_FIELD_STR),
    BH_F(struct bh_msg_start, tenant_id, BH_FIELD_U32),
    BH_F(struct bh_msg_start, user, BH_FIELD_STR),
};

static const struct bh_field lease_fields[] = {
    BH_F(struct bh_msg_lease, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_lease, order, BH_FIELD_U64),
};

static const struct bh_field stop_fields[] = {
    BH_F(struct bh_msg_stop, grace_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_stop, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_stop, order, BH_FIELD_U64),
    BH_F(struct bh_msg_stop, signal, BH_FIELD_U32),
};

static const struct bh_field gpu_order_fields[] = {
    BH_F(struct bh_msg_gpu_order, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_gpu_order, order, BH_FIELD_U64),
};

static const struct bh_field ack_fields[] = {
    BH_F(struct bh_msg_ack, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_ack, order, BH_FIELD_U64),
    BH_F(struct bh_msg_ack, receipt, BH_FIELD_U64),
};

static const struct bh_field retain_item_fields[] = {
    BH_F(struct bh_msg_retain_item, id, BH_FIELD_U64),
};
static const struct bh_fields retain_item = BH_FIELDS("item", struct bh_msg_retain_item, retain_item_fields);

static const struct bh_field retain_fields[] = {
    BH_F(struct bh_msg_retain, leases, BH_FIELD_LIST, .of = &retain_item, .max = BH_WIRE_RETAIN_MAX),
    BH_F(struct bh_msg_retain, marks, BH_FIELD_U64),
    BH_F_AS(struct bh_msg_retain, partitions, "pieces", BH_FIELD_LIST, .of = &retain_item,
            .max = BH_WIRE_RETAIN_MAX),
};

static const struct bh_field stream_fields[] = {
    BH_F(struct bh_msg_stream, args, BH_FIELD_TEXTS), BH_F(struct bh_msg_stream, columns, BH_FIELD_U32),
    BH_F(struct bh_msg_stream, input, BH_FIELD_BOOL), BH_F(struct bh_msg_stream, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_stream, port, BH_FIELD_U32),   BH_F(struct bh_msg_stream, rows, BH_FIELD_U32),
    BH_F(struct bh_msg_stream, tty, BH_FIELD_BOOL),   BH_F_ENUM(struct bh_msg_stream, what, stream_names),
};

/* ---- bulkhead-node to bulkheadd ---- */

static const struct bh_field gpu_fields[] = {
    BH_F(struct bh_msg_gpu, allowed, BH_FIELD_BOOL),
    BH_F(struct bh_msg_gpu, busy_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_gpu, dram_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_gpu, ecc_uncorrected, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F_ENUM(struct bh_msg_gpu, fault, fault_names),
    BH_F(struct bh_msg_gpu, fence_why, BH_FIELD_STR),
    BH_F(struct bh_msg_gpu, foreign, BH_FIELD_BOOL),
    BH_F(struct bh_msg_gpu, index, BH_FIELD_U32),
    BH_F(struct bh_msg_gpu, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_msg_gpu, memory_used_mib, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_gpu, mig_capable, BH_FIELD_BOOL),
    BH_F(struct bh_msg_gpu, mig_enabled, BH_FIELD_BOOL),
    BH_F(struct bh_msg_gpu, minor, BH_FIELD_U32),
    BH_F(struct bh_msg_gpu, model, BH_FIELD_STR),
    BH_F(struct bh_msg_gpu, numa, BH_FIELD_U32),
    BH_F(struct bh_msg_gpu, pci, BH_FIELD_STR),
    BH_F(struct bh_msg_gpu, power_mw, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_gpu, product, BH_FIELD_STR),
    BH_F(struct bh_msg_gpu, sm_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_gpu, temperature_c, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_gpu, tensor_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F_AS(struct bh_msg_gpu, last_error, "trouble", BH_FIELD_STR),
    BH_F(struct bh_msg_gpu, utilisation, BH_FIELD_U32, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_msg_gpu, uuid, BH_FIELD_STR),
};
static const struct bh_fields gpu = BH_FIELDS("gpu", struct bh_msg_gpu, gpu_fields);

static const struct bh_field partition_fields[] = {
    BH_F(struct bh_msg_partition, ci, BH_FIELD_U32),
    BH_F(struct bh_msg_partition, gi, BH_FIELD_U32),
    BH_F(struct bh_msg_partition, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_partition, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_msg_partition, partition, BH_FIELD_U64),
    BH_F(struct bh_msg_partition, profile, BH_FIELD_STR),
    BH_F(struct bh_msg_partition, start, BH_FIELD_U32),
    BH_F(struct bh_msg_partition, uuid, BH_FIELD_STR),
};
static const struct bh_fields partition = BH_FIELDS("piece", struct bh_msg_partition, partition_fields);

static const struct bh_field lease_state_fields[] = {
    BH_F(struct bh_msg_lease_state, frozen, BH_FIELD_BOOL),
    BH_F(struct bh_msg_lease_state, lease, BH_FIELD_U64),
};
static const struct bh_fields lease_state = BH_FIELDS("lease", struct bh_msg_lease_state, lease_state_fields);

static const struct bh_field grade_fields[] = {
    BH_F(struct bh_msg_grade, found, BH_FIELD_BOOL),
    BH_F(struct bh_msg_grade, grade, BH_FIELD_STR),
    BH_F(struct bh_msg_grade, why, BH_FIELD_STR),
};
static const struct bh_fields grade = BH_FIELDS("grade", struct bh_msg_grade, grade_fields);

static const struct bh_field isolation_fields[] = {
    BH_F_AS(struct bh_msg_isolation, retry_ns, "again_ns", BH_FIELD_NS),
    BH_F(struct bh_msg_isolation, gpus, BH_FIELD_U32),
    BH_F_ENUM(struct bh_msg_isolation, state, isolation_names),
    BH_F(struct bh_msg_isolation, tries, BH_FIELD_U32),
    BH_F(struct bh_msg_isolation, why, BH_FIELD_STR),
};
static const struct bh_fields isolation = BH_FIELDS("walls", struct bh_msg_isolation, isolation_fields);

static const struct bh_field inventory_fields[] = {
    BH_F(struct bh_msg_inventory, checkpoint, BH_FIELD_STR),
    BH_F(struct bh_msg_inventory, cpus, BH_FIELD_U32),
    BH_F(struct bh_msg_inventory, driver, BH_FIELD_STR),
    BH_F_ENUM(struct bh_msg_inventory, driver_scrub, bh_driver_scrub_names),
    BH_F(struct bh_msg_inventory, fetches, BH_FIELD_BOOL),
    BH_F(struct bh_msg_inventory, gpus, BH_FIELD_LIST, .of = &gpu),
    BH_F(struct bh_msg_inventory, grades, BH_FIELD_LIST, .of = &grade, .max = 8),
    BH_F(struct bh_msg_inventory, image_roots, BH_FIELD_TEXTS),
    BH_F(struct bh_msg_inventory, job_memory_mib, BH_FIELD_U64),
    BH_F(struct bh_msg_inventory, leases, BH_FIELD_LIST, .of = &lease_state, .max = BH_WIRE_RETAIN_MAX),
    BH_F(struct bh_msg_inventory, memory_mib, BH_FIELD_U64),
    BH_F(struct bh_msg_inventory, mount_roots, BH_FIELD_TEXTS),
    BH_F(struct bh_msg_inventory, networks, BH_FIELD_TEXTS),
    BH_F(struct bh_msg_inventory, node, BH_FIELD_STR),
    BH_F(struct bh_msg_inventory, offer_cpu_milli, BH_FIELD_U64),
    BH_F(struct bh_msg_inventory, offer_memory_mib, BH_FIELD_U64),
    BH_F_AS(struct bh_msg_inventory, partitions, "pieces", BH_FIELD_LIST, .of = &partition,
            .max = BH_WIRE_RETAIN_MAX),
    BH_F(struct bh_msg_inventory, registries, BH_FIELD_TEXTS),
    BH_F(struct bh_msg_inventory, runtime, BH_FIELD_STR),
    BH_F(struct bh_msg_inventory, unpacks, BH_FIELD_BOOL),
    BH_F_AS(struct bh_msg_inventory, isolation, "walls", BH_FIELD_STRUCT, .of = &isolation),
};

static const struct bh_field outcome_fields[] = {
    BH_F(struct bh_msg_outcome, at_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_outcome, late_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_outcome, order, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_outcome, outcome, outcome_names),
    BH_F_ENUM(struct bh_msg_outcome, rc, rc_names),
    BH_F(struct bh_msg_outcome, why, BH_FIELD_STR),
};

static const struct bh_field carried_rows[] = {
    BH_F(struct bh_msg_carried, counted, BH_FIELD_BOOL),
    BH_F(struct bh_msg_carried, denied_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_carried, denied_packets, BH_FIELD_U64),
    BH_F(struct bh_msg_carried, rx_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_carried, rx_packets, BH_FIELD_U64),
    BH_F(struct bh_msg_carried, tx_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_carried, tx_packets, BH_FIELD_U64),
};
const struct bh_fields bh_carried_fields = BH_FIELDS("carried", struct bh_msg_carried, carried_rows);

static const struct bh_field ended_fields[] = {
    BH_F(struct bh_msg_ended, boot_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_ended, carried, BH_FIELD_STRUCT, .of = &bh_carried_fields),
    BH_F_ENUM(struct bh_msg_ended, cause, bh_end_cause_names),
    BH_F(struct bh_msg_ended, cpu_ns, BH_FIELD_U64),
    BH_F(struct bh_msg_ended, ended_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_ended, exit_status, BH_FIELD_I32),
    BH_F(struct bh_msg_ended, late_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_ended, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_ended, memory_peak_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_ended, started_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_ended, unasked, BH_FIELD_BOOL),
    BH_F(struct bh_msg_ended, why, BH_FIELD_STR),
};

static const struct bh_field sample_fields[] = {
    BH_F(struct bh_msg_sample, cpu_ns, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, gpu_memory_mib, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, gpu_utilisation, BH_FIELD_U32, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_msg_sample, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, memory_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, share_cap_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, share_charged_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, share_driver_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_sample, share_permille, BH_FIELD_U32),
    BH_F(struct bh_msg_sample, share_promised, BH_FIELD_U32),
    BH_F_AS(struct bh_msg_sample, share_slice_ns, "share_turn_ns", BH_FIELD_U64),
};
static const struct bh_fields sample = BH_FIELDS("sample", struct bh_msg_sample, sample_fields);

/* A number that is not known is left out of the JSON; 0 is written. */
static const struct bh_field instance_fields[] = {
    BH_F(struct bh_msg_instance, busy_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_instance, dram_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_instance, gi, BH_FIELD_U32),
    BH_F(struct bh_msg_instance, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_instance, memory_mib, BH_FIELD_U32),
    BH_F(struct bh_msg_instance, memory_used_mib, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_instance, partition, BH_FIELD_U64),
    BH_F(struct bh_msg_instance, profile, BH_FIELD_STR),
    BH_F(struct bh_msg_instance, sm_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_instance, tensor_bp, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
};
static const struct bh_fields instance = BH_FIELDS("instance", struct bh_msg_instance, instance_fields);

static const struct bh_field sensors_fields[] = {
    BH_F(struct bh_msg_sensors, decoder_percent, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, encoder_percent, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, energy_mj, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_sensors, memory_clock_mhz, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, memory_percent, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, memory_temperature_c, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, nvlink_kib, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, pcie_receive_bytes_s, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, pcie_replays, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, pcie_transmit_bytes_s, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, remap_failed, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, remapped_correctable, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, remapped_uncorrectable, BH_FIELD_U64, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, reserved_mib, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, sm_clock_mhz, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
    BH_F(struct bh_msg_sensors, vgpu_licensed, BH_FIELD_U32, .flags = BH_FIELD_NULLABLE),
};
static const struct bh_fields sensors = BH_FIELDS("sensors", struct bh_msg_sensors, sensors_fields);

static const struct bh_field xid_count_fields[] = {
    BH_F(struct bh_msg_xid_count, count, BH_FIELD_U32),
    BH_F(struct bh_msg_xid_count, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_xid_count, xid, BH_FIELD_U32),
};
static const struct bh_fields xid_count = BH_FIELDS("xid_count", struct bh_msg_xid_count, xid_count_fields);

static const struct bh_field samples_fields[] = {
    BH_F(struct bh_msg_samples, at_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_samples, gpus, BH_FIELD_LIST, .of = &gpu),
    BH_F(struct bh_msg_samples, instances, BH_FIELD_LIST, .of = &instance, .max = BH_WIRE_RETAIN_MAX),
    BH_F(struct bh_msg_samples, samples, BH_FIELD_LIST, .of = &sample, .max = BH_WIRE_RETAIN_MAX),
    BH_F(struct bh_msg_samples, sensors, BH_FIELD_LIST, .of = &sensors),
    BH_F_AS(struct bh_msg_samples, isolation, "walls", BH_FIELD_STRUCT, .of = &isolation),
    BH_F(struct bh_msg_samples, xids, BH_FIELD_LIST, .of = &xid_count, .max = BH_WIRE_RETAIN_MAX),
};

static const struct bh_field traffic_item_fields[] = {
    BH_F(struct bh_msg_traffic_item, denied_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, denied_packets, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, final, BH_FIELD_BOOL),
    BH_F(struct bh_msg_traffic_item, job, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, rx_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, rx_packets, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, tx_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_traffic_item, tx_packets, BH_FIELD_U64),
};
static const struct bh_fields traffic_item =
    BH_FIELDS("traffic_item", struct bh_msg_traffic_item, traffic_item_fields);

static const struct bh_field traffic_fields[] = {
    BH_F(struct bh_msg_traffic, at_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_traffic, items, BH_FIELD_LIST, .of = &traffic_item, .max = BH_WIRE_RETAIN_MAX),
};

static const struct bh_field image_fields[] = {
    BH_F(struct bh_msg_image, digest, BH_FIELD_STR), BH_F(struct bh_msg_image, done_bytes, BH_FIELD_U64),
    BH_F(struct bh_msg_image, job, BH_FIELD_U64),    BH_F(struct bh_msg_image, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_image, stage, BH_FIELD_U32),  BH_F(struct bh_msg_image, total_bytes, BH_FIELD_U64),
};

static const struct bh_field receipt_from_fields[] = {
    BH_F(struct bh_msg_receipt_from, job, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt_from, tenant, BH_FIELD_U32),
};
static const struct bh_fields receipt_from =
    BH_FIELDS("from", struct bh_msg_receipt_from, receipt_from_fields);

static const struct bh_field receipt_by_fields[] = {
    BH_F(struct bh_msg_receipt_by, receipt, BH_FIELD_U64),
};
static const struct bh_fields receipt_by = BH_FIELDS("by", struct bh_msg_receipt_by, receipt_by_fields);

static const struct bh_field receipt_fields[] = {
    BH_F(struct bh_msg_receipt, begun_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_receipt, beside, BH_FIELD_BOOL),
    BH_F_ARRAY(struct bh_msg_receipt, by, by_count, receipt_by, BH_RECEIPT_BY_MAX),
    BH_F(struct bh_msg_receipt, bytes, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_receipt, driver, bh_driver_scrub_names, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_msg_receipt, ended_ns, BH_FIELD_NS),
    BH_F_ARRAY(struct bh_msg_receipt, from, from_count, receipt_from, BH_RECEIPT_FROM_MAX),
    BH_F(struct bh_msg_receipt, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_receipt, job, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt, memory_bytes, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_receipt, method, bh_scrub_method_names, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_msg_receipt, neighbors, BH_FIELD_U32),
    BH_F(struct bh_msg_receipt, order, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt, partition, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt, profile, BH_FIELD_STR),
    BH_F(struct bh_msg_receipt, residue, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_receipt, result, bh_scrub_result_names, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_msg_receipt, salt, BH_FIELD_HEX),
    BH_F(struct bh_msg_receipt, samples, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt, start, BH_FIELD_U32),
    BH_F(struct bh_msg_receipt, tenant, BH_FIELD_U32),
    BH_F(struct bh_msg_receipt, tries, BH_FIELD_U32),
    BH_F(struct bh_msg_receipt, unfilled, BH_FIELD_U64),
    BH_F(struct bh_msg_receipt, uuid, BH_FIELD_STR),
    BH_F(struct bh_msg_receipt, why, BH_FIELD_STR),
};
const struct bh_fields bh_receipt_fields = BH_FIELDS("receipt", struct bh_msg_receipt, receipt_fields);

static const struct bh_field health_fields[] = {
    BH_F(struct bh_msg_health, at_ns, BH_FIELD_NS),      BH_F_ENUM(struct bh_msg_health, fault, fault_names),
    BH_F(struct bh_msg_health, gi, BH_FIELD_U32),        BH_F(struct bh_msg_health, gpu, BH_FIELD_STR),
    BH_F(struct bh_msg_health, partition, BH_FIELD_U64), BH_F(struct bh_msg_health, recovery, BH_FIELD_U32),
    BH_F(struct bh_msg_health, sign, BH_FIELD_U32),      BH_F(struct bh_msg_health, why, BH_FIELD_STR),
    BH_F(struct bh_msg_health, xid, BH_FIELD_U32),
};

static const struct bh_field verify_fields[] = {
    BH_F(struct bh_msg_verify, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_verify, request, BH_FIELD_U64),
};

static const struct bh_field check_fields[] = {
    BH_F(struct bh_msg_check, answer, BH_FIELD_STR),
    BH_F(struct bh_msg_check, name, BH_FIELD_STR),
    BH_F(struct bh_msg_check, outside, BH_FIELD_BOOL),
    BH_F_ENUM(struct bh_msg_check, result, bh_check_result_names, .flags = BH_FIELD_ALWAYS),
};
static const struct bh_fields check = BH_FIELDS("check", struct bh_msg_check, check_fields);

static const struct bh_field marks_fields[] = {
    BH_F(struct bh_msg_marks, changes, BH_FIELD_U64),
};

static const struct bh_field synced_fields[] = {
    BH_F(struct bh_msg_synced, ends, BH_FIELD_U32),
};

static const struct bh_field notice_fields[] = {
    BH_F(struct bh_msg_notice, at_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_notice, count, BH_FIELD_U32),
    BH_F_ENUM(struct bh_msg_notice, kind, bh_job_notice_names),
    BH_F(struct bh_msg_notice, lease, BH_FIELD_U64),
};

static const struct bh_field verdict_fields[] = {
    BH_F_AS(struct bh_msg_verdict, retry_ns, "again_ns", BH_FIELD_NS),
    BH_F(struct bh_msg_verdict, at_ns, BH_FIELD_NS),
    BH_F(struct bh_msg_verdict, cause, BH_FIELD_STR),
    BH_F(struct bh_msg_verdict, checks, BH_FIELD_LIST, .of = &check, .max = BH_WIRE_RETAIN_MAX),
    BH_F(struct bh_msg_verdict, lease, BH_FIELD_U64),
    BH_F(struct bh_msg_verdict, request, BH_FIELD_U64),
    BH_F_ENUM(struct bh_msg_verdict, result, bh_check_result_names, .flags = BH_FIELD_ALWAYS),
    BH_F(struct bh_msg_verdict, skipped, BH_FIELD_U32),
    BH_F(struct bh_msg_verdict, tried, BH_FIELD_U32),
    BH_F(struct bh_msg_verdict, why, BH_FIELD_STR),
};

/* ---- by number ---- */

#define ROW(text, struct_name) BH_FIELDS(text, struct bh_msg_##struct_name, struct_name##_fields)

static const struct bh_fields messages[] = {
    [BH_MSG_HELLO] = ROW("hello", hello),
    [BH_MSG_CARVE] = ROW("carve", carve),
    [BH_MSG_DESTROY] = ROW("destroy", destroy),
    [BH_MSG_START] = ROW("start", start),
    [BH_MSG_SUSPEND] = ROW("suspend", lease),
    [BH_MSG_RESUME] = ROW("resume", lease),
    [BH_MSG_STOP] = ROW("stop", stop),
    [BH_MSG_ACK] = ROW("ack", ack),
    [BH_MSG_RETAIN] = ROW("keep", retain),
    [BH_MSG_STREAM] = ROW("stream", stream),
    [BH_MSG_RESET] = ROW("reset", gpu_order),
    [BH_MSG_TEST] = ROW("test", gpu_order),
    [BH_MSG_INVENTORY] = ROW("inventory", inventory),
    [BH_MSG_OUTCOME] = ROW("outcome", outcome),
    [BH_MSG_ENDED] = ROW("ended", ended),
    [BH_MSG_SAMPLES] = ROW("samples", samples),
    [BH_MSG_HEALTH] = ROW("health", health),
    [BH_MSG_TRAFFIC] = ROW("traffic", traffic),
    [BH_MSG_IMAGE] = ROW("image", image),
    [BH_MSG_RECEIPT] = ROW("receipt", receipt),
    [BH_MSG_VERIFY] = ROW("verify", verify),
    [BH_MSG_VERDICT] = ROW("verdict", verdict),
    [BH_MSG_NOTICE] = ROW("notice", notice),
    [BH_MSG_SYNCED] = ROW("settled", synced),
    [BH_MSG_MARKS] = ROW("marks", marks),
};

/* A row for every message of the table, with the struct that the table names. */
#define BH_MESSAGE(id, number, type, from, doc)                                                              \
    _Static_assert(number < BH_COUNT(messages), "no description: " #id);
#include "tables/messages.tbl"
#undef BH_MESSAGE

const struct bh_fields *
bh_message_fields(uint32_t number)
{
    if (number >= BH_COUNT(messages) || !messages[number].name)
        return NULL;
    return &messages[number];
}

const char *
bh_message_name(uint32_t number)
{
    const struct bh_fields *fields = bh_message_fields(number);

    return fields ? fields->name : "unknown message";
}

void
bh_job_log_name(uint64_t job, uint32_t member, uint32_t epoch, char ret_name[BH_LOG_NAME_MAX])
{
    char of_epoch[16] = "", of_member[16] = "";

    if (epoch)
        snprintf(of_epoch, sizeof of_epoch, "-%08" PRIx32, epoch);
    if (member)
        snprintf(of_member, sizeof of_member, ".%" PRIu32, member);
    snprintf(ret_name, BH_LOG_NAME_MAX, "%" PRIu64 "%s%s.log", job, of_epoch, of_member);
}
