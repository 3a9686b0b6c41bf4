#include "api/jobs/jobs.h"

#include <stdio.h>
#include <string.h>

#include "api/audit/receipts.h"
#include "api/jobs/failure.h"
#include "api/jobs/image.h"
#include "api/jobs/job_filter.h"
#include "api/jobs/job_notices.h"
#include "api/jobs/job_reasons.h"
#include "api/jobs/job_rights.h"
#include "api/jobs/job_use.h"
#include "api/jobs/members.h"
#include "api/jobs/reservations.h"
#include "api/jobs/start_estimates.h"
#include "api/jobs/traffic.h"
#include "api/nodes/runnable.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "api/site/datasets.h"
#include "api/state/simulation.h"
#include "base/nearest.h"
#include "base/num.h"

enum {
    NAME_SIZE = 512,
    GPU_SCAN = 1000, /* rows of which a page of a GPU's jobs is made */
    GPUS_SHOWN = 16,
    UUID_SHOWN = 12 /* of a GPU's UUID in a row's `partitions` */
};

/* ---- reading rows ---- */

bool
bh_jobs_ended(const char *state)
{
    return strcmp(state, "completed") == 0 || strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0;
}

struct row_copy {
    struct bh_arena *arena;
    struct bh_job_row row;
    bool found;
};

static bool
jobs_copy_row(void *self, const struct bh_job_row *row)
{
    struct row_copy *copy = self;
    const char **texts[] = {
        &copy->row.name, &copy->row.tenant,     &copy->row.principal, &copy->row.sku,
        &copy->row.kind, &copy->row.state,      &copy->row.contract,  &copy->row.reason,
        &copy->row.node, &copy->row.partitions, &copy->row.grade,
    };

    copy->row = *row;
    copy->found = true;
    for (size_t i = 0; i < BH_COUNT(texts); i++) {
        *texts[i] = bh_arena_strdup(copy->arena, *texts[i] ? *texts[i] : "");
        copy->found = copy->found && *texts[i];
    }
    return false;
}

bool
bh_jobs_read(const struct bh_call *call, uint64_t job, struct bh_arena *arena, struct bh_job_row *ret_row)
{
    const struct bh_store *store = &call->api->options.store;
    struct row_copy copy = { .arena = arena };
    struct bh_err unused;

    if (store->ops->get_job(store->self, job, jobs_copy_row, &copy, &unused) != BH_OK || !copy.found)
        return false;
    *ret_row = copy.row;
    return true;
}

static bh_rc
no_such_job(uint64_t job, struct bh_err *err)
{
    bh_err_set(err, BH_NOT_FOUND, "no job %" PRIu64 " that you may see", job);
    return bh_err_hint(err, "`bulkhead ps` lists those you may see");
}

/* A caller that holds either job.view or the operation's own verb sees the job. */
static bool
jobs_may_see(const struct bh_call *call, bh_tenant_id tenant)
{
    const struct bh_subject *subject = &call->caller.subject;

    return bh_authz_check(call->dir, subject, "job.view", tenant).allow
           || bh_authz_check(call->dir, subject, call->op->verb, tenant).allow;
}

bh_rc
bh_jobs_find(struct bh_call *call, struct bh_job_row *ret_row, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct row_copy copy = { .arena = call->arena };
    bh_tenant_id tenant;
    uint64_t job;
    bh_rc rc = bh_parse_u64(call->id, &job, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "job id");
    rc = store->ops->get_job(store->self, job, jobs_copy_row, &copy, err);
    if (rc == BH_NOT_FOUND)
        return no_such_job(job, err);
    if (rc != BH_OK)
        return rc;
    if (!copy.found)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    call->job = (bh_job_id){ job };
    tenant = (bh_tenant_id){ copy.row.tenant_id };
    if (!jobs_may_see(call, tenant)) {
        call->probed = true;
        return no_such_job(job, err);
    }
    call->tenant = tenant;
    *ret_row = copy.row;
    return BH_OK;
}

