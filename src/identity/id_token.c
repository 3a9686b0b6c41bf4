#include "identity/id_token.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"
#include "identity/secret.h"
#include "identity/signature.h"

struct token_reading {
    bh_json_value claims;
    enum bh_jws_alg alg;
    const struct bh_id_token_rules *rules;
    struct bh_arena *arena;
    struct bh_id_token *token;
};

static enum bh_identity_fault
token_check_issuer(const struct token_reading *r)
{
    return bh_claims_issuer(r->claims, r->rules->issuer);
}

static enum bh_identity_fault
token_check_audience(const struct token_reading *r)
{
    return bh_claims_audience(r->claims, r->rules->client, &r->rules->audiences);
}

static enum bh_identity_fault
token_check_times(const struct token_reading *r)
{
    enum bh_identity_fault fault = bh_claims_times(r->claims, &r->rules->when);

    if (fault == BH_FAULT_NONE) {
        r->token->expires_s = bh_json_number(bh_json_get(r->claims, "exp"), 0);
        r->token->issued_s = bh_json_number(bh_json_get(r->claims, "iat"), 0);
    }
    return fault;
}

static enum bh_identity_fault
token_check_nonce(const struct token_reading *r)
{
    const char *nonce = bh_json_text(bh_json_get(r->claims, "nonce"), NULL);

    if (!r->rules->nonce)
        return BH_FAULT_NONE;
    if (!nonce)
        return BH_FAULT_NONCE_MISSING;
    return bh_secret_equal(nonce, r->rules->nonce) ? BH_FAULT_NONE : BH_FAULT_NONCE_WRONG;
}

static enum bh_identity_fault
token_check_subject(const struct token_reading *r)
{
    if (!bh_json_get(r->claims, "sub"))
        return BH_FAULT_SUB_MISSING;
    if (!bh_claim_text(r->claims, "sub", r->token->subject))
        return BH_FAULT_SUB_INVALID;
    if (r->rules->subject && strcmp(r->rules->subject, r->token->subject) != 0)
        return BH_FAULT_SUB_CHANGED;
    return BH_FAULT_NONE;
}

/* at_hash or c_hash, where the token has it and what it is the hash of is here. */
static bool
token_hash_fits(const struct token_reading *r, const char *claim, const char *text)
{
    bh_json_value value = bh_json_get(r->claims, claim);
    char want[BH_HALF_HASH_MAX];

    if (!value || !text)
        return true;
    bh_signature_half_hash(r->alg, text, want);
    return bh_secret_equal(bh_json_text(value, ""), want);
}

static enum bh_identity_fault
token_check_hashes(const struct token_reading *r)
{
    if (!token_hash_fits(r, "at_hash", r->rules->access_token))
        return BH_FAULT_AT_HASH;
    return token_hash_fits(r, "c_hash", r->rules->code) ? BH_FAULT_NONE : BH_FAULT_C_HASH;
}

static enum bh_identity_fault
token_check_auth_time(const struct token_reading *r)
{
    const struct bh_claims_when *when = &r->rules->when;
    uint64_t now_s = when->now / BH_NS_PER_S, auth_s;

    if (!bh_claim_seconds(r->claims, "auth_time", &auth_s) || auth_s > now_s + when->skew_s)
        return BH_FAULT_AUTH_TIME_INVALID;
    if (r->rules->max_age && !bh_json_get(r->claims, "auth_time"))
        return BH_FAULT_AUTH_TIME_MISSING;
    if (r->rules->max_age && auth_s + r->rules->max_age_s + when->skew_s < now_s)
        return BH_FAULT_AUTH_TIME_OLD;
    r->token->auth_s = auth_s;
    return BH_FAULT_NONE;
}

static enum bh_identity_fault
token_check_acr(const struct token_reading *r)
{
    const struct bh_texts *wanted = &r->rules->acr;

    if (!bh_claim_text(r->claims, "acr", r->token->acr))
        return BH_FAULT_ACR_WRONG;
    for (uint32_t i = 0; i < wanted->count; i++)
        if (strcmp(wanted->items[i], r->token->acr) == 0)
            return BH_FAULT_NONE;
    return wanted->count ? BH_FAULT_ACR_WRONG : BH_FAULT_NONE;
}

