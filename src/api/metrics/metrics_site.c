#include "api/metrics/metrics_site.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/nodes/gpus.h"

static const char *const dimensions[] = { "compute", "memory" };

static uint64_t
site_part_of(struct bh_parts parts, size_t dimension)
{
    return dimension ? parts.memory : parts.compute;
}

/* ---- where all parts are ---- */

struct uses {
    struct bh_parts leased, idle, causes[BH_UNUSABLES];
};

static struct uses
metrics_site_add_gpus(const struct bh_scrape *s)
{
    struct uses uses = { { 0, 0 } };

    for (uint32_t i = 0; i < s->call->dir->gpu_count; i++) {
        const struct bh_gpu_view *gpu = &s->gpus[i];

        if (!gpu->gpu.v)
            continue;
        uses.leased = bh_parts_add(uses.leased, gpu->used);
        uses.idle = bh_parts_add(uses.idle, gpu->idle);
        for (int cause = 0; cause < BH_UNUSABLES; cause++)
            uses.causes[cause] = bh_parts_add(uses.causes[cause], gpu->causes[cause]);
    }
    return uses;
}

static void
metrics_site_put_parts(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct uses uses = metrics_site_add_gpus(s);

    bh_exposition_family(x, BH_METRIC_PARTS);
    for (size_t d = 0; d < BH_COUNT(dimensions); d++) {
        bh_exposition_u64(x, (const char *[]){ "leased", "", dimensions[d] }, site_part_of(uses.leased, d));
        bh_exposition_u64(x, (const char *[]){ "idle", "", dimensions[d] }, site_part_of(uses.idle, d));
        for (int cause = 0; cause < BH_UNUSABLES; cause++)
            bh_exposition_u64(x, (const char *[]){ "unusable", bh_unusable_names[cause], dimensions[d] },
                              site_part_of(uses.causes[cause], d));
    }
}

static void
metrics_site_put_time(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_ledger_view *ledger = &s->ledger;

    bh_exposition_family(x, BH_METRIC_TIME);
    for (size_t d = 0; d < BH_COUNT(dimensions); d++) {
        bh_exposition_nano(x, (const char *[]){ "leased", "", dimensions[d] },
                           d ? ledger->tenants_memory : ledger->tenants_compute);
        bh_exposition_nano(x, (const char *[]){ "idle", "", dimensions[d] },
                           d ? ledger->idle_memory : ledger->idle_compute);
        for (int cause = 0; cause < BH_UNUSABLES; cause++)
            if (cause != BH_UNUSABLE_UNHEARD) /* which falls */
                bh_exposition_nano(x, (const char *[]){ "unusable", bh_unusable_names[cause], dimensions[d] },
                                   d ? ledger->causes_memory[cause] : ledger->causes_compute[cause]);
    }
    bh_exposition_family(x, BH_METRIC_TIME_UNHEARD);
    for (size_t d = 0; d < BH_COUNT(dimensions); d++)
        bh_exposition_nano(x, (const char *[]){ dimensions[d] },
                           d ? ledger->causes_memory[BH_UNUSABLE_UNHEARD]
                             : ledger->causes_compute[BH_UNUSABLE_UNHEARD]);
}

/* ---- health, scrubs, isolation checks ---- */

static const char *
site_hostname_of(const struct bh_facts *facts, const char *uuid)
{
    const struct bh_gpu_facts_of *gpu = bh_facts_gpu(facts, uuid);

    return gpu ? gpu->node->name : "";
}

static void
site_put_health(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_directory *dir = s->call->dir;

    bh_exposition_family(x, BH_METRIC_GPU_HEALTH);
    for (uint32_t i = 0; i < dir->gpu_count; i++)
        if (s->gpus[i].gpu.v)
            bh_exposition_u64(x,
                              (const char *[]){ dir->gpus[i].uuid,
                                                site_hostname_of(&s->facts, dir->gpus[i].uuid),
                                                bh_gpus_health(&s->gpus[i]) },
                              1);
    bh_exposition_family(x, BH_METRIC_GPU_FENCED);
    for (uint32_t i = 0; i < dir->gpu_count; i++)
        if (s->gpus[i].gpu.v)
            bh_exposition_u64(
                x, (const char *[]){ dir->gpus[i].uuid, site_hostname_of(&s->facts, dir->gpus[i].uuid) },
                s->gpus[i].fenced);
    bh_exposition_family(x, BH_METRIC_HEALTH_CHANGES);
    for (int health = 0; health < BH_HEALTHS; health++)
        bh_exposition_u64(x, &bh_gpu_health_names[health], s->tally[BH_TALLY_HEALTH + health]);
}

