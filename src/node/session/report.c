#include "node/session/report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "model/geometry.h"
#include "node/common/helper.h"
#include "node/core/driver_scrub.h"
#include "node/core/gpu_error.h"
#include "node/core/host.h"
#include "node/core/isolation_levels.h"
#include "node/core/limits.h"
#include "node/core/numa.h"
#include "node/core/state_check.h"
#include "node/job/checkpoint.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/job/share_sample.h"
#include "node/partition/partition.h"
#include "node/placement/health_state.h"
#include "node/placement/placement.h"
#include "node/sandbox/network.h"
#include "node/session/report_devices.h"
#include "node/verify/verify.h"
#include "node/verify/verify_fence.h"

enum { REPORT_BYTES_MAX = 8 << 20, UTILISATION_UNKNOWN = 255 };

/* ---- lists ---- */

/* That it does not answer comes before what isolation checks found. */
static void
report_put_fence(const struct bh_node *node, const struct bh_device_gpu *from, struct bh_msg_gpu *gpu)
{
    const char *away = bh_health_why(node, from->uuid), *isolation = bh_verify_why(node, from->uuid);

    gpu->fault = from->lost ? BH_FAULT_LOST : isolation ? BH_FAULT_ISOLATION : BH_FAULT_NONE;
    if (from->lost && !away)
        away = "the driver has lost it";
    snprintf(gpu->fence_why, sizeof gpu->fence_why, "%s", away ? away : isolation ? isolation : "");
}

static uint32_t
report_put_gpus(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list)
{
    struct bh_msg_gpu *gpus = bh_arena_alloc(arena, (node->inventory.gpu_count + 1) * sizeof *gpus);

    struct bh_err refused;
    bool may = bh_driver_scrub_check(node, &refused) == BH_OK;

    *ret_list = (struct bh_list){ gpus, gpus ? node->inventory.gpu_count : 0 };
    for (uint32_t i = 0; i < ret_list->count; i++) {
        const struct bh_device_gpu *gpu = &node->inventory.gpus[i];
        enum bh_gpu_model model = bh_model_by_product(gpu->product);

        gpus[i] = (struct bh_msg_gpu){
            .index = gpu->index,
            .minor = gpu->minor,
            .memory_mib = gpu->memory_mib,
            .mig_capable = gpu->mig_capable,
            .mig_enabled = gpu->mig_enabled,
            .foreign = bh_node_partition_has_foreign(node, gpu->uuid),
            .allowed = may && bh_conf_gpu_allowed(&node->conf, gpu->uuid),
            .temperature_c = gpu->temperature_c,
            .power_mw = gpu->power_mw,
            .utilisation = gpu->utilisation,
            .memory_used_mib = gpu->memory_used_mib,
            .ecc_uncorrected = gpu->ecc_uncorrected,
            .busy_bp = gpu->activity.busy_bp,
            .sm_bp = gpu->activity.sm_bp,
            .tensor_bp = gpu->activity.tensor_bp,
            .dram_bp = gpu->activity.dram_bp,
            .numa = bh_numa_of(BH_NUMA_DEVICES, gpu->pci),
        };
        snprintf(gpus[i].uuid, sizeof gpus[i].uuid, "%s", gpu->uuid);
        snprintf(gpus[i].pci, sizeof gpus[i].pci, "%s", gpu->pci);
        snprintf(gpus[i].product, sizeof gpus[i].product, "%s", gpu->product);
        snprintf(gpus[i].last_error, sizeof gpus[i].last_error, "%s", bh_gpu_error_find(node, gpu->uuid));
        report_put_fence(node, gpu, &gpus[i]);
        if (model != BH_GPU_MODEL_NONE)
            snprintf(gpus[i].model, sizeof gpus[i].model, "%s", bh_model_facts(model)->name);
    }
    return ret_list->count;
}

static void
report_fill_partition(struct bh_msg_partition *partition, const struct bh_node_partition *from)
{
    *partition = (struct bh_msg_partition){ .partition = from->partition,
                                            .start = from->start,
                                            .gi = from->gi,
                                            .ci = from->ci,
                                            .memory_mib = from->memory_mib };
    if (from->cap_bytes)
        partition->memory_mib = (uint32_t)(from->cap_bytes >> 20);
    snprintf(partition->gpu, sizeof partition->gpu, "%s", from->gpu);
    snprintf(partition->uuid, sizeof partition->uuid, "%s", from->uuid);
    snprintf(partition->profile, sizeof partition->profile, "%s", from->profile);
}

static void
report_fill_foreign(struct bh_msg_partition *partition, const struct bh_device_instance *from)
{
    *partition = (struct bh_msg_partition){
        .start = from->start, .gi = from->gi, .ci = from->ci, .memory_mib = from->memory_mib
    };
    snprintf(partition->gpu, sizeof partition->gpu, "%s", from->gpu);
    snprintf(partition->uuid, sizeof partition->uuid, "%s", from->uuid);
    snprintf(partition->profile, sizeof partition->profile, "%s", from->profile);
}

