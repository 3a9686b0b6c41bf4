#include "api/metrics/scrape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/request/visible.h"
#include "base/assert.h"
#include "base/vec.h"
#include "engine/step/engine.h"

/* The owner thread does other things between so many jobs. */
enum { JOBS_AT_ONCE = 1024 };

static struct bh_scrape_tenant *
scrape_tenant_of(const struct bh_scrape *s, bh_tenant_id id)
{
    const struct bh_dir_tenant *named = bh_directory_tenant(s->call->dir, id);

    return named ? &s->tenants[named - s->call->dir->tenants] : NULL;
}

/* ---- on the owner thread ---- */

static void
scrape_take_members(struct bh_scrape *s, const struct bh_engine *engine, const struct bh_job_view *view,
                    struct bh_scrape_tenant *tenant)
{
    size_t jobs_max = bh_engine_caps(engine).jobs; /* each slot is visited once */
    struct bh_member_view member;
    bool fits;

    fits = bh_vec_reserve(&s->jobs, &s->job_capacity, (size_t)s->job_count + 1, jobs_max);
    BH_ASSERT(fits);
    s->jobs[s->job_count++] = (struct bh_scrape_job){ .job = view->job.v,
                                                      .tenant = (uint32_t)(tenant - s->tenants),
                                                      .sku = view->sku,
                                                      .principal = view->principal,
                                                      .grade = view->grade,
                                                      .kind = view->kind,
                                                      .priority = view->priority };
    for (uint32_t i = 0; bh_view_member(engine, view->job, i, &member); i++) {
        if (member.done)
            continue;
        tenant->leases[view->grade]++;
        fits = bh_vec_reserve(&s->leases, &s->lease_capacity, (size_t)s->lease_count + 1,
                              jobs_max * BH_JOB_GANG_MAX);
        BH_ASSERT(fits);
        s->leases[s->lease_count++] = (struct bh_scrape_lease){ member.lease.v, view->job.v };
    }
}

static void
scrape_take_job(struct bh_scrape *s, const struct bh_engine *engine, const struct bh_job_view *view)
{
    struct bh_scrape_tenant *tenant = scrape_tenant_of(s, view->tenant);

    if (!tenant || view->state >= BH_JOB_COMPLETED)
        return;
    tenant->jobs[view->state]++;
    if (view->state == BH_JOB_PENDING && (!tenant->oldest_ns || view->submitted_ns < tenant->oldest_ns))
        tenant->oldest_ns = view->submitted_ns;
    if (view->lease.v)
        scrape_take_members(s, engine, view, tenant);
}

static void
scrape_ask_jobs(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct bh_scrape *s = self;
    struct bh_job_view view;

    for (uint32_t checked = 0; checked < JOBS_AT_ONCE; checked++) {
        if (!bh_view_next_job(engine, &s->cursor, &view)) {
            s->walked = true;
            return;
        }
        scrape_take_job(s, engine, &view);
    }
}

static void
scrape_take_holder(struct bh_scrape *s, const struct bh_engine *engine, const struct bh_partition_view *view,
                   const struct bh_scrape_tenant *tenant)
{
    const bh_profile_id profile = { view->partition.profile };
    bool whole = bh_same(profile, BH_PROFILE_WHOLE), fits;
    const struct bh_scrape_holder holder = { .of =
                                                 whole ? view->partition.gpu.v : view->partition.partition.v,
                                             .job = view->job.v,
                                             .tenant = (uint32_t)(tenant - s->tenants) };
    size_t most = bh_engine_caps(engine).partitions;

    if (whole) {
        fits = bh_vec_reserve(&s->wholes, &s->whole_capacity, (size_t)s->whole_count + 1, most);
        BH_ASSERT(fits);
        s->wholes[s->whole_count++] = holder;
    } else if (bh_profile_get(profile)) {
        fits = bh_vec_reserve(&s->instances, &s->instance_capacity, (size_t)s->instance_count + 1, most);
        BH_ASSERT(fits);
        s->instances[s->instance_count++] = holder;
    }
}

