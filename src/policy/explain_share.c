#include "policy/explain_internal.h"

static void
explain_share_put_gpu(const struct phrase *p)
{
    const struct bh_dir_gpu *gpu = bh_directory_gpu(p->how->dir, p->reason->gpu);

    bh_buf_puts(p->out, gpu ? gpu->uuid : "a GPU");
}

static void
explain_share_put_sku(const struct phrase *p)
{
    const struct bh_dir_sku *sku = bh_directory_sku(p->how->dir, p->reason->sku);

    bh_buf_puts(p->out, sku ? sku->name : "it");
}

void
bh_explain_unshared(const struct phrase *p)
{
    explain_share_put_sku(p);
    bh_buf_puts(p->out, " is a share of a GPU, and no GPU of its models may be shared");
}

void
bh_explain_next_unshared(const struct phrase *p)
{
    bh_buf_puts(p->out, "choose another SKU, or have an admin set `shared: true` for a GPU in the site file "
                        "(docs/shares.md)");
}

void
bh_explain_share_mode(const struct phrase *p)
{
    bh_buf_puts(p->out, "the GPUs that may be shared are carved or used whole now, ");
    explain_share_put_gpu(p);
    bh_buf_puts(p->out, " among them; this changes only when a GPU is empty");
}

void
bh_explain_share_memory(const struct phrase *p)
{
    explain_share_put_gpu(p);
    bh_buf_puts(p->out, " has the compute for ");
    explain_share_put_sku(p);
    bh_buf_printf(p->out, ", but only %u of the %u parts of memory that it needs", (unsigned)p->reason->limit,
                  (unsigned)p->reason->wanted);
}
