#include "api/audit/receipts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/documents/receipt.h"
#include "api/request/visible.h"
#include "base/num.h"

enum {
    LIMIT_DEFAULT = 100,
    LIMIT_MAX = 10000,
    ROW_ARENA_MAX = 64 << 10,
    EARLIER_MAX = 256,
    UNCLEAN_MAX = 16
};

struct receipts {
    const struct bh_call *call;
    struct bh_json_writer *w;
    struct bh_visible visible;
    struct bh_arena *arena;        /* of one row */
    uint64_t job;                  /* only its; 0: all */
    uint64_t earlier[EARLIER_MAX]; /* numbers that its receipts refer to */
    uint32_t earlier_count;
    const char *gpu; /* only of it; NULL: all */
    uint64_t after, capacity, last;
    bool of_one_job;               /* the caller sees the job, whatever else it sees */
    bool opened;                   /* the list is, when its first row comes */
    uint64_t unclean[UNCLEAN_MAX]; /* partitions whose scrub for the job failed, or was cut off */
    uint32_t unclean_count;
};

/* ---- which ---- */

static bool
receipts_may_see(const struct receipts *r, uint32_t tenant)
{
    return r->visible.all || (tenant && bh_visible_has(&r->visible, tenant));
}

/* A job that the caller may not see is about nothing: else whoever shared a partition with it could
 * ask for one number after the other. */
static bool
receipts_is_about(const struct receipts *r, const struct bh_msg_receipt *receipt)
{
    bool about = receipt->job == r->job && (r->of_one_job || receipts_may_see(r, receipt->tenant));

    for (uint32_t i = 0; i < receipt->from_count; i++)
        about = about
                || (receipt->from[i].job == r->job
                    && (r->of_one_job || receipts_may_see(r, receipt->from[i].tenant)));
    return about;
}

/* A receipt of the job's own refers to it: its memory was cleaned by that scrub. */
static bool
receipts_is_referred_to(const struct receipts *r, const struct bh_msg_receipt *receipt)
{
    for (uint32_t i = 0; i < r->earlier_count; i++) {
        if (r->earlier[i] == receipt->order)
            return true;
    }
    return false;
}

static uint32_t
receipts_find_unclean(const struct receipts *r, uint64_t partition)
{
    uint32_t at = 0;

    while (at < r->unclean_count && r->unclean[at] != partition)
        at++;
    return at;
}

/* A scrub that failed is tried again for nobody: the one that succeeds is shown with the job, too. */
static bool
receipts_is_retry(struct receipts *r, const struct bh_msg_receipt *receipt)
{
    uint32_t at = receipts_find_unclean(r, receipt->partition);

    if (receipt->job || at == r->unclean_count)
        return false;
    if (receipt->result != BH_SCRUB_INTERRUPTED && receipt->result != BH_SCRUB_FAILED)
        r->unclean[at] = r->unclean[--r->unclean_count];
    return true;
}

static void
receipts_add_unclean(struct receipts *r, const struct bh_msg_receipt *receipt)
{
    if (r->of_one_job && receipt->job == r->job && r->unclean_count < UNCLEAN_MAX
        && receipts_find_unclean(r, receipt->partition) == r->unclean_count
        && (receipt->result == BH_SCRUB_INTERRUPTED || receipt->result == BH_SCRUB_FAILED))
        r->unclean[r->unclean_count++] = receipt->partition;
}

static bool
receipts_is_visible(const struct receipts *r, const struct bh_msg_receipt *receipt)
{
    bool visible =
        r->of_one_job || receipts_may_see(r, receipt->tenant) || receipts_is_referred_to(r, receipt);

    for (uint32_t i = 0; i < receipt->from_count; i++)
        visible = visible || receipts_may_see(r, receipt->from[i].tenant);
    return visible;
}

/* ---- one ---- */

static void
receipts_put_tenant(const struct receipts *r, const char *key, uint32_t id)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(r->call->dir, (bh_tenant_id){ id });

    if (id == 0)
        bh_json_str(r->w, key, "");
    else if (id == UINT32_MAX)
        bh_json_str(r->w, key, "unknown");
    else
        bh_json_str(r->w, key, receipts_may_see(r, id) && tenant ? tenant->path : "another tenant");
}

static bool
receipts_is_named(const struct receipts *r, uint32_t tenant)
{
    return tenant == 0 || tenant == UINT32_MAX || receipts_may_see(r, tenant);
}

/* Of those that the caller may not see it says that there are some: not who, not how many, and not
 * between which others they came. */
