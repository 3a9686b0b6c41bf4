/* The keys that records made and destroyed, and the rows of keys. */
#include <inttypes.h>
#include <string.h>

#include "audit/claims_internal.h"
#include "base/json.h"
#include "ports/crypto.h"

enum { FACTS_TEXT_MAX = 256 };

static const struct bh_field key_rows[] = {
    BH_F(struct bh_key_facts, created_ns, BH_FIELD_NS),
    BH_F(struct bh_key_facts, kind, BH_FIELD_U32),
    BH_F(struct bh_key_facts, month, BH_FIELD_U32),
    BH_F(struct bh_key_facts, tenant_id, BH_FIELD_U32),
};
static const struct bh_fields key_fields = BH_FIELDS("key", struct bh_key_facts, key_rows);

void
bh_key_facts_digest(const struct bh_crypto_ops *crypto, const struct bh_key_facts *facts,
                    uint8_t ret_digest[32])
{
    char memory[FACTS_TEXT_MAX];
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, &key_fields, facts);
    crypto->sha256(text.bytes, text.length, "", 0, ret_digest);
}

/* ---- the records ---- */

static struct tenant_claim *
claims_keys_add_tenant(struct bh_claims *claims, uint64_t id)
{
    uint8_t key[32];

    bh_claim_key(key, id, 0);
    return bh_claim_add(claims, &claims->tenants, key, sizeof(struct tenant_claim));
}

/* The key is that tenant's; a second time it is nothing new. */
static bh_rc
claims_keys_link(struct bh_claims *claims, struct key_claim *key, uint32_t tenant, struct bh_err *err)
{
    struct tenant_claim *owner;

    if (key->linked)
        return BH_OK;
    owner = claims_keys_add_tenant(claims, tenant);
    if (!owner)
        return bh_claims_full(err);
    key->linked = true;
    key->next = owner->keys;
    owner->keys = key;
    return BH_OK;
}

bh_rc
bh_claims_add_key(struct bh_claims *claims, uint64_t id, uint32_t tenant, struct key_claim **ret_key,
                  struct bh_err *err)
{
    uint8_t of[32];

    bh_claim_key(of, id, 0);
    if (id > claims->last_key)
        claims->last_key = id;
    *ret_key = bh_claim_add(claims, &claims->keys, of, sizeof(struct key_claim));
    return *ret_key ? claims_keys_link(claims, *ret_key, tenant, err) : bh_claims_full(err);
}

static bh_rc
claims_keys_read_making(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct key_claim *key;
    bh_rc rc = bh_claims_add_key(claims, record->obj.id, record->tenant, &key, err);

    if (rc != BH_OK)
        return rc;
    key->made = true;
    key->claim.record = record->seq;
    key->made_ns = record->ts_ns;
    key->tenant = record->tenant;
    key->filled = !bh_claim_is_zero(record->text);
    memcpy(key->digest, record->text, sizeof key->digest);
    return BH_OK;
}

static bh_rc
claims_keys_read_destruction(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct key_claim *key;
    bh_rc rc = bh_claims_add_key(claims, record->obj.id, record->tenant, &key, err);

    if (rc != BH_OK)
        return rc;
    key->destroyed = true;
    key->destroyed_by = record->seq;
    key->destroyed_ns = record->ts_ns;
    return BH_OK;
}

static bh_rc
claims_keys_read_shredding(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct tenant_claim *tenant = claims_keys_add_tenant(claims, record->obj.id);

    if (!tenant)
        return bh_claims_full(err);
    tenant->shredded = true;
    tenant->claim.record = record->seq;
    return BH_OK;
}

bh_rc
bh_claims_read_keys(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    const char *verb = record->verb && record->dec.allow ? record->verb : "";
    bool of_key = strcmp(record->obj.type, "key") == 0;

    if (of_key && strcmp(verb, "key.make") == 0)
        return claims_keys_read_making(claims, record, err);
    if (of_key && strcmp(verb, "key.destroyed") == 0)
        return claims_keys_read_destruction(claims, record, err);
    if (strcmp(verb, "key.shred") == 0)
        return claims_keys_read_shredding(claims, record, err);
    return BH_OK;
}

/* ---- the rows ---- */

/* A record that says another tenant, or other facts. */
static bool
keys_is_made_so(const struct bh_claims *claims, const struct key_claim *key, const struct bh_claimed_key *row)
{
    uint8_t digest[32];

    if (row->facts.tenant_id != key->tenant)
        return false;
    if (!key->filled)
        return true;
    bh_key_facts_digest(claims->crypto, &row->facts, digest);
    return memcmp(digest, key->digest, sizeof digest) == 0;
}