/* Partitions of this node first, then the other instances on the GPUs. */
static void
report_put_partitions(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list)
{
    uint32_t most = node->state.partition_count + node->inventory.instance_count, count = 0;
    struct bh_msg_partition *partitions = bh_arena_alloc(arena, (most + 1) * sizeof *partitions);

    for (uint32_t i = 0; partitions && i < node->state.partition_count; i++) {
        bh_state_assert_partition(&node->state.partitions[i]);
        report_fill_partition(&partitions[count++], &node->state.partitions[i]);
    }
    for (uint32_t i = 0; partitions && i < node->inventory.instance_count; i++) {
        const struct bh_device_instance *instance = &node->inventory.instances[i];

        if (!bh_node_partition_is_ours(node, instance))
            report_fill_foreign(&partitions[count++], instance);
    }
    *ret_list = (struct bh_list){ partitions, count };
}

static void
report_put_leases(const struct bh_node *node, struct bh_arena *arena, struct bh_list *ret_list)
{
    struct bh_msg_lease_state *leases = bh_arena_alloc(arena, (node->state.job_count + 1) * sizeof *leases);

    for (uint32_t i = 0; leases && i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        leases[i] = (struct bh_msg_lease_state){ job->record.lease, bh_placement_is_suspended(job) };
    }
    *ret_list = (struct bh_list){ leases, leases ? node->state.job_count : 0 };
}

/* What jobs may take together of the machine's cores and memory. */
static void
report_put_offer(const struct bh_node *node, struct bh_msg_inventory *inventory)
{
    const struct bh_conf *conf = &node->conf;

    inventory->offer_cpu_milli =
        conf->offer_cpu_milli ? conf->offer_cpu_milli : (uint64_t)inventory->cpus * 1000;
    inventory->offer_memory_mib =
        conf->offer_memory_mib ? conf->offer_memory_mib : inventory->memory_mib / 10 * 9;
}

static void
report_put_texts(const struct bh_param_list *from, struct bh_texts *ret_texts)
{
    *ret_texts = (struct bh_texts){ (const char **)(uintptr_t)from->items, from->count };
}

/* What jobs may ask for beside GPUs. */
static void
report_put_services(const struct bh_node *node, struct bh_msg_inventory *inventory)
{
    const struct bh_conf *conf = &node->conf;
    char path[BH_NODE_PATH_MAX];

    report_put_texts(&conf->image_roots, &inventory->image_roots);
    report_put_texts(&conf->mount_roots, &inventory->mount_roots);
    report_put_texts(&conf->networks, &inventory->networks);
    report_put_texts(&conf->registries, &inventory->registries);
    inventory->unpacks = bh_helper_find(conf->umoci, path, sizeof path);
    inventory->fetches = inventory->unpacks && bh_helper_find(conf->skopeo, path, sizeof path);
    inventory->job_memory_mib = bh_limits_memory_max(conf) >> 20;
}

/* ---- messages ---- */

/* Whether an inventory says all that bulkheadd needs of it: it is sent again when it does. */
static bool
report_is_whole(const struct bh_node *node, const struct bh_device_gpu *gpu)
{
    return !gpu->lost && !bh_node_partition_has_foreign(node, gpu->uuid);
}

/* Which GPUs this inventory has whole: bulkheadd waits for the others. */
static void
report_record_reported(struct bh_node *node)
{
    memset(node->reported, 0, sizeof node->reported);
    for (uint32_t i = 0; i < node->inventory.gpu_count && i < BH_NODE_REPORTED_MAX; i++)
        if (report_is_whole(node, &node->inventory.gpus[i]))
            snprintf(node->reported[i], sizeof node->reported[i], "%s", node->inventory.gpus[i].uuid);
}

static bool
report_was_reported(const struct bh_node *node, const char *gpu)
{
    BH_STATE_ASSERT_TEXT(node->reported[0]);
    for (uint32_t i = 0; i < BH_NODE_REPORTED_MAX; i++)
        if (strcmp(node->reported[i], gpu) == 0)
            return true;
    return false;
}

/* What stands on GPUs that answer again. */
static void
report_reclaim(struct bh_node *node)
{
    struct bh_err err;

    for (uint32_t i = 0; i < node->inventory.gpu_count; i++) {
        const struct bh_device_gpu *gpu = &node->inventory.gpus[i];

        if (!gpu->lost && !report_was_reported(node, gpu->uuid)
            && bh_node_partition_reconcile(node, gpu->uuid, &err) != BH_OK)
            bh_log(EFFECT_FAILED, BH_STR("gpu", gpu->uuid), BH_ERRLOG(&err));
    }
}

/* Whether a GPU is whole now (it can be read, and has no foreign instances) that the last inventory did not
 * have whole. */
static bool
report_has_unreported(const struct bh_node *node)
{
    for (uint32_t i = 0; i < node->inventory.gpu_count; i++)
        if (report_is_whole(node, &node->inventory.gpus[i])
            && !report_was_reported(node, node->inventory.gpus[i].uuid))
            return true;
    return node->gpus_unreported;
}

