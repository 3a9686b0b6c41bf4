#include "api/audit/receipts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/documents/receipt.h"
#include "api/request/reply.h"
#include "api/request/visible.h"

enum {
    LIMIT_DEFAULT = 100,
    KEPT_MAX = LIMIT_DEFAULT + 64, /* those of one order are never parted */
    ROW_ARENA_MAX = 64 << 10,
    EARLIER_MAX = 256,
    UNCLEAN_MAX = 16
};

struct receipts {
    const struct bh_call *call;
    struct bh_rows *rows;                /* of a list; NULL: they are kept, of one job */
    struct bh_reply_receipt_shown *kept; /* KEPT_MAX of them */
    uint32_t kept_count;
    struct bh_visible visible;
    struct bh_arena *arena;        /* of one row */
    uint64_t job;                  /* only its; 0: all */
    uint64_t earlier[EARLIER_MAX]; /* numbers that its receipts refer to */
    uint32_t earlier_count;
    const char *gpu; /* only of it; NULL: all */
    uint64_t after, capacity, last;
    uint64_t
        *orders; /* NULL, or a ring of `capacity`: the last orders are looked for, and nothing is written */
    uint64_t order_count;
    bool of_one_job;               /* the caller sees the job, whatever else it sees */
    uint64_t unclean[UNCLEAN_MAX]; /* partitions whose scrub for the job failed, or was cut off */
    uint32_t unclean_count;
    char whole[8 << 10]; /* a receipt as JSON, until its row is written */
};

/* ---- which ---- */

static bool
receipts_may_see(const struct receipts *r, uint32_t tenant)
{
    return r->visible.all || (tenant && bh_visible_has(&r->visible, tenant));
}

/* A job that the caller may not see is about nothing: else a tenant that shared a partition with it could
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

/* A scrub that failed is tried again for no job: the one that succeeds is shown with the job, too. */
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

static const char *
receipts_tenant_of(const struct receipts *r, uint32_t id)
{
    const struct bh_dir_tenant *tenant = bh_directory_tenant(r->call->dir, (bh_tenant_id){ id });

    if (id == 0)
        return "";
    if (id == UINT32_MAX)
        return "unknown";
    return receipts_may_see(r, id) && tenant ? tenant->path : "another tenant";
}

static bool
receipts_is_named(const struct receipts *r, uint32_t tenant)
{
    return tenant == 0 || tenant == UINT32_MAX || receipts_may_see(r, tenant);
}

/* A row of the store with all that its reply borrows. */
struct receipt_shown {
    struct bh_receipt_row row;
    struct bh_reply_receipt_from from[BH_RECEIPT_FROM_MAX + 1];
    struct bh_reply_receipt_by by[BH_RECEIPT_BY_MAX];
};

/* Of tenants that the caller may not see it says only that there are some: not which, not how many, and not
 * between which others they came. */
static struct bh_list
receipts_from_of(const struct receipts *r, struct receipt_shown *shown)
{
    const struct bh_msg_receipt *receipt = &shown->row.receipt;
    bool others = false;
    uint32_t count = 0;

    for (uint32_t i = 0; i < receipt->from_count; i++) {
        uint32_t tenant = receipt->from[i].tenant;

        others = others || !receipts_is_named(r, tenant);
        if (receipts_is_named(r, tenant))
            shown->from[count++] = (struct bh_reply_receipt_from){
                .job = receipts_may_see(r, tenant) ? receipt->from[i].job : (uint64_t)BH_UNSET,
                .tenant = receipts_tenant_of(r, tenant),
            };
    }
    if (others)
        shown->from[count++] = (struct bh_reply_receipt_from){ .job = BH_UNSET, .tenant = "other tenants" };
    return (struct bh_list){ shown->from, count };
}

static struct bh_list
receipts_by_of(struct receipt_shown *shown)
{
    const struct bh_msg_receipt *receipt = &shown->row.receipt;

    for (uint32_t i = 0; i < receipt->by_count; i++)
        shown->by[i].id = receipt->by[i].receipt;
    return (struct bh_list){ shown->by, receipt->by_count };
}

/* For a caller that sees all of it: the receipt as its digest was taken.  Beside a job it would repeat
 * itself. */
static struct bh_slice
receipts_whole_of(struct receipts *r, const struct bh_msg_receipt *receipt)
{
    struct bh_buf json;

    if (!r->visible.all || r->of_one_job)
        return bh_reply_slice(NULL);
    bh_buf_init_fixed(&json, r->whole, sizeof r->whole);
    bh_json_encode(&json, &bh_receipt_fields, receipt);
    return bh_reply_slice(bh_buf_text(&json));
}

