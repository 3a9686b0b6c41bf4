#include "daemon/revisions.h"

#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/time.h"

bh_rc
bh_revision_guard(const struct bh_core *core, uint64_t wanted, struct bh_err *err)
{
    uint64_t present = bh_catalog_revision(core->catalog);
    struct bh_arena *arena;
    struct bh_revision revision = { .number = 0 };
    char memory[80];
    struct bh_buf when;
    const char *by;

    if (wanted == present)
        return BH_OK;
    arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    bh_buf_init_fixed(&when, memory, sizeof memory);
    if (bh_revision_read(&core->store, present, arena, &revision, err) == BH_OK) {
        bh_buf_puts(&when, ", applied ");
        bh_time_put_utc(&when, revision.at_ns);
    }
    by = bh_catalog_name_of(core->catalog, BH_NAME_PRINCIPAL, revision.principal);
    bh_err_set(err, BH_CONFLICT, "the site file is at revision %" PRIu64 "%s%s%.80s, not %" PRIu64,
               present, bh_buf_text(&when) ? memory : "", by ? " by " : "", by ? by : "", wanted);
    bh_arena_free(arena);
    return bh_err_hint(err, "see `bulkhead site diff %" PRIu64 " %" PRIu64
                            "`, take that over, apply with --revision %" PRIu64,
                       wanted, present, present);
}

/* What a walk over the revisions finds: the oldest, and whether another has its text. */
struct walk {
    struct bh_arena *arena;
    struct bh_revision oldest;
    uint32_t count;
    bool shared;
};

static bool
see_revision(void *self, const struct bh_document_row *row)
{
    struct walk *walk = self;
    struct bh_revision revision;

    if (!bh_revision_decode(row, walk->arena, &revision))
        return true;
    if (walk->count++ == 0)
        walk->oldest = revision;
    else if (memcmp(revision.digest, walk->oldest.digest, sizeof revision.digest) == 0)
        walk->shared = true;
    return true;
}

static bh_rc
drop_oldest(struct bh_core *core, const struct walk *walk, struct bh_err *err)
{
    char key[BH_REVISION_KEY_SIZE];
    const struct bh_document_row gone = { .kind = BH_DOCUMENT_REVISION, .key = key, .value = NULL };
    struct bh_digest digest;
    bh_rc rc;

    bh_revision_key(walk->oldest.number, key);
    rc = core->store.ops->put_document(core->store.self, &gone, err);
    memcpy(digest.bytes, walk->oldest.digest, sizeof digest.bytes);
    if (rc == BH_OK && !walk->shared)
        rc = core->store.ops->drop_text(core->store.self, &digest, err);
    return rc;
}

/* The walk sees what is committed: within one batch there may be a few more than the bound. */
static bh_rc
keep_bound(struct bh_core *core, const struct bh_revision *newest, struct bh_err *err)
{
    const struct bh_document_filter filter = { BH_DOCUMENT_REVISION, 0 };
    struct walk walk = { .arena = bh_arena_new(BH_ARENA_DEFAULT_MAX) };
    bh_rc rc = core->store.ops->list_documents(core->store.self, &filter, see_revision, &walk, err);

    walk.shared = walk.shared
                  || memcmp(newest->digest, walk.oldest.digest, sizeof newest->digest) == 0;
    if (rc == BH_OK && walk.count >= BH_REVISIONS_MAX)
        rc = drop_oldest(core, &walk, err);
    bh_arena_free(walk.arena);
    return rc;
}

bh_rc
bh_revision_put(struct bh_core *core, const struct bh_revision *revision, struct bh_err *err)
{
    char key[BH_REVISION_KEY_SIZE], memory[256];
    struct bh_document_row row = { .kind = BH_DOCUMENT_REVISION, .key = key, .version = 1 };
    struct bh_buf value;
    bh_rc rc = keep_bound(core, revision, err);

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
