#include "tests/lib/mock_provider.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "identity/form.h"
#include "identity/secret.h"
#include "identity/signature.h"

static struct bh_form form; /* large, and used by one call at a time */

static void
keep(char *place, size_t size, const char *name)
{
    const char *value = bh_form_get(&form, name);

    snprintf(place, size, "%s", value ? value : "");
}

void
bh_mock_browse(struct bh_mock *mock, const char *url, struct bh_buf *query)
{
    const char *mark = strchr(url, '?');

    BH_ASSERT(mark && bh_form_parse(mark + 1, strlen(mark + 1), &form) == BH_FAULT_NONE);
    keep(mock->nonce, sizeof mock->nonce, "nonce");
    keep(mock->state, sizeof mock->state, "state");
    keep(mock->challenge, sizeof mock->challenge, "code_challenge");
    mock->code_used = false;
    if (mock->wrong == BH_MOCK_CALLBACK_ERROR)
        bh_form_put(query, "error", "access_denied");
    else
        bh_form_put(query, "code", "c1");
    bh_form_put(query, "state", mock->wrong == BH_MOCK_CALLBACK_STATE ? "x" : mock->state);
    bh_form_put(query, "iss",
                mock->wrong == BH_MOCK_CALLBACK_ISSUER ? "https://evil.example" : BH_MOCK_ISSUER);
}

static uint32_t
write_discovery(const struct bh_mock *mock, struct bh_buf *out)
{
    bh_buf_printf(out,
                  "{\"issuer\":\"%s\",\"authorization_endpoint\":\"" BH_MOCK_ISSUER "/auth\","
                  "\"token_endpoint\":\"" BH_MOCK_ISSUER "/token\",\"jwks_uri\":\"" BH_MOCK_ISSUER
                  "/jwks\",\"id_token_signing_alg_values_supported\":[\"RS256\"],"
                  "\"response_types_supported\":[\"code\"],"
                  "\"code_challenge_methods_supported\":[\"S256\"],"
                  "\"authorization_response_iss_parameter_supported\":true}",
                  mock->wrong == BH_MOCK_DISCOVERY_ISSUER ? "https://evil.example" : BH_MOCK_ISSUER);
    return 200;
}

static uint32_t
write_keys(struct bh_mock *mock, struct bh_buf *out)
{
    mock->jwks_asked++;
    bh_buf_puts(out, "{\"keys\":[");
    if (mock->rotated)
        bh_buf_puts(out, bh_test_jwk(BH_TEST_RSA_OTHER, ",\"kid\":\"rsa-other\""));
    else
        bh_buf_puts(out, bh_test_jwk(BH_TEST_RSA, ",\"kid\":\"rsa\""));
    if (mock->wrong == BH_MOCK_KID_ABSENT_MULTIPLE)
        bh_buf_printf(out, ",%s", bh_test_jwk(BH_TEST_RSA_OTHER, ",\"kid\":\"rsa-other\""));
    bh_buf_puts(out, "]}");
    return 200;
}

static const char *
header_of(const struct bh_mock *mock)
{
    switch ((int)mock->wrong) {
    case BH_MOCK_ALG_NONE:
        return "{\"alg\":\"none\"}";
    case BH_MOCK_ALG_HS256:
        return "{\"alg\":\"HS256\"}";
    case BH_MOCK_KID_ABSENT_SINGLE:
    case BH_MOCK_KID_ABSENT_MULTIPLE:
        return "{\"alg\":\"RS256\"}";
    case BH_MOCK_KEY_NEVER_SHOWN:
        return "{\"alg\":\"RS256\",\"kid\":\"hidden\"}";
    default:
        return mock->rotated ? "{\"alg\":\"RS256\",\"kid\":\"rsa-other\"}"
                             : "{\"alg\":\"RS256\",\"kid\":\"rsa\"}";
    }
}

static const char *
sign(const struct bh_mock *mock, const char *claims)
{
    bool other = mock->rotated || mock->wrong == BH_MOCK_SIGNATURE;

    if (mock->wrong == BH_MOCK_ALG_HS256)
        return bh_test_sign_hmac(header_of(mock), claims);
    return bh_test_sign(other ? BH_TEST_RSA_OTHER : BH_TEST_RSA,
                        mock->wrong == BH_MOCK_ALG_NONE ? BH_JWS_ALGS : BH_JWS_RS256, header_of(mock),
                        claims);
}

