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

enum { PAGE_DEFAULT = 100, SCAN_MAX = 100000, TEXT_SIZE = 200 };

struct records {
    struct bh_call *call;
    struct bh_rows rows;
    struct bh_visible visible;
    struct bh_record_filter filter;
    bool raw;
    uint64_t capacity, last;
    uint64_t minimum; /* records below it were pruned */
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
    more = bh_rows_put(&r->rows, &row);
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
records_put_record(void *self, uint64_t seq, const char *text, size_t length)
{
    struct records *r = self;
    struct bh_slice leaf = { text, length };
    uint64_t tenant = records_number_in(leaf, "tenant");
    bool visible = r->visible.all || (tenant && bh_visible_has(&r->visible, (uint32_t)tenant));

    if (r->capacity == 0)
        return false;
    r->any = true;
    r->last = seq;
    if (!visible && (!r->raw || r->filter.any))
        return true;
    if (!bh_record_filter_has(&r->filter, leaf, records_are_whole(r, leaf)))
        return true;
    r->capacity--;
    return r->raw ? records_put_raw(r, seq, leaf, visible) : records_put_cooked(r, seq, leaf, tenant);
}

static bool
records_put_pruned(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct bh_reply_record_shown row = { .pruned = true, .seq = seq, .ts_ns = BH_UNSET };
    struct records *r = self;

    if (r->capacity == 0 || seq >= r->minimum)
        return false;
    r->capacity--;
    r->any = true;
    r->last = seq;
    memcpy(row.hash, hash->bytes, sizeof row.hash);
    return bh_rows_put(&r->rows, &row);
}

/* ---- the page ---- */

static bh_rc
records_read_page(struct records *r, uint64_t *ret_first, struct bh_err *err)
{
    const struct bh_query *query = &r->call->query;
    bh_rc rc;

    r->capacity = query->given.limit ? query->limit : PAGE_DEFAULT;
    r->raw = query->raw;
    *ret_first = query->given.after ? query->after + 1 : 0;
    if (r->capacity == 0)
        return bh_err_set(err, BH_RANGE, "limit: must be at least 1");
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

/* The first record not before the filter's time, by halving: times never go back. */
static bh_rc
records_skip_older(const struct records *r, uint64_t total, uint64_t *first, struct bh_err *err)
{
    const struct bh_store *store = &r->call->api->options.store;
    uint64_t low = *first, high = total;

    while (r->filter.since_ns > 0 && low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct records_moment moment = { 0 };
        bh_rc rc = store->ops->list_records(store->self, middle, middle, records_read_time, &moment, err);

        if (rc != BH_OK)
            return rc;
        if (moment.found && moment.ts_ns < r->filter.since_ns)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    return BH_OK;
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
    if (r->capacity > 0)
        rc = store->ops->list_records(store->self, from, from + SCAN_MAX - 1, records_put_record, r, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_minimum_read(store, &minimum, err);
    if (rc != BH_OK)
        return rc;
    if (r->raw && minimum != r->minimum && from < minimum)
        return bh_err_set(err, BH_UNAVAILABLE, "the log was pruned meanwhile: ask again");
    return BH_OK;
}

/* Whether the pages come to every record: then the log's size is their number.  Fewer are not counted, and a
 * caller that sees only its own records must not learn how much others do. */
static bool
records_counts_all(const struct records *r)
{
    return !r->filter.any && (r->visible.all || r->raw);
}

/* A caller that sees little would have everything scanned for it: a page looks at
 * SCAN_MAX records at most, and may be empty with a `next`. */
bh_rc
bh_records_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct records r = { .call = call };
    struct bh_reply_record_list end;
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
    rc = records_skip_older(&r, total, &first, err);
    if (rc != BH_OK)
        return rc;
    r.rows = bh_rows_begin(call, &bh_reply_record_list_fields);
    if (first < total)
        rc = records_put_page(&r, first, err);
    end = (struct bh_reply_record_list){ .minimum = r.minimum,
                                         .total = records_counts_all(&r) ? total : (uint64_t)BH_UNSET };
    if (r.any && r.last + 1 < total)
        end.next = bh_arena_printf(call->arena, "%" PRIu64, r.last);
    bh_rows_end(&r.rows, &end);
    return rc;
}
