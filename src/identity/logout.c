#include "identity/logout.h"

#include <string.h>
#include <strings.h>

#include "identity/form.h"

#define EVENT "http://schemas.openid.net/event/backchannel-logout"

bh_rc
bh_logout_url(const struct bh_provider *provider, const struct bh_relying_party *client,
              const struct bh_logout_request *request, struct bh_buf *url)
{
    if (!provider->end_session[0])
        return BH_UNAVAILABLE;
    bh_buf_puts(url, provider->end_session);
    bh_form_put(url, "client_id", client->id);
    if (request->id_token_hint)
        bh_form_put(url, "id_token_hint", request->id_token_hint);
    if (request->back)
        bh_form_put(url, "post_logout_redirect_uri", request->back);
    bh_form_put(url, "state", request->state);
    return bh_buf_text(url) ? BH_OK : BH_FULL;
}

enum bh_identity_fault
bh_logout_callback(const char *state, const char *query)
{
    struct bh_form form;
    enum bh_identity_fault fault = bh_form_parse(query, strlen(query), &form);
    const char *back;

    if (fault != BH_FAULT_NONE)
        return fault;
    back = bh_form_get(&form, "state");
    if (!back)
        return BH_FAULT_STATE_MISSING;
    return bh_secret_equal(state, back) ? BH_FAULT_NONE : BH_FAULT_STATE_WRONG;
}

/* events: an object whose member of that name is an object. */
static enum bh_identity_fault
logout_check_event(bh_json_value claims)
{
    bh_json_value event = bh_json_get(bh_json_get(claims, "events"), EVENT);

    if (bh_json_kind(bh_json_get(claims, "events")) != BH_JSON_OBJECT
        || bh_json_kind(event) != BH_JSON_OBJECT)
        return BH_FAULT_LOGOUT_EVENTS;
    return bh_json_get(claims, "nonce") ? BH_FAULT_LOGOUT_NONCE : BH_FAULT_NONE;
}

static enum bh_identity_fault
logout_read_target(bh_json_value claims, struct bh_logout *logout)
{
    if (!bh_claim_text(claims, "sub", logout->subject))
        return BH_FAULT_SUB_INVALID;
    if (!bh_claim_text(claims, "sid", logout->session))
        return BH_FAULT_SID_INVALID;
    return logout->subject[0] || logout->session[0] ? BH_FAULT_NONE : BH_FAULT_LOGOUT_TARGET;
}

/* When the token would be refused for its age. */
static bh_ns
logout_end_of(bh_json_value claims, const struct bh_claims_when *when)
{
    uint64_t end_s = bh_json_number(bh_json_get(claims, "exp"), 0);
    uint64_t old_s = bh_json_number(bh_json_get(claims, "iat"), 0) + when->issued_within_s;

    if (when->issued_within_s && old_s < end_s)
        end_s = old_s;
    return (end_s + when->skew_s + 1) * BH_NS_PER_S;
}

/* The token's id enters the table until then. */
static enum bh_identity_fault
logout_remember(bh_json_value claims, const struct bh_logout_rules *rules, struct bh_logout_replay *replay)
{
    char jti[BH_CLAIM_TEXT_MAX + 1], id[BH_SECRET_TEXT], joined[BH_URL_MAX + sizeof jti + 2];
    size_t place = BH_LOGOUT_REPLAY_MAX;
    struct bh_buf text;

    if (!bh_claim_text(claims, "jti", jti) || !jti[0])
        return BH_FAULT_LOGOUT_ID;
    bh_buf_init_fixed(&text, joined, sizeof joined);
    bh_buf_printf(&text, "%s\n%s", rules->issuer, jti);
    if (!bh_buf_text(&text))
        return BH_FAULT_LOGOUT_ID;
    bh_secret_challenge(joined, id);
    for (size_t i = 0; i < BH_LOGOUT_REPLAY_MAX; i++) {
        if (replay->tokens[i].until <= rules->when.now)
            place = i;
        else if (strcmp(replay->tokens[i].id, id) == 0)
            return BH_FAULT_LOGOUT_REPLAYED;
    }
    if (place == BH_LOGOUT_REPLAY_MAX)
        return BH_FAULT_LOGOUT_REPLAYED;
    memcpy(replay->tokens[place].id, id, sizeof id);
    replay->tokens[place].until = logout_end_of(claims, &rules->when);
    return BH_FAULT_NONE;
}

static enum bh_identity_fault
logout_check(bh_json_value claims, const struct bh_logout_rules *rules, struct bh_logout_replay *replay,
             struct bh_logout *logout)
{
    static const struct bh_texts none;
    enum bh_identity_fault fault = bh_json_kind(claims) == BH_JSON_OBJECT
                                       ? bh_claims_issuer(claims, rules->issuer)
                                       : BH_FAULT_PAYLOAD_JSON;

    if (fault == BH_FAULT_NONE)
        fault = bh_claims_audience(claims, rules->client, &none);
    if (fault == BH_FAULT_NONE)
        fault = bh_claims_times(claims, &rules->when);
    if (fault == BH_FAULT_NONE)
        fault = logout_check_event(claims);
    if (fault == BH_FAULT_NONE)
        fault = logout_read_target(claims, logout);
    return fault == BH_FAULT_NONE ? logout_remember(claims, rules, replay) : fault;
}

enum bh_identity_fault
bh_logout_read(const char *text, const struct bh_jws_trust *trust, const struct bh_logout_rules *rules,
               struct bh_logout_replay *replay, struct bh_logout *ret_logout)
{
    BH_AUTO(bh_buf_fini) struct bh_buf payload = { .max = BH_JWS_BYTES_MAX };
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_logout logout = { .subject = "" };
    enum bh_identity_fault fault;
    struct bh_jws jws;
    struct bh_err err;

    fault = bh_jws_read(text, strlen(text), trust, &jws, &payload);
    if (fault == BH_FAULT_NONE && jws.type[0] && strcasecmp(jws.type, "JWT") != 0
        && strcasecmp(jws.type, "logout+jwt") != 0)
        fault = BH_FAULT_HEADER_TYPE;
    if (fault == BH_FAULT_NONE && bh_json_parse(payload.bytes, payload.length, &json, &err) != BH_OK)
        fault = BH_FAULT_PAYLOAD_JSON;
    if (fault == BH_FAULT_NONE)
        fault = logout_check(bh_json_root(json), rules, replay, &logout);
    if (fault == BH_FAULT_NONE)
        *ret_logout = logout;
    return fault;
}
