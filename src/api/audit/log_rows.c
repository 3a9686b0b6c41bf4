#include "api/audit/log_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/binding.h"
#include "audit/claims.h"
#include "audit/rows.h"
#include "base/json.h"
#include "base/slice.h"
#include "ports/key_row.h"

enum { PAGE_BYTES = 4 << 20, JOBS_AT_ONCE = 1000, DOCUMENTS_AT_ONCE = 1000 };

struct rows_page {
    struct bh_buf *out;
    uint64_t size;        /* how many records count */
    uint64_t before_ns;   /* what ended before it is in them, where no record is known */
    uint64_t after, last; /* what comes next, and what was seen */
    uint32_t seen;
};

/* False when the page is full. */
static bool
log_rows_put_line(struct rows_page *page, const struct bh_fields *fields, const void *row)
{
    bh_json_encode(page->out, fields, row);
    bh_buf_putc(page->out, '\n');
    return page->out->length < PAGE_BYTES;
}

/* Names come on one page: their number follows from no id alone. */
static bool
log_rows_put_name(void *self, const struct bh_name_row *row)
{
    struct rows_page *page = self;
    bool erased = strcmp(row->name, BH_ERASED) == 0;
    struct bh_row_name name = { .id = row->id,
                                .name = erased ? NULL : row->name,
                                .erased_by = erased ? row->record : 0 };

    if (row->record >= page->size && !erased)
        return true;
    snprintf(name.kind, sizeof name.kind, "%s", bh_binding_kinds[row->kind]);
    memcpy(name.key, row->key.bytes, sizeof name.key);
    (void)log_rows_put_line(page, &bh_row_name_fields, &name);
    return true;
}

/* Whether the records that count say that it ended.  An end may be reported long after it happened, so its
 * time does not decide that; rows that an older store wrote have only the time. */
static bool
rows_has_ended(const struct rows_page *page, const struct bh_job_row *row)
{
    if (row->ended_by)
        return row->ended_by < page->size;
    return row->ended_ns > 0 && row->ended_ns < page->before_ns;
}

static bool
log_rows_put_job(void *self, const struct bh_job_row *row)
{
    struct rows_page *page = self;
    struct bh_row_job job = {
        .job = row->job,
        .tenant_id = row->tenant_id,
        .principal_id = row->principal_id,
        .count = row->count,
        .tenant = row->tenant,
        .principal = row->principal,
        .sku = row->sku,
        .state = row->state,
        .reason = row->reason,
        .submitted_ns = row->submitted_ns,
        .started_ns = row->started_ns,
        .ended_ns = row->ended_ns,
        .exit_status = row->exit_status,
        .priority = row->priority,
        .gang = row->gang,
        .checkpoint_signal = row->checkpoint_signal,
        .kind = row->kind,
        .contract = row->contract,
        .time_limit_ns = row->time_limit_ns,
        .deadline_ns = row->deadline_ns,
        .lease = row->lease,
        .restarts = row->restarts,
        .node = row->node,
        .partitions = row->partitions,
        .grade = row->grade,
    };

    page->last = row->job;
    page->seen++;
    if (!rows_has_ended(page, row))
        return true;
    memcpy(job.spec, row->spec.bytes, sizeof job.spec);
    return log_rows_put_line(page, &bh_row_job_fields, &job);
}

static bool
log_rows_put_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text,
                  size_t length)
{
    struct rows_page *page = self;
    struct bh_row_text row = { .number = number, .text = text };

    memcpy(row.digest, digest->bytes, sizeof row.digest);
    return log_rows_put_line(page, &bh_row_text_fields, &row);
}

/* Until the page is full or there are no more: one without lines would be the last. */
static bh_rc
rows_put_jobs(const struct bh_store *store, struct rows_page *page, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    page->last = page->after;
    do {
        const struct bh_job_filter filter = { .after = page->last, .limit = JOBS_AT_ONCE };

        page->seen = 0;
        rc = store->ops->list_jobs(store->self, &filter, log_rows_put_job, page, err);
    } while (rc == BH_OK && page->seen == JOBS_AT_ONCE && page->out->length < PAGE_BYTES);
    return rc;
}

/* Of the last record that counts, and of the one behind it: what ended at the last one's time is in
 * the records that count, unless the next one has the same time and may be what says so. */