bh_rc
bh_jobs_find_permitted(struct bh_call *call, struct bh_job_row *ret_row, struct bh_err *err)
{
    bh_rc rc = bh_jobs_find(call, ret_row, err);

    if (rc != BH_OK)
        return rc;
    call->verdict = bh_authz_check(call->dir, &call->caller.subject, call->op->verb, call->tenant);
    if (call->verdict.allow)
        return BH_OK;
    return bh_call_deny(call, (struct bh_denial){ call->op->verb, call->verdict, BH_REACH_OBJECT },
                        call->tenant, err);
}

/* ---- writing jobs ---- */

static const char *
jobs_priority_name(uint32_t priority)
{
    const char *name = priority < BH_PRIORITIES ? bh_priority_names[priority] : NULL;

    return name ? name : "normal";
}

/* A user's free text: sealed in the row, and opened for a caller that sees the job. */
static struct bh_slice
jobs_name_of(const struct bh_call *call, const char *stored, char memory[NAME_SIZE])
{
    const struct bh_slice item = bh_reply_slice(stored);
    struct bh_buf name;
    struct bh_err err;
    bh_rc rc;

    if (!bh_keys_is_sealed(item))
        return item;
    bh_buf_init_fixed(&name, memory, NAME_SIZE);
    rc = bh_keys_unseal(call->api->options.keys, item, &name, &err);
    if (rc == BH_OK)
        return (struct bh_slice){ name.bytes, name.length };
    return bh_reply_slice(rc == BH_NOT_FOUND ? BH_ERASED : "(unreadable)");
}

/* What a job's reply borrows besides its row. */
struct job_texts {
    char name[NAME_SIZE];
    const char *gpus[GPUS_SHOWN];
};

/* Whether a row names that GPU so: by the first 12 characters of its UUID. */
static bool
jobs_is_gpu_named(const char *uuid, const char *name, size_t length)
{
    return strncmp(uuid, name, length) == 0 && (length == UUID_SHOWN || uuid[length] == '\0');
}

static void
jobs_add_gpu(const struct bh_directory *dir, const char *name, struct bh_texts *gpus)
{
    size_t length = strcspn(name, " ,");

    for (uint32_t i = 0; i < gpus->count; i++)
        if (jobs_is_gpu_named(gpus->items[i], name, length))
            return;
    for (uint32_t i = 0; i < dir->gpu_count && gpus->count < GPUS_SHOWN; i++)
        if (jobs_is_gpu_named(dir->gpus[i].uuid, name, length)) {
            gpus->items[gpus->count++] = dir->gpus[i].uuid;
            return;
        }
}

/* Each once, of "GPU-3f2a1bd7 1g.10gb@2, n2/GPU-77aa0000 whole". */
static struct bh_texts
jobs_gpus_of(const struct bh_directory *dir, const char *partitions, const char *gpus[GPUS_SHOWN])
{
    struct bh_texts texts = { gpus, 0 };

    for (const char *at = partitions; at && (at = strstr(at, "GPU-")); at++)
        jobs_add_gpu(dir, at, &texts);
    return texts;
}

/* What a list says of a job; it borrows the row's texts. */
static void
jobs_fill(const struct bh_call *call, const struct bh_job_row *row, struct job_texts *texts,
          struct bh_reply_job_shown *ret)
{
    bool ended = bh_jobs_ended(row->state);

    *ret = (struct bh_reply_job_shown){
        .cause = ended ? row->reason : NULL,
        .checkpoint_signal = bh_signal_name(row->checkpoint_signal),
        .contract = row->contract,
        .count = row->count,
        .deadline_ns = row->deadline_ns,
        .ended_ns = row->ended_ns,
        .exit_status = row->exit_status >= 0 ? row->exit_status : BH_UNSET,
        .gang = row->gang ? row->gang : 1,
        .gpus = jobs_gpus_of(call->dir, row->partitions, texts->gpus),
        .grade = row->grade,
        .id = row->job,
        .kind = row->kind,
        .name = jobs_name_of(call, row->name, texts->name),
        .node = row->node,
        .partitions = row->partitions,
        .priority = jobs_priority_name(row->priority),
        .reason = ended ? "none" : row->reason,
        .restarts = row->restarts,
        .sku = row->sku,
        .started_ns = row->started_ns,
        .state = row->state,
        .submitted_ns = row->submitted_ns,
        .tenant = row->tenant,
        .time_limit_ns = row->time_limit_ns,
        .user = row->principal,
    };
}

