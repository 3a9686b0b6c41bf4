#include "daemon/names/catalog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/documents/revision.h"
#include "audit/binding.h"
#include "base/assert.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/vec.h"
#include "daemon/names/published.h"

struct catalog_name {
    char *text;
    bool gone;
    bool waits;           /* to be bound: it has no row yet, or an older one */
    struct bh_digest key; /* zero: it is not bound, or erased */
    uint64_t record;      /* as in its row */
};

/* A name that waits to be bound. */
struct unbound {
    enum bh_name_kind kind;
    uint32_t id;
};

/* Names of one kind; the id is the position, and position 0 stays empty.  `by_hash` has
 * twice the room and holds ids, 0 where none is; no name ever leaves it. */
struct names {
    struct catalog_name *items;
    uint32_t count, capacity;
    uint32_t *by_hash;
};

struct bh_catalog {
    /* owner thread */
    struct bh_store store;
    const struct bh_crypto_ops *crypto;
    struct names names[BH_NAME_KINDS];
    struct unbound *unbound;
    uint32_t unbound_from, unbound_to, unbound_capacity; /* those from .. to - 1 */
    struct bh_arena *site_arena;
    struct bh_site site;
    char *site_text;
    uint64_t revision;
    /* shared, under mutex */
    struct bh_mutex mutex;
    struct bh_published *published;
};

enum { SITE_ARENA_MAX = 16 << 20 };

struct bh_catalog *
bh_catalog_new(struct bh_store store, const struct bh_crypto_ops *crypto)
{
    struct bh_catalog *catalog = calloc(1, sizeof *catalog);

    BH_ASSERT(catalog);
    _Static_assert((int)BH_NAME_KINDS == (int)BH_BINDING_KINDS, "bh_binding_kinds has them all");
    catalog->store = store;
    catalog->crypto = crypto;
    catalog->site_arena = bh_arena_new(SITE_ARENA_MAX);
    catalog->site_text = strdup("");
    bh_mutex_init(&catalog->mutex, BH_LOCK_CATALOG);
    return catalog;
}

static void
catalog_names_clear(struct names *names)
{
    for (uint32_t i = 0; i < names->count; i++)
        free(names->items[i].text);
    free(names->items);
    free(names->by_hash);
    *names = (struct names){ 0 };
}

void
bh_catalog_free(struct bh_catalog *catalog)
{
    if (!catalog)
        return;
    for (int kind = 0; kind < BH_NAME_KINDS; kind++)
        catalog_names_clear(&catalog->names[kind]);
    free(catalog->unbound);
    bh_published_put(catalog->published);
    bh_arena_free(catalog->site_arena);
    free(catalog->site_text);
    bh_mutex_fini(&catalog->mutex);
    free(catalog);
}

static uint32_t
catalog_hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ hash >> 32);
}

/* Where the name's id stands in `by_hash`, or the empty place where it would. */
static uint32_t *
catalog_name_slot(const struct names *names, const char *text)
{
    uint32_t mask = 2 * names->capacity - 1, at = catalog_hash_of(text) & mask;

    while (names->by_hash[at] && strcmp(names->items[names->by_hash[at]].text, text) != 0)
        at = (at + 1) & mask;
    return &names->by_hash[at];
}

static bool
catalog_is_erased(const char *name)
{
    return strcmp(name, BH_ERASED) == 0;
}

/* The slot of an id, growing up to it. */
static struct catalog_name *
catalog_slot_of(struct names *names, uint32_t id)
{
    if (id >= names->capacity) {
        bool fits = bh_vec_reserve(&names->items, &names->capacity, (size_t)id + 1, BH_CATALOG_NAMES_MAX);

        BH_ASSERT(fits);
        free(names->by_hash);
        names->by_hash = calloc(2 * (size_t)names->capacity, sizeof *names->by_hash);
        BH_ASSERT(names->by_hash);
        for (uint32_t known = 1; known < names->count; known++)
            if (names->items[known].text && !catalog_is_erased(names->items[known].text))
                *catalog_name_slot(names, names->items[known].text) = known;
    }
    if (id >= names->count)
        names->count = id + 1;
    return &names->items[id];
}

