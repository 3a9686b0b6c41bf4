#include "api/whatif/outcome.h"

#include <stdlib.h>

#include "api/request/answer.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "api/request/why.h"
#include "base/assert.h"

static const uint64_t least_ns = 1000000000; /* a start that moves by less has not moved */

struct outcome_writing {
    struct bh_call *call;
    const struct bh_outcome *outcome;
    struct bh_explain how; /* which jobs may be named */
    struct bh_visible visible;
    uint32_t count; /* of differences */
};

static bool
outcome_may_name(const struct outcome_writing *writing, bh_tenant_id tenant)
{
    return writing->how.all || bh_visible_has(&writing->visible, tenant.v);
}

/* ---- the job asked about ---- */

static const char *
outcome_decision_of(const struct bh_outcome *outcome, const struct bh_job_forecast *row)
{
    if (row && row->start_ns == outcome->after.future->begin_ns)
        return "starts";
    return outcome->view.state == BH_JOB_PENDING ? "waits" : "ends";
}

static struct bh_reply_whatif_job
outcome_subject_of(const struct outcome_writing *writing)
{
    const struct bh_outcome *outcome = writing->outcome;
    const struct bh_job_forecast *row = bh_job_forecasts_find(&outcome->after.forecasts, outcome->subject);
    const struct bh_dir_gpu *gpu = row ? bh_directory_gpu(writing->call->dir, row->gpu) : NULL;
    struct bh_explain how = writing->how;
    struct bh_reply_reason why;

    how.holder_tenant = outcome->holder;
    why = bh_why_reason(writing->call->arena, &how, &outcome->reason);
    return (struct bh_reply_whatif_job){ .decision = outcome_decision_of(outcome, row),
                                         .estimated_start_ns = row ? row->start_ns : 0,
                                         .gpu = gpu ? gpu->uuid : NULL,
                                         .id = outcome->submitted ? 0 : outcome->subject.v,
                                         .next = why.next,
                                         .operands = why.operands,
                                         .reason = why.reason,
                                         .sentence = why.sentence };
}

/* ---- what is different for others ---- */

static struct bh_reply_whatif_change
outcome_change_of(const struct outcome_writing *writing, const struct bh_difference *difference)
{
    const struct bh_outcome *outcome = writing->outcome;
    const struct bh_dir_tenant *tenant = bh_directory_tenant(writing->call->dir, difference->tenant);
    const struct bh_job_forecast *holder =
        bh_job_forecasts_find(&outcome->after.forecasts, difference->for_job);
    bool for_this = outcome->submitted && bh_same(difference->for_job, outcome->subject);
    bool named = holder && outcome_may_name(writing, holder->tenant);

    return (struct bh_reply_whatif_change){ .after_ns = difference->after_ns,
                                            .before_ns = difference->before_ns,
                                            .for_what = for_this ? "this job" : NULL,
                                            .for_job = !for_this && named ? difference->for_job.v : 0,
                                            .job = difference->job.v,
                                            .kind = bh_difference_names[difference->kind],
                                            .tenant = tenant ? tenant->path : "" };
}

/* Those that the caller may know of; of others whether there are any, not how many. */
static uint32_t
outcome_fill_changes(const struct outcome_writing *writing, const struct bh_difference *differences,
                     struct bh_reply_whatif_change *ret, bool ret_hidden[BH_DIFF_KINDS])
{
    uint32_t shown = 0;

    for (uint32_t i = 0; i < writing->count; i++) {
        if (outcome_may_name(writing, differences[i].tenant))
            ret[shown++] = outcome_change_of(writing, &differences[i]);
        else
            ret_hidden[differences[i].kind] = true;
    }
    return shown;
}

static bh_rc
outcome_put_all(const struct outcome_writing *writing, const struct bh_difference *differences,
                struct bh_err *err)
{
    const struct bh_outcome *outcome = writing->outcome;
    bool hidden[BH_DIFF_KINDS] = { false };
    struct bh_reply_site_changes site;
    struct bh_reply_whatif_job job;
    struct bh_reply_whatif_change *changes;
    uint32_t shown;
    bh_rc rc = bh_call_alloc(writing->call, writing->count * sizeof *changes, &changes, err);

    if (rc != BH_OK)
        return rc;
    shown = outcome_fill_changes(writing, differences, changes, hidden);
    if (outcome->subject.v)
        job = outcome_subject_of(writing);
    if (outcome->site)
        site = bh_answer_site(outcome->site, true);
    BH_REPLY_WITH(writing->call, whatif_shown, .assumption = bh_simulation_assumption,
                  .changes = { changes, shown },
                  .changes_of_other_tenants = { .cancelled = hidden[BH_DIFF_CANCELLED],
                                                .earlier = hidden[BH_DIFF_EARLIER],
                                                .later = hidden[BH_DIFF_LATER],
                                                .never = hidden[BH_DIFF_NEVER],
                                                .requeued = hidden[BH_DIFF_REQUEUED],
                                                .spared = hidden[BH_DIFF_SPARED],
                                                .starts = hidden[BH_DIFF_STARTS],
                                                .suspended = hidden[BH_DIFF_SUSPENDED] },
                  .complete = !outcome->before.forecasts.open && !outcome->after.forecasts.open,
                  .job = outcome->subject.v ? &job : NULL, .now_ns = outcome->after.future->begin_ns,
                  /* it shows how long the queue of others is */
                  .played_until_ns = writing->how.all ? outcome->after.forecasts.until_ns : 0,
                  .site = outcome->site ? &site : NULL);
    return BH_OK;
}

bh_rc
bh_outcome_write(struct bh_call *call, const struct bh_outcome *outcome, struct bh_err *err)
{
    struct outcome_writing writing = { .call = call, .outcome = outcome };
    uint32_t max = outcome->before.forecasts.count;
    struct bh_difference *differences;
    bh_rc rc = bh_visible_find(call, "job.view", &writing.visible, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_visible_explain(call, &writing.how, err);
    if (rc != BH_OK)
        return rc;
    differences = calloc((size_t)max + 1, sizeof *differences);
    BH_ASSERT(differences);
    writing.count =
        bh_whatif_compare(&outcome->before.forecasts, &outcome->after.forecasts, least_ns, differences, max);
    writing.how.now_ns = outcome->after.future->begin_ns;
    rc = outcome_put_all(&writing, differences, err);
    free(differences);
    return rc;
}