static void
site_put_tallies(struct bh_exposition *x, const struct bh_scrape *s)
{
    bh_exposition_family(x, BH_METRIC_SCRUBS);
    for (uint32_t method = 0; method < BH_SCRUB_METHODS; method++)
        for (uint32_t result = 0; result < BH_SCRUB_RESULTS; result++)
            bh_exposition_u64(
                x, (const char *[]){ bh_scrub_method_names[method], bh_scrub_result_names[result] },
                s->tally[bh_tally_scrub(method, result)]);
    bh_exposition_family(x, BH_METRIC_VERDICTS);
    bh_exposition_u64(x, (const char *[]){ "broken" }, s->tally[BH_TALLY_VERDICTS]);
    bh_exposition_u64(x, (const char *[]){ "held" }, s->tally[BH_TALLY_VERDICTS + 1]);
    bh_exposition_u64(x, (const char *[]){ "unfinished" }, s->tally[BH_TALLY_VERDICTS + 2]);
}

/* ---- the daemon itself ---- */

static void
site_put_daemon(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_api_options *options = &s->call->api->options;
    struct bh_signed last = options->owner.ops->last_signed(options->owner.self);

    bh_exposition_family(x, BH_METRIC_NODES);
    bh_exposition_u64(x, NULL, s->facts.node_count);
    bh_exposition_family(x, BH_METRIC_RECORDS);
    bh_exposition_u64(x, NULL, s->records);
    bh_exposition_family(x, BH_METRIC_CHECKPOINT_AGE);
    if (last.at_ns)
        bh_exposition_nano(x, NULL, s->now_ns > last.at_ns ? s->now_ns - last.at_ns : 0);
    bh_exposition_family(x, BH_METRIC_COMMIT);
    bh_exposition_put_histogram(x,
                                &(struct bh_exposition_histogram){ .bounds_ns = bh_tally_commit_bounds_ns,
                                                                   .bound_count = BH_TALLY_COMMIT_BOUNDS,
                                                                   .counts = &s->tally[BH_TALLY_COMMITS],
                                                                   .sum_ns = s->tally[BH_TALLY_COMMIT_NS] });
    bh_exposition_family(x, BH_METRIC_BUILD);
    bh_exposition_u64(x, (const char *[]){ options->version, options->store.ops->name }, 1);
}

static void
site_put_queue(struct bh_exposition *x, const struct bh_scrape *s)
{
    uint64_t pending = 0;

    for (uint32_t i = 0; i < s->call->dir->tenant_count; i++)
        pending += s->tenants[i].jobs[BH_JOB_PENDING];
    bh_exposition_family(x, BH_METRIC_QUEUE);
    bh_exposition_u64(x, NULL, pending);
}

/* ---- devices ---- */

/* A GPU of a connected node: what it is by the inventory, and as it was sampled last. */
struct device {
    bh_json_value facts, sample;
    const char *values[BH_METRIC_LABELS_MAX];
    char index[24], name[32];
    uint64_t xid;
};

/* False: its node is not connected. */
static bool
site_read_device(const struct bh_scrape *s, uint32_t at, struct device *device)
{
    const struct bh_gpu_facts_of *gpu = bh_facts_gpu(&s->facts, s->call->dir->gpus[at].uuid);

    if (!gpu)
        return false;
    device->facts = gpu->gpu;
    device->sample = bh_facts_sample(gpu);
    device->xid = s->gpus[at].gpu.v ? s->gpus[at].xid : 0;
    snprintf(device->index, sizeof device->index, "%" PRIu64,
             bh_json_number(bh_json_get(gpu->gpu, "index"), 0));
    snprintf(device->name, sizeof device->name, "nvidia%" PRIu64,
             bh_json_number(bh_json_get(gpu->gpu, "minor"), 0));
    device->values[0] = device->index;
    device->values[1] = gpu->uuid;
    device->values[2] = bh_json_text(bh_json_get(gpu->gpu, "pci"), "");
    device->values[3] = device->name;
    device->values[4] = bh_json_text(bh_json_get(gpu->gpu, "product"), "");
    device->values[5] = gpu->node->name;
    return true;
}