/* ---- list ---- */

struct jobs_page {
    const struct bh_call *call;
    bool start;                          /* say when jobs are expected to start */
    struct bh_reservations reservations; /* known where `start` is */
    struct bh_job_reasons *reasons;      /* NULL: not asked for */
    struct bh_rows rows;
    char gpu[BH_JOB_FILTER_GPU_SIZE]; /* "": of any */
    uint32_t capacity;                /* rows that still fit */
    uint32_t scanned;                 /* rows that were looked at for the GPU */
    uint64_t last;
    bool more;
};

/* When a pending job is expected to start, or 0. */
static uint64_t
jobs_estimate(const struct bh_call *call, const struct bh_job_row *row)
{
    return strcmp(row->state, "pending") == 0 ? bh_start_estimates_of(call, (bh_job_id){ row->job }) : 0;
}

/* Whether room may be kept for it. */
static bool
jobs_waits(const struct bh_job_row *row)
{
    return strcmp(row->state, "pending") == 0 || strcmp(row->state, "suspended") == 0;
}

/* Whether it holds a partition of the GPU, or did last. */
static bool
jobs_is_on_gpu(const struct jobs_page *page, const struct bh_job_row *row)
{
    return !page->gpu[0] || (row->partitions && strstr(row->partitions, page->gpu));
}

static bool
jobs_put_row(void *self, const struct bh_job_row *row)
{
    struct jobs_page *page = self;
    struct bh_reply_job_shown job;
    struct job_texts texts;

    if (page->capacity == 0 || (page->gpu[0] && page->scanned++ == GPU_SCAN)) {
        page->more = true;
        return false;
    }
    page->last = row->job;
    if (!jobs_is_on_gpu(page, row))
        return true;
    page->capacity--;
    jobs_fill(page->call, row, &texts, &job);
    job.estimated_start_ns = page->start ? jobs_estimate(page->call, row) : 0;
    job.reserved_ns = bh_reservations_of(&page->reservations, row->job);
    if (page->reasons)
        job.why = bh_job_reasons_of(page->call, page->reasons, row->job);
    return bh_rows_put(&page->rows, &job);
}

struct jobs_waiting {
    struct bh_job_reasons *reasons;
    uint32_t left; /* rows of the page */
};

static bool
jobs_add_waiting(void *self, const struct bh_job_row *row)
{
    struct jobs_waiting *waiting = self;

    return waiting->left-- > 0 && (!jobs_waits(row) || bh_job_reasons_add(waiting->reasons, row->job));
}

/* Why the page's jobs wait, asked of the engine at once: so the page is read twice. */
static bh_rc
jobs_ask_reasons(const struct bh_call *call, const struct bh_job_filter *filter,
                 struct bh_job_reasons **ret_reasons, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct jobs_waiting waiting = { .left = filter->limit };
    bh_rc rc = bh_job_reasons_new(call, BH_JOB_REASONS_MAX, &waiting.reasons, err);

    if (rc == BH_OK)
        rc = store->ops->list_jobs(store->self, filter, jobs_add_waiting, &waiting, err);
    if (rc == BH_OK)
        rc = bh_job_reasons_ask(call, waiting.reasons, err);
    if (rc == BH_OK)
        *ret_reasons = waiting.reasons;
    return rc;
}

