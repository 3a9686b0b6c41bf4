#include "policy/explain_internal.h"

void
bh_explain_start_failed(const struct phrase *p)
{
    bh_buf_puts(p->out, "its start failed on the node of ");
    bh_explain_gpu(p);
    bh_buf_puts(p->out, ", which could hold it; its output says why");
}

void
bh_explain_next_start_failed(const struct phrase *p)
{
    bh_buf_puts(p->out, "it starts on another node as soon as one can hold it, and is retried there in ");
    bh_explain_wait(p);
}

void
bh_explain_scratch(const struct phrase *p)
{
    bh_explain_gpu(p);
    bh_buf_puts(
        p->out,
        " could hold it, but the scratch of its node, or its tenant's part of it, is full; its output says "
        "how much");
}

void
bh_explain_next_scratch(const struct phrase *p)
{
    bh_buf_puts(p->out, "it is retried when a job there has ended, and in ");
    bh_explain_wait(p);
    bh_buf_puts(p->out, "; it starts sooner with less scratch");
}
