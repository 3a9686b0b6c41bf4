#include "identity/provider.h"

#include <string.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"
#include "identity/form.h"
#include "identity/secret.h"

#define WELL_KNOWN "/.well-known/openid-configuration"

static bool
provider_is_loopback(const char *url)
{
    static const char *const hosts[] = { "http://127.0.0.1", "http://localhost" };

    for (size_t i = 0; i < BH_COUNT(hosts); i++) {
        size_t length = strlen(hosts[i]);

        if (strncmp(url, hosts[i], length) == 0 && (!url[length] || strchr(":/?", url[length])))
            return true;
    }
    return false;
}

bool
bh_url_check(const char *url, bool loopback)
{
    const char *host = url + strlen("https://");
    size_t host_length;

    if (strlen(url) > BH_URL_MAX)
        return false;
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f || strchr("#\\<>\"", *c))
            return false;
    if (strncmp(url, "https://", strlen("https://")) != 0)
        return loopback && provider_is_loopback(url) && !strchr(url, '@');
    host_length = strcspn(host, "/?");
    return host_length > 0 && host[0] != ':' && !memchr(host, '@', host_length);
}

bh_rc
bh_provider_ask(const char *issuer, bool loopback, struct bh_arena *arena,
                struct bh_https_request *ret_request, struct bh_err *err)
{
    size_t length = strlen(issuer);
    const char *url;

    if (!bh_url_check(issuer, loopback) || strchr(issuer, '?'))
        return bh_err_set(err, BH_INVALID, "issuer \"%.100s\" is not an https address", issuer);
    while (length > 0 && issuer[length - 1] == '/')
        length--;
    url = bh_arena_printf(arena, "%.*s" WELL_KNOWN, (int)length, issuer);
    if (!url)
        return bh_err_set(err, BH_FULL, "the request is too large");
    *ret_request = (struct bh_https_request){ .url = url };
    return BH_OK;
}

/* The member's address; "" when it is absent and may be. */
static bool
provider_read_url(bh_json_value json, const char *name, bool loopback, char ret_url[BH_URL_MAX + 1])
{
    bh_json_value value = bh_json_get(json, name);
    const char *url = bh_json_text(value, "");

    if (!value)
        return true;
    if (!bh_url_check(url, loopback))
        return false;
    memcpy(ret_url, url, strlen(url) + 1);
    return true;
}

static bool
provider_list_has(bh_json_value list, const char *text)
{
    for (size_t i = 0; i < bh_json_count(list); i++)
        if (strcmp(bh_json_text(bh_json_at(list, i), ""), text) == 0)
            return true;
    return false;
}

static uint32_t
provider_read_algs(bh_json_value json)
{
    bh_json_value list = bh_json_get(json, "id_token_signing_alg_values_supported");
    uint32_t algs = 0;

    for (enum bh_jws_alg alg = 0; alg < BH_JWS_ALGS; alg++)
        if (provider_list_has(list, bh_jws_alg_name(alg)))
            algs |= BH_JWS_BIT(alg);
    return algs;
}

static enum bh_identity_fault
provider_read_document(bh_json_value json, const char *issuer, bool loopback, struct bh_provider *p)
{
    bh_json_value methods = bh_json_get(json, "code_challenge_methods_supported");
    bh_json_value aliases = bh_json_get(json, "mtls_endpoint_aliases");
    const struct {
        bh_json_value from;
        const char *name;
        char *url;
        bool required;
    } rows[] = {
        { json, "authorization_endpoint", p->authorization, true },
        { json, "token_endpoint", p->token, true },
        { json, "jwks_uri", p->jwks, true },
        { json, "device_authorization_endpoint", p->device, false },
        { json, "end_session_endpoint", p->end_session, false },
        { json, "userinfo_endpoint", p->userinfo, false },
        { aliases, "token_endpoint", p->token_mtls, false },
        { aliases, "device_authorization_endpoint", p->device_mtls, false },
    };

    if (bh_json_kind(json) != BH_JSON_OBJECT)
        return BH_FAULT_DISCOVERY_JSON;
    if (strcmp(bh_json_text(bh_json_get(json, "issuer"), ""), issuer) != 0)
        return BH_FAULT_DISCOVERY_ISSUER;
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        if (!provider_read_url(rows[i].from, rows[i].name, loopback, rows[i].url)
            || (rows[i].required && !rows[i].url[0]))
            return BH_FAULT_DISCOVERY_ENDPOINT;
    p->algs = provider_read_algs(json);
    if (p->algs == 0)
        return BH_FAULT_DISCOVERY_ALG;
    if (!provider_list_has(bh_json_get(json, "response_types_supported"), "code"))
        return BH_FAULT_DISCOVERY_CODE;
    if (methods && !provider_list_has(methods, "S256"))
        return BH_FAULT_DISCOVERY_PKCE;
    p->iss_parameter = bh_json_truth(bh_json_get(json, "authorization_response_iss_parameter_supported"));
    memcpy(p->issuer, issuer, strlen(issuer) + 1);
    return BH_FAULT_NONE;
}

