#include "api/whatif/outcome.h"

#include <stdlib.h>

#include "api/request/answer.h"
#include "api/request/visible.h"
#include "api/request/why.h"
#include "base/assert.h"

static const uint64_t least_ns = 1000000000; /* a start that moves by less has not moved */

struct outcome_writing {
    struct bh_call *call;
    struct bh_json_writer w;
    const struct bh_outcome *outcome;
    struct bh_explain how; /* who may be named */
    struct bh_visible visible;
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

static void
outcome_put_subject(struct outcome_writing *writing)
{
    const struct bh_outcome *outcome = writing->outcome;
    const struct bh_job_forecast *row = bh_job_forecasts_find(&outcome->after.forecasts, outcome->subject);
    const struct bh_dir_gpu *gpu = row ? bh_directory_gpu(writing->call->dir, row->gpu) : NULL;
    struct bh_explain how = writing->how;
    struct bh_json_writer *w = &writing->w;

    how.holder_tenant = outcome->holder;
    bh_json_open(w, "job", '{');
    bh_json_str(w, "decision", outcome_decision_of(outcome, row));
    if (row && row->start_ns)
        bh_json_ns(w, "estimated_start_ns", row->start_ns);
    if (gpu)
        bh_json_str(w, "gpu", gpu->uuid);
    if (!outcome->submitted)
        bh_json_u64(w, "id", outcome->subject.v);
    bh_why_put(w, &how, &outcome->reason, "");
    bh_json_close(w, '}');
}

/* ---- what is different for others ---- */

static void
outcome_put_difference(struct outcome_writing *writing, const struct bh_difference *difference)
{
    const struct bh_outcome *outcome = writing->outcome;
    const struct bh_dir_tenant *tenant = bh_directory_tenant(writing->call->dir, difference->tenant);
    const struct bh_job_forecast *holder =
        bh_job_forecasts_find(&outcome->after.forecasts, difference->for_job);
    bool for_this = outcome->submitted && bh_same(difference->for_job, outcome->subject);
    struct bh_json_writer *w = &writing->w;

    bh_json_open(w, NULL, '{');
    if (difference->after_ns)
        bh_json_ns(w, "after_ns", difference->after_ns);
    if (difference->before_ns)
        bh_json_ns(w, "before_ns", difference->before_ns);
    if (for_this)
        bh_json_str(w, "for", "this job");
    else if (holder && outcome_may_name(writing, holder->tenant))
        bh_json_u64(w, "for_job", difference->for_job.v);
    bh_json_u64(w, "job", difference->job.v);
    bh_json_str(w, "kind", bh_difference_names[difference->kind]);
    bh_json_str(w, "tenant", tenant ? tenant->path : "");
    bh_json_close(w, '}');
}

static void
outcome_put_differences(struct outcome_writing *writing, const struct bh_difference *differences,
                        uint32_t count)
{
    bool hidden[BH_DIFF_KINDS] = { false }; /* whether there are any, not how many */
    struct bh_json_writer *w = &writing->w;

    bh_json_open(w, "changes", '[');
    for (uint32_t i = 0; i < count; i++) {
        if (outcome_may_name(writing, differences[i].tenant))
            outcome_put_difference(writing, &differences[i]);
        else
            hidden[differences[i].kind] = true;
    }
    bh_json_close(w, ']');
    bh_json_open(w, "changes_of_other_tenants", '{');
    for (int kind = 0; kind < BH_DIFF_KINDS; kind++)
        if (hidden[kind])
            bh_json_bool(w, bh_difference_names[kind], true);
    bh_json_close(w, '}');
}

static void
outcome_put_all(struct outcome_writing *writing, const struct bh_difference *differences, uint32_t count)
{
    const struct bh_outcome *outcome = writing->outcome;
    struct bh_json_writer *w = &writing->w;

    bh_json_open(w, NULL, '{');
    bh_json_str(w, "assumption", bh_simulation_assumption);
    outcome_put_differences(writing, differences, count);
    bh_json_bool(w, "complete", !outcome->before.forecasts.open && !outcome->after.forecasts.open);
    if (outcome->subject.v)
        outcome_put_subject(writing);
    bh_json_ns(w, "now_ns", outcome->after.future->begin_ns);
    if (writing->how.all) /* it tells how long others' queue is */
        bh_json_ns(w, "played_until_ns", outcome->after.forecasts.until_ns);
    if (outcome->site) {
        bh_json_open(w, "site", '{');
        bh_answer_put_site(w, outcome->site, true);
        bh_json_close(w, '}');
    }
    bh_json_close(w, '}');
}

bh_rc
bh_outcome_write(struct bh_call *call, const struct bh_outcome *outcome, struct bh_err *err)
{
    struct outcome_writing writing = { .call = call, .w = bh_call_writer(call), .outcome = outcome };
    uint32_t max = outcome->before.forecasts.count, count;
    struct bh_difference *differences;
    bh_rc rc = bh_visible_find(call, "job.view", &writing.visible, err);
    if (rc != BH_OK)
        return rc;

    rc = bh_visible_explain(call, &writing.how, err);
    if (rc != BH_OK)
        return rc;
    differences = calloc((size_t)max + 1, sizeof *differences);
    BH_ASSERT(differences);
    count =
        bh_whatif_compare(&outcome->before.forecasts, &outcome->after.forecasts, least_ns, differences, max);
    writing.how.now_ns = outcome->after.future->begin_ns;
    outcome_put_all(&writing, differences, count);
    free(differences);
    return BH_OK;
}
