#include "api/audit/records.h"

#include <string.h>

#include "api/audit/record_filter.h"
#include "api/audit/record_outcome.h"
#include "api/documents/minimum.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "audit/record.h"
#include "audit/sealed.h"
#include "base/num.h"
#include "base/slice.h"

enum { PAGE_DEFAULT = 100, SCAN_MAX = 100000, STRETCH = 1024, STRETCH_FIRST = 64, TEXT_SIZE = 200 };

struct records {
    struct bh_call *call;
    struct bh_rows rows;
    struct bh_visible visible;
    struct bh_record_filter filter;
    bool raw;
    bool newest; /* from the end of the log to its beginning */
    bool one;    /* it is the whole reply, instead of a row */
    uint64_t capacity, last;
    uint64_t minimum; /* records below it were pruned */
    uint64_t end;     /* the first record that is not asked for */
    bool any;         /* a record was looked at */
};

static uint64_t
records_number_in(struct bh_slice leaf, const char *key)
{
    struct bh_slice value;
    uint64_t number = 0;

    return bh_slice_get(leaf, key, &value) && bh_slice_u64(value, &number) ? number : 0;
}

/* A text of the leaf in the memory; NULL: it has none. */
static const char *
records_text_of(struct bh_slice leaf, const char *key, char memory[TEXT_SIZE])
{
    struct bh_slice value;

    return bh_slice_get(leaf, key, &value) && bh_slice_str(value, memory, TEXT_SIZE) ? memory : NULL;
}

/* What a row borrows until it is written. */
struct record_texts {
    char token[TEXT_SIZE], via[TEXT_SIZE], phase[TEXT_SIZE], request[TEXT_SIZE], result[TEXT_SIZE],
        salt[TEXT_SIZE], text[TEXT_SIZE], verb[TEXT_SIZE], outcome[BH_RECORD_OUTCOME_SIZE];
    struct bh_reply_record_actor actor;
};

/* ---- for people: ids resolved to names ---- */

static const struct bh_reply_record_actor *
records_actor_of(const struct records *r, struct bh_slice leaf, struct record_texts *texts)
{
    const struct bh_dir_principal *principal;
    struct bh_slice actor;
    uint64_t id;

    if (!bh_slice_get(leaf, "actor", &actor))
        return NULL;
    id = records_number_in(actor, "id");
    principal = bh_directory_principal(r->call->dir, (bh_principal_id){ (uint32_t)id });
    texts->actor = (struct bh_reply_record_actor){
        .id = id,
        .name = principal ? principal->name : NULL,
        .token = records_text_of(actor, "token", texts->token),
        .uid = BH_UNSET,
        .via = records_text_of(actor, "via", texts->via),
    };
    if (texts->actor.via && strcmp(texts->actor.via, bh_via_names[BH_VIA_PEER]) == 0)
        texts->actor.uid = records_number_in(actor, "uid"); /* others have none; 0 is root's */
    return &texts->actor;
}

/* Of what belongs to no tenant. */
static const char *
records_site_name(const struct bh_directory *dir, const char *type, uint32_t id)
{
    const struct bh_dir_principal *principal = NULL;
    const struct bh_dir_gpu *gpu = NULL;
    const struct bh_dir_sku *sku = NULL;

    if (strcmp(type, "principal") == 0)
        principal = bh_directory_principal(dir, (bh_principal_id){ id });
    else if (strcmp(type, "gpu") == 0)
        gpu = bh_directory_gpu(dir, (bh_gpu_id){ id });
    else if (strcmp(type, "sku") == 0)
        sku = bh_directory_sku(dir, (bh_sku_id){ id });
    return principal ? principal->name : gpu ? gpu->uuid : sku ? sku->name : NULL;
}

/* What the directory calls the object, where the caller may know. */
static const char *
records_object_name(const struct records *r, struct bh_slice leaf)
{
    const struct bh_directory *dir = r->call->dir;
    struct bh_slice object;
    char memory[TEXT_SIZE];
    const char *type;
    uint32_t id;

    if (!bh_slice_get(leaf, "obj", &object))
        return NULL;
    type = records_text_of(object, "type", memory);
    id = (uint32_t)records_number_in(object, "id");
    if (!type || id == 0)
        return NULL;
    if (strcmp(type, "tenant") == 0 && (r->visible.all || bh_visible_has(&r->visible, id))) {
        const struct bh_dir_tenant *tenant = bh_directory_tenant(dir, (bh_tenant_id){ id });

        return tenant ? tenant->path : NULL;
    }
    return r->visible.all ? records_site_name(dir, type, id) : NULL;
}

