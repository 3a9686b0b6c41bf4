#include "engine/forecast/whatif.h"

#include <string.h>

#include "base/assert.h"
#include "engine/read/view.h"
#include "engine/state/slots.h"

const char *const bh_difference_names[BH_DIFF_KINDS] = {
    [BH_DIFF_CANCELLED] = "cancelled", [BH_DIFF_SUSPENDED] = "suspended", [BH_DIFF_REQUEUED] = "requeued",
    [BH_DIFF_NEVER] = "never",         [BH_DIFF_LATER] = "later",         [BH_DIFF_EARLIER] = "earlier",
    [BH_DIFF_STARTS] = "starts",       [BH_DIFF_SPARED] = "spared",
};

/* ---- the rows ---- */

/* The first row whose job is not below `job`. */
static uint32_t
whatif_place_of(const struct bh_job_forecasts *forecasts, bh_job_id job)
{
    uint32_t low = 0, high = forecasts->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (forecasts->rows[middle].job.v < job.v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct bh_job_forecast *
whatif_row_of(const struct bh_job_forecasts *forecasts, bh_job_id job)
{
    uint32_t at = whatif_place_of(forecasts, job);

    return at < forecasts->count && bh_same(forecasts->rows[at].job, job) ? &forecasts->rows[at] : NULL;
}

const struct bh_job_forecast *
bh_job_forecasts_find(const struct bh_job_forecasts *forecasts, bh_job_id job)
{
    return whatif_row_of(forecasts, job);
}

/* A row for the job, which has none: NULL when there is no room. */
static struct bh_job_forecast *
whatif_add_row(struct bh_job_forecasts *forecasts, const struct bh_job_view *view)
{
    uint32_t at = whatif_place_of(forecasts, view->job);

    if (forecasts->count == forecasts->max)
        return NULL;
    memmove(&forecasts->rows[at + 1], &forecasts->rows[at],
            (forecasts->count - at) * sizeof forecasts->rows[0]);
    forecasts->count++;
    forecasts->rows[at] =
        (struct bh_job_forecast){ .job = view->job, .tenant = view->tenant, .state = view->state };
    return &forecasts->rows[at];
}

uint32_t
bh_job_forecasts_needed(const struct bh_engine *engine)
{
    struct bh_job_view view;
    uint32_t cursor = 0, count = 0;

    while (bh_view_next_job(engine, &cursor, &view))
        count += view.state < BH_JOB_COMPLETED;
    return count;
}

/* Put the row at `at` where it belongs in the heap below `end`. */
static void
whatif_sift(struct bh_job_forecast *rows, uint32_t at, uint32_t end)
{
    for (uint32_t child = 2 * at + 1; child < end; child = 2 * at + 1) {
        struct bh_job_forecast kept = rows[at];

        if (child + 1 < end && rows[child].job.v < rows[child + 1].job.v)
            child++;
        if (rows[child].job.v <= kept.job.v)
            return;
        rows[at] = rows[child];
        rows[child] = kept;
        at = child;
    }
}

static void
whatif_sort_rows(struct bh_job_forecasts *forecasts)
{
    for (uint32_t at = forecasts->count / 2; at-- > 0;)
        whatif_sift(forecasts->rows, at, forecasts->count);
    for (uint32_t end = forecasts->count; end > 1; end--) {
        struct bh_job_forecast kept = forecasts->rows[0];

        forecasts->rows[0] = forecasts->rows[end - 1];
        forecasts->rows[end - 1] = kept;
        whatif_sift(forecasts->rows, 0, end - 1);
    }
}

bh_rc
bh_job_forecasts_begin(struct bh_job_forecasts *forecasts, const struct bh_engine *engine)
{
    struct bh_job_view view;
    uint32_t cursor = 0;
    bh_rc rc = BH_OK;

    forecasts->count = 0;
    forecasts->until_ns = 0;
    forecasts->open = true;
    while (bh_view_next_job(engine, &cursor, &view)) {
        if (view.state >= BH_JOB_COMPLETED)
            continue;
        if (forecasts->count == forecasts->max)
            rc = BH_FULL;
        else
            forecasts->rows[forecasts->count++] =
                (struct bh_job_forecast){ .job = view.job, .tenant = view.tenant, .state = view.state };
    }
    whatif_sort_rows(forecasts);
    return rc;
}

/* ---- listening ---- */

static void
whatif_note_start(struct bh_job_forecast *row, const struct bh_job_view *view, uint64_t at_ns)
{
    if (row->start_ns || row->state != BH_JOB_PENDING)
        return;
    row->start_ns = at_ns;
    row->node = view->node;
    row->gpu = view->partition_count ? view->partitions[0].gpu : (bh_gpu_id){ 0 };
}

static void
whatif_note_preempted(struct bh_job_forecast *row, const struct bh_future_event *event)
{
    if (row->out_ns)
        return;
    row->out_ns = event->at_ns;
    row->out_for = event->for_job;
    row->suspended = event->kind == BH_FUTURE_EVENT_SUSPENDED;
}

void
bh_job_forecasts_notify(void *self, const struct bh_engine *engine, const struct bh_future_event *event)
{
    struct bh_job_forecasts *forecasts = self;
    struct bh_job_forecast *row = whatif_row_of(forecasts, event->job);
    struct bh_job_view view = { .state = BH_JOB_PENDING };
    bool known = bh_view_job(engine, event->job, &view);

    if (!row && known && event->kind == BH_FUTURE_EVENT_STARTS) {
        view.state = BH_JOB_PENDING; /* as it was submitted */
        row = whatif_add_row(forecasts, &view);
    }
    if (!row)
        return;
    if (event->kind == BH_FUTURE_EVENT_STARTS)
        whatif_note_start(row, &view, event->at_ns);
    else if (event->kind == BH_FUTURE_EVENT_SUSPENDED || event->kind == BH_FUTURE_EVENT_REQUEUED)
        whatif_note_preempted(row, event);
    else if (event->kind == BH_FUTURE_EVENT_ENDS) {
        row->end_ns = event->at_ns;
        row->cause = event->cause;
    }
}

void
bh_job_forecasts_close(struct bh_job_forecasts *forecasts, const struct bh_future *future,
                       enum bh_future_end end)
{
    forecasts->until_ns = future->now_ns;
    forecasts->open = end == BH_FUTURE_MORE || end == BH_FUTURE_FULL;
}

/* ---- changes ---- */

bool
bh_whatif_drain(const struct bh_engine *engine, bh_gpu_id gpu, struct bh_event *ret_event)
{
    uint32_t slot = gpu_find(engine, gpu.v);
    const struct gpu *present = gpu_at(engine, slot);

    if (!slot)
        return false;
    *ret_event = (struct bh_event){
        .kind = BH_EV_GPU,
        .u.gpu = { .gpu = gpu,
                   .node = { (uint32_t)node_at(engine, present->node)->id },
                   .model = present->model,
                   .managed = present->managed,
                   .cordoned = true,
                   .fenced = present->fenced != FENCE_NONE,
                   .keeps = present->fenced == FENCE_KEEPS,
                   .mig_capable = present->mig_capable,
                   .link = present->link,
                   .numa = present->numa,
                   .layout = (enum bh_pool_layout)present->layout,
                   .lone_carve = present->lone_carve,
                   .share_limit = present->share_limit },
    };
    return true;
}

/* ---- comparing ---- */

static bool
whatif_is_cancelled(const struct bh_job_forecast *row)
{
    return row->end_ns && (row->cause == BH_END_CANCELLED || row->cause == BH_END_TENANT_REMOVED);
}

/* Whether `row` makes way and the other does not, as far as both were played. */
static bool
whatif_is_preempted(const struct bh_job_forecast *row, const struct bh_job_forecast *other, uint64_t until_ns)
{
    return row->out_ns && row->out_ns <= until_ns && !other->out_ns;
}

/* The start's difference; KINDS: there is none that counts. */
static enum bh_difference_kind
whatif_start_kind(const struct bh_job_forecast *before, const struct bh_job_forecast *after,
                  uint64_t least_ns)
{
    if (before->start_ns && !after->start_ns)
        return BH_DIFF_NEVER;
    if (!before->start_ns && after->start_ns)
        return BH_DIFF_STARTS;
    if (after->start_ns > before->start_ns && after->start_ns - before->start_ns >= least_ns)
        return BH_DIFF_LATER;
    if (before->start_ns > after->start_ns && before->start_ns - after->start_ns >= least_ns)
        return BH_DIFF_EARLIER;
    return BH_DIFF_KINDS;
}

static struct bh_difference
whatif_start_difference(const struct bh_job_forecasts *before, const struct bh_job_forecasts *after,
                        const struct bh_job_forecast *a, const struct bh_job_forecast *b, uint64_t least_ns)
{
    enum bh_difference_kind kind = whatif_start_kind(a, b, least_ns);

    if ((kind == BH_DIFF_NEVER && after->open) || (kind == BH_DIFF_STARTS && before->open))
        kind = BH_DIFF_KINDS;
    return (struct bh_difference){ .kind = kind, .before_ns = a->start_ns, .after_ns = b->start_ns };
}

static struct bh_difference
whatif_difference(const struct bh_job_forecasts *before, const struct bh_job_forecasts *after,
                  const struct bh_job_forecast *a, const struct bh_job_forecast *b, uint64_t least_ns)
{
    uint64_t until_ns = before->until_ns < after->until_ns ? before->until_ns : after->until_ns;
    struct bh_difference found;

    if (whatif_is_cancelled(b) && !whatif_is_cancelled(a))
        return (
            struct bh_difference){ .kind = BH_DIFF_CANCELLED, .before_ns = a->end_ns, .after_ns = b->end_ns };
    if (whatif_is_preempted(b, a, until_ns))
        return (struct bh_difference){ .kind = b->suspended ? BH_DIFF_SUSPENDED : BH_DIFF_REQUEUED,
                                       .for_job = b->out_for,
                                       .after_ns = b->out_ns };
    found = whatif_start_difference(before, after, a, b, least_ns);
    if (found.kind == BH_DIFF_KINDS && whatif_is_preempted(a, b, until_ns))
        found =
            (struct bh_difference){ .kind = BH_DIFF_SPARED, .for_job = a->out_for, .before_ns = a->out_ns };
    return found;
}

uint32_t
bh_whatif_compare(const struct bh_job_forecasts *before, const struct bh_job_forecasts *after,
                  uint64_t least_ns, struct bh_difference *ret_differences, uint32_t max)
{
    uint32_t count = 0;

    BH_ASSERT(ret_differences || max == 0);
    for (uint32_t i = 0; i < before->count; i++) {
        const struct bh_job_forecast *a = &before->rows[i], *b = bh_job_forecasts_find(after, a->job);
        struct bh_difference found;

        if (!b)
            continue;
        found = whatif_difference(before, after, a, b, least_ns);
        if (found.kind == BH_DIFF_KINDS)
            continue;
        found.job = a->job;
        found.tenant = a->tenant;
        if (count < max)
            ret_differences[count] = found;
        count++;
    }
    return count;
}
