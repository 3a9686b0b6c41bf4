#include "policy/explain.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/time.h"
#include "model/geometry.h"
#include "model/quantity.h"
#include "policy/explain_internal.h"
#include "policy/gpus.h"

static void
explain_put_tenant(const struct phrase *p)
{
    bh_explain_tenant(p, p->reason->tenant);
}

/* ---- a sentence for each code ---- */

static void
explain_stopping(const struct phrase *p)
{
    bh_buf_puts(p->out, "it is stopping, and is killed in ");
    bh_explain_wait(p);
    bh_buf_puts(p->out, " if it has not ended by then");
}

/* "acme/vision is at its limit of ...: ... in use, this job needs ... more"; only an
 * exhausted limit is "at" it. */
static void
explain_limit(const struct phrase *p, void (*amount)(const struct phrase *, uint64_t))
{
    const struct bh_reason *reason = p->reason;

    explain_put_tenant(p);
    bh_buf_puts(p->out,
                reason->used >= reason->limit ? " is at its limit of " : " would go over its limit of ");
    amount(p, reason->limit);
    bh_buf_puts(p->out, ": ");
    if (amount == bh_explain_partitions)
        bh_buf_put_u64(p->out, reason->used);
    else
        amount(p, reason->used);
    bh_buf_puts(p->out, " in use, this job needs ");
    if (amount == bh_explain_partitions)
        bh_buf_put_u64(p->out, reason->wanted);
    else
        amount(p, reason->wanted);
    bh_buf_puts(p->out, " more");
}

static void
explain_put_parts(const struct phrase *p, uint64_t parts)
{
    bh_gpus_put(p->out, parts);
}

static void
explain_quota_gpu(const struct phrase *p)
{
    explain_limit(p, explain_put_parts);
}

static void
explain_quota_sku(const struct phrase *p)
{
    explain_limit(p, bh_explain_partitions);
}

/* "acme is at its limit of 2 GPUs on H100-80GB: ..." */
static void
explain_put_model_parts(const struct phrase *p, uint64_t parts)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)p->reason->model);

    bh_gpus_put(p->out, parts);
    if (parts == p->reason->limit)
        bh_buf_printf(p->out, " of %s", facts ? facts->name : "that model");
}

static void
explain_quota_model(const struct phrase *p)
{
    explain_limit(p, explain_put_model_parts);
}

static void
explain_quota_user(const struct phrase *p)
{
    bh_gpus_put(p->out, p->reason->used);
    bh_buf_puts(p->out, " of this user in use, this job needs ");
    bh_gpus_put(p->out, p->reason->wanted);
    bh_buf_puts(p->out, " more, and ");
    explain_put_tenant(p);
    bh_buf_puts(p->out, " allows each user ");
    bh_gpus_put(p->out, p->reason->limit);
}

/* "free capacity is kept for acme/vision, which is expected to need 1.5 GPUs of its guarantee
 * soon: ..."; how much others are expected to want is theirs to know. */
static void
explain_kept_forecast(const struct phrase *p)
{
    bh_buf_puts(p->out, "free capacity is kept for ");
    explain_put_tenant(p);
    bh_buf_puts(p->out, ", which is expected to need ");
    if (bh_explain_may_name(p->how, p->reason->tenant))
        bh_gpus_put(p->out, p->reason->expected);
    else
        bh_buf_puts(p->out, "it back");
    bh_buf_puts(p->out, bh_explain_may_name(p->how, p->reason->tenant) ? " of its guarantee soon" : " soon");
    bh_buf_puts(p->out, ": ");
    bh_gpus_put(p->out, p->reason->used);
    bh_buf_puts(p->out, " of ");
    bh_gpus_put(p->out, p->reason->limit);
    bh_buf_puts(p->out, " that others may have in use, this job needs ");
    bh_gpus_put(p->out, p->reason->wanted);
    bh_buf_puts(p->out, " more");
}

/* "acme has spent its budget of this period: 12.50 of 10 GPU-hours" */
static void
explain_budget(const struct phrase *p)
{
    bool money = p->reason->code == BH_REASON_BUDGET_MONEY;
    uint64_t unit = money ? BH_MONEY_UNIT : 3600;

    explain_put_tenant(p);
    bh_buf_printf(p->out,
                  " has spent its budget of this period: %" PRIu64 ".%02" PRIu64 " of %" PRIu64 ".%02" PRIu64
                  "%s",
                  p->reason->used / unit, p->reason->used % unit * 100 / unit, p->reason->limit / unit,
                  p->reason->limit % unit * 100 / unit, money ? "" : " GPU-hours");
}