enum bh_identity_fault
bh_provider_receive(const struct bh_https_response *answer, const char *issuer, bool loopback,
                    struct bh_provider *ret_provider)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_provider provider = { 0 };
    enum bh_identity_fault fault;
    struct bh_err err;

    if (answer->status != 200)
        return BH_FAULT_PROVIDER_DOWN;
    if (strlen(issuer) > BH_URL_MAX || answer->length > BH_HTTPS_BYTES_MAX
        || bh_json_parse(answer->body, answer->length, &json, &err) != BH_OK)
        return BH_FAULT_DISCOVERY_JSON;
    fault = provider_read_document(bh_json_root(json), issuer, loopback, &provider);
    if (fault == BH_FAULT_NONE)
        *ret_provider = provider;
    return fault;
}

/* RFC 6749, 2.3.1: both parts are encoded before they are joined. */
static const char *
provider_basic(const struct bh_relying_party *client, struct bh_arena *arena)
{
    BH_AUTO(bh_buf_fini) struct bh_buf pair = { .max = 8192 };
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = 16384 };
    const char *copy;

    bh_form_put_encoded(&pair, client->id);
    bh_buf_putc(&pair, ':');
    bh_form_put_encoded(&pair, client->secret);
    bh_buf_puts(&text, "Basic ");
    bh_base64_encode(&text, pair.bytes, pair.length);
    copy = bh_buf_text(&text) && !pair.overflow ? bh_arena_strdup(arena, bh_buf_text(&text)) : NULL;
    if (pair.bytes)
        bh_secret_wipe(pair.bytes, pair.length);
    if (text.bytes)
        bh_secret_wipe(text.bytes, text.length);
    return copy;
}

const char *
bh_provider_token_url(const struct bh_provider *provider, const struct bh_relying_party *client)
{
    return client->certificate && provider->token_mtls[0] ? provider->token_mtls : provider->token;
}

const char *
bh_provider_device_url(const struct bh_provider *provider, const struct bh_relying_party *client)
{
    return client->certificate && provider->device_mtls[0] ? provider->device_mtls : provider->device;
}

static void
provider_put_client(struct bh_buf *form, const struct bh_relying_party *client)
{
    bh_form_put(form, "client_id", client->id);
    if (!client->assertion)
        return;
    bh_form_put(form, "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    bh_form_put(form, "client_assertion", client->assertion);
}

bh_rc
bh_provider_post(const char *url, const struct bh_relying_party *client, struct bh_buf *form,
                 struct bh_arena *arena, struct bh_https_request *ret_request)
{
    struct bh_https_request request = { .post = true };

    BH_ASSERT(!client->secret || !client->assertion);
    if (!client->secret)
        provider_put_client(form, client);
    else
        request.authorization = provider_basic(client, arena);
    if (client->certificate)
        request.certificate = bh_arena_strdup(arena, client->certificate);
    request.url = bh_arena_strdup(arena, url);
    request.body = bh_buf_text(form) ? bh_arena_strdup(arena, bh_buf_text(form)) : NULL;
    bh_secret_wipe(form->bytes, form->length);
    if (!request.url || !request.body || (client->secret && !request.authorization)
        || (client->certificate && !request.certificate))
        return BH_FULL;
    *ret_request = request;
    return BH_OK;
}