static bh_rc
jobs_write_page(struct bh_call *call, struct bh_job_filter *filter, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct jobs_page page = { .call = call, .start = call->query.start, .capacity = filter->limit };
    struct bh_reply_job_list end = { .total = (uint64_t)BH_UNSET };
    bh_rc rc = bh_job_filter_read_gpu(call, page.gpu, err);

    if (rc == BH_OK && call->query.why)
        rc = jobs_ask_reasons(call, filter, &page.reasons, err);
    if (rc != BH_OK)
        return rc;
    if (page.start) {
        bh_start_estimates_refresh(call, (bh_job_id){ 0 });
        bh_reservations_find(call, &page.reservations);
    }
    page.rows = bh_rows_begin(call, &bh_reply_job_list_fields);
    filter->limit = page.gpu[0] ? GPU_SCAN + 1 : filter->limit + 1; /* one too many: there is another page */
    rc = store->ops->list_jobs(store->self, filter, jobs_put_row, &page, err);
    if (rc != BH_OK)
        return rc;
    if (page.more)
        end.next = bh_arena_printf(call->arena, "%" PRIu64, page.last);
    filter->after = 0;
    if (!page.gpu[0])
        rc = store->ops->count_jobs(store->self, filter, &end.total, err);
    if (rc != BH_OK)
        return rc;
    bh_rows_end(&page.rows, &end);
    return BH_OK;
}

bh_rc
bh_jobs_list(struct bh_call *call, struct bh_err *err)
{
    struct bh_job_filter filter;
    bh_rc rc = bh_job_filter_read(call, &filter, err);

    if (rc != BH_OK)
        return rc;
    return jobs_write_page(call, &filter, err);
}

/* ---- one job, and why ---- */

static bh_rc
jobs_read_why(struct bh_call *call, uint64_t job, struct bh_reply_reason *ret, struct bh_err *err)
{
    const struct bh_reply_reason *words;
    struct bh_job_reasons *reasons;
    bh_rc rc = bh_job_reasons_new(call, 1, &reasons, err);

    if (rc != BH_OK)
        return rc;
    bh_job_reasons_add(reasons, job);
    rc = bh_job_reasons_ask(call, reasons, err);
    if (rc != BH_OK)
        return rc;
    words = bh_job_reasons_of(call, reasons, job);
    if (!words)
        return bh_err_set(err, BH_FULL, "the answer is too large");
    *ret = *words;
    return BH_OK;
}

static bool
jobs_ended_for(const struct bh_job_row *row, enum bh_end_cause cause)
{
    return bh_jobs_ended(row->state) && strcmp(row->reason, bh_end_cause_names[cause]) == 0;
}

/* Its node said why, in words. */
static bool
jobs_ended_by_node(const struct bh_job_row *row)
{
    return jobs_ended_for(row, BH_END_START_FAILED) || jobs_ended_for(row, BH_END_RESUME_FAILED)
           || jobs_ended_for(row, BH_END_OVER_CAP) || jobs_ended_for(row, BH_END_OVER_TIME)
           || jobs_ended_for(row, BH_END_ISOLATION);
}

/* What to do about an end that the output says nothing of. */
static const char *
jobs_next_after(const struct bh_job_row *row)
{
    if (jobs_ended_for(row, BH_END_OUT_OF_MEMORY))
        return "it used more main memory than it had: submit it with more, --memory 4Gi";
    if (jobs_ended_for(row, BH_END_TIME_LIMIT))
        return "it ran as long as it may: submit it with a longer --time-limit";
    return "`bulkhead logs` shows what it wrote";
}

/* The engine forgets ended jobs: their row says how they ended. */
static struct bh_reply_reason
jobs_ending_of(const struct bh_call *call, const struct bh_job_row *row)
{
    char sentence[1024], cause[BH_FAILURE_WHY_MAX], hint[BH_FAILURE_WHY_MAX] = "";
    struct bh_err why = { .rc = BH_OK };
    struct bh_buf text;

    bh_err_hint(&why, "%s", jobs_next_after(row));
    bh_buf_init_fixed(&text, sentence, sizeof sentence);
    bh_buf_printf(&text, "it has ended: %s (%s)", row->state, row->reason);
    if (row->exit_status >= 0)
        bh_buf_printf(&text, ", exit status %" PRId32, row->exit_status);
    if (strcmp(row->reason, bh_end_cause_names[BH_END_DATASET]) == 0)
        bh_buf_printf(&text, ": %s",
                      bh_datasets_why(call, row, &why) ? why.msg
                                                       : "it might not have a dataset that it mounts");
    if (jobs_ended_by_node(row) && bh_failure_read(call, row->job, cause, hint))
        bh_buf_printf(&text, ": %s", cause);
    return (struct bh_reply_reason){
        .next = bh_arena_strdup(call->arena, *hint ? hint : why.hint),
        .operands = BH_NO_OPERANDS,
        .reason = "none",
        .sentence = bh_buf_text(&text) ? bh_arena_strdup(call->arena, sentence) : NULL,
    };
}