static void
explain_never_quota(const struct phrase *p)
{
    void (*amount)(const struct phrase *, uint64_t) =
        p->reason->sku.v ? bh_explain_partitions : explain_put_parts;

    bh_buf_puts(p->out, "this job needs ");
    amount(p, p->reason->wanted);
    bh_buf_puts(p->out, ", and the limit of ");
    explain_put_tenant(p);
    bh_buf_puts(p->out, " is ");
    amount(p, p->reason->limit);
}

static void
explain_no_capacity(const struct phrase *p)
{
    bh_buf_puts(p->out, "all GPUs that could hold ");
    bh_explain_partitions(p, p->reason->wanted);
    bh_buf_puts(p->out, " are in use");
}

static void
explain_fragmented(const struct phrase *p)
{
    bh_gpus_put(p->out, p->reason->free_partitions);
    bh_buf_puts(p->out, p->reason->free_partitions > BH_GPU_PARTS ? " are" : " is");
    bh_buf_puts(p->out, " free, but not as one partition that can hold ");
    bh_explain_partitions(p, p->reason->wanted);
}

static void
explain_boundary(const struct phrase *p)
{
    bh_buf_puts(p->out, "the free capacity for ");
    bh_explain_sku(p);
    if (p->reason->gpu.v == 0) {
        bh_buf_puts(p->out, " is on the node of ");
        bh_explain_job(p, "a tenant");
        bh_buf_puts(p->out, ", and a tenant with dedicated nodes shares them with no other");
        return;
    }
    if (bh_explain_may_name_job(p)) {
        bh_buf_puts(p->out, " on ");
        bh_explain_gpu(p);
    }
    bh_buf_puts(p->out, " is next to ");
    bh_explain_job(p, "a tenant");
    bh_buf_puts(p->out, ", which the boundary between the tenants keeps apart");
}

static void
explain_behind(const struct phrase *p)
{
    bh_explain_job(p, "an earlier or higher job");
    bh_buf_puts(p->out, " comes first and waits for the same capacity");
}

static void
explain_preempting(const struct phrase *p)
{
    bh_explain_job(p, "a lower job");
    bh_buf_puts(p->out, " is being suspended or stopped to make room");
    if (p->reason->frees_at_ns <= p->how->now_ns)
        return;
    bh_buf_puts(p->out, ", and is killed at the latest in ");
    bh_explain_wait(p);
}

static void
explain_starting(const struct phrase *p)
{
    bh_buf_puts(p->out, "its partitions on ");
    bh_explain_gpu(p);
    bh_buf_puts(
        p->out,
        " are being prepared (carved, and scrubbed where another tenant had the memory) and its sandbox is "
        "starting");
}

static void
explain_suspended(const struct phrase *p)
{
    bh_buf_puts(p->out, "suspended to make room for ");
    bh_explain_job(p, "a higher job");
}

static void
explain_wrong_state(const struct phrase *p)
{
    bh_explain_job(p, "the object");
    bh_buf_puts(p->out, " is in a state that does not allow this");
}

static void
explain_tenant_cycle(const struct phrase *p)
{
    explain_put_tenant(p);
    bh_buf_puts(p->out, " cannot be below itself");
}

static void
explain_tenant_busy(const struct phrase *p)
{
    explain_put_tenant(p);
    bh_buf_puts(p->out, " still has tenants below it");
}

static void
explain_sku_busy(const struct phrase *p)
{
    bh_buf_put_u64(p->out, p->reason->used);
    bh_buf_puts(p->out, p->reason->used == 1 ? " job still uses " : " jobs still use ");
    bh_explain_sku(p);
}

static void
explain_deadline(const struct phrase *p)
{
    bh_buf_puts(p->out, "its deadline is ");
    if (p->reason->limit == 0)
        bh_buf_puts(p->out, "over");
    else
        bh_time_put_span(p->out, p->reason->limit);
    if (p->reason->limit)
        bh_buf_puts(p->out, " away");
    if (p->reason->wanted == 0)
        return;
    bh_buf_puts(p->out, ", and it may run for ");
    bh_time_put_span(p->out, p->reason->wanted);
}