static void
scrape_take_partitions(struct bh_scrape *s, const struct bh_engine *engine)
{
    struct bh_partition_view view;
    uint32_t cursor = 0;

    while (bh_view_next_partition(engine, &cursor, &view)) {
        struct bh_scrape_tenant *tenant = scrape_tenant_of(s, view.tenant);
        struct bh_parts parts = bh_profile_parts((bh_profile_id){ view.partition.profile });

        if (!tenant || view.state != BH_PARTITION_LEASED)
            continue;
        tenant->compute += parts.compute;
        tenant->memory += parts.memory;
        scrape_take_holder(s, engine, &view, tenant);
    }
}

static void
scrape_take_limits(struct bh_scrape_tenant *tenant, bh_tenant_id id, const struct bh_engine *engine,
                   uint64_t now_ns)
{
    struct bh_tenant_view view;

    if (!tenant->visible || !bh_view_tenant(engine, id, now_ns, &view))
        return;
    tenant->used = view.used;
    tenant->limit = view.settings.limit;
    tenant->guarantee = view.settings.guarantee;
    tenant->quota_count = view.settings.quota_count;
    memcpy(tenant->quotas, view.settings.quotas, sizeof tenant->quotas);
    memcpy(tenant->quota_used, view.quota_used, sizeof tenant->quota_used);
}

/* Figures that must be of one moment: GPUs, their holders, and all time up to now. */
static void
scrape_ask_site(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct bh_scrape *s = self;
    const struct bh_directory *dir = s->call->dir;
    struct bh_metered_view row = { .compute_ns = 0 };

    s->now_ns = now_ns;
    bh_view_ledger(engine, now_ns, &s->ledger);
    for (uint32_t i = 0; i < dir->gpu_count; i++)
        if (!bh_view_gpu(engine, dir->gpus[i].id, &s->gpus[i]))
            s->gpus[i].gpu.v = 0;
    for (uint32_t i = 0; i < dir->tenant_count; i++)
        if (s->tenants[i].metered) {
            s->tenants[i].metered = bh_view_metered(engine, dir->tenants[i].id, now_ns, &row);
            s->tenants[i].compute_ns = row.compute_ns;
            s->tenants[i].memory_ns = row.memory_ns;
            scrape_take_limits(&s->tenants[i], dir->tenants[i].id, engine, now_ns);
        }
    scrape_take_partitions(s, engine);
}

static bh_rc
scrape_ask_owner(struct bh_scrape *s, struct bh_err *err)
{
    bh_rc rc = bh_call_ask(s->call, scrape_ask_site, s, err);

    while (rc == BH_OK && !s->walked)
        rc = bh_call_ask(s->call, scrape_ask_jobs, s, err);
    return rc;
}

/* ---- what nodes reported ---- */

