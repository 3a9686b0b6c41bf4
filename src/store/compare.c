#include "store/compare.h"

#include <string.h>

#include "audit/claims.h"
#include "ports/crypto.h"

enum { PAGE = 10000 };

struct walk {
    const struct bh_crypto_ops *crypto;
    struct bh_claims *claims;
    uint64_t last_job;
    uint32_t count;              /* jobs of the present page */
    bh_rc rc;
    struct bh_err *err;
};

static bool
see_name(void *self, const struct bh_name_row *row)
{
    struct walk *walk = self;
    const struct bh_claimed_name claimed = { .kind = (uint32_t)row->kind, .id = row->id,
                                             .name = row->name, .key = row->key.bytes };

    walk->rc = bh_claims_name(walk->claims, &claimed, walk->err);
    return walk->rc == BH_OK;
}

static bool
see_job(void *self, const struct bh_job_row *row)
{
    struct walk *walk = self;
    const struct bh_claimed_job claimed = {
        .job = row->job, .tenant_id = row->tenant_id, .principal_id = row->principal_id,
        .count = row->count, .tenant = row->tenant, .principal = row->principal,
        .sku = row->sku, .state = row->state, .reason = row->reason,
        .submitted_ns = row->submitted_ns, .started_ns = row->started_ns,
        .ended_ns = row->ended_ns, .exit_status = row->exit_status, .spec = row->spec.bytes,
    };

    bh_claims_job(walk->claims, &claimed);
    walk->last_job = row->job;
    walk->count++;
    return true;
}

static bool
see_text(void *self, uint64_t number, const struct bh_digest *digest, const char *text, size_t length)
{
    struct walk *walk = self;
    uint8_t found[32];

    (void)number;
    walk->crypto->sha256(text, length, "", 0, found);
    bh_claims_text(walk->claims, digest->bytes, found);
    return true;
}

static bh_rc
see_jobs(const struct bh_store *store, struct walk *walk)
{
    bh_rc rc = BH_OK;

    do {
        const struct bh_job_filter filter = { .after = walk->last_job, .limit = PAGE };

        walk->count = 0;
        rc = store->ops->list_jobs(store->self, &filter, see_job, walk, walk->err);
    } while (rc == BH_OK && walk->count == PAGE);
    return rc;
}

bh_rc
bh_store_compare(const struct bh_store *store, const struct bh_crypto_ops *crypto,
                 struct bh_claims *claims, struct bh_claims_result *ret_result,
                 struct bh_err *err)
{
    struct walk walk = { .crypto = crypto, .claims = claims, .err = err };
    bh_rc rc = store->ops->list_names(store->self, see_name, &walk, err);

    if (rc == BH_OK)
        rc = walk.rc;
    if (rc == BH_OK)
        rc = see_jobs(store, &walk);
    if (rc == BH_OK)
        rc = store->ops->list_texts(store->self, 0, see_text, &walk, err);
    if (rc == BH_OK)
        bh_claims_end(claims, BH_CLAIMS_NAMES | BH_CLAIMS_JOBS | BH_CLAIMS_TEXTS, ret_result);
    return rc;
}