void
bh_report_inventory(struct bh_node *node)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(REPORT_BYTES_MAX);
    struct bh_msg_inventory inventory = {
        .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
        .memory_mib = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20,
    };
    struct bh_err err;

    bh_node_assert(node);
    report_put_offer(node, &inventory);
    report_put_services(node, &inventory);
    inventory.driver_scrub = bh_driver_scrub_read(node);
    if (inventory.driver_scrub == BH_DRIVER_SCRUB_OFF)
        bh_log(DRIVER_SCRUB_OFF, BH_U64("allowed", node->conf.driver_scrub_off));
    if (!node->inventory_known && bh_node_partition_scan(node, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "scan"), BH_ERRLOG(&err));
    node->gpus_unreported = !node->inventory_known;
    report_reclaim(node);
    snprintf(inventory.node, sizeof inventory.node, "%s", node->name);
    snprintf(inventory.driver, sizeof inventory.driver, "%s", node->inventory.driver);
    snprintf(inventory.runtime, sizeof inventory.runtime, "%s", node->runtime_version);
    bh_checkpoint_describe(node, inventory.checkpoint, sizeof inventory.checkpoint);
    report_put_gpus(node, arena, &inventory.gpus);
    report_record_reported(node);
    report_put_partitions(node, arena, &inventory.partitions);
    report_put_leases(node, arena, &inventory.leases);
    bh_isolation_levels_probe(node, arena, &inventory.grades);
    bh_verify_isolation(node, &inventory.isolation);
    bh_node_send(node, BH_MSG_INVENTORY, &inventory);
}

/* Percent of the time that one partition was busy, by the last scan; UNKNOWN: the driver does not
 * say, or others are on the GPU, too. */
static uint32_t
report_percent_busy(const struct bh_node *node, const struct bh_node_partition *partition)
{
    for (uint32_t i = 0; partition->gi != BH_WHOLE_GPU && i < node->inventory.instance_count; i++) {
        const struct bh_device_instance *instance = &node->inventory.instances[i];

        if (strcmp(instance->uuid, partition->uuid) == 0)
            return instance->activity.busy_bp <= 10000 ? (instance->activity.busy_bp + 50) / 100
                                                       : UTILISATION_UNKNOWN;
    }
    for (uint32_t i = 0; partition->gi == BH_WHOLE_GPU && i < node->inventory.gpu_count; i++) {
        if (strcmp(node->inventory.gpus[i].uuid, partition->gpu) == 0)
            return node->inventory.gpus[i].utilisation;
    }
    return UTILISATION_UNKNOWN;
}

/* The mean over a lease's partitions; UNKNOWN when one of them is. */
static uint32_t
report_utilisation_of(const struct bh_node *node, const struct bh_node_record *lease)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < lease->lent_count; i++) {
        uint32_t percent = bh_placement_is_share(&lease->lent[i])
                               ? UTILISATION_UNKNOWN
                               : report_percent_busy(node, &lease->lent[i]);

        if (percent > 100)
            return UTILISATION_UNKNOWN;
        sum += percent;
    }
    return lease->lent_count ? sum / lease->lent_count : UTILISATION_UNKNOWN;
}

static bool
report_sample_job(struct bh_node *node, const struct bh_job *job, struct bh_msg_sample *sample)
{
    struct bh_sandbox_usage usage;
    struct bh_err err;
    char id[32];
    bool used;

    *sample = (struct bh_msg_sample){ .lease = job->record.lease,
                                      .gpu_utilisation = report_utilisation_of(node, &job->record) };
    bh_node_job_id(job->record.lease, id);
    if (node->runtime.ops->usage(node->runtime.self, id, &usage, &err) != BH_OK)
        return false;
    sample->cpu_ns = usage.cpu_ns;
    sample->memory_bytes = usage.bytes;
    bh_node_share_sample(node, job, sample);
    if (job->record.lent_count > 0
        && bh_job_gpu_use(node, job, &used, &sample->gpu_memory_mib, &err) != BH_OK)
        sample->gpu_memory_mib = 0;
    return true;
}

void
bh_report_scanned(struct bh_node *node, bool well)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(REPORT_BYTES_MAX);
    struct bh_msg_samples samples = { .at_ns = bh_time_now() };
    struct bh_msg_sample *items = bh_arena_alloc(arena, (node->state.job_count + 1) * sizeof *items);
    uint32_t count = 0;

    bh_node_assert(node);
    for (uint32_t i = 0; items && i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        if (job->running && !job->ended && report_sample_job(node, job, &items[count]))
            count++;
    }
    samples.samples = (struct bh_list){ items, count };
    bh_host_read_majors(node); /* modules of the driver come one by one */
    if (well) {
        report_put_gpus(node, arena, &samples.gpus);
        bh_report_put_instances(node, arena, &samples.instances);
        bh_report_put_sensors(node, arena, &samples.sensors);
    }
    bh_xid_window_put(&node->health->xids, bh_time_monotonic(), arena, &samples.xids);
    if (node->inventory_known && report_has_unreported(node))
        bh_report_inventory(node);
    bh_verify_scanned(node);
    bh_verify_isolation(node, &samples.isolation);
    bh_node_send(node, BH_MSG_SAMPLES, &samples);
    bh_networks_report(node);
}
