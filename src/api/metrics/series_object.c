#include "api/metrics/series_object.h"

#include <inttypes.h>
#include <string.h>

#include "api/jobs/jobs.h"
#include "base/num.h"

static bool
series_may(const struct bh_call *call, const char *verb, bh_tenant_id tenant)
{
    return bh_authz_check(call->dir, &call->caller.subject, verb, tenant).allow;
}

/* What is not there and what may not be seen have the same answer. */
static bh_rc
series_refuse(const char *kind, const char *name, const char *list, struct bh_err *err)
{
    bh_err_set(err, BH_NOT_FOUND, "no %s/%.119s that you may see", kind, name);
    return bh_err_hint(err, "`bulkhead %s` lists those you may see", list);
}

static bh_rc
series_find_gpu(struct bh_call *call, const char *name, struct bh_series_subject *ret, struct bh_err *err)
{
    const struct bh_dir_gpu *gpu = bh_directory_gpu_uuid(call->dir, name);

    call->probed = gpu && !series_may(call, "gpu.view", (bh_tenant_id){ 0 });
    if (!gpu || call->probed)
        return series_refuse("gpu", name, "gpu", err);
    ret->object = (struct bh_series_object){ BH_SERIES_KIND_GPU, gpu->uuid, 0 };
    return BH_OK;
}

struct node_search {
    const char *name;
    bool found;
};

static bool
series_match_node(void *self, const struct bh_name_row *row)
{
    struct node_search *search = self;

    search->found = row->kind == BH_NAME_NODE && !row->gone && strcmp(row->name, search->name) == 0;
    return !search->found;
}

static bh_rc
series_find_node(struct bh_call *call, const char *name, struct bh_series_subject *ret, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct node_search search = { .name = name };
    bh_rc rc = store->ops->list_names(store->self, series_match_node, &search, err);

    if (rc != BH_OK)
        return rc;
    call->probed = search.found && !series_may(call, "gpu.view", (bh_tenant_id){ 0 });
    if (!search.found || call->probed)
        return series_refuse("node", name, "node", err);
    ret->object = (struct bh_series_object){ BH_SERIES_KIND_NODE, name, 0 };
    return BH_OK;
}

/* What was sampled before it was submitted is another job's that had the number. */
static bh_rc
series_find_job(struct bh_call *call, const char *name, struct bh_series_subject *ret, struct bh_err *err)
{
    struct bh_job_row row;
    uint64_t job;
    bool found = bh_parse_u64(name, &job, err) == BH_OK && bh_jobs_read(call, job, call->arena, &row);

    call->probed = found && !series_may(call, "job.view", (bh_tenant_id){ row.tenant_id });
    if (!found || call->probed)
        return series_refuse("job", name, "ps", err);
    call->job = (bh_job_id){ job };
    call->tenant = (bh_tenant_id){ row.tenant_id };
    ret->object = (struct bh_series_object){ BH_SERIES_KIND_JOB,
                                             bh_arena_printf(call->arena, "%" PRIu64, job), row.tenant_id };
    ret->since_ns = row.submitted_ns;
    ret->ended_ns = row.ended_ns;
    return BH_OK;
}

static bh_rc
series_find_tenant(struct bh_call *call, const char *name, struct bh_series_subject *ret, struct bh_err *err)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant_named(call->dir, name);

    call->probed = tenant && !series_may(call, "tenant.view", tenant->id);
    if (!tenant || call->probed)
        return series_refuse("tenant", name, "tenant", err);
    ret->object = (struct bh_series_object){
        BH_SERIES_KIND_TENANT, bh_arena_printf(call->arena, "%u %s", tenant->id.v, tenant->path), tenant->id.v
    };
    return BH_OK;
}

static bh_rc
series_find_site(struct bh_call *call, const char *name, struct bh_series_subject *ret, struct bh_err *err)
{
    call->verdict = bh_authz_check(call->dir, &call->caller.subject, "usage.view", (bh_tenant_id){ 0 });
    if (!call->verdict.allow)
        return bh_call_deny(call, (struct bh_denial){ "usage.view", call->verdict, BH_REACH_OBJECT },
                            (bh_tenant_id){ 0 }, err);
    ret->object = (struct bh_series_object){ BH_SERIES_KIND_SITE, "site", 0 };
    return BH_OK;
}

static bh_rc
series_refuse_words(const char *text, struct bh_err *err)
{
    if (text)
        bh_err_set(err, BH_INVALID, "object: \"%.60s\" has no series", text);
    else
        bh_err_set(err, BH_INVALID, "object is missing");
    return bh_err_hint(err, "object is site, gpu/UUID, node/NAME, job/NUMBER or tenant/PATH");
}

bh_rc
bh_series_subject_find(struct bh_call *call, const char *text, struct bh_series_subject *ret_subject,
                       struct bh_err *err)
{
    static bh_rc (*const finders[BH_SERIES_KINDS])(struct bh_call * call, const char *name,
                                                   struct bh_series_subject *ret, struct bh_err *err) = {
        [BH_SERIES_KIND_GPU] = series_find_gpu,   [BH_SERIES_KIND_NODE] = series_find_node,
        [BH_SERIES_KIND_JOB] = series_find_job,   [BH_SERIES_KIND_TENANT] = series_find_tenant,
        [BH_SERIES_KIND_SITE] = series_find_site,
    };
    size_t length = text ? strcspn(text, "/") : 0;
    struct bh_series_subject subject = { .since_ns = 0 };
    bh_rc rc;

    for (enum bh_series_kind kind = 0; kind < BH_SERIES_KINDS && length > 0; kind++) {
        bool named = kind != BH_SERIES_KIND_SITE;

        if (strlen(bh_series_kind_names[kind]) != length
            || strncmp(text, bh_series_kind_names[kind], length) != 0
            || (text[length] == '/' && text[length + 1] != '\0') != named)
            continue;
        rc = finders[kind](call, text + length + named, &subject, err);
        if (rc == BH_OK && !subject.object.name)
            return bh_err_set(err, BH_FULL, "the answer is too large");
        if (rc == BH_OK)
            *ret_subject = subject;
        return rc;
    }
    return series_refuse_words(text, err);
}
