#include "audit/claims.h"

#include <inttypes.h>
#include <string.h>

#include "audit/claims_internal.h"
#include "ports/crypto.h"

enum { FACTS_BYTES_MAX = 4096, NUMBER_SHIFT = 11 };

uint64_t
bh_token_number(const uint8_t secret[32])
{
    uint64_t number;

    memcpy(&number, secret, sizeof number);
    return number >> NUMBER_SHIFT;
}

/* ---- the records ---- */

static bool
claims_tokens_is_about(const struct bh_record *record, const char *verb, const char *type)
{
    return record->dec.allow && record->verb && strcmp(record->verb, verb) == 0
           && strcmp(record->obj.type, type) == 0;
}

static void
claims_tokens_fill(const struct bh_claims *claims, struct token_claim *token, const char *ev_json)
{
    const struct bh_slice whole = { ev_json, strlen(ev_json) };
    struct bh_slice facts;

    claims->crypto->sha256(whole.text, whole.length, "", 0, token->digest);
    if (!bh_slice_get(whole, "token", &facts))
        return;
    token->filled = true;
    token->owner = (uint32_t)bh_claim_number(facts, "principal");
    token->expires_ns = bh_claim_number(facts, "expires_ns");
}

static bh_rc
claims_tokens_read_forgetting(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    struct owner_claim *owner;
    uint8_t key[32];

    bh_claim_key(key, record->obj.id, 0);
    owner = bh_claim_add(claims, &claims->owners, key, sizeof *owner);
    if (!owner)
        return bh_claims_full(err);
    owner->claim.record = record->seq;
    owner->at_ns = record->ts_ns;
    return BH_OK;
}

bh_rc
bh_claims_read_token(struct bh_claims *claims, const struct bh_record *record, struct bh_err *err)
{
    bool makes = claims_tokens_is_about(record, "token.create", "token");
    struct token_claim *token;
    uint8_t key[32];

    if (claims_tokens_is_about(record, "token.forget", "account"))
        return claims_tokens_read_forgetting(claims, record, err);
    if (!makes && !claims_tokens_is_about(record, "token.revoke", "token"))
        return BH_OK;
    bh_claim_key(key, record->obj.id, 0);
    token = bh_claim_add(claims, &claims->tokens, key, sizeof *token);
    if (!token)
        return bh_claims_full(err);
    if (!makes) {
        token->revoked = true;
        token->revoked_by = record->seq;
        return BH_OK;
    }
    token->made = true;
    token->claim.record = record->seq;
    if (bh_token_facts_is(record->ev_json))
        claims_tokens_fill(claims, token, record->ev_json);
    return BH_OK;
}

/* ---- the rows ---- */

/* Records of before did not say what it may. */
static bool
tokens_is_made_so(const struct bh_claims *claims, const struct token_claim *token,
                  const struct bh_claimed_token *row)
{
    char memory[FACTS_BYTES_MAX];
    uint8_t digest[32];
    struct bh_buf text;

    if (!token->filled)
        return true;
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_token_facts_put(&text, &row->facts);
    claims->crypto->sha256(text.bytes, text.length, "", 0, digest);
    return !text.overflow && memcmp(digest, token->digest, sizeof digest) == 0;
}

void
bh_claims_token(struct bh_claims *claims, const struct bh_claimed_token *row)
{
    struct token_claim *token;
    uint8_t key[32];

    bh_claim_key(key, row->number, 0);
    token = bh_claim_find(&claims->tokens, key);
    if (token && token->claim.seen)
        bh_claims_report(claims, "token %s stands twice", row->id);
    if (token)
        token->claim.seen = true;
    if ((!token || !token->made) && (bh_claims_has_lost(claims) || claims->older))
        claims->result.tokens.unbound++;
    else if (!token || !token->made)
        bh_claims_report(claims, "token %s is in the table, and no record made it", row->id);
    else if (!tokens_is_made_so(claims, token, row))
        bh_claims_report(claims, "token %s: its owner, scopes or end are not those of record %" PRIu64,
                         row->id, token->claim.record);
    else if (token->revoked && !row->revoked)
        bh_claims_report(claims, "token %s was revoked by record %" PRIu64 ", but its row does not say so",
                         row->id, token->revoked_by);
    else if (!token->revoked && row->revoked)
        bh_claims_report(claims, "token %s is revoked in the table, and no record says so", row->id);
    else if (!token->filled)
        claims->result.tokens.unbound++;
    else
        claims->result.tokens.good++;
}

/* ---- what is missing ---- */

/* The store forgets tokens that were revoked or had expired; a record says so of their owner's. */
bool
bh_claims_is_forgotten(const struct bh_claims *claims, const struct token_claim *token)
{
    const struct owner_claim *owner;
    uint8_t key[32];

    bh_claim_key(key, token->owner, 0);
    owner = bh_claim_find(&claims->owners, key);
    return owner && owner->claim.record > token->claim.record
           && ((token->revoked && token->revoked_by < owner->claim.record)
               || token->expires_ns <= owner->at_ns);
}

void
bh_claims_end_tokens(struct bh_claims *claims)
{
    for (size_t i = 0; i < claims->tokens.capacity; i++) {
        const struct token_claim *token = claims->tokens.slots[i];
        uint64_t number;

        if (!token || token->claim.seen || !token->made)
            continue;
        memcpy(&number, token->claim.key, sizeof number);
        if (!token->filled) /* whose it was is not known, nor how long it was good */
            claims->result.tokens.unbound++;
        else if (!bh_claims_is_forgotten(claims, token))
            bh_claims_report(claims,
                             "token number %" PRIu64 " is missing in the table; record %" PRIu64 " made it",
                             number, token->claim.record);
    }
}