static void
receipts_put_from(const struct receipts *r, const struct bh_msg_receipt *receipt)
{
    bool others = false;

    bh_json_open(r->w, "from", '[');
    for (uint32_t i = 0; i < receipt->from_count; i++) {
        others = others || !receipts_is_named(r, receipt->from[i].tenant);
        if (!receipts_is_named(r, receipt->from[i].tenant))
            continue;
        bh_json_open(r->w, NULL, '{');
        if (receipts_may_see(r, receipt->from[i].tenant))
            bh_json_u64(r->w, "job", receipt->from[i].job);
        receipts_put_tenant(r, "tenant", receipt->from[i].tenant);
        bh_json_close(r->w, '}');
    }
    if (others) {
        bh_json_open(r->w, NULL, '{');
        bh_json_str(r->w, "tenant", "other tenants");
        bh_json_close(r->w, '}');
    }
    bh_json_close(r->w, ']');
}

static void
receipts_put_by(const struct receipts *r, const struct bh_msg_receipt *receipt)
{
    if (receipt->by_count == 0)
        return;
    bh_json_open(r->w, "by", '[');
    for (uint32_t i = 0; i < receipt->by_count; i++) {
        bh_json_open(r->w, NULL, '{');
        bh_json_u64(r->w, "id", receipt->by[i].receipt);
        bh_json_close(r->w, '}');
    }
    bh_json_close(r->w, ']');
}

/* For who sees all of it: the receipt as its digest was taken.  Beside a job it would say the same
 * twice. */
static void
receipts_put_whole(const struct receipts *r, const struct bh_msg_receipt *receipt)
{
    char memory[8 << 10];
    struct bh_buf json;

    if (!r->visible.all || r->of_one_job)
        return;
    bh_buf_init_fixed(&json, memory, sizeof memory);
    bh_json_encode(&json, &bh_receipt_fields, receipt);
    if (bh_buf_text(&json))
        bh_json_raw(r->w, "receipt", bh_buf_text(&json));
}

static void
receipts_put_hex(struct bh_json_writer *w, const char *key, const uint8_t digest[32])
{
    char text[65];
    struct bh_buf hex;

    bh_buf_init_fixed(&hex, text, sizeof text);
    bh_buf_put_hex(&hex, digest, 32);
    bh_json_str(w, key, bh_buf_text(&hex));
}

static void
receipts_put_row(struct receipts *r, const struct bh_receipt_row *row)
{
    const struct bh_msg_receipt *receipt = &row->receipt;
    struct bh_json_writer *w = r->w;

    bh_json_open(w, NULL, '{');
    bh_json_ns(w, "begun_ns", receipt->begun_ns);
    receipts_put_by(r, receipt);
    bh_json_u64(w, "bytes", receipt->bytes);
    receipts_put_hex(w, "digest", row->digest);
    bh_json_str(w, "driver_scrub", bh_driver_scrub_names[receipt->driver]);
    bh_json_ns(w, "ended_ns", receipt->ended_ns);
    receipts_put_from(r, receipt);
    bh_json_str(w, "gpu", receipt->gpu);
    bh_json_u64(w, "id", receipt->order);
    if (receipt->job && (receipts_may_see(r, receipt->tenant) || (r->of_one_job && receipt->job == r->job)))
        bh_json_u64(w, "job", receipt->job);
    bh_json_u64(w, "memory_bytes", receipt->memory_bytes);
    bh_json_str(w, "method", bh_scrub_method_names[receipt->method]);
    if (r->visible.all)
        bh_json_u64(w, "neighbors", receipt->neighbors);
    bh_json_u64(w, "piece", receipt->partition);
    bh_json_str(w, "profile", receipt->profile);
    receipts_put_whole(r, receipt);
    bh_json_u64(w, "record", row->record);
    bh_json_u64(w, "residue", receipt->residue);
    bh_json_str(w, "result", bh_scrub_result_names[receipt->result]);
    bh_json_u64(w, "samples", receipt->samples);
    bh_json_u64(w, "start", receipt->start);
    receipts_put_tenant(r, "tenant", receipt->tenant);
    bh_json_u64(w, "tries", receipt->tries);
    bh_json_u64(w, "unfilled", receipt->unfilled);
    if (receipt->why[0])
        bh_json_str(w, "why", receipt->why);
    bh_json_close(w, '}');
}

/* Most receipts are about other jobs: that is seen without reading them. */
static bool
receipts_may_name(const char *json, uint64_t job)
{
    char text[40];

    snprintf(text, sizeof text, "\"job\":%" PRIu64, job);
    return strstr(json, text) != NULL;
}

static bool
receipts_read_row(const struct receipts *r, const struct bh_document_row *document,
                  struct bh_receipt_row *ret_row)
{
    struct bh_err ignored;