static bh_rc
jobs_read_reason(struct bh_call *call, const struct bh_job_row *row, struct bh_reply_reason *ret,
                 struct bh_err *err)
{
    if (!bh_jobs_ended(row->state))
        return jobs_read_why(call, row->job, ret, err);
    *ret = jobs_ending_of(call, row);
    return BH_OK;
}

/* As submitted; what was erased is left out and said to be. */
static bh_rc
jobs_read_text(const struct bh_call *call, const struct bh_job_row *row, struct bh_reply_job_shown *ret,
               struct bh_err *err)
{
    const char *text = NULL;
    bh_rc rc = bh_keys_get_text(call->api->options.keys, &row->spec, call->arena, &text, err);

    ret->spec = bh_reply_slice(rc == BH_OK ? text : NULL);
    ret->erased = rc == BH_NOT_FOUND;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

/* When it is expected to start, and where room is kept for it. */
static bh_rc
jobs_read_start(struct bh_call *call, const struct bh_job_row *row, struct bh_reserved *ret,
                uint64_t *ret_start_ns, struct bh_err *err)
{
    *ret = (struct bh_reserved){ .from_ns = 0 };
    if (strcmp(row->state, "pending") == 0)
        bh_start_estimates_refresh(call, (bh_job_id){ row->job });
    *ret_start_ns = jobs_estimate(call, row);
    return jobs_waits(row) ? bh_reservations_read(call, row->job, ret, err) : BH_OK;
}

/* What only GET of one job says. */
static bh_rc
jobs_fill_whole(struct bh_call *call, const struct bh_job_row *row, struct bh_reply_job_shown *ret,
                struct bh_err *err)
{
    struct bh_reserved reserved;
    bh_rc rc = jobs_read_start(call, row, &reserved, &ret->estimated_start_ns, err);