/* A part of the leaf as it is; without text: it has none. */
static struct bh_slice
records_part_of(struct bh_slice leaf, const char *key)
{
    struct bh_slice value = { NULL, 0 };

    return bh_slice_get(leaf, key, &value) ? value : (struct bh_slice){ NULL, 0 };
}

/* A text of letters and dashes alone, however long. */
static struct bh_slice
records_letters_of(struct bh_slice leaf, const char *key)
{
    struct bh_slice value = records_part_of(leaf, key);

    return value.length < 2 ? (struct bh_slice){ NULL, 0 }
                            : (struct bh_slice){ value.text + 1, value.length - 2 };
}

/* A record's decisions may be about other tenants' jobs: a caller that does not see all of them gets such a
 * leaf by its hash only. */
static bool
records_are_whole(const struct records *r, struct bh_slice leaf)
{
    struct bh_slice decisions;

    return r->visible.all || !bh_slice_get(leaf, "do", &decisions);
}

/* A denial for want of any rule: its result says so alone. */
static struct bh_slice
records_decision_of(struct bh_slice leaf)
{
    struct bh_slice unused;

    if (bh_slice_get(leaf, "dec", &unused) || !bh_record_filter_is_refusal(leaf))
        return records_part_of(leaf, "dec");
    return bh_reply_slice("{\"allow\":false}");
}

/* ---- what was sealed ---- */

enum { NOTE_BYTES_MAX = BH_SEALED_ITEMS_MAX * BH_SEALED_ITEM_BYTES_MAX };

static void
records_put_opened(struct records *r, struct bh_slice item, struct bh_buf *out)
{
    struct bh_err err = { .rc = BH_OK };
    bh_rc rc = bh_keys_unseal(r->call->api->options.keys, item, out, &err);

    if (rc == BH_NOT_FOUND)
        bh_buf_puts(out, BH_ERASED);
    else if (rc != BH_OK)
        bh_buf_puts(out, "(unreadable)");
}

static bool
records_names_verb(struct bh_slice leaf, const char *verb)
{
    struct bh_slice value;
    char text[40];

    return bh_slice_get(leaf, "verb", &value) && bh_slice_str(value, text, sizeof text)
           && strcmp(text, verb) == 0;
}

/* For a caller that may see the record whole: a user's text, or the changes of a site file, in `note`. */
static void
records_fill_note(struct records *r, struct bh_slice leaf, struct bh_buf *note,
                  struct bh_reply_record_shown *ret)
{
    bool changes = records_names_verb(leaf, "site.apply");
    struct bh_slice list, item;
    size_t cursor = 0;

    if (!bh_slice_get(leaf, "sealed", &list) || !records_are_whole(r, leaf))
        return;
    while (bh_slice_next_item(list, &cursor, &item)) {
        if (note->length > 0 && !changes)
            bh_buf_puts(note, "; ");
        records_put_opened(r, item, note);
    }
    if (changes)
        ret->changes = bh_buf_text(note);
    else
        ret->note = (struct bh_slice){ note->length ? note->bytes : "", note->length };
}

/* What only callers that see the leaf whole get of it, as it is. */
static void
records_fill_whole(struct bh_slice leaf, struct record_texts *texts, struct bh_reply_record_shown *ret)
{
    ret->decided = records_part_of(leaf, "do");
    ret->event = records_part_of(leaf, "ev");
    ret->jobs = records_part_of(leaf, "jobs");
    ret->names = records_part_of(leaf, "names");
    ret->orders = records_letters_of(leaf, "orders");
    ret->salt = records_text_of(leaf, "salt", texts->salt);
}

static bool
records_put_row(struct records *r, const struct bh_reply_record_shown *row)
{
    if (!r->one)
        return bh_rows_put(&r->rows, row);
    bh_reply_put(r->call, &bh_reply_record_shown_fields, row);
    return false;
}

/* The event's own content (what the engine received, or what a deed adds, audit/token_facts.h) is for callers
 * that see the leaf whole. */