static void
explain_out_of_range(const struct phrase *p)
{
    bh_buf_printf(p->out, "%" PRIu64 " is outside its range", p->reason->wanted);
    if (p->reason->limit)
        bh_buf_printf(p->out, " (at most %" PRIu64 ")", p->reason->limit);
}

/* "to make room for job 12", "to join free room" */
static void
explain_put_purpose(const struct phrase *p, bh_job_id for_job, bh_tenant_id whose)
{
    if (for_job.v == 0)
        bh_buf_puts(p->out, " to join free capacity, or to empty a cordoned GPU");
    else if (bh_explain_may_name(p->how, whose))
        bh_buf_printf(p->out, " to make room for job %" PRIu64, for_job.v);
    else
        bh_buf_puts(p->out, " to make room for a job of another tenant");
}

static void
explain_moving(const struct phrase *p)
{
    bh_buf_puts(p->out, "it is being moved to ");
    bh_explain_gpu(p);
    explain_put_purpose(p, p->reason->job, p->how->holder_tenant);
}

static void
explain_defrag_budget(const struct phrase *p)
{
    bh_buf_printf(p->out,
                  "of this hour's budget for moves %" PRIu64 " of %" PRIu64 " are used, and "
                  "this would take %" PRIu64 " more",
                  p->reason->used, p->reason->limit, p->reason->wanted);
}

static void
explain_defrag_gain(const struct phrase *p)
{
    bh_buf_printf(p->out,
                  "the moves would gain %" PRIu64 " GPU-ms and lose %" PRIu64 ", which is not worth it",
                  p->reason->used, p->reason->wanted);
}

static void
explain_defrag_stale(const struct phrase *p)
{
    bh_buf_puts(p->out, "the state has changed since the plan was made");
    if (p->reason->job.v == 0)
        return;
    bh_buf_puts(p->out, ": ");
    bh_explain_job(p, "a job");
    bh_buf_puts(p->out, " cannot be moved as planned");
}

/* "; it was moved 5m ago to make room for job 12" */
static void
explain_moved(const struct phrase *p)
{
    uint64_t now_ns = p->how->now_ns, moved_ns = p->reason->moved_ns;

    bh_buf_puts(p->out, "; it was moved ");
    bh_time_put_span(p->out, now_ns > moved_ns ? now_ns - moved_ns : 0);
    bh_buf_puts(p->out, " ago");
    explain_put_purpose(p, p->reason->moved_for, p->how->preemptor_tenant);
}

/* "; it was stopped before to make room for job 12" */
static void
explain_preempted(const struct phrase *p)
{
    bh_buf_puts(p->out, "; it was stopped before to make room for ");
    if (bh_explain_may_name(p->how, p->how->preemptor_tenant))
        bh_buf_printf(p->out, "job %" PRIu64, p->reason->preempted_for.v);
    else
        bh_buf_puts(p->out, "a job that came first");
}

/* ---- what can be done ---- */

/* "it is unknown when capacity frees: job 12 holds it without a time limit; cancel it" */
static void
explain_next_unknown(const struct phrase *p)
{
    bh_buf_puts(p->out, "it is unknown when capacity frees: ");
    if (!bh_explain_may_name_job(p)) {
        bh_buf_puts(p->out, "jobs without a time limit hold it; cancel one, or set time_limit "
                            "when submitting");
        return;
    }
    bh_explain_job(p, "");
    bh_buf_puts(p->out, " holds it without a time limit; `bulkhead cancel ");
    bh_buf_put_u64(p->out, p->reason->job.v);
    bh_buf_puts(p->out, "` frees it");
}

/* The reader may not know how long another tenant's job runs, only that nothing is promised. */
static void
explain_next_expected(const struct phrase *p)
{
    bh_buf_puts(p->out, "capacity is reserved for it, and expected to be free in ");
    bh_explain_wait(p);
    bh_buf_puts(p->out, bh_explain_may_name_job(p)
                            ? ": jobs without a time limit hold it, so this is an estimate"
                            : ": this is an estimate, since jobs may hold it longer");
}