/* What GPM says of it; a board or driver that has none says more than all of the time. */
static void
site_put_activity(struct bh_exposition *x, enum bh_metric metric, const struct device *device)
{
    static const char *const members[] = {
        [BH_METRIC_DEV_GR_ACTIVE - BH_METRIC_DEV_GR_ACTIVE] = "busy_bp",
        [BH_METRIC_DEV_SM_ACTIVE - BH_METRIC_DEV_GR_ACTIVE] = "sm_bp",
        [BH_METRIC_DEV_TENSOR - BH_METRIC_DEV_GR_ACTIVE] = "tensor_bp",
        [BH_METRIC_DEV_DRAM - BH_METRIC_DEV_GR_ACTIVE] = "dram_bp",
    };
    uint64_t parts =
        bh_json_number(bh_json_get(device->sample, members[metric - BH_METRIC_DEV_GR_ACTIVE]), UINT64_MAX);

    if (parts <= 10000)
        bh_exposition_nano(x, device->values, (bh_part_ns)parts * 100000);
}

/* What the board does not have reads as 0, or above 100 for the utilisation: no series. */
static void
site_put_device(struct bh_exposition *x, enum bh_metric metric, const struct device *device)
{
    uint64_t total = bh_json_number(bh_json_get(device->facts, "memory_mib"), 0);
    uint64_t used = bh_json_number(bh_json_get(device->sample, "memory_used_mib"), 0);
    uint64_t utilisation = bh_json_number(bh_json_get(device->sample, "utilisation"), 0);
    uint64_t celsius = bh_json_number(bh_json_get(device->sample, "temperature_c"), 0);
    uint64_t power = bh_json_number(bh_json_get(device->sample, "power_mw"), 0);
    uint64_t ecc = bh_json_number(bh_json_get(device->sample, "ecc_uncorrected"), 0);

    if (metric == BH_METRIC_DEV_GPU_TEMP && celsius)
        bh_exposition_u64(x, device->values, celsius);
    if (metric == BH_METRIC_DEV_POWER && power)
        bh_exposition_milli(x, device->values, power);
    if (metric == BH_METRIC_DEV_GPU_UTIL && utilisation <= 100)
        bh_exposition_u64(x, device->values, utilisation);
    if (metric == BH_METRIC_DEV_XID)
        bh_exposition_u64(x, device->values, device->xid);
    if (metric == BH_METRIC_DEV_FB_TOTAL)
        bh_exposition_u64(x, device->values, total);
    if (metric == BH_METRIC_DEV_FB_FREE)
        bh_exposition_u64(x, device->values, total > used ? total - used : 0);
    if (metric == BH_METRIC_DEV_FB_USED)
        bh_exposition_u64(x, device->values, used);
    if (metric == BH_METRIC_DEV_ECC_DBE)
        bh_exposition_u64(x, device->values, ecc);
}

static void
site_put_devices(struct bh_exposition *x, const struct bh_scrape *s)
{
    struct device device;

    for (int metric = BH_METRIC_DEV_GPU_TEMP; metric <= BH_METRIC_DEV_DRAM; metric++) {
        bh_exposition_family(x, (enum bh_metric)metric);
        for (uint32_t i = 0; i < s->call->dir->gpu_count; i++)
            if (site_read_device(s, i, &device))
                (metric < BH_METRIC_DEV_GR_ACTIVE ? site_put_device
                                                  : site_put_activity)(x, (enum bh_metric)metric, &device);
    }
}

void
bh_metrics_put_site(struct bh_exposition *x, const struct bh_scrape *s)
{
    site_put_queue(x, s);
    metrics_site_put_parts(x, s);
    metrics_site_put_time(x, s);
    site_put_health(x, s);
    site_put_tallies(x, s);
    site_put_daemon(x, s);
    site_put_devices(x, s);
}