/* What was erased keeps its id, and is found by no name. */
static bool
catalog_load_name(void *self, const struct bh_name_row *row)
{
    struct bh_catalog *catalog = self;
    struct names *names = &catalog->names[row->kind];
    struct catalog_name *slot = catalog_slot_of(names, row->id);

    if (!slot->text) {
        slot->text = strdup(row->name);
        if (!catalog_is_erased(row->name))
            *catalog_name_slot(names, row->name) = row->id;
    }
    BH_ASSERT(strcmp(slot->text, row->name) == 0); /* an id has one name until it is erased */
    slot->gone = row->gone;
    slot->key = row->key;
    slot->record = row->record;
    return true;
}

static bh_rc
catalog_parse_site(struct bh_catalog *catalog, const char *text, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    bh_arena_reset(catalog->site_arena);
    catalog->site = (struct bh_site){ 0 };
    if (text[0])
        rc = bh_json_decode(text, strlen(text), &bh_site_fields, &catalog->site, catalog->site_arena, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "site file in the store");
    free(catalog->site_text);
    catalog->site_text = strdup(text);
    return BH_OK;
}

static bh_rc
catalog_load_site(struct bh_catalog *catalog, struct bh_arena *arena, struct bh_err *err)
{
    const char *text;
    bh_rc rc = bh_revision_present_text(&catalog->store, arena, &text, err);

    return rc == BH_OK ? catalog_parse_site(catalog, text ? text : "", err) : rc;
}

bh_rc
bh_catalog_load(struct bh_catalog *catalog, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(SITE_ARENA_MAX);
    bh_rc rc;

    for (int kind = 0; kind < BH_NAME_KINDS; kind++)
        catalog_names_clear(&catalog->names[kind]);
    catalog->unbound_from = catalog->unbound_to = 0;
    rc = catalog->store.ops->list_names(catalog->store.self, catalog_load_name, catalog, err);
    if (rc != BH_OK)
        return rc;
    rc = catalog_load_site(catalog, arena, err);
    if (rc != BH_OK)
        return rc;
    return bh_revision_present(&catalog->store, arena, &catalog->revision, err);
}

static struct catalog_name *
catalog_find_name(const struct bh_catalog *catalog, enum bh_name_kind kind, const char *text,
                  uint32_t *ret_id)
{
    const struct names *names = &catalog->names[kind];

    if (!names->capacity)
        return NULL;
    *ret_id = *catalog_name_slot(names, text);
    return *ret_id ? &names->items[*ret_id] : NULL;
}

static bh_rc
catalog_put_name(struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id, struct bh_err *err)
{
    const struct catalog_name *slot = &catalog->names[kind].items[id];
    const struct bh_name_row row = { .kind = kind,
                                     .id = id,
                                     .name = slot->text,
                                     .gone = slot->gone,
                                     .key = slot->key,
                                     .record = slot->record };

    return catalog->store.ops->put_name(catalog->store.self, &row, err);
}

static void
catalog_queue_unbound(struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id)
{
    bool fits;

    if (catalog->unbound_from == catalog->unbound_to)
        catalog->unbound_from = catalog->unbound_to = 0;
    fits = bh_vec_reserve(&catalog->unbound, &catalog->unbound_capacity, (size_t)catalog->unbound_to + 1,
                          BH_CATALOG_NAMES_MAX);
    BH_ASSERT(fits);
    catalog->unbound[catalog->unbound_to++] = (struct unbound){ kind, id };
    catalog->names[kind].items[id].waits = true;
}

