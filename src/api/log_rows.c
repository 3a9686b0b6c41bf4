#include "api/log_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/binding.h"
#include "audit/rows.h"
#include "base/json.h"
#include "base/slice.h"
#include "ports/key_row.h"

enum { PAGE_BYTES = 4 << 20, JOBS_AT_ONCE = 1000 };

struct page {
    struct bh_buf *out;
    uint64_t size, before_ns;    /* of the records that count: how many, time of the last */
    uint64_t after, last;        /* what comes next, and what was seen */
    uint32_t seen;
};

/* False when the page is full. */
static bool
put_line(struct page *page, const struct bh_fields *fields, const void *row)
{
    bh_json_encode(page->out, fields, row);
    bh_buf_putc(page->out, '\n');
    return page->out->length < PAGE_BYTES;
}

/* Names come on one page: their number follows from no id alone. */
static bool
put_name(void *self, const struct bh_name_row *row)
{
    struct page *page = self;
    bool erased = strcmp(row->name, BH_ERASED) == 0;
    struct bh_row_name name = { .id = row->id, .name = erased ? NULL : row->name,
                                .erased_by = erased ? row->record : 0 };

    if (row->record >= page->size && !erased)
        return true;
    snprintf(name.kind, sizeof name.kind, "%s", bh_binding_kinds[row->kind]);
    memcpy(name.key, row->key.bytes, sizeof name.key);
    (void)put_line(page, &bh_row_name_fields, &name);
    return true;
}

static bool
put_job(void *self, const struct bh_job_row *row)
{
    struct page *page = self;
    struct bh_row_job job = {
        .job = row->job, .tenant_id = row->tenant_id, .principal_id = row->principal_id,
        .count = row->count, .tenant = row->tenant, .principal = row->principal,
        .sku = row->sku, .state = row->state, .reason = row->reason,
        .submitted_ns = row->submitted_ns, .started_ns = row->started_ns,
        .ended_ns = row->ended_ns, .exit_status = row->exit_status,
    };

    page->last = row->job;
    page->seen++;
    if (row->ended_ns == 0 || row->ended_ns >= page->before_ns)
        return true;
    memcpy(job.spec, row->spec.bytes, sizeof job.spec);
    return put_line(page, &bh_row_job_fields, &job);
}

static bool
put_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text,
         size_t length)
{
    struct page *page = self;
    struct bh_row_text row = { .number = number, .text = text };

    (void)length;
    memcpy(row.digest, digest->bytes, sizeof row.digest);
    return put_line(page, &bh_row_text_fields, &row);
}

/* Until the page is full or there are no more: one without lines would be the last. */
static bh_rc
put_jobs(const struct bh_store *store, struct page *page, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    page->last = page->after;
    do {
        const struct bh_job_filter filter = { .after = page->last, .limit = JOBS_AT_ONCE };

        page->seen = 0;
        rc = store->ops->list_jobs(store->self, &filter, put_job, page, err);
    } while (rc == BH_OK && page->seen == JOBS_AT_ONCE && page->out->length < PAGE_BYTES);
    return rc;
}

static bool
see_time(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct page *page = self;
    struct bh_slice value;

    (void)seq;
    if (bh_slice_get((struct bh_slice){ leaf, length }, "ts", &value))
        (void)bh_slice_u64(value, &page->before_ns);
    return false;
}

static bh_rc
begin(const struct bh_call *call, struct page *page, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    uint64_t last = 0;
    bh_rc rc = bh_call_number(call, "size", INT64_MAX, &page->size, err);

    if (rc == BH_OK)
        rc = bh_call_number(call, "after", INT64_MAX, &page->after, err);
    if (rc == BH_OK)
        rc = store->ops->last_record(store->self, &last, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    if (page->size > (rc == BH_OK ? last + 1 : 0))
        return bh_err_set(err, BH_RANGE, "size: there are no %" PRIu64 " records", page->size);
    if (page->size == 0)
        return BH_OK;
    return store->ops->list_records(store->self, page->size - 1, page->size - 1, see_time, page,
                                    err);
}

bh_rc
bh_log_rows(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct page page = { .out = &call->reply->body };
    bh_rc rc = begin(call, &page, err);

    if (rc != BH_OK)
        return rc;
    if (strcmp(call->id, BH_ROWS_NAMES) == 0)
        rc = page.after ? BH_OK : store->ops->list_names(store->self, put_name, &page, err);
    else if (strcmp(call->id, BH_ROWS_JOBS) == 0)
        rc = put_jobs(store, &page, err);
    else if (strcmp(call->id, BH_ROWS_TEXTS) == 0)
        rc = store->ops->list_texts(store->self, page.after, put_text, &page, err);
    else
        return bh_err_set(err, BH_NOT_FOUND, "no rows of %.40s", call->id);
    call->reply->content_type = "application/x-ndjson";
    bh_reply_header(call->reply, "Cache-Control", "no-store");
    return rc;
}