/* "frees in 4m10s at the latest, when job 12 reaches its time limit", or when its grace is over */
static void
explain_next_frees(const struct phrase *p)
{
    if (p->reason->frees_at_ns == 0 || p->reason->assumed) {
        (p->reason->frees_at_ns == 0 ? explain_next_unknown : explain_next_expected)(p);
        return;
    }
    bh_buf_puts(p->out, "frees in ");
    bh_explain_wait(p);
    bh_buf_puts(p->out, " at the latest, when ");
    bh_buf_puts(p->out, p->reason->leaving ? "the grace of " : "");
    bh_explain_job(p, "the job that holds it");
    bh_buf_puts(p->out, p->reason->leaving ? " is over" : " reaches its time limit");
}

/* Of another tenant's job the reader learns the time alone, and whether it is sure. */
static void
explain_next_free(const struct phrase *p)
{
    if (p->reason->frees_at_ns == 0 || p->reason->assumed || bh_explain_may_name_job(p)) {
        explain_next_frees(p);
        return;
    }
    bh_buf_puts(p->out, "capacity frees in ");
    bh_explain_wait(p);
    bh_buf_puts(p->out, " at the latest");
}

/* A quota can also be raised. */
static void
explain_next_quota(const struct phrase *p)
{
    explain_next_frees(p);
    bh_buf_puts(p->out, "; or have an admin raise the limit of ");
    explain_put_tenant(p);
}

/* Room in smaller partitions may be free now. */
static void
explain_next_fragmented(const struct phrase *p)
{
    explain_next_free(p);
    bh_buf_puts(p->out, "; a smaller SKU may fit now (see `bulkhead whatif submit`)");
}

static void
explain_next_host(const struct phrase *p)
{
    explain_next_free(p);
    bh_buf_puts(p->out, "; with less of it (`cpu`, `memory`) it may fit now");
}

static void
explain_next_budget(const struct phrase *p)
{
    bh_buf_puts(p->out, "the next period begins in ");
    bh_explain_wait(p);
    bh_buf_puts(p->out, "; an admin can raise the budget of ");
    explain_put_tenant(p);
}

static void
explain_next_never_quota(const struct phrase *p)
{
    bh_buf_puts(p->out, "ask for fewer or smaller partitions, or have an admin raise the limit of ");
    explain_put_tenant(p);
}

static void
explain_next_behind(const struct phrase *p)
{
    if (p->reason->frees_at_ns) {
        bh_buf_puts(p->out, "with a time limit of at most ");
        bh_explain_wait(p);
        bh_buf_puts(p->out, " it can start before; else ");
    }
    bh_buf_puts(p->out, bh_explain_may_name_job(p) ? "it is next when "
                                                   : "it is next when that job "
                                                     "has started");
    if (!bh_explain_may_name_job(p))
        return;
    bh_explain_job(p, "");
    bh_buf_puts(p->out, " has started; `bulkhead why` on that job says what it waits for");
}

static void
explain_next_busy(const struct phrase *p)
{
    bh_buf_puts(p->out, p->reason->code == BH_REASON_SKU_BUSY
                            ? "wait, or cancel them (`bulkhead ps`)"
                            : "remove those below it first, and wait until their jobs have ended");
}

static void
explain_next_defrag_budget(const struct phrase *p)
{
    if (p->reason->frees_at_ns) {
        bh_buf_puts(p->out, "the next hour begins in ");
        bh_explain_wait(p);
        bh_buf_puts(p->out, "; ");
    }
    bh_buf_puts(p->out, "an admin can raise scheduling.defrag_moves or defrag_gpu_hours");
}

/* A phrase that is always the same, or a function that puts it together. */
struct explainer {
    void (*put)(const struct phrase *p);
    const char *text;
};

static const char nothing[] = "nothing to do";
static const char just_wait[] = "wait: it continues by itself";
static const char names[] =
    "see the names with `bulkhead get skus`, `bulkhead get tenants` and `bulkhead ps`";
static const char defrag[] = "`bulkhead defrag` shows the present plan";
static const char kill_now[] = "wait, or kill it at once with `bulkhead cancel --now`";
static const char held[] = "held by its submitter until it is released";
static const char ask_for_less[] =
    "ask for less than your own guarantee covers, wait until borrowers end or less is expected "
    "(`bulkhead forecast` shows it), or have an admin set scheduling.lending to all";