static bh_rc
catalog_give_id(struct bh_catalog *catalog, struct bh_name_row *row, struct bh_err *err)
{
    uint32_t count = catalog->names[row->kind].count;
    bh_rc rc = catalog->crypto->random(row->key.bytes, sizeof row->key.bytes, err);

    row->id = count ? count : 1;
    if (rc != BH_OK)
        return rc;
    catalog_load_name(catalog, row);
    catalog_queue_unbound(catalog, row->kind, row->id);
    return BH_OK;
}

bh_rc
bh_catalog_name(struct bh_catalog *catalog, enum bh_name_kind kind, const char *text, uint32_t *ret_id,
                struct bh_err *err)
{
    struct bh_name_row row = { .kind = kind, .name = text };
    struct catalog_name *slot = catalog_find_name(catalog, kind, text, &row.id);
    bh_rc rc = BH_OK;

    BH_ASSERT(!catalog_is_erased(text));
    if (!slot)
        rc = catalog_give_id(catalog, &row, err);
    else if (slot->gone) {
        slot->gone = false;
        if (!slot->waits)
            rc = catalog_put_name(catalog, kind, row.id, err);
    }
    *ret_id = row.id;
    return rc;
}

uint32_t
bh_catalog_find(const struct bh_catalog *catalog, enum bh_name_kind kind, const char *text)
{
    uint32_t id;
    const struct catalog_name *slot = catalog_find_name(catalog, kind, text, &id);

    return slot && !slot->gone ? id : 0;
}

uint32_t
bh_catalog_known(const struct bh_catalog *catalog, enum bh_name_kind kind, const char *text)
{
    uint32_t id;

    return catalog_find_name(catalog, kind, text, &id) ? id : 0;
}

const char *
bh_catalog_name_of(const struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id)
{
    const struct names *names = &catalog->names[kind];

    return id < names->count ? names->items[id].text : NULL;
}

uint32_t
bh_catalog_last(const struct bh_catalog *catalog, enum bh_name_kind kind)
{
    const struct names *names = &catalog->names[kind];

    return names->count ? names->count - 1 : 0;
}

const char *
bh_catalog_next(const struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t *cursor, uint32_t *ret_id)
{
    const struct names *names = &catalog->names[kind];

    while (++*cursor < names->count) {
        const struct catalog_name *slot = &names->items[*cursor];

        if (slot->text && !slot->gone) {
            *ret_id = *cursor;
            return slot->text;
        }
    }
    return NULL;
}

bh_rc
bh_catalog_drop(struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id, struct bh_err *err)
{
    struct catalog_name *slot = catalog_slot_of(&catalog->names[kind], id);

    slot->gone = true;
    return slot->waits ? BH_OK : catalog_put_name(catalog, kind, id, err);
}

/* ---- binding ---- */

uint32_t
bh_catalog_unbound(const struct bh_catalog *catalog)
{
    return catalog->unbound_to - catalog->unbound_from;
}

bh_rc
bh_catalog_bind(struct bh_catalog *catalog, uint32_t max, uint64_t seq, struct bh_buf *list,
                struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (; rc == BH_OK && max > 0 && bh_catalog_unbound(catalog) > 0; max--) {
        const struct unbound next = catalog->unbound[catalog->unbound_from++];
        struct catalog_name *slot = &catalog->names[next.kind].items[next.id];
        struct bh_binding binding = { .kind = next.kind, .id = next.id };

        bh_binding_commit(catalog->crypto, &binding, slot->key.bytes, slot->text);
        bh_binding_put(list, &binding);
        slot->waits = false;
        if (slot->record == 0) /* else it is bound again, as it was */
            slot->record = seq;
        rc = catalog_put_name(catalog, next.kind, next.id, err);
    }
    return rc;
}

static bool
catalog_has_key(const struct catalog_name *slot)
{
    static const struct bh_digest none;

    return memcmp(&slot->key, &none, sizeof none) != 0;
}

