#include "api/metrics/metrics_devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/samples.h"

/* A GPU of a connected node or an instance of it: what is said of it, and its labels. */
struct device {
    bh_json_value facts, sample, sensors; /* of an instance only the sample */
    const struct device *parent;          /* of an instance; NULL: a GPU */
    const char *values[BH_METRIC_LABELS_MAX];
    char index[24], name[32], instance[24], job[24];
    uint64_t xid;
    bool known, visible, divided; /* to the engine; to the caller; it has instances */
};

struct devices {
    struct device *gpus; /* beside facts.gpus */
    struct device *instances;
    uint32_t gpu_count, instance_count;
};

/* ---- what there is ---- */

static const char *
devices_text_of(bh_json_value of, const char *name)
{
    return bh_json_text(bh_json_get(of, name), "");
}

static void
devices_put_holder(const struct bh_scrape *s, const struct bh_scrape_holder *holder, struct device *device)
{
    device->visible = s->all || (holder && s->tenants[holder->tenant].visible);
    if (!holder)
        return;
    snprintf(device->job, sizeof device->job, "%" PRIu64, holder->job);
    device->values[BH_DEVICE_LABEL_JOB] = device->job;
    device->values[BH_DEVICE_LABEL_TENANT] = s->call->dir->tenants[holder->tenant].path;
}

static void
devices_read_gpu(const struct bh_scrape *s, uint32_t at, const struct bh_gpu_facts_of *gpu,
                 struct device *device)
{
    *device = (struct device){
        .facts = gpu->gpu, .sample = bh_facts_reading(gpu), .known = true, .xid = s->gpus[at].xid
    };
    snprintf(device->index, sizeof device->index, "%" PRIu64,
             bh_json_number(bh_json_get(gpu->gpu, "index"), 0));
    snprintf(device->name, sizeof device->name, "nvidia%" PRIu64,
             bh_json_number(bh_json_get(gpu->gpu, "minor"), 0));
    device->values[BH_DEVICE_LABEL_GPU] = device->index;
    device->values[BH_DEVICE_LABEL_UUID] = gpu->uuid;
    device->values[BH_DEVICE_LABEL_PCI] = devices_text_of(gpu->gpu, "pci");
    device->values[BH_DEVICE_LABEL_DEVICE] = device->name;
    device->values[BH_DEVICE_LABEL_MODEL] = devices_text_of(gpu->gpu, "product");
    device->values[BH_DEVICE_LABEL_HOST] = gpu->node->name;
    device->values[BH_DEVICE_LABEL_DRIVER] = devices_text_of(gpu->node->root, "driver");
    devices_put_holder(s, bh_scrape_holder_of_gpu(s, s->call->dir->gpus[at].id), device);
}

/* The GPU that an entry of a node's samples is about; NULL: the engine does not know it. */
static struct device *
devices_find(const struct devices *devices, const struct bh_scrape *s, bh_json_value entry, const char *name)
{
    const struct bh_gpu_facts_of *gpu = bh_facts_gpu(&s->facts, devices_text_of(entry, name));
    struct device *device = gpu ? &devices->gpus[gpu - s->facts.gpus] : NULL;

    return device && device->known ? device : NULL;
}

static void
devices_read_instance(struct devices *devices, const struct bh_scrape *s, bh_json_value entry)
{
    struct device *gpu = devices_find(devices, s, entry, "gpu");
    struct device *device = &devices->instances[devices->instance_count];

    if (!gpu)
        return;
    gpu->divided = true;
    devices->instance_count++;
    *device = (struct device){ .facts = entry, .sample = entry, .parent = gpu, .known = true };
    memcpy(device->values, gpu->values, sizeof device->values);
    device->values[BH_DEVICE_LABEL_TENANT] = device->values[BH_DEVICE_LABEL_JOB] = NULL;
    snprintf(device->instance, sizeof device->instance, "%" PRIu64,
             bh_json_number(bh_json_get(entry, "gi"), 0));
    device->values[BH_DEVICE_LABEL_PROFILE] = devices_text_of(entry, "profile");
    device->values[BH_DEVICE_LABEL_INSTANCE] = device->instance;
    devices_put_holder(s, bh_scrape_holder_of_instance(s, bh_json_number(bh_json_get(entry, "partition"), 0)),
                       device);
}

static bh_json_value
devices_list_of(const struct bh_node_facts *node, const char *name)
{
    return bh_json_get(bh_json_get(node->root, "samples"), name);
}

static void
devices_read_node(struct devices *devices, const struct bh_scrape *s, const struct bh_node_facts *node)
{
    bh_json_value sensors = devices_list_of(node, "sensors"), instances = devices_list_of(node, "instances");
    struct device *device;

    for (size_t i = 0; i < bh_json_count(sensors); i++)
        if ((device = devices_find(devices, s, bh_json_at(sensors, i), "gpu")))
            device->sensors = bh_json_at(sensors, i);
    for (size_t i = 0; i < bh_json_count(instances); i++)
        devices_read_instance(devices, s, bh_json_at(instances, i));
}

