#include "api/jobs/job_reasons.h"

#include "api/jobs/image.h"
#include "api/request/visible.h"

struct job_reason {
    bh_job_id job;
    struct bh_reason reason;
    bh_tenant_id holder, preemptor;
};

struct bh_job_reasons {
    struct bh_explain how;
    uint64_t now_ns;
    uint32_t count, capacity;
    struct job_reason rows[];
};

bh_rc
bh_job_reasons_new(const struct bh_call *call, uint32_t capacity, struct bh_job_reasons **ret_reasons,
                   struct bh_err *err)
{
    struct bh_job_reasons *reasons;
    bh_rc rc = bh_call_alloc(call, sizeof *reasons + capacity * sizeof reasons->rows[0], &reasons, err);

    if (rc != BH_OK)
        return rc;
    reasons->capacity = capacity;
    *ret_reasons = reasons;
    return BH_OK;
}

bool
bh_job_reasons_add(struct bh_job_reasons *reasons, uint64_t job)
{
    if (reasons->count == reasons->capacity)
        return false;
    reasons->rows[reasons->count++].job.v = job;
    return true;
}

static void
job_reasons_ask_one(const struct bh_engine *engine, uint64_t now_ns, struct job_reason *row)
{
    struct bh_job_view other;

    bh_engine_why(engine, row->job, now_ns, &row->reason);
    if (row->reason.job.v && bh_view_job(engine, row->reason.job, &other))
        row->holder = other.tenant;
    if (bh_view_job(engine, row->reason.preempted_for, &other)
        || bh_view_job(engine, row->reason.moved_for, &other))
        row->preemptor = other.tenant;
}

static void
job_reasons_ask_all(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct bh_job_reasons *reasons = self;

    reasons->now_ns = now_ns;
    for (uint32_t i = 0; i < reasons->count; i++)
        job_reasons_ask_one(engine, now_ns, &reasons->rows[i]);
}

bh_rc
bh_job_reasons_ask(const struct bh_call *call, struct bh_job_reasons *reasons, struct bh_err *err)
{
    bh_rc rc = bh_visible_explain(call, &reasons->how, err);

    return rc == BH_OK && reasons->count > 0 ? bh_call_ask(call, job_reasons_ask_all, reasons, err) : rc;
}

static const struct bh_reply_reason *
job_reasons_word(const struct bh_call *call, const struct bh_job_reasons *reasons,
                 const struct job_reason *row)
{
    struct bh_reply_reason *words = bh_arena_alloc(call->arena, sizeof *words);
    struct bh_explain how = reasons->how;
    char image[BH_IMAGE_TEXT_SIZE] = "";

    if (!words)
        return NULL;
    how.holder_tenant = row->holder;
    how.preemptor_tenant = row->preemptor;
    how.now_ns = reasons->now_ns;
    *words = bh_why_reason(call->arena, &how, &row->reason);
    if (row->reason.code == BH_REASON_STARTING)
        bh_image_describe(call, row->job.v, image);
    if (*image && words->sentence)
        words->sentence = bh_arena_printf(call->arena, "%s; image: %s", words->sentence, image);
    return words;
}

const struct bh_reply_reason *
bh_job_reasons_of(const struct bh_call *call, const struct bh_job_reasons *reasons, uint64_t job)
{
    for (uint32_t i = 0; i < reasons->count; i++)
        if (reasons->rows[i].job.v == job)
            return job_reasons_word(call, reasons, &reasons->rows[i]);
    return NULL;
}
