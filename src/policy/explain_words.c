#include <inttypes.h>

#include "base/time.h"
#include "policy/explain_internal.h"

/* The nouns of all sentences: who, what, where, how long. */

bool
bh_explain_may_name(const struct bh_explain *how, bh_tenant_id tenant)
{
    if (how->all)
        return true;
    for (uint32_t i = 0; i < how->visible_count && tenant.v != 0; i++)
        if (how->visible[i] == tenant.v)
            return true;
    return false;
}

void
bh_explain_tenant(const struct phrase *p, bh_tenant_id id)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(p->how->dir, id);

    bh_buf_puts(p->out, tenant && bh_explain_may_name(p->how, tenant->id) ? tenant->path : "a tenant above");
}

void
bh_explain_sku(const struct phrase *p)
{
    const struct bh_dir_sku *sku = bh_directory_sku(p->how->dir, p->reason->sku);

    bh_buf_puts(p->out, sku ? sku->name : "an unknown SKU");
}

bool
bh_explain_may_name_job(const struct phrase *p)
{
    return p->reason->job.v != 0 && bh_explain_may_name(p->how, p->how->holder_tenant);
}

void
bh_explain_job(const struct phrase *p, const char *unknown)
{
    if (p->reason->job.v == 0)
        bh_buf_puts(p->out, unknown);
    else if (bh_explain_may_name_job(p))
        bh_buf_printf(p->out, "job %" PRIu64, p->reason->job.v);
    else
        bh_buf_puts(p->out, "a job of another tenant");
}

void
bh_explain_gpu(const struct phrase *p)
{
    const struct bh_dir_gpu *gpu = bh_directory_gpu(p->how->dir, p->reason->gpu);

    if (gpu)
        bh_buf_puts(p->out, gpu->uuid);
    else
        bh_buf_puts(p->out, "a GPU");
}

void
bh_explain_partitions(const struct phrase *p, uint64_t count)
{
    bh_buf_put_u64(p->out, count);
    bh_buf_putc(p->out, ' ');
    bh_explain_sku(p);
}

void
bh_explain_wait(const struct phrase *p)
{
    if (p->reason->frees_at_ns <= p->how->now_ns)
        bh_buf_puts(p->out, "a moment");
    else
        bh_time_put_span(p->out, p->reason->frees_at_ns - p->how->now_ns);
}