static bool
devices_is_of_scrape(const struct bh_scrape *s, const struct bh_node_facts *node)
{
    return !s->node || strcmp(node->name, s->node) == 0;
}

static void
devices_read(struct devices *devices, const struct bh_scrape *s)
{
    const struct bh_directory *dir = s->call->dir;
    size_t instances = 0;

    for (uint32_t i = 0; i < s->facts.node_count; i++)
        instances += bh_json_count(devices_list_of(&s->facts.nodes[i], "instances"));
    *devices = (struct devices){ .gpus = calloc(s->facts.gpu_count + 1, sizeof *devices->gpus),
                                 .instances = calloc(instances + 1, sizeof *devices->instances),
                                 .gpu_count = s->facts.gpu_count };
    BH_ASSERT(devices->gpus && devices->instances);
    for (uint32_t i = 0; i < dir->gpu_count; i++) {
        const struct bh_gpu_facts_of *gpu = bh_facts_gpu(&s->facts, dir->gpus[i].uuid);

        if (gpu && s->gpus[i].gpu.v && devices_is_of_scrape(s, gpu->node))
            devices_read_gpu(s, i, gpu, &devices->gpus[gpu - s->facts.gpus]);
    }
    for (uint32_t i = 0; i < s->facts.node_count; i++)
        if (devices_is_of_scrape(s, &s->facts.nodes[i]))
            devices_read_node(devices, s, &s->facts.nodes[i]);
}

static void
devices_fini_auto(struct devices *devices)
{
    free(devices->gpus);
    free(devices->instances);
}

/* ---- families ---- */

enum device_source { OF_FACTS, OF_SAMPLE, OF_SENSORS };
enum device_unit { WHOLE, MILLI, PARTS, PERCENT, PERCENT_OF_PARTS };

/* Where the number of a family is, by its member's name; one that is not there has no series. */
static const struct device_family {
    enum bh_metric metric;
    enum device_source source;
    const char *member;
    enum device_unit unit;
    const char *instance_member; /* NULL: instances have none of their own */
    enum device_unit instance_unit;
} families[] = {
    { BH_METRIC_DEV_SM_CLOCK, OF_SENSORS, "sm_clock_mhz", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_MEM_CLOCK, OF_SENSORS, "memory_clock_mhz", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_MEMORY_TEMP, OF_SENSORS, "memory_temperature_c", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_GPU_TEMP, OF_SAMPLE, "temperature_c", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_POWER, OF_SAMPLE, "power_mw", MILLI, NULL, WHOLE },
    { BH_METRIC_DEV_ENERGY, OF_SENSORS, "energy_mj", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_PCIE_REPLAY, OF_SENSORS, "pcie_replays", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_GPU_UTIL, OF_SAMPLE, "utilisation", PERCENT, "busy_bp", PERCENT_OF_PARTS },
    { BH_METRIC_DEV_MEM_UTIL, OF_SENSORS, "memory_percent", PERCENT, NULL, WHOLE },
    { BH_METRIC_DEV_ENC_UTIL, OF_SENSORS, "encoder_percent", PERCENT, NULL, WHOLE },
    { BH_METRIC_DEV_DEC_UTIL, OF_SENSORS, "decoder_percent", PERCENT, NULL, WHOLE },
    { BH_METRIC_DEV_FB_TOTAL, OF_FACTS, "memory_mib", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_FB_USED, OF_SAMPLE, "memory_used_mib", WHOLE, "memory_used_mib", WHOLE },
    { BH_METRIC_DEV_FB_RESERVED, OF_SENSORS, "reserved_mib", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_ECC_DBE, OF_SAMPLE, "ecc_uncorrected", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_NVLINK, OF_SENSORS, "nvlink_kib", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_LICENSE, OF_SENSORS, "vgpu_licensed", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_ROWS_UNCORRECTABLE, OF_SENSORS, "remapped_uncorrectable", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_ROWS_CORRECTABLE, OF_SENSORS, "remapped_correctable", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_ROWS_FAILED, OF_SENSORS, "remap_failed", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_GR_ACTIVE, OF_SAMPLE, "busy_bp", PARTS, "busy_bp", PARTS },
    { BH_METRIC_DEV_SM_ACTIVE, OF_SAMPLE, "sm_bp", PARTS, "sm_bp", PARTS },
    { BH_METRIC_DEV_TENSOR, OF_SAMPLE, "tensor_bp", PARTS, "tensor_bp", PARTS },
    { BH_METRIC_DEV_DRAM, OF_SAMPLE, "dram_bp", PARTS, "dram_bp", PARTS },
    { BH_METRIC_DEV_PCIE_TX, OF_SENSORS, "pcie_transmit_bytes_s", WHOLE, NULL, WHOLE },
    { BH_METRIC_DEV_PCIE_RX, OF_SENSORS, "pcie_receive_bytes_s", WHOLE, NULL, WHOLE },
};