/* The ID token; `refresh` is one that renews another, and has no nonce. */
static const char *
id_token(const struct bh_mock *mock, const char *access, bool refresh)
{
    bool evil_issuer = mock->wrong == BH_MOCK_ISS || (refresh && mock->wrong == BH_MOCK_REFRESH_ISS);
    bool other = refresh && mock->wrong == BH_MOCK_REFRESH_SUB;
    char claims[2048], hash[BH_HALF_HASH_MAX];
    uint64_t now_s = mock->now / BH_NS_PER_S;
    struct bh_buf out;

    bh_buf_init_fixed(&out, claims, sizeof claims);
    bh_signature_half_hash(BH_JWS_RS256, mock->wrong == BH_MOCK_AT_HASH ? "x" : access, hash);
    bh_buf_printf(&out, "{\"iss\":\"%s\",\"at_hash\":\"%s\",\"exp\":%llu",
                  evil_issuer ? "https://evil.example" : BH_MOCK_ISSUER, hash,
                  (unsigned long long)now_s + 300);
    if (mock->wrong != BH_MOCK_SUB_MISSING)
        bh_buf_printf(&out, ",\"sub\":\"%s\"", other ? "you" : mock->subject ? mock->subject : "me");
    if (mock->wrong != BH_MOCK_AUD_MISSING)
        bh_buf_printf(&out, ",\"aud\":\"%s\"", mock->wrong == BH_MOCK_AUD ? "other" : "bulkhead");
    if (mock->wrong != BH_MOCK_IAT_MISSING)
        bh_buf_printf(&out, ",\"iat\":%llu", (unsigned long long)now_s);
    if (!refresh)
        bh_buf_printf(&out, ",\"nonce\":\"%s\"", mock->wrong == BH_MOCK_NONCE ? "another" : mock->nonce);
    if (mock->amr)
        bh_buf_printf(&out, ",\"amr\":%s", mock->amr);
    bh_buf_printf(&out, ",\"auth_time\":%llu,\"sid\":\"s1\"", (unsigned long long)now_s);
    bh_buf_printf(&out, ",\"groups\":%s}", mock->groups ? mock->groups : "[\"ml\"]");
    return sign(mock, bh_buf_text(&out));
}

static uint32_t
refuse(struct bh_buf *out)
{
    bh_buf_puts(out, "{\"error\":\"invalid_grant\"}");
    return 400;
}

/* A code is good once and with its verifier; a second use revokes what came of it. */
static bool
takes_code(struct bh_mock *mock)
{
    const char *code = bh_form_get(&form, "code"), *verifier = bh_form_get(&form, "code_verifier");
    char challenge[BH_SECRET_TEXT];

    if (mock->code_used) {
        mock->revoked = true;
        return false;
    }
    if (!code || strcmp(code, "c1") != 0 || !verifier)
        return false;
    bh_secret_challenge(verifier, challenge);
    mock->code_used = strcmp(challenge, mock->challenge) == 0;
    mock->refreshes = 0;
    mock->revoked = false;
    return mock->code_used;
}

/* Only the newest refresh token is good; an older one revokes all. */
static bool
takes_refresh(struct bh_mock *mock)
{
    const char *token = bh_form_get(&form, "refresh_token");
    char want[32];

    snprintf(want, sizeof want, "r%u", mock->refreshes);
    if (!token || strcmp(token, want) != 0)
        mock->revoked = true;
    mock->refreshes++;
    return !mock->revoked;
}

static uint32_t
write_tokens(struct bh_mock *mock, const char *body, struct bh_buf *out)
{
    const char *grant;
    char access[32];
    bool refresh;

    BH_ASSERT(bh_form_parse(body, strlen(body), &form) == BH_FAULT_NONE);
    grant = bh_form_get(&form, "grant_type");
    refresh = grant && strcmp(grant, "refresh_token") == 0;
    if (!(refresh ? takes_refresh(mock) : takes_code(mock)))
        return refuse(out);
    snprintf(access, sizeof access, "a%u", mock->refreshes);
    bh_buf_printf(out, "{\"access_token\":\"%s\",\"token_type\":\"Bearer\",\"expires_in\":300,", access);
    bh_buf_printf(out, "\"refresh_token\":\"r%u\",", mock->refreshes);
    bh_buf_printf(out, "\"id_token\":\"%s\"}", id_token(mock, access, refresh));
    return 200;
}

void
bh_mock_answer(struct bh_mock *mock, const struct bh_https_request *request,
               struct bh_https_response *ret_answer)
{
    uint32_t status = 404;
    struct bh_buf out;
    const char *text;

    bh_buf_init_fixed(&out, mock->body, sizeof mock->body);
    if (mock->down)
        status = 503;
    else if (strcmp(request->url, BH_MOCK_ISSUER "/.well-known/openid-configuration") == 0)
        status = write_discovery(mock, &out);
    else if (strcmp(request->url, BH_MOCK_ISSUER "/jwks") == 0)
        status = write_keys(mock, &out);
    else if (strcmp(request->url, BH_MOCK_ISSUER "/token") == 0 && request->post)
        status = write_tokens(mock, request->body, &out);
    text = bh_buf_text(&out);
    BH_ASSERT(text);
    *ret_answer = (struct bh_https_response){ status, text, strlen(text), 0 };
}