/* Jobs, leases and holders begin with the number that they are found by. */
static int
scrape_compare(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static struct bh_scrape_job *
scrape_find_job(const struct bh_scrape *s, uint64_t job)
{
    return s->job_count ? bsearch(&job, s->jobs, s->job_count, sizeof *s->jobs, scrape_compare) : NULL;
}

static const struct bh_scrape_holder *
scrape_find_holder(const struct bh_scrape_holder *holders, uint32_t count, uint64_t of)
{
    return count ? bsearch(&of, holders, count, sizeof *holders, scrape_compare) : NULL;
}

const struct bh_scrape_holder *
bh_scrape_holder_of_instance(const struct bh_scrape *scrape, uint64_t partition)
{
    return scrape_find_holder(scrape->instances, scrape->instance_count, partition);
}

const struct bh_scrape_holder *
bh_scrape_holder_of_gpu(const struct bh_scrape *scrape, bh_gpu_id gpu)
{
    return scrape_find_holder(scrape->wholes, scrape->whole_count, gpu.v);
}

static void
scrape_take_share(struct bh_scrape_share *share, bh_json_value sample)
{
    share->cap_bytes += bh_json_number(bh_json_get(sample, "share_cap_bytes"), 0);
    share->charged_bytes += bh_json_number(bh_json_get(sample, "share_charged_bytes"), 0);
    share->driver_bytes += bh_json_number(bh_json_get(sample, "share_driver_bytes"), 0);
    share->slice_ns += bh_json_number(bh_json_get(sample, "share_turn_ns"), 0);
}

enum { UNKNOWN_PERCENT = 255 }; /* as in struct bh_msg_sample */

static void
scrape_take_sample(const struct bh_scrape *s, bh_json_value sample)
{
    uint64_t number = bh_json_number(bh_json_get(sample, "lease"), 0);
    const struct bh_scrape_lease *lease =
        s->lease_count ? bsearch(&number, s->leases, s->lease_count, sizeof *s->leases, scrape_compare)
                       : NULL;
    struct bh_scrape_job *job = lease ? scrape_find_job(s, lease->job) : NULL;
    uint64_t busy = bh_json_number(bh_json_get(sample, "gpu_utilisation"), UNKNOWN_PERCENT);

    if (!job)
        return;
    if (busy <= 100) {
        job->busy_percent += (uint32_t)busy;
        job->busy_leases++;
    }
    job->sampled = true;
    job->cpu_ns += bh_json_number(bh_json_get(sample, "cpu_ns"), 0);
    job->memory_bytes += bh_json_number(bh_json_get(sample, "memory_bytes"), 0);
    job->gpu_memory_mib += bh_json_number(bh_json_get(sample, "gpu_memory_mib"), 0);
    scrape_take_share(&job->share, sample);
}

static void
scrape_take_traffic(const struct bh_scrape *s, bh_json_value item)
{
    struct bh_scrape_job *job = scrape_find_job(s, bh_json_number(bh_json_get(item, "job"), 0));
    struct bh_msg_carried carried = {
        .counted = true,
        .denied_packets = bh_json_number(bh_json_get(item, "denied_packets"), 0),
        .rx_bytes = bh_json_number(bh_json_get(item, "rx_bytes"), 0),
        .tx_bytes = bh_json_number(bh_json_get(item, "tx_bytes"), 0),
    };

    if (!job)
        return;
    job->networked = true;
    bh_carried_add(&job->carried, &carried);
}

static void
scrape_read_reports(struct bh_scrape *s)
{
    bh_facts_load(&s->call->api->options.owner, &s->facts);
    for (uint32_t i = 0; i < s->facts.node_count; i++) {
        bh_json_value root = s->facts.nodes[i].root, traffic = bh_json_get(root, "traffic");
        bh_json_value samples = bh_json_get(bh_json_get(root, "samples"), "samples");

        for (size_t n = 0; n < bh_json_count(samples); n++)
            scrape_take_sample(s, bh_json_at(samples, n));
        for (size_t n = 0; n < bh_json_count(traffic); n++)
            scrape_take_traffic(s, bh_json_at(traffic, n));
    }
}

/* ---- the store ---- */

static bool
scrape_take_carried(void *self, const struct bh_document_row *row)
{
    const struct bh_scrape *s = self;
    struct bh_scrape_tenant *tenant;
    struct bh_carried_row carried;
    struct bh_err ignored;

    if (bh_job_document_decode(BH_DOCUMENT_CARRIED_TENANT, row->value, &carried, &ignored) != BH_OK)
        return true;
    tenant = scrape_tenant_of(s, (bh_tenant_id){ (uint32_t)strtoull(row->key, NULL, 10) });
    if (tenant)
        tenant->carried = carried.sums;
    return true;
}

static bh_rc
scrape_read_job(const struct bh_scrape *s, struct bh_scrape_job *job, struct bh_err *err)
{
    const struct bh_store *store = &s->call->api->options.store;
    struct bh_job_notices_row notices;
    struct bh_carried_row ended;
    bh_rc rc = BH_OK;

    if (job->networked) {
        rc = bh_job_document_get(store, BH_DOCUMENT_CARRIED, job->job, &ended, err);
        if (rc == BH_OK)
            bh_carried_add(&job->carried, &ended.sums);
    }
    if (rc != BH_OK || !job->share.cap_bytes)
        return rc;
    rc = bh_job_document_get(store, BH_DOCUMENT_NOTICES, job->job, &notices, err);
    for (uint32_t i = 0; rc == BH_OK && i < notices.item_count; i++)
        job->notices[notices.items[i].kind] = notices.items[i].count;
    return rc;
}

static bool
scrape_take_reason(void *self, const struct bh_reason_row *row)
{
    struct bh_scrape *s = self;
    const struct bh_scrape_tenant *tenant = scrape_tenant_of(s, (bh_tenant_id){ row->tenant_id });
    bool fits;

    if (!tenant || !tenant->visible)
        return true;
    fits = bh_vec_reserve(&s->reasons, &s->reason_capacity, (size_t)s->reason_count + 1,
                          (size_t)s->call->dir->tenant_count * BH_REASONS);
    BH_ASSERT(fits);
    s->reasons[s->reason_count] =
        (struct bh_scrape_reason){ .tenant = (uint32_t)(tenant - s->tenants), .jobs = row->jobs };
    snprintf(s->reasons[s->reason_count++].name, sizeof s->reasons->name, "%s", row->reason);
    return true;
}

static bh_rc
scrape_read_store(struct bh_scrape *s, struct bh_err *err)
{
    const struct bh_document_filter tenants = { .kind = BH_DOCUMENT_CARRIED_TENANT };
    const struct bh_store *store = &s->call->api->options.store;
    bh_rc rc = store->ops->list_documents(store->self, &tenants, scrape_take_carried, s, err);

    for (uint32_t i = 0; i < s->job_count && rc == BH_OK; i++) {
        if (s->tenants[s->jobs[i].tenant].visible)
            rc = scrape_read_job(s, &s->jobs[i], err);
    }
    if (rc == BH_OK)
        rc = store->ops->count_reasons(store->self, bh_job_state_names[BH_JOB_PENDING], scrape_take_reason, s,
                                       err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->last_record(store->self, &s->records, err);
    if (rc == BH_OK)
        s->records++;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* ---- all of it ---- */

bh_rc
bh_scrape_load(const struct bh_call *call, struct bh_scrape *ret_scrape, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    const struct bh_directory *dir = call->dir;
    struct bh_scrape *s = ret_scrape;
    struct bh_visible visible;
    bh_rc rc = bh_visible_find(call, "metrics.view", &visible, err);

    *s = (struct bh_scrape){ .call = call, .node = call->query.node };
    if (rc != BH_OK)
        return rc;
    s->all = visible.all;
    s->tenants = calloc(dir->tenant_count + 1, sizeof *s->tenants);
    s->gpus = calloc(dir->gpu_count + 1, sizeof *s->gpus);
    BH_ASSERT(s->tenants && s->gpus);
    for (uint32_t i = 0; i < dir->tenant_count; i++) {
        s->tenants[i].metered = bh_visible_has(&visible, dir->tenants[i].id.v);
        s->tenants[i].visible = !dir->tenants[i].gone && s->tenants[i].metered;
    }
    rc = scrape_ask_owner(s, err);
    if (rc != BH_OK)
        return rc;
    if (s->job_count)
        qsort(s->jobs, s->job_count, sizeof *s->jobs, scrape_compare);
    if (s->lease_count)
        qsort(s->leases, s->lease_count, sizeof *s->leases, scrape_compare);
    if (s->instance_count)
        qsort(s->instances, s->instance_count, sizeof *s->instances, scrape_compare);
    if (s->whole_count)
        qsort(s->wholes, s->whole_count, sizeof *s->wholes, scrape_compare);
    scrape_read_reports(s);
    owner->ops->tally(owner->self, s->tally);
    return scrape_read_store(s, err);
}

void
bh_scrape_fini(struct bh_scrape *scrape)
{
    bh_facts_fini(&scrape->facts);
    free(scrape->tenants);
    free(scrape->jobs);
    free(scrape->leases);
    free(scrape->gpus);
    free(scrape->reasons);
    free(scrape->instances);
    free(scrape->wholes);
}