static bool
log_rows_read_time(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct rows_page *page = self;
    struct bh_slice value;
    uint64_t ts_ns = 0;

    if (bh_slice_get((struct bh_slice){ leaf, length }, "ts", &value))
        (void)bh_slice_u64(value, &ts_ns);
    if (seq < page->size)
        page->before_ns = ts_ns + 1;
    else if (ts_ns < page->before_ns)
        page->before_ns = ts_ns;
    return seq < page->size;
}

/* ---- documents ---- */

enum number_of { OF_RECORD, OF_REVISION, OF_JOB };

static const struct kind {
    enum bh_document_kind kind;
    enum bh_claimed_kind claimed;
    enum number_of of;
} kinds[] = {
    { BH_DOCUMENT_RECEIPT, BH_CLAIMED_RECEIPT, OF_RECORD },
    { BH_DOCUMENT_IMAGE, BH_CLAIMED_IMAGE, OF_JOB },
    { BH_DOCUMENT_REVISION, BH_CLAIMED_REVISION, OF_REVISION },
};

/* Documents of a kind that the store gave, copied: it is asked about them when it has given them. */
struct listed {
    struct bh_arena *arena;
    uint32_t count;
    bool full; /* there may be more behind them */
    struct bh_document_row rows[DOCUMENTS_AT_ONCE];
};

struct documents {
    struct rows_page *page;
    const struct bh_store *store;
    const struct kind *kind;
    uint64_t passed; /* documents of all kinds so far: their numbers */
    bool full;
    struct listed *listed;
};

static bool
rows_take_document(void *self, const struct bh_document_row *row)
{
    struct listed *listed = self;
    struct bh_document_row *copy = &listed->rows[listed->count];

    copy->key = bh_arena_strdup(listed->arena, row->key);
    copy->value = copy->key ? bh_arena_strdup(listed->arena, row->value) : NULL;
    listed->count += copy->value != NULL;
    listed->full = !copy->value || listed->count == DOCUMENTS_AT_ONCE;
    return !listed->full;
}

struct end {
    const struct rows_page *page;
    bool seen;
};

static bool
log_rows_check_end(void *self, const struct bh_job_row *row)
{
    struct end *end = self;

    end->seen = rows_has_ended(end->page, row);
    return false;
}

/* A receipt says which record has its digest; the others' keys are numbers. */
static uint64_t
log_rows_number_in(const struct documents *documents, const struct bh_document_row *row)
{
    struct bh_slice value = { row->key + strspn(row->key, "0"), 0 };
    uint64_t number = 0;

    value.length = strlen(value.text);
    if (documents->kind->of == OF_RECORD
        && !bh_slice_get((struct bh_slice){ row->value, strlen(row->value) }, "record", &value))
        return UINT64_MAX;
    return bh_slice_u64(value, &number) ? number : UINT64_MAX;
}

/* Whether the log's first records are about it, and it no longer changes. */
static bool
log_rows_is_final(const struct documents *documents, uint64_t number)
{
    const struct bh_store *store = documents->store;
    struct end end = { .page = documents->page };
    struct bh_err unused;

    if (documents->kind->of != OF_JOB)
        return number < documents->page->size;
    return store->ops->get_job(store->self, number, log_rows_check_end, &end, &unused) == BH_OK && end.seen;
}

/* Revisions, which come last, continue behind `after`: older ones may be removed between two pages, so each
 * counts by its own number. */
static void
log_rows_put_document(struct documents *documents, const struct bh_document_row *row)
{
    struct bh_row_document document = { .key = row->key, .value = row->value };
    uint64_t number = log_rows_number_in(documents, row);

    if (!log_rows_is_final(documents, number))
        return;
    document.number =
        documents->kind->of == OF_REVISION ? documents->passed + 1 + number : ++documents->passed;
    if (document.number <= documents->page->after)
        return;
    snprintf(document.kind, sizeof document.kind, "%s", bh_claimed_kinds[documents->kind->claimed]);
    documents->full = !log_rows_put_line(documents->page, &bh_row_document_fields, &document);
}

