#include "api/audit/records.h"

#include <string.h>

#include "api/audit/record_filter.h"
#include "api/audit/record_outcome.h"
#include "api/documents/minimum.h"
#include "api/request/visible.h"
#include "audit/record.h"
#include "audit/sealed.h"
#include "base/num.h"
#include "base/slice.h"

enum { PAGE_DEFAULT = 100, PAGE_MAX = 10000, SCAN_MAX = 100000 };

struct records {
    struct bh_call *call;
    struct bh_json_writer w;
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

static void
records_copy_text(struct bh_json_writer *w, struct bh_slice leaf, const char *key, const char *as)
{
    struct bh_slice value;
    char text[200];

    if (bh_slice_get(leaf, key, &value) && bh_slice_str(value, text, sizeof text))
        bh_json_str(w, as, text);
}

/* ---- for people: ids resolved to names ---- */

static void
records_put_actor(struct records *r, struct bh_slice leaf)
{
    const struct bh_dir_principal *principal;
    struct bh_slice actor, via;
    char how[16];
    uint64_t id;

    if (!bh_slice_get(leaf, "actor", &actor))
        return;
    id = records_number_in(actor, "id");
    principal = bh_directory_principal(r->call->dir, (bh_principal_id){ (uint32_t)id });
    bh_json_open(&r->w, "actor", '{');
    bh_json_u64(&r->w, "id", id);
    if (principal)
        bh_json_str(&r->w, "name", principal->name);
    records_copy_text(&r->w, actor, "token", "token");
    if (bh_slice_get(actor, "via", &via) && bh_slice_str(via, how, sizeof how)
        && strcmp(how, bh_via_names[BH_VIA_PEER]) == 0) /* who came another way has none; 0 is root's */
        bh_json_u64(&r->w, "uid", records_number_in(actor, "uid"));
    records_copy_text(&r->w, actor, "via", "via");
    bh_json_close(&r->w, '}');
}

static void
records_put_part(struct bh_json_writer *w, struct bh_slice leaf, const char *key, const char *as)
{
    struct bh_slice value;

    if (bh_slice_get(leaf, key, &value))
        bh_json_rawn(w, as, value.text, value.length);
}

/* A record's decisions may be about other tenants' jobs: who does not see everything
 * gets such a leaf by its hash only. */
static bool
records_names_others(struct bh_slice leaf)
{
    struct bh_slice decisions;

    return bh_slice_get(leaf, "do", &decisions);
}

/* A denial for want of any rule: its result says so alone. */
static void
records_put_decision(struct records *r, struct bh_slice leaf)
{
    struct bh_slice unused;

    if (bh_slice_get(leaf, "dec", &unused) || !bh_record_filter_is_refusal(leaf)) {
        records_put_part(&r->w, leaf, "dec", "decision");
        return;
    }
    bh_json_open(&r->w, "decision", '{');
    bh_json_bool(&r->w, "allow", false);
    bh_json_close(&r->w, '}');
}

/* Who sees the leaf whole sees the event's own content: what the engine was told, or what a deed
 * says besides (audit/token_facts.h). */
static void
records_put_event(struct records *r, struct bh_slice leaf)
{
    if (r->visible.all || !records_names_others(leaf))
        records_put_part(&r->w, leaf, "ev", "event");
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

/* Lines, one by one. */
static void
records_put_changes(struct bh_json_writer *w, const struct bh_buf *note)
{
    bh_json_open(w, "changes", '[');
    for (size_t at = 0, length; at < note->length; at += length + 1) {
        const char *line = note->bytes + at, *end = memchr(line, '\n', note->length - at);

        length = end ? (size_t)(end - line) : note->length - at;
        bh_json_strn(w, NULL, line, length);
    }
    bh_json_close(w, ']');
}

/* For who may see the record whole; of a site file it is what it changed. */
static void
records_put_note(struct records *r, struct bh_slice leaf, bool changes)
{
    struct bh_slice list, item;
    struct bh_buf note;
    size_t cursor = 0;

    if (!bh_slice_get(leaf, "sealed", &list) || records_names_verb(leaf, "site.apply") != changes
        || (!r->visible.all && records_names_others(leaf)))
        return;
    bh_buf_init(&note, NOTE_BYTES_MAX);
    while (bh_slice_next_item(list, &cursor, &item)) {
        if (note.length > 0 && !changes)
            bh_buf_puts(&note, "; ");
        records_put_opened(r, item, &note);
    }
    if (changes)
        records_put_changes(&r->w, &note);
    else
        bh_json_strn(&r->w, "note", note.bytes, note.length);
    if (note.bytes)
        explicit_bzero(note.bytes, note.size);
    bh_buf_fini(&note);
}

static void
records_put_cooked(struct records *r, uint64_t seq, struct bh_slice leaf, uint64_t tenant_id)
{
    const struct bh_dir_tenant *tenant =
        bh_directory_tenant(r->call->dir, (bh_tenant_id){ (uint32_t)tenant_id });

    bh_json_open(&r->w, NULL, '{');
    records_put_actor(r, leaf);
    records_put_note(r, leaf, true);
    if (records_number_in(leaf, "count"))
        bh_json_u64(&r->w, "count", records_number_in(leaf, "count"));
    records_put_decision(r, leaf);
    records_put_event(r, leaf);
    records_put_note(r, leaf, false);
    records_put_part(&r->w, leaf, "obj", "object");
    if (records_number_in(leaf, "order"))
        bh_json_u64(&r->w, "order", records_number_in(leaf, "order"));
    bh_record_outcome_put(&r->w, leaf);
    records_copy_text(&r->w, leaf, "phase", "phase");
    records_copy_text(&r->w, leaf, "res", "result");
    bh_json_u64(&r->w, "seq", seq);
    if (tenant)
        bh_json_str(&r->w, "tenant", tenant->path);
    records_copy_text(&r->w, leaf, "text", "text");
    bh_json_ns(&r->w, "ts_ns", records_number_in(leaf, "ts"));
    records_copy_text(&r->w, leaf, "verb", "verb");
    bh_json_close(&r->w, '}');
}

/* ---- as hashed ---- */

/* RFC 6962: the hash of a leaf begins with a zero byte. */
static void
records_put_hash(struct records *r, const char *leaf, size_t length)
{
    uint8_t digest[32];
    char text[65];
    struct bh_buf hex;

    r->call->api->options.crypto->sha256("", 1, leaf, length, digest);
    bh_buf_init_fixed(&hex, text, sizeof text);
    bh_buf_put_hex(&hex, digest, sizeof digest);
    bh_json_str(&r->w, "hash", bh_buf_text(&hex));
}

static void
records_put_raw(struct records *r, uint64_t seq, struct bh_slice leaf, bool visible)
{
    bh_json_open(&r->w, NULL, '{');
    if (visible && (r->visible.all || !records_names_others(leaf)))
        bh_json_strn(&r->w, "leaf", leaf.text, leaf.length);
    else
        records_put_hash(r, leaf.text, leaf.length);
    bh_json_u64(&r->w, "seq", seq);
    bh_json_close(&r->w, '}');
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
    if (!bh_record_filter_has(&r->filter, leaf))
        return true;
    r->capacity--;
    if (r->raw)
        records_put_raw(r, seq, leaf, visible);
    else
        records_put_cooked(r, seq, leaf, tenant);
    return !r->w.out->overflow;
}

static bool
records_put_pruned(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct records *r = self;
    char text[65];
    struct bh_buf hex;

    if (r->capacity == 0 || seq >= r->minimum)
        return false;
    r->capacity--;
    r->any = true;
    r->last = seq;
    bh_buf_init_fixed(&hex, text, sizeof text);
    bh_buf_put_hex(&hex, hash->bytes, sizeof hash->bytes);
    bh_json_open(&r->w, NULL, '{');
    bh_json_str(&r->w, "hash", bh_buf_text(&hex));
    bh_json_bool(&r->w, "pruned", true);
    bh_json_u64(&r->w, "seq", seq);
    bh_json_close(&r->w, '}');
    return !r->w.out->overflow;
}

/* ---- the page ---- */

static bh_rc
records_read_page(struct records *r, uint64_t *ret_first, struct bh_err *err)
{
    uint64_t after = 0;
    bh_rc rc;

    r->capacity = PAGE_DEFAULT;
    rc = bh_call_number(r->call, "limit", PAGE_MAX, &r->capacity, err);
    if (rc == BH_OK && r->capacity == 0)
        return bh_err_set(err, BH_RANGE, "limit: must be at least 1");
    if (rc == BH_OK)
        rc = bh_call_number(r->call, "after", UINT64_MAX - SCAN_MAX, &after, err);
    if (rc == BH_OK)
        rc = bh_call_flag(r->call, "raw", &r->raw, err);
    if (rc == BH_OK)
        rc = bh_visible_find(r->call, "record.view", &r->visible, err);
    if (rc == BH_OK && bh_call_query(r->call, "tenant"))
        rc = bh_visible_narrow(r->call, bh_call_query(r->call, "tenant"), &r->visible, err);
    if (rc == BH_OK)
        rc = bh_record_filter_read(r->call, &r->filter, err);
    *ret_first = bh_call_query(r->call, "after") ? after + 1 : 0;
    return rc;
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

    (void)seq;
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

/* Pruned ones by their hashes, where somebody verifies; then those that are there. */
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

/* Whether the pages come to every record: then the log's size is how many there are.  Of fewer
 * nobody has counted them, and how much others do is not for those who see only their own. */
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
    struct records r = { .call = call, .w = bh_call_writer(call) };
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
    bh_json_open(&r.w, NULL, '{');
    bh_json_open(&r.w, "items", '[');
    if (first < total)
        rc = records_put_page(&r, first, err);
    bh_json_close(&r.w, ']');
    bh_json_u64(&r.w, "minimum", r.minimum);
    if (r.any && r.last + 1 < total)
        bh_json_str(&r.w, "next", bh_arena_printf(call->arena, "%" PRIu64, r.last));
    if (records_counts_all(&r))
        bh_json_u64(&r.w, "total", total);
    bh_json_close(&r.w, '}');
    return rc;
}