static struct bh_reply_receipt_shown
receipts_reply_of(struct receipts *r, struct receipt_shown *shown)
{
    const struct bh_msg_receipt *receipt = &shown->row.receipt;
    bool own = receipts_may_see(r, receipt->tenant) || (r->of_one_job && receipt->job == r->job);
    struct bh_reply_receipt_shown reply = {
        .begun_ns = receipt->begun_ns,
        .by = receipts_by_of(shown),
        .bytes = receipt->bytes,
        .driver_scrub = bh_driver_scrub_names[receipt->driver],
        .ended_ns = receipt->ended_ns,
        .from = receipts_from_of(r, shown),
        .gpu = receipt->gpu,
        .id = receipt->order,
        .job = own ? receipt->job : 0,
        .memory_bytes = receipt->memory_bytes,
        .method = bh_scrub_method_names[receipt->method],
        .neighbors = r->visible.all ? receipt->neighbors : (uint32_t)BH_UNSET,
        .partition = receipt->partition,
        .profile = receipt->profile,
        .receipt = receipts_whole_of(r, receipt),
        .record = shown->row.record,
        .residue = receipt->residue,
        .result = bh_scrub_result_names[receipt->result],
        .samples = receipt->samples,
        .start = receipt->start,
        .tenant = receipts_tenant_of(r, receipt->tenant),
        .tries = receipt->tries,
        .unfilled = receipt->unfilled,
        .why = receipt->why[0] ? receipt->why : NULL,
    };

    memcpy(reply.digest, shown->row.digest, sizeof reply.digest);
    return reply;
}

/* False: no more fit. */
static bool
receipts_put_row(struct receipts *r, const struct bh_receipt_row *row)
{
    struct receipt_shown local, *shown = r->rows ? &local : bh_arena_alloc(r->call->arena, sizeof *shown);
    struct bh_reply_receipt_shown reply;

    if (!shown)
        return false;
    shown->row = *row;
    reply = receipts_reply_of(r, shown);
    if (r->rows)
        return bh_rows_put(r->rows, &reply);
    r->kept[r->kept_count++] = reply;
    return r->kept_count < KEPT_MAX;
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

static void
receipts_note_order(struct receipts *r, uint64_t order)
{
    if (r->order_count > 0 && r->orders[(r->order_count - 1) % r->capacity] == order)
        return;
    r->orders[r->order_count++ % r->capacity] = order;
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
    if (r->orders) {
        receipts_note_order(r, row.receipt.order);
        return true;
    }
    if (r->capacity == 0 && row.receipt.order != r->last)
        return false;
    r->capacity -= r->capacity > 0; /* those of one order are never parted: `after` is an order */
    r->last = row.receipt.order;
    receipts_add_unclean(r, &row.receipt);
    return receipts_put_row(r, &row);
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
bh_receipts_of(const struct bh_call *call, uint64_t job, struct bh_list *ret, struct bh_err *err)
{
    struct receipts r = { .call = call, .job = job, .capacity = LIMIT_DEFAULT, .of_one_job = true };
    bh_rc rc = bh_visible_find(call, "job.view", &r.visible, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, KEPT_MAX * sizeof *r.kept, &r.kept, err);
    if (rc != BH_OK)
        return rc;
    rc = receipts_put_all(&r, err);
    *ret = (struct bh_list){ r.kept, r.kept_count };
    return rc;
}

/* Begin behind all but the last page. */
static bh_rc
receipts_skip_to_last(struct receipts *r, struct bh_err *err)
{
    struct receipts found = *r;
    bh_rc rc = bh_call_alloc(r->call, r->capacity * sizeof *found.orders, &found.orders, err);

    if (rc != BH_OK)
        return rc;
    rc = receipts_put_all(&found, err);
    if (rc == BH_OK && found.order_count > r->capacity)
        r->after = found.orders[found.order_count % r->capacity] - 1;
    return rc;
}

bh_rc
bh_receipts_list(struct bh_call *call, struct bh_err *err)
{
    struct bh_rows rows;
    struct receipts r = {
        .call = call,
        .rows = &rows,
        .job = call->query.job,
        .gpu = call->query.gpu,
        .after = call->query.after,
        .capacity = call->query.given.limit ? call->query.limit : LIMIT_DEFAULT,
    };
    struct bh_reply_receipt_list end = { .next = NULL };
    bh_rc rc = bh_visible_find(call, "job.view", &r.visible, err);

    if (rc != BH_OK)
        return rc;
    if (call->query.last && r.capacity > 0)
        rc = receipts_skip_to_last(&r, err);
    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_receipt_list_fields);
    rc = receipts_put_all(&r, err);
    if (rc != BH_OK)
        return rc;
    if (r.capacity == 0 && r.last)
        end.next = bh_arena_printf(call->arena, "%" PRIu64, r.last);
    bh_rows_end(&rows, &end);
    return BH_OK;
}