static const char start_node[] = "an operator can check with `bulkhead doctor` and start bulkhead-node";
static const char describe_it[] = "see its state with `bulkhead describe`";
static const char correct_tree[] =
    "correct the tree in the site file: parents first, children removed before their parent";
static const char not_dedicated[] =
    "its SKU is of grade A, which only nodes of its tenant's own give, and its tenant has none";
static const char dedicate[] =
    "choose a SKU of grade B, or have an admin set dedicated_nodes for the tenant in the site file";
static const char later[] = "set a later deadline or a shorter time_limit";
static const char allow_defrag[] = "an admin can set scheduling.defrag in the site file to suggest or on";

static const struct {
    struct explainer sentence, next;
} explainers[BH_REASONS] = {
    [BH_REASON_NONE] = { { .text = "nothing holds it back" }, { .text = nothing } },
    [BH_REASON_RUNNING] = { { .text = "it has what it asked for" }, { .text = nothing } },
    [BH_REASON_STOPPING] = { { explain_stopping }, { .text = kill_now } },
    [BH_REASON_HELD] = { { .text = held }, { .text = "release it with `bulkhead release`" } },
    [BH_REASON_QUOTA_GPU] = { { explain_quota_gpu }, { explain_next_quota } },
    [BH_REASON_QUOTA_SKU] = { { explain_quota_sku }, { explain_next_quota } },
    [BH_REASON_QUOTA_MODEL] = { { explain_quota_model }, { explain_next_quota } },
    [BH_REASON_QUOTA_USER] = { { explain_quota_user }, { explain_next_quota } },
    [BH_REASON_KEPT] = { { bh_explain_not_lent }, { bh_explain_next_not_lent } },
    [BH_REASON_KEPT_FORECAST] = { { explain_kept_forecast }, { .text = ask_for_less } },
    [BH_REASON_BUDGET] = { { explain_budget }, { explain_next_budget } },
    [BH_REASON_BUDGET_MONEY] = { { explain_budget }, { explain_next_budget } },
    [BH_REASON_NEVER_QUOTA] = { { explain_never_quota }, { explain_next_never_quota } },
    [BH_REASON_NEVER_SHAPE] = { { bh_explain_never_fits }, { bh_explain_next_never_fits } },
    [BH_REASON_NEVER_FORM] = { { bh_explain_never_form }, { bh_explain_next_never_form } },
    [BH_REASON_NO_CAPACITY] = { { explain_no_capacity }, { explain_next_free } },
    [BH_REASON_NO_SHAPE] = { { explain_fragmented }, { explain_next_fragmented } },
    [BH_REASON_CORES] = { { bh_explain_unhosted }, { explain_next_host } },
    [BH_REASON_MEMORY] = { { bh_explain_unhosted }, { explain_next_host } },
    [BH_REASON_NEVER_CORES] = { { bh_explain_never_hosted }, { bh_explain_next_never_host } },
    [BH_REASON_NEVER_MEMORY] = { { bh_explain_never_hosted }, { bh_explain_next_never_host } },
    [BH_REASON_BOUNDARY] = { { explain_boundary }, { explain_next_free } },
    [BH_REASON_REPARTITION] = { { bh_explain_driver }, { bh_explain_next_driver } },
    [BH_REASON_NOT_SHARED] = { { bh_explain_unshared }, { bh_explain_next_unshared } },
    [BH_REASON_NOT_DEDICATED] = { { .text = not_dedicated }, { .text = dedicate } },
    [BH_REASON_SHARE_MODE] = { { bh_explain_share_mode }, { explain_next_free } },
    [BH_REASON_SHARE_MEMORY] = { { bh_explain_share_memory }, { explain_next_fragmented } },
    [BH_REASON_BEHIND] = { { explain_behind }, { explain_next_behind } },
    [BH_REASON_PREEMPTING] = { { explain_preempting }, { .text = just_wait } },
    [BH_REASON_STARTING] = { { explain_starting }, { .text = just_wait } },
    [BH_REASON_SUSPENDED] = { { explain_suspended }, { .text = just_wait } },
    [BH_REASON_NODE_DOWN] = { { .text = "no node is up" }, { .text = start_node } },
    [BH_REASON_IN_REPAIR] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_UNCLEAN] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_CORDONED] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_CORDONED_NODE] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_CORDONED_SITE] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_UNCHECKED] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_START_FAILED] = { { bh_explain_start_failed }, { bh_explain_next_start_failed } },
    [BH_REASON_SCRATCH] = { { bh_explain_scratch }, { bh_explain_next_scratch } },
    [BH_REASON_QUARANTINED] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_FENCED] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_NEEDS_REBOOT] = { { bh_explain_away }, { bh_explain_next_away } },
    [BH_REASON_UNKNOWN_SKU] = { { .text = "there is no such SKU" }, { .text = names } },
    [BH_REASON_UNKNOWN_TENANT] = { { .text = "there is no such tenant" }, { .text = names } },
    [BH_REASON_UNKNOWN_JOB] = { { .text = "there is no such job" }, { .text = names } },
    [BH_REASON_WRONG_STATE] = { { explain_wrong_state }, { .text = describe_it } },
    [BH_REASON_TABLE_FULL] = { { .text = "a table of the engine is full" },
                               { .text = "try again in a moment" } },
    [BH_REASON_TENANT_CYCLE] = { { explain_tenant_cycle }, { .text = correct_tree } },
    [BH_REASON_TENANT_BUSY] = { { explain_tenant_busy }, { explain_next_busy } },
    [BH_REASON_SKU_BUSY] = { { explain_sku_busy }, { explain_next_busy } },
    [BH_REASON_DEADLINE] = { { explain_deadline }, { .text = later } },
    [BH_REASON_OUT_OF_RANGE] = { { explain_out_of_range },
                                 { .text = "correct the number and send it again" } },
    [BH_REASON_MOVING] = { { explain_moving }, { .text = just_wait } },
    [BH_REASON_DEFRAG_OFF] = { { .text = "defragmentation is off on this site" }, { .text = allow_defrag } },
    [BH_REASON_DEFRAG_BUDGET] = { { explain_defrag_budget }, { explain_next_defrag_budget } },
    [BH_REASON_DEFRAG_GAIN] = { { explain_defrag_gain }, { .text = defrag } },
    [BH_REASON_DEFRAG_STALE] = { { explain_defrag_stale }, { .text = defrag } },
};

