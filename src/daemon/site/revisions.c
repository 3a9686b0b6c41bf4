#include "daemon/site/revisions.h"

#include <inttypes.h>
#include <string.h>

#include "audit/claims.h"
#include "base/json.h"
#include "base/time.h"

/* An auditor reads the records first and the revisions afterwards: what goes in between is none that
 * it wants, unless as many come as are kept above those. */
_Static_assert((int)BH_REVISIONS_MAX >= (int)BH_CLAIMS_REVISIONS_MAX + 128,
               "an auditor misses what goes while it reads");

enum { REVISIONS_BYTES_MAX = 16 << 20 };

bh_rc
bh_revision_guard(const struct bh_core *core, uint64_t wanted, struct bh_err *err)
{
    uint64_t present = bh_catalog_revision(core->catalog);
    struct bh_arena *arena;
    struct bh_revision revision = { .number = 0 };
    char memory[80];
    struct bh_buf when;
    struct bh_err unread;
    const char *by;
    bool kept;

    if (wanted == present)
        return BH_OK;
    arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    bh_buf_init_fixed(&when, memory, sizeof memory);
    if (bh_revision_read(&core->store, present, arena, &revision, err) == BH_OK) {
        bh_buf_puts(&when, ", applied ");
        bh_time_put_utc(&when, revision.at_ns);
    }
    by = bh_catalog_name_of(core->catalog, BH_NAME_PRINCIPAL, revision.principal);
    bh_err_set(err, BH_CONFLICT, "the site file is at revision %" PRIu64 "%s%s%.80s, not %" PRIu64, present,
               bh_buf_text(&when) ? memory : "", by ? " by " : "", by ? by : "", wanted);
    kept = bh_revision_read(&core->store, wanted, arena, &revision, &unread) == BH_OK;
    bh_arena_free(arena);
    if (!kept)
        return bh_err_hint(err,
                           "no revision %" PRIu64 " is kept: see `bulkhead site history`, then "
                           "apply with --revision %" PRIu64,
                           wanted, present);
    return bh_err_hint(err,
                       "see `bulkhead site diff %" PRIu64 " %" PRIu64
                       "`, take that over, apply with --revision %" PRIu64,
                       wanted, present, present);
}

/* ---- the bound ---- */

/* What a walk over the revisions finds: all that are committed, the oldest first. */
struct revisions_walk {
    struct bh_arena *arena;
    struct bh_revision *rows;
    size_t capacity, count;
    bool full;
};

static bool
revisions_grow(struct revisions_walk *walk)
{
    size_t capacity = walk->capacity ? 2 * walk->capacity : BH_REVISIONS_MAX + 1;
    struct bh_revision *wider = bh_arena_alloc(walk->arena, capacity * sizeof *wider);

    if (!wider)
        return false;
    if (walk->count > 0)
        memcpy(wider, walk->rows, walk->count * sizeof *wider);
    walk->rows = wider;
    walk->capacity = capacity;
    return true;
}

static bool
revisions_read_revision(void *self, const struct bh_document_row *row)
{
    struct revisions_walk *walk = self;

    walk->full = walk->count == walk->capacity && !revisions_grow(walk);
    if (walk->full)
        return false;
    if (bh_revision_decode(row, walk->arena, &walk->rows[walk->count]))
        walk->count++;
    return true;
}

static bool
revisions_is_same_text(const struct bh_revision *a, const struct bh_revision *b)
{
    return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* Whether one that stays has the text of that one. */
static bool
revisions_is_shared(const struct revisions_walk *walk, size_t at, const struct bh_revision *newest)
{
    bool shared = revisions_is_same_text(&walk->rows[at], newest);

    for (size_t i = at + 1; !shared && i < walk->count; i++)
        shared = revisions_is_same_text(&walk->rows[at], &walk->rows[i]);
    return shared;
}

static bh_rc
revisions_drop(struct bh_core *core, const struct bh_revision *revision, bool with_text, struct bh_err *err)
{
    char key[BH_REVISION_KEY_SIZE];
    const struct bh_document_row gone = { .kind = BH_DOCUMENT_REVISION, .key = key, .value = NULL };
    struct bh_digest digest;
    bh_rc rc;

    bh_revision_key(revision->number, key);
    rc = core->store.ops->put_document(core->store.self, &gone, err);
    memcpy(digest.bytes, revision->digest, sizeof digest.bytes);
    if (rc != BH_OK)
        return rc;
    if (with_text)
        return core->store.ops->drop_text(core->store.self, &digest, err);
    return BH_OK;
}

/* Whether the open batch has a revision already, which the walk does not see. */
static bool
revisions_is_second(const struct bh_core *core, const struct revisions_walk *walk)
{
    return walk->count > 0 && bh_catalog_revision(core->catalog) > walk->rows[walk->count - 1].number;
}

/* The walk sees what is committed, so only the first of a batch drops: a later one could take the
 * text of one before it.  What they leave above the bound goes with the next batch. */
static bh_rc
revisions_enforce_bound(struct bh_core *core, const struct bh_revision *newest, struct bh_err *err)
{
    const struct bh_document_filter filter = { .kind = BH_DOCUMENT_REVISION };
    struct revisions_walk walk = { .arena = bh_arena_new(REVISIONS_BYTES_MAX) };
    bh_rc rc =
        core->store.ops->list_documents(core->store.self, &filter, revisions_read_revision, &walk, err);

    if (rc == BH_OK && walk.full)
        rc = bh_err_set(err, BH_FULL, "the store has more revisions than there is memory for");
    if (!revisions_is_second(core, &walk))
        for (size_t i = 0; rc == BH_OK && i + BH_REVISIONS_MAX <= walk.count; i++)
            rc = revisions_drop(core, &walk.rows[i], !revisions_is_shared(&walk, i, newest), err);
    bh_arena_free(walk.arena);
    return rc;
}

bh_rc
bh_revision_put(struct bh_core *core, const struct bh_revision *revision, struct bh_err *err)
{
    char key[BH_REVISION_KEY_SIZE], memory[256];
    struct bh_document_row row = { .kind = BH_DOCUMENT_REVISION, .key = key, .version = 1 };
    struct bh_buf value;
    bh_rc rc = revisions_enforce_bound(core, revision, err);

    if (rc != BH_OK)
        return rc;
    bh_revision_key(revision->number, key);
    bh_buf_init_fixed(&value, memory, sizeof memory);
    bh_json_encode(&value, &bh_revision_fields, revision);
    row.value = bh_buf_text(&value);
    if (!row.value)
        return bh_err_set(err, BH_BUG, "a revision does not fit");
    return core->store.ops->put_document(core->store.self, &row, err);
}