bh_rc
bh_catalog_rebind(struct bh_catalog *catalog, bool fresh, uint32_t *ret_count, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    *ret_count = 0;
    for (uint32_t kind = 0; kind < BH_NAME_KINDS; kind++)
        for (uint32_t id = 1; rc == BH_OK && id < catalog->names[kind].count; id++) {
            struct catalog_name *slot = &catalog->names[kind].items[id];

            if (!slot->text || catalog_is_erased(slot->text) || slot->waits)
                continue;
            if (fresh && !catalog_has_key(slot))
                rc = catalog->crypto->random(slot->key.bytes, sizeof slot->key.bytes, err);
            if (rc != BH_OK || !catalog_has_key(slot))
                continue;
            catalog_queue_unbound(catalog, (enum bh_name_kind)kind, id);
            ++*ret_count;
        }
    return rc;
}

bh_rc
bh_catalog_erase(struct bh_catalog *catalog, enum bh_name_kind kind, uint32_t id, uint64_t seq,
                 struct bh_err *err)
{
    struct catalog_name *slot = catalog_slot_of(&catalog->names[kind], id);
    char *blank = strdup(BH_ERASED);

    BH_ASSERT(blank && slot->text && !catalog_is_erased(slot->text));
    if (!slot->gone || slot->waits) {
        free(blank);
        return bh_err_set(err, BH_CONFLICT, "\"%.80s\" is in use", slot->text);
    }
    free(slot->text);
    slot->text = blank;
    slot->key = (struct bh_digest){ { 0 } };
    slot->record = seq;
    return catalog_put_name(catalog, kind, id, err);
}

const struct bh_site *
bh_catalog_site(const struct bh_catalog *catalog)
{
    return &catalog->site;
}

const char *
bh_catalog_site_text(const struct bh_catalog *catalog)
{
    return catalog->site_text;
}

uint64_t
bh_catalog_revision(const struct bh_catalog *catalog)
{
    return catalog->revision;
}

static bh_rc
catalog_put_revision(struct bh_catalog *catalog, uint64_t revision, struct bh_err *err)
{
    char text[24];

    catalog->revision = revision;
    snprintf(text, sizeof text, "%" PRIu64, revision);
    return catalog->store.ops->put_meta(catalog->store.self, "site_revision", text, err);
}

bh_rc
bh_catalog_set_site(struct bh_catalog *catalog, const char *text, const struct bh_digest *digest,
                    uint64_t revision, struct bh_err *err)
{
    char hex[65];
    struct bh_buf buf;
    const struct bh_text_row row = { .digest = *digest, .text = { text, strlen(text) } };
    bh_rc rc = catalog->store.ops->put_text(catalog->store.self, &row, err);

    bh_buf_init_fixed(&buf, hex, sizeof hex);
    bh_buf_put_hex(&buf, digest->bytes, sizeof digest->bytes);
    if (rc != BH_OK)
        return rc;
    rc = catalog->store.ops->put_meta(catalog->store.self, "site", bh_buf_text(&buf), err);
    if (rc != BH_OK)
        return rc;
    rc = catalog_put_revision(catalog, revision, err);
    if (rc != BH_OK)
        return rc;
    return catalog_parse_site(catalog, text, err);
}

void
bh_catalog_publish(struct bh_catalog *catalog, struct bh_published *fresh)
{
    struct bh_published *old;

    bh_mutex_lock(&catalog->mutex);
    old = catalog->published;
    catalog->published = fresh;
    bh_mutex_unlock(&catalog->mutex);
    bh_published_put(old);
}

const struct bh_directory *
bh_catalog_get(struct bh_catalog *catalog)
{
    const struct bh_directory *directory;

    bh_mutex_lock(&catalog->mutex);
    directory = bh_published_get(catalog->published);
    bh_mutex_unlock(&catalog->mutex);
    return directory;
}

void
bh_catalog_put(struct bh_catalog *catalog, const struct bh_directory *directory)
{
    bh_published_put(bh_published_of(directory));
}