/* What an export has of after the last of its records does not count yet: the time decides
 * that only where no record speaks of it. */
static bool
keys_is_later(const struct bh_claims *claims, const struct bh_claimed_key *row, uint64_t time_ns)
{
    return row->exported && time_ns >= claims->last_ts_ns && time_ns - claims->last_ts_ns < BH_CLAIMS_LATE_NS;
}

/* Rows of before have a time a little after that of the record that destroyed the key, which may be
 * the last. */
static bool
keys_is_destroyed(const struct bh_claims *claims, const struct key_claim *key,
                  const struct bh_claimed_key *row)
{
    if ((key && key->destroyed) || row->destroyed_ns == 0)
        return row->destroyed_ns || row->empty;
    return !keys_is_later(claims, row, row->destroyed_ns);
}

/* What the key's texts go by: its month, and whether it was destroyed after the last record.  Of a
 * key whose record was pruned the row alone says it; it was made before the first that is left. */
static bh_rc
date_key(struct bh_claims *claims, struct key_claim *key, const struct bh_claimed_key *row,
         struct bh_err *err)
{
    bool since =
        row->destroyed_ns && !(key && key->destroyed) && keys_is_later(claims, row, row->destroyed_ns);
    bh_rc rc = BH_OK;

    if (!key && since && claims->pruned_to > 0)
        rc = bh_claims_add_key(claims, row->id, row->facts.tenant_id, &key, err);
    if (rc != BH_OK || !key)
        return rc;
    key->destroyed_since = since;
    key->month = row->facts.month;
    key->dated = key->made ? key->filled && keys_is_made_so(claims, key, row)
                           : key->month <= bh_time_month(claims->first_ts_ns);
    return BH_OK;
}

static bool
keys_is_destroyed_then(const struct key_claim *key, const struct bh_claimed_key *row)
{
    return row->destroyed_ns >= key->destroyed_ns
           && row->destroyed_ns - key->destroyed_ns <= BH_CLAIMS_MOMENT_NS;
}

static void
judge_key(struct bh_claims *claims, const struct key_claim *key, const struct bh_claimed_key *row)
{
    bool destroyed = keys_is_destroyed(claims, key, row);

    if (!key && keys_is_later(claims, row, row->facts.created_ns))
        return;
    if ((!key || !key->made) && bh_claims_has_lost(claims))
        claims->result.keys.unbound++;
    else if (!key || !key->made)
        bh_claims_report(claims, "key %" PRIu64 " is in the table, and no record made it", row->id);
    else if (!keys_is_made_so(claims, key, row))
        bh_claims_report(claims, "key %" PRIu64 ": it is not the one that record %" PRIu64 " made", row->id,
                         key->claim.record);
    else if (key->destroyed && !(row->destroyed_ns && row->empty))
        bh_claims_report(claims,
                         "key %" PRIu64 " was destroyed by record %" PRIu64 ", but its row does not say so",
                         row->id, key->destroyed_by);
    else if (key->destroyed && !keys_is_destroyed_then(key, row))
        bh_claims_report(
            claims, "key %" PRIu64 " was destroyed by record %" PRIu64 ", at another time than its row says",
            row->id, key->destroyed_by);
    else if (!key->destroyed && destroyed)
        bh_claims_report(claims, "key %" PRIu64 " is destroyed in the table, and no record says so", row->id);
    else if (destroyed)
        claims->result.keys.erased++;
    else
        claims->result.keys.good++;
}

bh_rc
bh_claims_key(struct bh_claims *claims, const struct bh_claimed_key *row, struct bh_err *err)
{
    struct key_claim *key;
    uint8_t of[32];

    bh_claim_key(of, row->id, 0);
    key = bh_claim_find(&claims->keys, of);
    if (key && key->claim.seen && row->exported)
        bh_claims_report(claims, "key %" PRIu64 " stands twice", row->id);
    if (key)
        key->claim.seen = true;
    judge_key(claims, key, row);
    return date_key(claims, key, row, err);
}

/* ---- what is missing ---- */

void
bh_claims_end_keys(struct bh_claims *claims)
{
    for (size_t i = 0; i < claims->keys.capacity; i++) {
        const struct key_claim *key = claims->keys.slots[i];
        uint64_t id;

        if (!key || key->claim.seen || !key->made)
            continue;
        memcpy(&id, key->claim.key, sizeof id);
        bh_claims_report(claims, "key %" PRIu64 " is missing in the table; record %" PRIu64 " made it", id,
                         key->claim.record);
    }
}