/* Those behind the last of `listed`, which they take the place of; `after` has room for a key. */
static bh_rc
rows_list_next(struct documents *documents, char *after, struct bh_err *err)
{
    const struct bh_document_filter filter = { .kind = documents->kind->kind, .after = after };
    const struct bh_store *store = documents->store;
    struct listed *listed = documents->listed;
    bh_rc rc;

    bh_arena_reset(listed->arena);
    listed->count = 0;
    listed->full = false;
    rc = store->ops->list_documents(store->self, &filter, rows_take_document, listed, err);
    if (rc != BH_OK)
        return rc;
    if (listed->full && listed->count == 0)
        return bh_err_set(err, BH_FULL, "a document is too large");
    if (listed->count > 0)
        snprintf(after, BH_DOCUMENT_KEY_MAX + 1, "%s", listed->rows[listed->count - 1].key);
    return BH_OK;
}

static bh_rc
rows_put_kind(struct documents *documents, struct bh_err *err)
{
    char after[BH_DOCUMENT_KEY_MAX + 1] = "";
    bh_rc rc;

    do {
        rc = rows_list_next(documents, after, err);
        for (uint32_t i = 0; rc == BH_OK && !documents->full && i < documents->listed->count; i++)
            log_rows_put_document(documents, &documents->listed->rows[i]);
    } while (rc == BH_OK && !documents->full && documents->listed->full);
    return rc;
}

/* What the first `size` records speak of: it stays the same, so the numbers of all pages do. */
static bh_rc
rows_put_documents(const struct bh_call *call, struct rows_page *page, struct bh_err *err)
{
    struct documents documents = { .page = page, .store = &call->api->options.store };
    bh_rc rc = bh_call_alloc(call, sizeof *documents.listed, &documents.listed, err);

    if (rc != BH_OK)
        return rc;
    documents.listed->arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    for (size_t i = 0; rc == BH_OK && !documents.full && i < BH_COUNT(kinds); i++) {
        documents.kind = &kinds[i];
        rc = rows_put_kind(&documents, err);
    }
    bh_arena_free(documents.listed->arena);
    return rc;
}

/* Keys come on one page, too: those that were made later than the records say so. */
static bool
log_rows_put_key(void *self, const struct bh_key_row *row)
{
    const struct bh_row_key key = { .id = row->id,
                                    .kind = row->kind,
                                    .tenant_id = row->tenant_id,
                                    .month = row->month,
                                    .created_ns = row->created_ns,
                                    .destroyed_ns = row->shredded_ns };

    (void)log_rows_put_line(self, &bh_row_key_fields, &key);
    return true;
}

static bh_rc
log_rows_begin(const struct bh_call *call, struct rows_page *page, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    uint64_t last = 0;
    bh_rc rc = store->ops->last_record(store->self, &last, err);

    page->size = call->query.size;
    page->after = call->query.after;
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    if (page->size > (rc == BH_OK ? last + 1 : 0))
        return bh_err_set(err, BH_RANGE, "size: there are no %" PRIu64 " records", page->size);
    if (page->size == 0)
        return BH_OK;
    return store->ops->list_records(store->self, page->size - 1, page->size, log_rows_read_time, page, err);
}

bh_rc
bh_log_rows(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct rows_page page = { .out = &call->reply->body };
    bh_rc rc = log_rows_begin(call, &page, err);

    if (rc != BH_OK)
        return rc;
    if (strcmp(call->id, BH_ROWS_NAMES) == 0)
        rc = page.after ? BH_OK : store->ops->list_names(store->self, log_rows_put_name, &page, err);
    else if (strcmp(call->id, BH_ROWS_JOBS) == 0)
        rc = rows_put_jobs(store, &page, err);
    else if (strcmp(call->id, BH_ROWS_TEXTS) == 0)
        rc = store->ops->list_texts(store->self, page.after, log_rows_put_text, &page, err);
    else if (strcmp(call->id, BH_ROWS_DOCUMENTS) == 0)
        rc = rows_put_documents(call, &page, err);
    else if (strcmp(call->id, BH_ROWS_KEYS) == 0)
        rc = page.after ? BH_OK : store->ops->list_keys(store->self, log_rows_put_key, &page, err);
    else
        return bh_err_set(err, BH_NOT_FOUND, "no rows of %.40s", call->id);
    call->reply->content_type = "application/x-ndjson";
    bh_reply_header(call->reply, "Cache-Control", "no-store");
    return rc;
}
