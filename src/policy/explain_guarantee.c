#include "base/assert.h"
#include "base/time.h"
#include "policy/explain_internal.h"
#include "policy/gpus.h"

/* What guarantees keep from a job, and why one does not help it. */

void
bh_explain_not_lent(const struct phrase *p)
{
    bh_buf_puts(p->out, "free capacity is kept for ");
    bh_explain_tenant(p, p->reason->tenant);
    bh_buf_puts(p->out, ", which does not lend all of its guarantee");
}

void
bh_explain_next_not_lent(const struct phrase *p)
{
    bh_buf_puts(p->out, "ask for less than your own guarantee covers, wait until borrowers end, "
                        "or have an admin raise the lending limit of ");
    bh_explain_tenant(p, p->reason->tenant);
}

/* "of the 4 GPUs that acme/vision is guaranteed 4 GPUs are in use, and this job needs 1 GPU
 * more" */
static void
put_used(const struct phrase *p)
{
    const struct bh_guarantee_reason *guarantee = &p->reason->guarantee;

    if (guarantee->limit == 0) {
        bh_buf_puts(p->out, "the guarantee of ");
        bh_explain_tenant(p, guarantee->tenant);
        bh_buf_puts(p->out, " has no room for this job");
        return;
    }
    bh_buf_puts(p->out, "of the ");
    bh_gpus_put(p->out, guarantee->limit);
    bh_buf_puts(p->out, " that ");
    bh_explain_tenant(p, guarantee->tenant);
    bh_buf_puts(p->out, " is guaranteed ");
    bh_gpus_put(p->out, guarantee->used);
    bh_buf_puts(p->out, guarantee->used > BH_GPU_PARTS ? " are" : " is");
    bh_buf_puts(p->out, guarantee->coming ? " in use or being freed for its jobs" : " in use");
    bh_buf_puts(p->out, ", and this job needs ");
    bh_gpus_put(p->out, guarantee->wanted);
    bh_buf_puts(p->out, " more");
}

/* Whose guarantee it would be, where that is not its own tenant's. */
static void
put_shared(const struct phrase *p)
{
    bh_buf_puts(p->out, "its tenant has no guarantee of its own: that of ");
    bh_explain_tenant(p, p->reason->guarantee.tenant);
    bh_buf_puts(p->out, " covers all tenants below it, which cannot reclaim from each other with it; ");
}

void
bh_explain_guarantee(const struct phrase *p)
{
    static const char *const but[BH_GUARANTEE_CAUSES] = {
        [BH_GUARANTEE_NO_BORROWER] = "no tenant that it could reclaim from uses more than its guarantee",
        [BH_GUARANTEE_NEVER] =
            "what others use beyond their guarantees is held by jobs with on_preempt never",
        [BH_GUARANTEE_YOUNG] =
            "the jobs by which others exceed their guarantees have not reached their minimum run time",
        [BH_GUARANTEE_RESET] = "what others use beyond their guarantees is on GPUs that must be reset first",
        [BH_GUARANTEE_TOO_LITTLE] = "the tenants that exceed their guarantees cannot free enough for it",
        [BH_GUARANTEE_SPENT] = "it has preempted as often as one job may; it may again when another job ends",
    };
    const struct bh_guarantee_reason *guarantee = &p->reason->guarantee;

    BH_ASSERT((uint32_t)guarantee->cause < BH_GUARANTEE_CAUSES);
    if (guarantee->cause == BH_GUARANTEE_NO_CAUSE)
        return;
    bh_buf_puts(p->out, "; ");
    if (guarantee->shared)
        put_shared(p);
    if (guarantee->cause == BH_GUARANTEE_USED) {
        put_used(p);
        return;
    }
    bh_buf_puts(p->out, "the guarantee of ");
    bh_explain_tenant(p, guarantee->tenant);
    bh_buf_puts(p->out, " covers it, but ");
    bh_buf_puts(p->out, but[guarantee->cause]);
}

void
bh_explain_next_guarantee(const struct phrase *p)
{
    const struct bh_guarantee_reason *guarantee = &p->reason->guarantee;

    if (guarantee->until_ns > p->how->now_ns) {
        bh_buf_puts(p->out, "; borrowed capacity can be reclaimed in ");
        bh_time_put_span(p->out, guarantee->until_ns - p->how->now_ns);
    } else if (guarantee->shared) {
        bh_buf_puts(p->out, "; or have an admin give its tenant a guarantee of its own");
    } else if (guarantee->cause == BH_GUARANTEE_USED) {
        bh_buf_puts(p->out, "; or have an admin raise the guarantee of ");
        bh_explain_tenant(p, guarantee->tenant);
    }
}
