#include "api/metrics/metrics.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/metrics/exposition.h"
#include "api/metrics/metrics_devices.h"
#include "api/metrics/metrics_site.h"
#include "api/metrics/scrape.h"

/* The next visible tenant from `*at` on, and its path; NULL at the end. */
static const struct bh_scrape_tenant *
metrics_next_tenant(const struct bh_scrape *s, uint32_t *at, const char **ret_path)
{
    const struct bh_directory *dir = s->call->dir;

    while (*at < dir->tenant_count && !s->tenants[*at].visible)
        ++*at;
    if (*at == dir->tenant_count)
        return NULL;
    *ret_path = dir->tenants[*at].path;
    return &s->tenants[(*at)++];
}

static void
metrics_put_reasons(struct bh_exposition *x, const struct bh_scrape *s)
{
    bh_exposition_family(x, BH_METRIC_PENDING);
    for (uint32_t i = 0; i < s->reason_count; i++)
        bh_exposition_u64(
            x, (const char *[]){ s->call->dir->tenants[s->reasons[i].tenant].path, s->reasons[i].name },
            s->reasons[i].jobs);
}

/* States that are worth a zero stand there always. */
static void
metrics_put_jobs(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_tenant *tenant;
    const char *path;

    bh_exposition_family(x, BH_METRIC_JOBS);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        for (int state = 0; state < BH_JOB_COMPLETED; state++)
            if (tenant->jobs[state] || state == BH_JOB_PENDING || state == BH_JOB_RUNNING)
                bh_exposition_u64(x, (const char *[]){ path, bh_job_state_names[state] },
                                  tenant->jobs[state]);
    metrics_put_reasons(x, s);
    bh_exposition_family(x, BH_METRIC_QUEUE_OLDEST);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        if (tenant->oldest_ns)
            bh_exposition_nano(x, &path, s->now_ns > tenant->oldest_ns ? s->now_ns - tenant->oldest_ns : 0);
}

static void
metrics_put_held(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_tenant *tenant;
    const char *path;

    bh_exposition_family(x, BH_METRIC_LEASES);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        for (int grade = 0; grade < BH_GRADES; grade++)
            if (tenant->leases[grade])
                bh_exposition_u64(x, (const char *[]){ path, bh_grade_names[grade] }, tenant->leases[grade]);
    bh_exposition_family(x, BH_METRIC_TENANT_PARTS);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));) {
        bh_exposition_u64(x, (const char *[]){ path, "compute" }, tenant->compute);
        bh_exposition_u64(x, (const char *[]){ path, "memory" }, tenant->memory);
    }
}

static void
metrics_put_limits(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_tenant *tenant;
    const char *path;

    bh_exposition_family(x, BH_METRIC_TENANT_USED);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        bh_exposition_u64(x, &path, tenant->used);
    bh_exposition_family(x, BH_METRIC_TENANT_LIMIT);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        if (tenant->limit != BH_UNLIMITED)
            bh_exposition_u64(x, &path, tenant->limit);
    bh_exposition_family(x, BH_METRIC_TENANT_GUARANTEE);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        if (tenant->guarantee)
            bh_exposition_u64(x, &path, tenant->guarantee);
}

/* Partitions of a SKU, or GPUs of a model. */
static void
metrics_put_quota(struct bh_exposition *x, const struct bh_scrape *s, const char *path,
                  const struct bh_tenant_quota *quota, uint64_t amount)
{
    const struct bh_dir_sku *sku = bh_directory_sku(s->call->dir, (bh_sku_id){ quota->of });
    bool of_sku = quota->scope == BH_QUOTA_SKU;
    const char *const values[] = { path, of_sku && sku ? sku->name : NULL,
                                   of_sku ? NULL : bh_model_facts((enum bh_gpu_model)quota->of)->name };

    if (of_sku)
        bh_exposition_u64(x, values, amount);
    else
        bh_exposition_nano(x, values, (bh_part_ns)amount * 1000000000 / BH_GPU_PARTS);
}

static void
metrics_put_quotas(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_tenant *tenant;
    const char *path;

    bh_exposition_family(x, BH_METRIC_QUOTA_USED);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        for (uint32_t i = 0; i < tenant->quota_count; i++)
            metrics_put_quota(x, s, path, &tenant->quotas[i], tenant->quota_used[i]);
    bh_exposition_family(x, BH_METRIC_QUOTA_LIMIT);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        for (uint32_t i = 0; i < tenant->quota_count; i++)
            if (tenant->quotas[i].limit != BH_UNLIMITED)
                metrics_put_quota(x, s, path, &tenant->quotas[i], tenant->quotas[i].limit);
    bh_exposition_family(x, BH_METRIC_QUOTA_GUARANTEE);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        for (uint32_t i = 0; i < tenant->quota_count; i++)
            if (tenant->quotas[i].guarantee)
                metrics_put_quota(x, s, path, &tenant->quotas[i], tenant->quotas[i].guarantee);
}