/* A list of texts, kept in the arena; false for anything else. */
static bool
token_read_texts(struct bh_arena *arena, bh_json_value list, struct bh_texts *ret_texts)
{
    size_t count = bh_json_count(list);
    const char **items = bh_arena_alloc(arena, (count + 1) * sizeof *items);

    if (!items || (list && bh_json_kind(list) != BH_JSON_ARRAY))
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *text = bh_json_text(bh_json_at(list, i), NULL);

        items[i] = text ? bh_arena_strdup(arena, text) : NULL;
        if (!items[i])
            return false;
    }
    *ret_texts = (struct bh_texts){ items, (uint32_t)count };
    return true;
}

static enum bh_identity_fault
token_check_amr(const struct token_reading *r)
{
    bh_json_value amr = bh_json_get(r->claims, "amr");

    if (bh_json_count(amr) > BH_ID_AMR_MAX || !token_read_texts(r->arena, amr, &r->token->amr))
        return BH_FAULT_AMR_INVALID;
    for (uint32_t i = 0; r->rules->amr && i < r->token->amr.count; i++)
        if (strcmp(r->token->amr.items[i], r->rules->amr) == 0)
            return BH_FAULT_NONE;
    return r->rules->amr ? BH_FAULT_AMR_WRONG : BH_FAULT_NONE;
}

static enum bh_identity_fault
token_check_session(const struct token_reading *r)
{
    return bh_claim_text(r->claims, "sid", r->token->session) ? BH_FAULT_NONE : BH_FAULT_SID_INVALID;
}

/* Groups that the provider left out as too many must not look like none. */
static enum bh_identity_fault
token_check_groups(const struct token_reading *r)
{
    bh_json_value elsewhere = bh_json_get(r->claims, "_claim_names"), groups;

    if (!r->rules->groups)
        return BH_FAULT_NONE;
    if (bh_json_get(elsewhere, r->rules->groups))
        return BH_FAULT_GROUPS_ELSEWHERE;
    groups = bh_json_get(r->claims, r->rules->groups);
    if (bh_json_count(groups) > BH_ID_GROUPS_MAX)
        return BH_FAULT_GROUPS_MANY;
    return token_read_texts(r->arena, groups, &r->token->groups) ? BH_FAULT_NONE : BH_FAULT_GROUPS_INVALID;
}

/* In the order of OpenID Connect Core 3.1.3.7. */
static enum bh_identity_fault (*const checks[])(const struct token_reading *r) = {
    token_check_issuer,  token_check_audience, token_check_times,     token_check_nonce,
    token_check_subject, token_check_hashes,   token_check_auth_time, token_check_acr,
    token_check_amr,     token_check_session,  token_check_groups,
};

enum bh_identity_fault
bh_id_token_check(bh_json_value claims, enum bh_jws_alg alg, const struct bh_id_token_rules *rules,
                  struct bh_arena *arena, struct bh_id_token *ret_token)
{
    struct bh_id_token token = { 0 };
    struct token_reading reading = { claims, alg, rules, arena, &token };
    enum bh_identity_fault fault = BH_FAULT_NONE;

    if (bh_json_kind(claims) != BH_JSON_OBJECT)
        return BH_FAULT_PAYLOAD_JSON;
    for (size_t i = 0; i < BH_COUNT(checks) && fault == BH_FAULT_NONE; i++)
        fault = checks[i](&reading);
    if (fault == BH_FAULT_NONE)
        *ret_token = token;
    return fault;
}

enum bh_identity_fault
bh_id_token_read(const char *text, const struct bh_jws_trust *trust, const struct bh_id_token_rules *rules,
                 struct bh_arena *arena, struct bh_id_token *ret_token)
{
    BH_AUTO(bh_buf_fini) struct bh_buf payload = { .max = BH_JWS_BYTES_MAX };
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    enum bh_identity_fault fault;
    struct bh_jws jws;
    struct bh_err err;

    fault = bh_jws_read(text, strlen(text), trust, &jws, &payload);
    if (fault == BH_FAULT_NONE && jws.type[0] && strcasecmp(jws.type, "JWT") != 0)
        fault = BH_FAULT_HEADER_TYPE;
    if (fault == BH_FAULT_NONE && bh_json_parse(payload.bytes, payload.length, &json, &err) != BH_OK)
        fault = BH_FAULT_PAYLOAD_JSON;
    if (fault == BH_FAULT_NONE)
        fault = bh_id_token_check(bh_json_root(json), jws.alg, rules, arena, ret_token);
    return fault;
}