static const struct device_family *
devices_family_of(enum bh_metric metric)
{
    for (size_t i = 0; i < BH_COUNT(families); i++)
        if (families[i].metric == metric)
            return &families[i];
    return NULL;
}

static bh_json_value
devices_source_of(const struct device *device, enum device_source source)
{
    return source == OF_FACTS ? device->facts : source == OF_SAMPLE ? device->sample : device->sensors;
}

static void
devices_put_number(struct bh_exposition *x, const struct device *device, enum device_unit unit,
                   uint64_t number)
{
    if (unit == WHOLE || (unit == PERCENT && number <= 100))
        bh_exposition_u64(x, device->values, number);
    else if (unit == MILLI)
        bh_exposition_milli(x, device->values, number);
    else if (unit == PERCENT_OF_PARTS && number <= 10000)
        bh_exposition_u64(x, device->values, (number + 50) / 100);
    else if (unit == PARTS && number <= 10000)
        bh_exposition_nano(x, device->values, (bh_part_ns)number * 100000);
}

/* What is neither used nor reserved. */
static void
devices_put_free(struct bh_exposition *x, const struct device *device)
{
    uint64_t total = bh_json_number(bh_json_get(device->facts, "memory_mib"), 0);
    uint64_t used = bh_json_number(bh_json_get(device->sample, "memory_used_mib"), UINT64_MAX);
    uint64_t reserved = bh_json_number(bh_json_get(device->sensors, "reserved_mib"), 0);

    if (used != UINT64_MAX)
        bh_exposition_u64(x, device->values, total > used + reserved ? total - used - reserved : 0);
}

/* One number of one device. */
static void
devices_put_one(struct bh_exposition *x, enum bh_metric metric, const struct device *device)
{
    const struct device_family *family = devices_family_of(metric);
    const char *member = family ? device->parent ? family->instance_member : family->member : NULL;
    bh_json_value number = member ? bh_json_get(devices_source_of(device, family->source), member) : NULL;

    if (metric == BH_METRIC_DEV_FB_FREE)
        devices_put_free(x, device);
    else if (metric == BH_METRIC_DEV_XID && !device->parent)
        bh_exposition_u64(x, device->values, device->xid);
    else if (number)
        devices_put_number(x, device, device->parent ? family->instance_unit : family->unit,
                           bh_json_number(number, UINT64_MAX));
}

/* Whether the instances of a GPU have series of the family. */
static bool
devices_is_divisible(enum bh_metric metric)
{
    const struct device_family *family = devices_family_of(metric);

    return metric == BH_METRIC_DEV_FB_FREE || (family && family->instance_member);
}

static void
devices_put_xids(struct bh_exposition *x, const struct devices *devices, const struct bh_scrape *s,
                 const struct bh_node_facts *node)
{
    bh_json_value counts = devices_list_of(node, "xids");
    char window_ms[24], xid[24];

    snprintf(window_ms, sizeof window_ms, "%" PRIu64, (uint64_t)(BH_XID_WINDOW_NS / 1000000));
    for (size_t i = 0; i < bh_json_count(counts); i++) {
        bh_json_value count = bh_json_at(counts, i);
        const struct device *device = devices_find(devices, s, count, "gpu");
        const char *values[BH_METRIC_LABELS_MAX];

        if (!device || !device->visible)
            continue;
        memcpy(values, device->values, sizeof values);
        snprintf(xid, sizeof xid, "%" PRIu64, bh_json_number(bh_json_get(count, "xid"), 0));
        values[BH_DEVICE_LABELS_COUNT] = window_ms;
        values[BH_DEVICE_LABELS_COUNT + 1] = xid;
        bh_exposition_u64(x, values, bh_json_number(bh_json_get(count, "count"), 0));
    }
}

static void
devices_put_family(struct bh_exposition *x, const struct devices *devices, enum bh_metric metric)
{
    bool divisible = devices_is_divisible(metric);

    bh_exposition_family(x, metric);
    for (uint32_t i = 0; i < devices->gpu_count; i++) {
        const struct device *gpu = &devices->gpus[i];

        if (gpu->known && gpu->visible && !(divisible && gpu->divided))
            devices_put_one(x, metric, gpu);
    }
    for (uint32_t i = 0; divisible && i < devices->instance_count; i++)
        if (devices->instances[i].visible)
            devices_put_one(x, metric, &devices->instances[i]);
}

void
bh_metrics_put_devices(struct bh_exposition *x, const struct bh_scrape *s)
{
    BH_AUTO(devices_fini) struct devices devices;

    devices_read(&devices, s);
    for (int metric = BH_METRIC_DEV_SM_CLOCK; metric <= BH_METRIC_DEV_PCIE_RX; metric++) {
        devices_put_family(x, &devices, (enum bh_metric)metric);
        for (uint32_t i = 0; metric == BH_METRIC_DEV_XID_COUNT && i < s->facts.node_count; i++)
            if (devices_is_of_scrape(s, &s->facts.nodes[i]))
                devices_put_xids(x, &devices, s, &s->facts.nodes[i]);
    }
}