static bool
records_put_cooked(struct records *r, uint64_t seq, struct bh_slice leaf, uint64_t tenant_id)
{
    const struct bh_dir_tenant *tenant =
        bh_directory_tenant(r->call->dir, (bh_tenant_id){ (uint32_t)tenant_id });
    struct record_texts texts;
    struct bh_reply_record_shown row = {
        .actor = records_actor_of(r, leaf, &texts),
        .boot = records_number_in(leaf, "boot"),
        .count = records_number_in(leaf, "count"),
        .decision = records_decision_of(leaf),
        .object = records_part_of(leaf, "obj"),
        .object_name = records_object_name(r, leaf),
        .order = records_number_in(leaf, "order"),
        .outcome = bh_record_outcome(leaf, texts.outcome),
        .phase = records_text_of(leaf, "phase", texts.phase),
        .request = records_text_of(leaf, "req", texts.request),
        .result = records_text_of(leaf, "res", texts.result),
        .seq = seq,
        .tenant = tenant ? tenant->path : NULL,
        .text = records_text_of(leaf, "text", texts.text),
        .ts_ns = records_number_in(leaf, "ts"),
        .verb = records_text_of(leaf, "verb", texts.verb),
        .version = records_number_in(leaf, "v"),
    };
    struct bh_buf note;
    bool more;

    if (records_are_whole(r, leaf))
        records_fill_whole(leaf, &texts, &row);
    bh_buf_init(&note, NOTE_BYTES_MAX);
    records_fill_note(r, leaf, &note, &row);
    more = records_put_row(r, &row);
    if (note.bytes)
        explicit_bzero(note.bytes, note.size);
    bh_buf_fini(&note);
    return more;
}

/* ---- as hashed ---- */

/* RFC 6962: the hash of a leaf begins with a zero byte. */
static bool
records_put_raw(struct records *r, uint64_t seq, struct bh_slice leaf, bool visible)
{
    struct bh_reply_record_shown row = { .seq = seq, .ts_ns = BH_UNSET };

    if (visible && records_are_whole(r, leaf))
        row.leaf = leaf;
    else
        r->call->api->options.crypto->sha256("", 1, leaf.text, leaf.length, row.hash);
    return bh_rows_put(&r->rows, &row);
}

static bool
records_are_visible(const struct records *r, struct bh_slice leaf)
{
    uint64_t tenant = records_number_in(leaf, "tenant");

    return r->visible.all || (tenant && bh_visible_has(&r->visible, (uint32_t)tenant));
}

/* Whether the leaf is asked for; with raw=true and no search, one that the caller may not see is, too. */
static bool
records_want(const struct records *r, struct bh_slice leaf)
{
    if (!r->filter.any)
        return r->raw || records_are_visible(r, leaf);
    return bh_record_filter_may_have(&r->filter, leaf) && records_are_visible(r, leaf)
           && bh_record_filter_has(&r->filter, leaf, records_are_whole(r, leaf));
}

static bool
records_put_record(void *self, uint64_t seq, const char *text, size_t length)
{
    struct records *r = self;
    struct bh_slice leaf = { text, length };

    if (r->capacity == 0)
        return false;
    r->any = true;
    r->last = seq;
    if (!records_want(r, leaf))
        return true;
    r->capacity--;
    return r->raw ? records_put_raw(r, seq, leaf, records_are_visible(r, leaf))
                  : records_put_cooked(r, seq, leaf, records_number_in(leaf, "tenant"));
}

static bool
records_put_pruned(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct bh_reply_record_shown row = { .pruned = true, .seq = seq, .ts_ns = BH_UNSET };
    struct records *r = self;

    if (r->capacity == 0 || seq >= r->minimum || seq >= r->end)
        return false;
    r->capacity--;
    r->any = true;
    r->last = seq;
    memcpy(row.hash, hash->bytes, sizeof row.hash);
    return bh_rows_put(&r->rows, &row);
}

/* ---- the page ---- */

static bh_rc
records_read_order(struct records *r, struct bh_err *err)
{
    bh_rc rc = bh_query_read_order(&r->call->query, &r->newest, err);

    if (rc != BH_OK)
        return rc;
    if (r->newest && r->raw)
        return bh_err_set(err, BH_INVALID, "order: leaves as they are hashed come oldest first");
    return BH_OK;
}