    if (rc != BH_OK)
        return rc;
    ret->claimed_on = reserved.claimed_on;
    ret->reserved_on = reserved.reserved_on;
    ret->reserved_ns = reserved.from_ns;
    bh_image_fill(call, row->job, strcmp(row->state, "starting") == 0, ret);
    if (!bh_jobs_ended(row->state))
        rc = bh_members_list(call, row->job, &ret->members, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_job_notices_list(call, row->job, &ret->notices, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_receipts_of(call, row->job, &ret->receipts, err);
    if (rc != BH_OK)
        return rc;
    rc = jobs_read_text(call, row, ret, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_job_rights_list(call, row, &ret->may, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_job_use_find(call, row, &ret->use, err);
    if (rc != BH_OK)
        return rc;
    return bh_traffic_of_job(call, row->job, &ret->traffic, err);
}

bh_rc
bh_jobs_get(struct bh_call *call, struct bh_err *err)
{
    struct bh_reply_job_shown job;
    struct bh_reply_reason why;
    struct job_texts texts;
    struct bh_job_row row;
    bh_rc rc = bh_jobs_find_permitted(call, &row, err);

    if (rc != BH_OK)
        return rc;
    jobs_fill(call, &row, &texts, &job);
    rc = jobs_fill_whole(call, &row, &job, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_jobs_ended(row.state) || jobs_ended_by_node(&row)) {
        rc = jobs_read_reason(call, &row, &why, err);
        if (rc != BH_OK)
            return rc;
        job.why = &why;
    }
    bh_reply_put(call, &bh_reply_job_shown_fields, &job);
    return BH_OK;
}

bh_rc
bh_jobs_why(struct bh_call *call, struct bh_err *err)
{
    struct bh_reserved reserved;
    struct bh_reply_reason why;
    struct bh_job_row row;
    uint64_t start_ns;
    bh_rc rc = bh_jobs_find_permitted(call, &row, err);

    if (rc != BH_OK)
        return rc;
    rc = jobs_read_start(call, &row, &reserved, &start_ns, err);
    if (rc != BH_OK)
        return rc;
    rc = jobs_read_reason(call, &row, &why, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, job_why, .assumption = start_ns ? bh_simulation_assumption : NULL,
                  .claimed_on = reserved.claimed_on, .estimated_start_ns = start_ns, .job = row.job,
                  .next = why.next, .operands = why.operands, .reason = why.reason,
                  .reserved_ns = reserved.from_ns, .reserved_on = reserved.reserved_on,
                  .sentence = why.sentence, .state = row.state);
    return BH_OK;
}

/* ---- commands ---- */

/* For specifications that name no tenant: the caller's default, or the one that the caller may submit to. */
static bh_rc
jobs_choose_tenant(struct bh_call *call, struct bh_job_spec *spec, struct bh_err *err)
{
    struct bh_visible visible;
    const struct bh_dir_tenant *only = NULL;
    const struct bh_dir_principal *caller = bh_directory_principal(call->dir, call->caller.subject.principal);
    uint32_t found = 0;
    bh_rc rc;

    if (!spec->tenant && caller)
        spec->tenant = caller->default_tenant;
    if (spec->tenant)
        return BH_OK;
    rc = bh_visible_find(call, "job.submit", &visible, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < visible.count; i++) {
        const struct bh_dir_tenant *tenant = bh_directory_tenant(call->dir, (bh_tenant_id){ visible.ids[i] });

        if (tenant && !tenant->gone) {
            only = tenant;
            found++;
        }
    }
    if (found == 1) {
        spec->tenant = only->path;
        return BH_OK;
    }
    bh_err_set(err, BH_INVALID, "tenant: is missing, and you may submit to %" PRIu32, found);
    return bh_err_hint(err, "name one; `bulkhead tenant` lists them");
}

static bool
jobs_may_know(const struct bh_call *call, bh_tenant_id tenant)
{
    const struct bh_subject *subject = &call->caller.subject;

    return bh_authz_check(call->dir, subject, "tenant.view", tenant).allow
           || bh_authz_check(call->dir, subject, "job.submit", tenant).allow;
}

/* The tenant, if the caller may know of it.  The owner decides whether it may submit. */
static bh_rc
jobs_find_tenant(struct bh_call *call, const struct bh_job_spec *spec, bh_tenant_id *ret_tenant,
                 struct bh_err *err)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant_named(call->dir, spec->tenant);

    if (!tenant || !jobs_may_know(call, tenant->id)) {
        bh_err_set(err, BH_NOT_FOUND, "tenant: no %.119s that you may see", spec->tenant);
        return bh_err_hint(err, "`bulkhead tenant` lists those you may see");
    }
    call->tenant = *ret_tenant = tenant->id;
    return BH_OK;
}

static bh_rc
jobs_check_sku(struct bh_call *call, const struct bh_job_spec *spec, struct bh_err *err)
{
    struct bh_nearest nearest = { 0 };

    if (bh_directory_sku_named(call->dir, spec->sku))
        return BH_OK;
    for (uint32_t i = 0; i < call->dir->sku_count; i++)
        if (!call->dir->skus[i].gone)
            bh_nearest_try(&nearest, spec->sku, call->dir->skus[i].name);
    bh_err_set(err, BH_NOT_FOUND, "sku: no SKU %.63s", spec->sku);
    return nearest.word ? bh_err_hint(err, "did you mean %s? `bulkhead get skus` lists them", nearest.word)
                        : bh_err_hint(err, "`bulkhead get skus` lists them");
}

/* Only folders that the site file gives to the job's tenant; datasets are the owner's to judge. */
static bh_rc
jobs_check_mounts(struct bh_call *call, const struct bh_job_spec *spec, bh_tenant_id tenant,
                  struct bh_err *err)
{
    const struct bh_mount_spec *mount = spec->mounts.items;

    for (uint32_t i = 0; i < spec->mounts.count; i++, mount++) {
        if (mount->dataset || bh_directory_mount(call->dir, tenant, mount->source, mount->write))
            continue;
        bh_err_set(err, BH_DENIED, "mounts[%" PRIu32 "]: %s may not mount %.80s%s", i, spec->tenant,
                   mount->source, mount->write ? " for writing" : "");
        bh_datasets_hint(call, spec->tenant, mount->source, err);
        return err->rc;
    }
    if (!bh_spec_cwd_folder(spec) || bh_directory_mount(call->dir, tenant, spec->cwd, false))
        return BH_OK;
    bh_err_set(err, BH_DENIED, "cwd: %s may not mount %.80s", spec->tenant, spec->cwd);
    return bh_err_hint(err, "an admin can add the folder under mounts in the site file");
}

bh_rc
bh_jobs_check_spec(struct bh_call *call, struct bh_job_spec *spec, struct bh_job_numbers *ret_numbers,
                   bh_tenant_id *ret_tenant, struct bh_err *err)
{
    bh_rc rc = bh_spec_check(spec, ret_numbers, err);

    if (rc != BH_OK)
        return rc;
    rc = jobs_choose_tenant(call, spec, err);
    if (rc != BH_OK)
        return rc;
    rc = jobs_find_tenant(call, spec, ret_tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = jobs_check_sku(call, spec, err);
    if (rc != BH_OK)
        return rc;
    return jobs_check_mounts(call, spec, *ret_tenant, err);
}

static bh_rc
jobs_read_spec(struct bh_call *call, struct bh_job_spec *spec, struct bh_command *command, struct bh_err *err)
{
    bh_tenant_id tenant;
    bh_rc rc = bh_call_body(call, &bh_job_spec_fields, spec, err);

    if (rc != BH_OK)
        return rc;
    command->dry_run = call->query.dry_run;
    return bh_jobs_check_spec(call, spec, &command->numbers, &tenant, err);
}

bh_rc
bh_jobs_command_submission(struct bh_call *call, struct bh_command *command, struct bh_answer *ret_answer,
                           struct bh_err *err)
{
    struct bh_err unserved;
    bh_rc rc;

    command->image_away = !bh_runnable_image(call, command->spec);
    if (bh_runnable_check(call, command->spec, &command->numbers, &unserved) == BH_OK)
        return bh_call_command_as(call, BH_OP_JOB_SUBMIT, command, ret_answer, err);
    /* a caller that may not submit it learns nothing of nodes, and the denial is recorded */
    command->dry_run = command->admission_only = true;
    rc = bh_call_command_as(call, BH_OP_JOB_SUBMIT, command, ret_answer, err);
    if (rc != BH_OK || ret_answer->replayed)
        return rc;
    *err = unserved;
    return err->rc;
}

static bh_rc
jobs_send_submission(struct bh_call *call, struct bh_command *command, struct bh_err *err)
{
    struct bh_answer answer;
    bh_rc rc = bh_jobs_command_submission(call, command, &answer, err);

    if (rc == BH_OK)
        bh_call_reply(call, command, &answer);
    return rc;
}

bh_rc
bh_jobs_submit(struct bh_call *call, struct bh_err *err)
{
    struct bh_job_spec spec;
    struct bh_command command = { .spec = &spec };
    struct bh_buf text;
    bh_rc rc = jobs_read_spec(call, &spec, &command, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init(&text, BH_JSON_BYTES_MAX);
    bh_json_encode(&text, &bh_job_spec_fields, &spec);
    command.text = bh_buf_text(&text);
    command.text_length = text.length;
    rc = command.text ? jobs_send_submission(call, &command, err)
                      : bh_err_set(err, BH_FULL, "the job is too large");
    bh_buf_fini(&text);
    return rc;
}

/* The owner decides: the caller's own with job.cancel, others with job.cancel.any. */
bh_rc
bh_jobs_command(struct bh_call *call, struct bh_err *err)
{
    struct bh_command command = { .at_once = call->query.now };
    struct bh_job_row row;
    bh_rc rc = bh_jobs_find(call, &row, err);

    if (rc != BH_OK)
        return rc;
    command.job = (bh_job_id){ row.job };
    return bh_call_send(call, &command, err);
}