/* Also of tenants that were removed: with them idle and unusable add up to physical time. */
static void
metrics_put_times(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_directory *dir = s->call->dir;

    bh_exposition_family(x, BH_METRIC_TENANT_TIME);
    for (uint32_t i = 0; i < dir->tenant_count; i++) {
        const char *path = dir->tenants[i].path;

        if (!s->tenants[i].metered)
            continue;
        bh_exposition_nano(x, (const char *[]){ path, "compute" }, s->tenants[i].compute_ns);
        bh_exposition_nano(x, (const char *[]){ path, "memory" }, s->tenants[i].memory_ns);
    }
}

static void
metrics_put_tenant_networks(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_tenant *tenant;
    const char *path;

    bh_exposition_family(x, BH_METRIC_TENANT_RX);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        bh_exposition_u64(x, &path, tenant->carried.rx_bytes);
    bh_exposition_family(x, BH_METRIC_TENANT_TX);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        bh_exposition_u64(x, &path, tenant->carried.tx_bytes);
    bh_exposition_family(x, BH_METRIC_TENANT_DENIED);
    for (uint32_t at = 0; (tenant = metrics_next_tenant(s, &at, &path));)
        bh_exposition_u64(x, &path, tenant->carried.denied_packets);
}

/* ---- jobs that run ---- */

enum of_job { RX, TX, DENIED, MEMORY, GPU_MEMORY };
enum of_share { CAP, CHARGED, DRIVER };

static uint64_t
metrics_number_of(const struct bh_scrape_job *job, enum of_job what)
{
    switch (what) {
    case RX:
        return job->carried.rx_bytes;
    case TX:
        return job->carried.tx_bytes;
    case DENIED:
        return job->carried.denied_packets;
    case MEMORY:
        return job->memory_bytes;
    case GPU_MEMORY:
        return job->gpu_memory_mib << 20;
    }
    return 0;
}

/* The next job of a visible tenant that nodes reported on, with its labels. */
static const struct bh_scrape_job *
metrics_next_job(const struct bh_scrape *s, uint32_t *at, bool network, const char *ret_values[2],
                 char ret_number[24])
{
    for (; *at < s->job_count; ++*at) {
        const struct bh_scrape_job *job = &s->jobs[*at];

        if (!s->tenants[job->tenant].visible || !(network ? job->networked : job->sampled))
            continue;
        ++*at;
        snprintf(ret_number, 24, "%" PRIu64, job->job);
        ret_values[0] = s->call->dir->tenants[job->tenant].path;
        ret_values[1] = ret_number;
        return job;
    }
    return NULL;
}

static void
metrics_put_job_numbers(struct bh_exposition *x, const struct bh_scrape *s, enum bh_metric metric,
                        enum of_job what)
{
    const struct bh_scrape_job *job;
    const char *values[2];
    char number[24];

    bh_exposition_family(x, metric);
    for (uint32_t at = 0; (job = metrics_next_job(s, &at, what <= DENIED, values, number));)
        bh_exposition_u64(x, values, metrics_number_of(job, what));
}

static void
metrics_put_info(struct bh_exposition *x, const struct bh_scrape *s)
{
    bh_exposition_family(x, BH_METRIC_JOB_INFO);
    for (uint32_t i = 0; i < s->job_count; i++) {
        const struct bh_scrape_job *job = &s->jobs[i];
        const struct bh_dir_sku *sku = bh_directory_sku(s->call->dir, job->sku);
        const struct bh_dir_principal *user = bh_directory_principal(s->call->dir, job->principal);
        char number[24];

        if (!s->tenants[job->tenant].visible)
            continue;
        snprintf(number, sizeof number, "%" PRIu64, job->job);
        bh_exposition_u64(x,
                          (const char *[]){ s->call->dir->tenants[job->tenant].path, number,
                                            sku ? sku->name : NULL, bh_grade_names[job->grade],
                                            user ? user->name : NULL, bh_job_kind_names[job->kind],
                                            bh_priority_names[job->priority] },
                          1);
    }
}