static void
explain_put(const struct phrase *p, const struct explainer *explainer)
{
    BH_ASSERT(explainer->put || explainer->text);
    if (explainer->put)
        explainer->put(p);
    else
        bh_buf_puts(p->out, explainer->text);
}

/* Of a different GPU that could hold it: why it gets no work, and what can be done about that. */
static void
explain_also(const struct phrase *p, const char *joint, bool sentence)
{
    const struct bh_reason also = { .code = p->reason->also, .gpu = p->reason->also_gpu };
    const struct phrase other = { p->out, p->how, &also };

    if (also.code == BH_REASON_NONE)
        return;
    bh_buf_puts(p->out, joint);
    explain_put(&other, sentence ? &explainers[also.code].sentence : &explainers[also.code].next);
}

void
bh_explain_sentence(struct bh_buf *out, const struct bh_explain *how, const struct bh_reason *reason)
{
    struct phrase p = { out, how, reason };

    BH_ASSERT((unsigned)reason->code < BH_REASONS);
    explain_put(&p, &explainers[reason->code].sentence);
    bh_explain_guarantee(&p);
    bh_explain_form(&p);
    explain_also(&p, "; and ", true);
    if (reason->moved_ns && reason->code != BH_REASON_MOVING)
        explain_moved(&p);
    if (reason->preempted_for.v)
        explain_preempted(&p);
}

void
bh_explain_next(struct bh_buf *out, const struct bh_explain *how, const struct bh_reason *reason)
{
    struct phrase p = { out, how, reason };

    BH_ASSERT((unsigned)reason->code < BH_REASONS);
    explain_put(&p, &explainers[reason->code].next);
    bh_explain_next_guarantee(&p);
    explain_also(&p, "; or ", false);
}

bh_rc
bh_explain_ended(bh_job_id job, const char *state, struct bh_err *err)
{
    bh_err_set(err, BH_CONFLICT, "job %" PRIu64 " has ended already: %.20s", job.v, state);
    return bh_err_hint(err, "`bulkhead why %" PRIu64 "` explains how", job.v);
}