static bh_rc
records_read_page(struct records *r, uint64_t *ret_first, struct bh_err *err)
{
    const struct bh_query *query = &r->call->query;
    bh_rc rc;

    r->capacity = query->given.limit ? query->limit : PAGE_DEFAULT;
    r->raw = query->raw;
    *ret_first = query->given.after ? query->after + 1 : 0;
    r->end = query->given.before ? query->before : UINT64_MAX;
    if (r->capacity == 0)
        return bh_err_set(err, BH_RANGE, "limit: must be at least 1");
    rc = records_read_order(r, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_visible_read(r->call, "record.view", &r->visible, err);
    return rc == BH_OK ? bh_record_filter_read(r->call, &r->filter, err) : rc;
}

static bh_rc
count_records(const struct bh_store *store, uint64_t *ret_count, struct bh_err *err)
{
    bh_rc rc = store->ops->last_record(store->self, ret_count, err);

    if (rc == BH_OK)
        ++*ret_count;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

struct records_moment {
    uint64_t ts_ns;
    bool found;
};

static bool
records_read_time(void *self, uint64_t seq, const char *text, size_t length)
{
    struct records_moment *moment = self;

    *moment = (struct records_moment){ records_number_in((struct bh_slice){ text, length }, "ts"), true };
    return false;
}

struct records_range {
    uint64_t low, high; /* its first record, and the first behind it */
};

/* Narrow the range to `low`, its first record that is not before the time, by halving: times never go back.
 * It is the end of the range where all are. */
static bh_rc
records_find_moment(const struct records *r, uint64_t ns, struct records_range *range, struct bh_err *err)
{
    const struct bh_store *store = &r->call->api->options.store;

    while (range->low < range->high) {
        uint64_t middle = range->low + (range->high - range->low) / 2;
        struct records_moment moment = { 0 };
        bh_rc rc = store->ops->list_records(store->self, middle, middle, records_read_time, &moment, err);

        if (rc != BH_OK)
            return rc;
        if (!moment.found || moment.ts_ns < ns)
            range->low = middle + 1;
        else
            range->high = middle;
    }
    return BH_OK;
}

/* The records that the filter's times leave: from *first, below r->end. */
static bh_rc
records_bound_times(struct records *r, uint64_t total, uint64_t *first, struct bh_err *err)
{
    struct records_range since, until;
    bh_rc rc = BH_OK;

    if (r->end > total)
        r->end = total;
    since = (struct records_range){ *first, r->end };
    if (r->filter.since_ns > 0)
        rc = records_find_moment(r, r->filter.since_ns, &since, err);
    until = (struct records_range){ since.low, r->end };
    if (rc == BH_OK && r->filter.until_ns != UINT64_MAX) {
        rc = records_find_moment(r, r->filter.until_ns, &until, err);
        r->end = until.low;
    }
    *first = since.low;
    return rc;
}

/* Where a page that begins there ends, which looks at SCAN_MAX records at most. */
static uint64_t
records_last_of(const struct records *r, uint64_t from)
{
    uint64_t last = from + SCAN_MAX - 1;

    return last < r->end ? last : r->end - 1;
}

/* Pruned ones by their hashes, for verifiers; then those that are there. */
static bh_rc
records_put_page(struct records *r, uint64_t first, struct bh_err *err)
{
    const struct bh_store *store = &r->call->api->options.store;
    uint64_t from = first, minimum = 0;
    bh_rc rc = BH_OK;

    if (first < r->minimum && r->raw && !r->filter.any)
        rc = store->ops->list_hashes(store->self, first, records_put_pruned, r, err);
    if (from < r->minimum)
        from = r->minimum;
    if (rc != BH_OK)
        return rc;
    if (r->capacity > 0 && from < r->end)
        rc =
            store->ops->list_records(store->self, from, records_last_of(r, from), records_put_record, r, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_minimum_read(store, &minimum, err);
    if (rc != BH_OK)
        return rc;
    if (r->raw && minimum != r->minimum && from < minimum)
        return bh_err_set(err, BH_UNAVAILABLE, "the log was pruned meanwhile: ask again");
    return BH_OK;
}

/* ---- newest first ---- */

/* The records of a stretch of the log that are asked for. */
struct records_wanted {
    const struct records *records;
    uint64_t seqs[STRETCH];
    uint32_t count;
};

static bool
records_note_wanted(void *self, uint64_t seq, const char *text, size_t length)
{
    struct records_wanted *wanted = self;

    if (records_want(wanted->records, (struct bh_slice){ text, length }))
        wanted->seqs[wanted->count++] = seq;
    return wanted->count < STRETCH;
}

/* Of the records low .. high - 1 those that are asked for, from the last one on, until the page is full. */
static bh_rc
records_put_stretch(struct records *r, uint64_t low, uint64_t high, struct bh_err *err)
{
    const struct bh_store *store = &r->call->api->options.store;
    struct records_wanted wanted = { .records = r };
    bh_rc rc = store->ops->list_records(store->self, low, high - 1, records_note_wanted, &wanted, err);

    while (rc == BH_OK && wanted.count > 0 && r->capacity > 0) {
        uint64_t seq = wanted.seqs[--wanted.count];

        rc = store->ops->list_records(store->self, seq, seq, records_put_record, r, err);
    }
    if (r->capacity > 0)
        r->last = low;
    r->any = true;
    return rc;
}

/* Stretches grow: a page of everything is near the end, and what is rare far from it. */
static bh_rc
records_put_newest(struct records *r, uint64_t first, struct bh_err *err)
{
    uint64_t high = r->end, least = high > SCAN_MAX ? high - SCAN_MAX : 0, stretch = STRETCH_FIRST;
    bh_rc rc = BH_OK;

    if (least < first)
        least = first;
    while (rc == BH_OK && high > least && r->capacity > 0) {
        uint64_t low = high - least > stretch ? high - stretch : least;

        rc = records_put_stretch(r, low, high, err);
        high = low;
        stretch = stretch < STRETCH ? 2 * stretch : STRETCH;
    }
    return rc;
}

/* Whether the pages come to every record: then the log's size is their number.  Fewer are not counted, and a
 * caller that sees only its own records must not learn how much others do. */
static bool
records_counts_all(const struct records *r)
{
    return !r->filter.any && (r->visible.all || r->raw);
}

static void
records_end_page(struct records *r, uint64_t first, uint64_t total)
{
    uint64_t low = first > r->minimum ? first : r->minimum;
    bool more = r->any && (r->newest ? r->last > low : r->last + 1 < r->end);
    const struct bh_reply_record_list end = {
        .minimum = r->minimum,
        .next = more ? bh_arena_printf(r->call->arena, "%" PRIu64, r->last) : NULL,
        .total = records_counts_all(r) ? total : (uint64_t)BH_UNSET,
    };

    bh_rows_end(&r->rows, &end);
}

/* A caller that sees little would have everything scanned for it: a page looks at
 * SCAN_MAX records at most, and may be empty with a `next`. */
bh_rc
bh_records_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct records r = { .call = call };
    uint64_t first, total = 0;
    bh_rc rc = records_read_page(&r, &first, err);

    if (rc != BH_OK)
        return rc;
    rc = count_records(store, &total, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_minimum_read(store, &r.minimum, err);
    if (rc != BH_OK)
        return rc;
    rc = records_bound_times(&r, total, &first, err);
    if (rc != BH_OK)
        return rc;
    r.rows = bh_rows_begin(call, &bh_reply_record_list_fields);
    if (r.newest)
        rc = records_put_newest(&r, first > r.minimum ? first : r.minimum, err);
    else if (first < r.end)
        rc = records_put_page(&r, first, err);
    records_end_page(&r, first, total);
    return rc;
}

bh_rc
bh_records_get(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct records r = { .call = call, .one = true, .capacity = 1 };
    uint64_t seq;
    bh_rc rc = bh_parse_u64(call->id, &seq, err);

    if (rc != BH_OK || seq >= INT64_MAX)
        return bh_err_set(err, BH_NOT_FOUND, "no record %.40s", call->id);
    rc = bh_visible_find(call, "record.view", &r.visible, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_minimum_check(store, seq, err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_records(store->self, seq, seq, records_put_record, &r, err);
    if (rc != BH_OK || r.capacity == 0)
        return rc;
    call->probed = true;
    bh_err_set(err, BH_NOT_FOUND, "no record %" PRIu64 " that you may see", seq);
    return bh_err_hint(err,
                       "bulkhead audit tail shows the newest, audit search --after NUMBER those after one");
}