    bh_arena_reset(r->arena);
    return bh_json_decode(document->value, strlen(document->value), &bh_receipt_row_fields, ret_row, r->arena,
                          &ignored)
           == BH_OK;
}

/* What they refer to came before them, and names other jobs. */
static bool
receipts_add_earlier(void *self, const struct bh_document_row *document)
{
    struct receipts *r = self;
    struct bh_receipt_row row;

    if (!receipts_may_name(document->value, r->job) || !receipts_read_row(r, document, &row)
        || row.receipt.job != r->job || !receipts_is_about(r, &row.receipt))
        return true;
    for (uint32_t i = 0; i < row.receipt.by_count && r->earlier_count < EARLIER_MAX; i++)
        r->earlier[r->earlier_count++] = row.receipt.by[i].receipt;
    return true;
}

static bool
receipts_add(void *self, const struct bh_document_row *document)
{
    struct receipts *r = self;
    struct bh_receipt_row row;

    if (r->job && r->earlier_count == 0 && r->unclean_count == 0
        && !receipts_may_name(document->value, r->job))
        return true;
    if (!receipts_read_row(r, document, &row))
        return true;
    if (row.receipt.order <= r->after
        || (r->job && !receipts_is_about(r, &row.receipt) && !receipts_is_referred_to(r, &row.receipt)
            && !receipts_is_retry(r, &row.receipt))
        || (r->gpu && strcmp(r->gpu, row.receipt.gpu) != 0) || !receipts_is_visible(r, &row.receipt))
        return true;
    if (r->capacity == 0 && row.receipt.order != r->last)
        return false;
    if (!r->opened)
        bh_json_open(r->w, "receipts", '[');
    r->opened = true;
    r->capacity -= r->capacity > 0; /* those of one order are never parted: `after` is an order */
    r->last = row.receipt.order;
    receipts_add_unclean(r, &row.receipt);
    receipts_put_row(r, &row);
    return !r->w->out->overflow;
}

static bh_rc
receipts_put_all(struct receipts *r, struct bh_err *err)
{
    const struct bh_document_filter filter = { .kind = BH_DOCUMENT_RECEIPT };
    const struct bh_store *store = &r->call->api->options.store;
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(ROW_ARENA_MAX);
    bh_rc rc = BH_OK;

    r->arena = arena;
    if (r->job)
        rc = store->ops->list_documents(store->self, &filter, receipts_add_earlier, r, err);
    return rc == BH_OK ? store->ops->list_documents(store->self, &filter, receipts_add, r, err) : rc;
}

/* ---- calls ---- */

bh_rc
bh_receipts_put(const struct bh_call *call, struct bh_json_writer *w, uint64_t job, struct bh_err *err)
{
    struct receipts r = { .call = call, .w = w, .job = job, .capacity = LIMIT_DEFAULT, .of_one_job = true };
    bh_rc rc = bh_visible_find(call, "job.view", &r.visible, err);

    if (rc != BH_OK)
        return rc;
    rc = receipts_put_all(&r, err);
    if (r.opened)
        bh_json_close(w, ']');
    return rc;
}

static bh_rc
receipts_read_number(const struct bh_call *call, const char *key, uint64_t most, uint64_t *number,
                     struct bh_err *err)
{
    const char *text = bh_call_query(call, key);
    bh_rc rc = text ? bh_parse_u64(text, number, err) : BH_OK;

    if (rc == BH_OK && *number > most)
        rc = bh_err_set(err, BH_RANGE, "at most %" PRIu64, most);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", key);
}

bh_rc
bh_receipts_list(struct bh_call *call, struct bh_err *err)
{
    struct bh_json_writer w = bh_call_writer(call);
    struct receipts r = {
        .call = call, .w = &w, .capacity = LIMIT_DEFAULT, .opened = true, .gpu = bh_call_query(call, "gpu")
    };
    bh_rc rc = bh_visible_find(call, "job.view", &r.visible, err);
    if (rc != BH_OK)
        return rc;

    rc = receipts_read_number(call, "after", UINT64_MAX, &r.after, err);
    if (rc != BH_OK)
        return rc;
    rc = receipts_read_number(call, "job", UINT64_MAX, &r.job, err);
    if (rc != BH_OK)
        return rc;
    rc = receipts_read_number(call, "limit", LIMIT_MAX, &r.capacity, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "items", '[');
    rc = receipts_put_all(&r, err);
    bh_json_close(&w, ']');
    if (r.capacity == 0 && r.last)
        bh_json_str(&w, "next", bh_arena_printf(call->arena, "%" PRIu64, r.last));
    bh_json_close(&w, '}');
    return rc;
}
