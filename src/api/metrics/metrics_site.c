#include "api/metrics/metrics_site.h"

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

/* Labels of a GPU that the engine knows; false: it is not of the node that is asked for. */
static bool
site_read_labels(const struct bh_scrape *s, uint32_t at, const char *ret_values[2])
{
    const char *uuid = s->call->dir->gpus[at].uuid;
    const struct bh_gpu_facts_of *gpu = bh_facts_gpu(&s->facts, uuid);

    ret_values[0] = uuid;
    ret_values[1] = gpu ? gpu->node->name : "";
    return s->gpus[at].gpu.v && (!s->node || strcmp(ret_values[1], s->node) == 0);
}

void
bh_metrics_put_health(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_directory *dir = s->call->dir;
    const char *values[3];

    bh_exposition_family(x, BH_METRIC_GPU_HEALTH);
    for (uint32_t i = 0; i < dir->gpu_count; i++) {
        values[2] = bh_gpus_health(&s->gpus[i]);
        if (site_read_labels(s, i, values))
            bh_exposition_u64(x, values, 1);
    }
    bh_exposition_family(x, BH_METRIC_GPU_FENCED);
    for (uint32_t i = 0; i < dir->gpu_count; i++)
        if (site_read_labels(s, i, values))
            bh_exposition_u64(x, values, s->gpus[i].fenced);
}

static void
site_put_health_changes(struct bh_exposition *x, const struct bh_scrape *s)
{
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
    bh_exposition_u64(x, (const char *[]){ "failed" }, s->tally[BH_TALLY_VERDICTS]);
    bh_exposition_u64(x, (const char *[]){ "passed" }, s->tally[BH_TALLY_VERDICTS + 1]);
    bh_exposition_u64(x, (const char *[]){ "inconclusive" }, s->tally[BH_TALLY_VERDICTS + 2]);
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

void
bh_metrics_put_site(struct bh_exposition *x, const struct bh_scrape *s)
{
    site_put_queue(x, s);
    metrics_site_put_parts(x, s);
    metrics_site_put_time(x, s);
    bh_metrics_put_health(x, s);
    site_put_health_changes(x, s);
    site_put_tallies(x, s);
    site_put_daemon(x, s);
}
