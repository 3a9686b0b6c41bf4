#include <inttypes.h>

#include "policy/explain_internal.h"
#include "policy/gpus.h"

static void
put_host(const struct phrase *p, uint64_t amount)
{
    bool cores = p->reason->code == BH_REASON_CORES || p->reason->code == BH_REASON_NEVER_CORES;

    (cores ? bh_cores_put : bh_memory_put)(p->out, amount);
}

void
bh_explain_unhosted(const struct phrase *p)
{
    bh_buf_puts(p->out, "GPUs are free for it, but of the ");
    put_host(p, p->reason->limit);
    bh_buf_puts(p->out, " beside ");
    bh_explain_gpu(p);
    bh_buf_puts(p->out, " jobs hold ");
    put_host(p, p->reason->used);
    bh_buf_puts(p->out, ", and this job needs ");
    put_host(p, p->reason->wanted);
}

void
bh_explain_never_hosted(const struct phrase *p)
{
    bh_buf_puts(p->out, "this job needs ");
    put_host(p, p->reason->wanted);
    if (p->reason->wanted <= p->reason->limit) {
        bh_buf_puts(p->out,
                    " for each member of its gang, and all nodes together do not have enough for that");
        return;
    }
    bh_buf_puts(p->out, " beside its GPUs, and no node that could hold it has more than ");
    put_host(p, p->reason->limit);
}

void
bh_explain_next_never_host(const struct phrase *p)
{
    bh_buf_puts(p->out, "ask for less (`cpu`, `memory` of the job, or of its SKU)");
}

void
bh_explain_never_fits(const struct phrase *p)
{
    if (p->reason->limit == 0) {
        bh_buf_puts(p->out, "no managed GPU can ever hold ");
        bh_explain_partitions(p, p->reason->wanted);
        if (p->reason->gpu.v) {
            bh_buf_puts(p->out, "; ");
            bh_explain_gpu(p);
            bh_buf_puts(p->out, " is of its models, but not managed");
        }
        return;
    }
    bh_buf_puts(p->out, "this job needs ");
    bh_explain_partitions(p, p->reason->wanted);
    bh_buf_puts(p->out, ", and the managed GPUs can never hold so many: one node holds ");
    bh_buf_put_u64(p->out, p->reason->limit);
    bh_buf_puts(p->out, " at most");
}

void
bh_explain_next_never_fits(const struct phrase *p)
{
    if (p->reason->gpu.v) {
        bh_buf_puts(
            p->out,
            "an admin can set `managed: true` for it under gpus in the site file; or choose another SKU");
        return;
    }
    bh_buf_puts(
        p->out,
        "choose another SKU (`bulkhead get skus`) or fewer partitions, or have an admin add a GPU that fits");
}