static void
metrics_put_running(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_job *job;
    const char *values[2];
    char number[24];

    metrics_put_info(x, s);
    metrics_put_job_numbers(x, s, BH_METRIC_JOB_RX, RX);
    metrics_put_job_numbers(x, s, BH_METRIC_JOB_TX, TX);
    metrics_put_job_numbers(x, s, BH_METRIC_JOB_DENIED, DENIED);
    bh_exposition_family(x, BH_METRIC_JOB_CPU);
    for (uint32_t at = 0; (job = metrics_next_job(s, &at, false, values, number));)
        bh_exposition_nano(x, values, job->cpu_ns);
    metrics_put_job_numbers(x, s, BH_METRIC_JOB_MEMORY, MEMORY);
    metrics_put_job_numbers(x, s, BH_METRIC_JOB_GPU_MEMORY, GPU_MEMORY);
    bh_exposition_family(x, BH_METRIC_JOB_GPU_BUSY);
    for (uint32_t at = 0; (job = metrics_next_job(s, &at, false, values, number));)
        if (job->busy_leases)
            bh_exposition_nano(x, values, (bh_part_ns)job->busy_percent * 10000000 / job->busy_leases);
}

static void
metrics_put_share_numbers(struct bh_exposition *x, const struct bh_scrape *s, enum bh_metric metric,
                          enum of_share what)
{
    const struct bh_scrape_job *job;
    const char *values[2];
    char number[24];

    bh_exposition_family(x, metric);
    for (uint32_t at = 0; (job = metrics_next_job(s, &at, false, values, number));) {
        const uint64_t bytes[] = { [CAP] = job->share.cap_bytes,
                                   [CHARGED] = job->share.charged_bytes,
                                   [DRIVER] = job->share.driver_bytes };

        if (job->share.cap_bytes)
            bh_exposition_u64(x, values, bytes[what]);
    }
}

/* Each kind that has not been, too: a first one is an increase then. */
static void
metrics_put_shares(struct bh_exposition *x, const struct bh_scrape *s)
{
    const struct bh_scrape_job *job;
    const char *values[3];
    char number[24];

    metrics_put_share_numbers(x, s, BH_METRIC_JOB_SHARE_CAP, CAP);
    metrics_put_share_numbers(x, s, BH_METRIC_JOB_SHARE_CHARGED, CHARGED);
    metrics_put_share_numbers(x, s, BH_METRIC_JOB_SHARE_DRIVER, DRIVER);
    bh_exposition_family(x, BH_METRIC_JOB_SHARE_SLICES);
    for (uint32_t at = 0; (job = metrics_next_job(s, &at, false, values, number));)
        if (job->share.cap_bytes)
            bh_exposition_nano(x, values, job->share.slice_ns);
    bh_exposition_family(x, BH_METRIC_JOB_NOTICES);
    for (uint32_t at = 0; (job = metrics_next_job(s, &at, false, values, number));)
        for (uint32_t kind = 0; job->share.cap_bytes && kind < BH_JOB_NOTICES; kind++) {
            values[2] = bh_job_notice_names[kind];
            bh_exposition_u64(x, values, job->notices[kind]);
        }
}

/* What a scrape of one node has: the devices there that the caller sees, and on the site their health. */
static bh_rc
metrics_put_node(struct bh_exposition *x, struct bh_scrape *s, struct bh_err *err)
{
    if (!bh_facts_node(&s->facts, s->node)) {
        bh_err_set(err, BH_NOT_FOUND, "no node %s is connected", s->node);
        return bh_err_hint(err, "list the nodes: bulkhead get nodes");
    }
    if (s->all)
        bh_metrics_put_health(x, s);
    bh_metrics_put_devices(x, s);
    bh_exposition_end(x);
    return BH_OK;
}

bh_rc
bh_metrics_show(struct bh_call *call, struct bh_err *err)
{
    BH_AUTO(bh_scrape_fini) struct bh_scrape scrape;
    struct bh_exposition x = { .out = &call->reply->body,
                               .host_label = call->api->options.metrics_host_label };
    bh_rc rc = bh_scrape_load(call, &scrape, err);

    if (rc != BH_OK)
        return rc;
    x.open_metrics = bh_exposition_wants_open_metrics(call->request->accept);
    call->reply->content_type = bh_exposition_content_type(x.open_metrics);
    if (scrape.node)
        return metrics_put_node(&x, &scrape, err);
    metrics_put_jobs(&x, &scrape);
    metrics_put_held(&x, &scrape);
    metrics_put_limits(&x, &scrape);
    metrics_put_quotas(&x, &scrape);
    metrics_put_times(&x, &scrape);
    metrics_put_tenant_networks(&x, &scrape);
    metrics_put_running(&x, &scrape);
    metrics_put_shares(&x, &scrape);
    if (scrape.all)
        bh_metrics_put_site(&x, &scrape);
    bh_metrics_put_devices(&x, &scrape);
    bh_exposition_end(&x);
    return BH_OK;
}
