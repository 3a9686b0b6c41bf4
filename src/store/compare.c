#include "store/compare.h"

#include <string.h>

#include "audit/claims.h"
#include "ports/crypto.h"

enum { PAGE = 10000 };

static const uint32_t every_table = BH_CLAIMS_NAMES | BH_CLAIMS_JOBS | BH_CLAIMS_TEXTS | BH_CLAIMS_DOCUMENTS
                                    | BH_CLAIMS_KEYS | BH_CLAIMS_TOKENS;

struct compare_walk {
    const struct bh_crypto_ops *crypto;
    struct bh_claims *claims;
    uint64_t last_job;
    uint32_t count;               /* jobs of the present page */
    enum bh_claimed_kind claimed; /* of the documents that are listed */
    bh_rc rc;
    struct bh_err *err;
};

static bool
compare_name(void *self, const struct bh_name_row *row)
{
    struct compare_walk *walk = self;
    const struct bh_claimed_name claimed = {
        .kind = (uint32_t)row->kind, .id = row->id, .name = row->name, .key = row->key.bytes
    };

    walk->rc = bh_claims_name(walk->claims, &claimed, walk->err);
    return walk->rc == BH_OK;
}

static bool
compare_job(void *self, const struct bh_job_row *row)
{
    struct compare_walk *walk = self;
    const struct bh_claimed_job claimed = {
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
        .spec = row->spec.bytes,
        .priority = row->priority,
        .gang = row->gang,
        .checkpoint_signal = row->checkpoint_signal,
        .kind = row->kind,
        .contract = row->contract,
        .time_limit_ns = row->time_limit_ns,
        .deadline_ns = row->deadline_ns,
        .ended_by = row->ended_by,
        .place = { row->lease, row->restarts, row->node, row->partitions, row->grade },
    };

    bh_claims_job(walk->claims, &claimed);
    walk->last_job = row->job;
    walk->count++;
    if (row->misfiled)
        bh_claims_differ(walk->claims, "a job is listed among those that ended, or have not, wrongly");
    return true;
}

static bool
compare_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text, size_t length)
{
    struct compare_walk *walk = self;
    uint8_t found[32];

    walk->crypto->sha256(text, length, "", 0, found);
    bh_claims_text(walk->claims, &(struct bh_claimed_text){ digest->bytes, found, number, false });
    return true;
}

/* A document of a kind that records have digests of. */
static bool
compare_document(void *self, const struct bh_document_row *row)
{
    struct compare_walk *walk = self;
    const struct bh_claimed_document claimed = { walk->claimed, row->key, row->value };

    if (row->version != 1 || row->principal_id != 0)
        bh_claims_differ(walk->claims, "a document that never changes was changed, or has an owner");
    bh_claims_document(walk->claims, &claimed);
    return true;
}

static bool
compare_key(void *self, const struct bh_key_row *row)
{
    static const uint8_t none[BH_KEY_WRAPPED_BYTES];
    struct compare_walk *walk = self;
    const struct bh_claimed_key claimed = {
        .id = row->id,
        .facts = { row->kind, row->tenant_id, row->month, row->created_ns },
        .destroyed_ns = row->shredded_ns,
        .empty = memcmp(row->wrapped, none, sizeof none) == 0,
    };

    walk->rc = bh_claims_key(walk->claims, &claimed, walk->err);
    return walk->rc == BH_OK;
}

static bool
compare_token(void *self, const struct bh_token_row *row)
{
    struct compare_walk *walk = self;
    const struct bh_claimed_token claimed = {
        .id = row->id,
        .number = bh_token_number(row->secret.bytes),
        .facts = { row->expires_ns, row->principal_id, row->scopes },
        .revoked = row->revoked,
    };

    bh_claims_token(walk->claims, &claimed);
    return true;
}

static bh_rc
compare_document_list(const struct bh_store *store, struct compare_walk *walk)
{
    static const struct {
        enum bh_document_kind kind;
        enum bh_claimed_kind claimed;
    } kinds[] = {
        { BH_DOCUMENT_RECEIPT, BH_CLAIMED_RECEIPT },
        { BH_DOCUMENT_REVISION, BH_CLAIMED_REVISION },
        { BH_DOCUMENT_IMAGE, BH_CLAIMED_IMAGE },
    };
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(kinds); i++) {
        const struct bh_document_filter filter = { kinds[i].kind, 0 };

        walk->claimed = kinds[i].claimed;
        rc = store->ops->list_documents(store->self, &filter, compare_document, walk, walk->err);
    }
    return rc;
}

/* BH_OK with *ret_value NULL: there is none. */
static bh_rc
compare_read_meta(const struct bh_store *store, const char *key, struct bh_arena *arena,
                  const char **ret_value, struct bh_err *err)
{
    bh_rc rc = store->ops->get_meta(store->self, key, arena, ret_value, err);

    if (rc != BH_NOT_FOUND)
        return rc;
    *ret_value = NULL;
    return BH_OK;
}

static bh_rc
compare_site(const struct bh_store *store, struct compare_walk *walk)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    const char *digest, *revision;
    bh_rc rc = compare_read_meta(store, "site", arena, &digest, walk->err);

    if (rc != BH_OK)
        return rc;
    rc = compare_read_meta(store, "site_revision", arena, &revision, walk->err);
    if (rc != BH_OK)
        return rc;
    bh_claims_site(walk->claims, digest, revision);
    return BH_OK;
}

static bh_rc
compare_job_list(const struct bh_store *store, struct compare_walk *walk)
{
    bh_rc rc = BH_OK;

    do {
        const struct bh_job_filter filter = { .after = walk->last_job, .limit = PAGE };

        walk->count = 0;
        rc = store->ops->list_jobs(store->self, &filter, compare_job, walk, walk->err);
    } while (rc == BH_OK && walk->count == PAGE);
    return rc;
}

bh_rc
bh_store_compare(const struct bh_store *store, const struct bh_crypto_ops *crypto, struct bh_claims *claims,
                 struct bh_claims_result *ret_result, struct bh_err *err)
{
    struct compare_walk walk = { .crypto = crypto, .claims = claims, .err = err };
    bh_rc rc = store->ops->check_rows(store->self, BH_STORE_ROWS_ALL, err);

    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_names(store->self, compare_name, &walk, err);
    if (rc != BH_OK)
        return rc;
    rc = walk.rc;
    if (rc != BH_OK)
        return rc;
    rc = compare_job_list(store, &walk);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_texts(store->self, 0, compare_text, &walk, err);
    if (rc != BH_OK)
        return rc;
    rc = compare_document_list(store, &walk);
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_keys(store->self, compare_key, &walk, err);
    if (rc != BH_OK)
        return rc;
    rc = walk.rc;
    if (rc != BH_OK)
        return rc;
    rc = store->ops->list_tokens(store->self, &(struct bh_token_filter){ .id = NULL }, compare_token, &walk,
                                 err);
    if (rc != BH_OK)
        return rc;
    rc = compare_site(store, &walk);
    if (rc != BH_OK)
        return rc;
    bh_claims_end(claims, every_table, ret_result);
    return BH_OK;
}
