#include "store/audit.h"

#include <stdlib.h>
#include <string.h>

#include "audit/verify.h"
#include "base/assert.h"

/* Records are walked a page at a time: first their hashes, then their leaves. */
enum { PAGE = 1024 };

struct audit_walk {
    const struct bh_store *store;
    struct bh_audit_verifier *verifier;
    struct bh_digest hashes[PAGE];
    uint32_t hash_count; /* of the present page, in order from its first record */
    uint64_t first;      /* record of the present page */
    uint64_t next_checkpoint;
    char *note; /* of next_checkpoint, NULL when there are no more */
    bh_rc rc;   /* what the verifier found */
    struct bh_err *err;
};

static bool
audit_add_hash(void *self, uint64_t seq, const struct bh_digest *hash)
{
    struct audit_walk *walk = self;

    if (seq != walk->first + walk->hash_count)
        return false; /* a gap: the leaf behind it is refused by its number */
    walk->hashes[walk->hash_count++] = *hash;
    return walk->hash_count < PAGE;
}

static bool
audit_copy_note(void *self, const struct bh_checkpoint_row *row)
{
    struct audit_walk *walk = self;

    walk->next_checkpoint = row->size;
    walk->note = strdup(row->note);
    BH_ASSERT(walk->note);
    return false;
}

/* The first checkpoint of at least `size` records. */
static bh_rc
audit_find_checkpoint(struct audit_walk *walk, uint64_t size)
{
    free(walk->note);
    walk->note = NULL;
    return walk->store->ops->list_checkpoints(walk->store->self, size, audit_copy_note, walk, walk->err);
}

static bool
audit_at_checkpoint(const struct audit_walk *walk)
{
    return walk->note && walk->next_checkpoint == walk->verifier->frontier.size;
}

/* Of records before `end` that stand there with their hashes alone, take those; up to the next
 * checkpoint. */
static void
audit_take_hashes(struct audit_walk *walk, uint64_t end)
{
    const struct bh_merkle_frontier *tree = &walk->verifier->frontier;

    while (walk->rc == BH_OK && tree->size < end && tree->size - walk->first < walk->hash_count
           && !audit_at_checkpoint(walk))
        walk->rc =
            bh_audit_verifier_hash(walk->verifier, walk->hashes[tree->size - walk->first].bytes, walk->err);
}

static bool
audit_take_leaf(void *self, uint64_t seq, const char *leaf, size_t length)
{
    struct audit_walk *walk = self;
    uint64_t at;

    audit_take_hashes(walk, seq);
    if (walk->rc != BH_OK || audit_at_checkpoint(walk))
        return false;
    at = walk->verifier->frontier.size - walk->first;
    walk->rc = bh_audit_verifier_record(walk->verifier, leaf, length,
                                        at < walk->hash_count ? walk->hashes[at].bytes : NULL, walk->err);
    return walk->rc == BH_OK;
}

/* Feed records up to the next checkpoint or the end of the page; `ret_any` says whether
 * there were any. */
static bh_rc
audit_take_records(struct audit_walk *walk, bool *ret_any)
{
    const struct bh_store *store = walk->store;
    uint64_t first = walk->verifier->frontier.size;
    bh_rc rc;

    walk->first = first;
    walk->hash_count = 0;
    rc = store->ops->list_hashes(store->self, first, audit_add_hash, walk, walk->err);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_records(store->self, first, first + PAGE - 1, audit_take_leaf, walk, walk->err);
    if (rc != BH_OK)
        return rc;
    audit_take_hashes(walk, UINT64_MAX);
    *ret_any = walk->verifier->frontier.size > first;
    return walk->rc;
}

static bh_rc
audit_take_checkpoint(struct audit_walk *walk)
{
    uint64_t size = walk->verifier->frontier.size;
    bh_rc rc;

    if (!walk->note || walk->next_checkpoint != size)
        return BH_OK;
    rc = bh_audit_verifier_checkpoint(walk->verifier, walk->note, walk->err);
    return rc == BH_OK ? audit_find_checkpoint(walk, size + 1) : rc;
}

static bool
audit_read_size(void *self, const struct bh_checkpoint_row *row)
{
    *(uint64_t *)self = row->size;
    return true;
}

/* How many records the store must hold: those of its newest checkpoint, and those up to its newest record,
 * should one be missing in between.  Asked before the walk, because bulkheadd may write meanwhile. */
static bh_rc
audit_find_expected(struct audit_walk *walk, uint64_t *ret_expected)
{
    const struct bh_store *store = walk->store;
    uint64_t last, expected = 0;
    bh_rc rc = store->ops->list_checkpoints(store->self, 0, audit_read_size, &expected, walk->err);

    if (rc != BH_OK)
        return rc;
    rc = store->ops->last_record(store->self, &last, walk->err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    if (rc == BH_OK && last + 1 > expected)
        expected = last + 1;
    *ret_expected = expected;
    return BH_OK;
}

static bh_rc
audit_walk_all(struct audit_walk *walk)
{
    uint64_t expected;
    bool any = true;
    bh_rc rc = audit_find_expected(walk, &expected);

    if (rc != BH_OK)
        return rc;
    rc = audit_find_checkpoint(walk, 0);
    if (rc != BH_OK)
        return rc;
    while (any) {
        rc = audit_take_checkpoint(walk);
        if (rc != BH_OK)
            return rc;
        rc = audit_take_records(walk, &any);
        if (rc != BH_OK)
            return rc;
    }
    return bh_audit_verifier_end(walk->verifier, expected, walk->err);
}

bh_rc
bh_store_audit(const struct bh_store *store, struct bh_audit_verifier *verifier, struct bh_err *err)
{
    struct audit_walk *walk = calloc(1, sizeof *walk);
    bh_rc rc;

    BH_ASSERT(walk);
    walk->store = store;
    walk->verifier = verifier;
    walk->err = err;
    rc = audit_walk_all(walk);
    free(walk->note);
    free(walk);
    return rc;
}
