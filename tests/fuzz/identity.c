/* What identity providers and browsers send.  The first byte says what the rest is. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/utf8.h"
#include "identity/account.h"
#include "identity/device.h"
#include "identity/form.h"
#include "identity/id_token.h"
#include "identity/login.h"
#include "tests/fuzz/fuzz.h"

/* RFC 8037, appendix A: a public key, and the one token of it in the world. */
static const char keys[] = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
                           "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
static const char signed_part[] = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.";

static struct bh_jwks jwks;

/* A set that was read has keys, each fit for something. */
static void
read_jwks(const char *text, size_t length)
{
    if (bh_jwks_parse(text, length, &jwks) != BH_FAULT_NONE)
        return;
    BH_ASSERT(jwks.count > 0 && jwks.count + jwks.ignored <= BH_JWKS_KEYS_MAX);
    for (uint32_t i = 0; i < jwks.count; i++)
        BH_ASSERT(jwks.keys[i].algs != 0);
}

/* Nothing is accepted but what was signed. */
static void
read_token(const char *text, size_t length)
{
    struct bh_jws_trust trust = { &jwks, BH_JWS_ALL };
    struct bh_buf payload;
    struct bh_jws jws;

    BH_ASSERT(bh_jwks_parse(keys, strlen(keys), &jwks) == BH_FAULT_NONE);
    bh_buf_init(&payload, BH_JWS_BYTES_MAX);
    if (bh_jws_read(text, length, &trust, &jws, &payload) == BH_FAULT_NONE)
        BH_ASSERT(length > strlen(signed_part) && memcmp(text, signed_part, strlen(signed_part)) == 0);
    else
        BH_ASSERT(payload.length == 0);
    bh_buf_fini(&payload);
}

/* Claims that pass are what they must be. */
static void
check_claims(const char *text, size_t length)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_id_token_rules rules = {
        .issuer = "https://op.example",
        .client = "bulkhead",
        .nonce = "n",
        .when = { 1790000000 * BH_NS_PER_S, 60, 600 },
        .groups = "groups",
    };
    struct bh_id_token token;
    struct bh_err err;

    if (bh_json_parse(text, length, &json, &err) != BH_OK
        || bh_id_token_check(bh_json_root(json), BH_JWS_RS256, &rules, arena, &token) != BH_FAULT_NONE)
        return;
    BH_ASSERT(token.subject[0]);
    BH_ASSERT(token.expires_s + 60 > 1790000000 && token.issued_s <= 1790000060);
    BH_ASSERT(token.groups.count <= BH_ID_GROUPS_MAX);
}

/* What was read can be written, and is read again as the same. */
static void
read_form(const char *text, size_t length)
{
    static struct bh_form form, again;
    struct bh_buf out;

    if (bh_form_parse(text, length, &form) != BH_FAULT_NONE)
        return;
    bh_buf_init(&out, 4 * BH_FORM_BYTES_MAX);
    for (uint32_t i = 0; i < form.count; i++) {
        bh_buf_puts(&out, i ? "&" : "");
        bh_form_put_encoded(&out, form.pairs[i].name);
        bh_buf_putc(&out, '=');
        bh_form_put_encoded(&out, form.pairs[i].value);
    }
    if (out.length < BH_FORM_BYTES_MAX) {
        BH_ASSERT(bh_form_parse(out.bytes, out.length, &again) == BH_FAULT_NONE);
        BH_ASSERT(again.count == form.count);
        for (uint32_t i = 0; i < form.count; i++)
            BH_ASSERT(strcmp(bh_form_get(&again, form.pairs[i].name), form.pairs[i].value) == 0);
    }
    bh_buf_fini(&out);
}

/* A configuration that was read names the issuer that was asked for, and only addresses. */
static void
read_discovery(const char *text, size_t length)
{
    struct bh_https_response answer = { 200, text, length, 0 };
    struct bh_provider provider;

    if (bh_provider_receive(&answer, "https://op.example", false, &provider) != BH_FAULT_NONE)
        return;
    BH_ASSERT(strcmp(provider.issuer, "https://op.example") == 0);
    BH_ASSERT(bh_url_check(provider.token, false) && bh_url_check(provider.jwks, false));
    BH_ASSERT(provider.algs != 0);
}

/* A token endpoint's answer, to a code and to a device. */
static void
read_answer(const char *text, size_t length)
{
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(1 << 20);
    struct bh_https_response answer = { 200, text, length, 0 };
    struct bh_device_login login;
    struct bh_tokens tokens;

    if (bh_tokens_receive(&answer, true, arena, &tokens) == BH_FAULT_NONE)
        BH_ASSERT(tokens.access && tokens.id);
    if (bh_device_begin(&answer, false, 0, &login) == BH_FAULT_NONE)
        BH_ASSERT(bh_url_check(login.address, false) && login.interval_s > 0);
    login = (struct bh_device_login){ .state = BH_DEVICE_PENDING, .interval_s = 5 };
    answer.status = 400;
    if (bh_device_receive(&login, &answer, 0, arena, &tokens) == BH_FAULT_NONE)
        BH_ASSERT(login.state == BH_DEVICE_PENDING && login.next_poll >= 5 * BH_NS_PER_S);
}

/* What attempts are counted under is text, counts as itself, and is the name of a name. */
static void
count_account(const char *bytes, size_t length)
{
    char *text = calloc(1, length + 1), name[BH_ACCOUNT_MAX + 1];
    struct bh_buf key, again;

    BH_ASSERT(text);
    memcpy(text, bytes, length); /* strndup would look for an end behind the bytes */
    bh_buf_init(&key, 3 * length + 1);
    bh_buf_init(&again, 3 * length + 1);
    bh_account_key(text, &key);
    BH_ASSERT(bh_buf_text(&key));
    for (size_t i = 0, step; i < key.length; i += step) {
        step = bh_utf8_step(key.bytes + i, key.length - i);
        BH_ASSERT(step > 0);
    }
    bh_account_key(bh_buf_text(&key), &again);
    BH_ASSERT(strcmp(bh_buf_text(&again), bh_buf_text(&key)) == 0);
    if (bh_account_name(text, name))
        BH_ASSERT(strcmp(bh_buf_text(&key), name) == 0);
    bh_buf_fini(&key);
    bh_buf_fini(&again);
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[128])(const char *text, size_t length) = {
        ['k'] = read_jwks,      ['t'] = read_token,  ['c'] = check_claims,  ['q'] = read_form,
        ['d'] = read_discovery, ['r'] = read_answer, ['a'] = count_account,
    };
    char *text;

    if (size < 1 || size > 1 << 17 || data[0] > 127 || !readers[data[0]])
        return 0;
    text = malloc(size); /* of exactly this size, so that reading on is noticed */
    BH_ASSERT(text);
    memcpy(text, data + 1, size - 1);
    readers[data[0]](text, size - 1);
    free(text);
    return 0;
}
