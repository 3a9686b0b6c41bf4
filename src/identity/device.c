#include "identity/device.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "identity/form.h"

bh_rc
bh_device_ask(const struct bh_provider *provider, const struct bh_relying_party *client,
              struct bh_arena *arena, struct bh_https_request *ret_request)
{
    BH_AUTO(bh_buf_fini) struct bh_buf form = { .max = BH_FORM_BYTES_MAX };

    if (!bh_provider_device_url(provider, client)[0])
        return BH_UNAVAILABLE;
    bh_form_put(&form, "scope", client->scope);
    return bh_provider_post(bh_provider_device_url(provider, client), client, &form, arena, ret_request);
}

/* A text of 1 to size - 1 printable ASCII characters. */
static bool
device_read_text(bh_json_value json, const char *name, char *ret_text, size_t size)
{
    const char *text = bh_json_text(bh_json_get(json, name), "");

    if (!text[0] || strlen(text) >= size)
        return false;
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            return false;
    memcpy(ret_text, text, strlen(text) + 1);
    return true;
}

static bool
device_read_begin(bh_json_value json, bool loopback, bh_ns now, struct bh_device_login *login)
{
    int64_t life_s = bh_json_integer(bh_json_get(json, "expires_in"), 0);
    bh_json_value interval = bh_json_get(json, "interval");
    int64_t interval_s = bh_json_integer(interval, interval ? 0 : BH_DEVICE_INTERVAL_S);
    const char *complete = bh_json_text(bh_json_get(json, "verification_uri_complete"), "");

    if (!device_read_text(json, "device_code", login->device_code, sizeof login->device_code)
        || !device_read_text(json, "user_code", login->user_code, sizeof login->user_code)
        || !device_read_text(json, "verification_uri", login->address, sizeof login->address)
        || !bh_url_check(login->address, loopback) || life_s < 1 || interval_s < 1
        || interval_s > BH_DEVICE_INTERVAL_MAX_S)
        return false;
    if (bh_url_check(complete, loopback))
        memcpy(login->address_complete, complete, strlen(complete) + 1);
    if (life_s > BH_DEVICE_LIFE_MAX_S)
        life_s = BH_DEVICE_LIFE_MAX_S;
    login->interval_s = (uint32_t)interval_s;
    login->expires = now + (uint64_t)life_s * BH_NS_PER_S;
    login->next_poll = now + (uint64_t)interval_s * BH_NS_PER_S;
    return true;
}

enum bh_identity_fault
bh_device_begin(const struct bh_https_response *answer, bool loopback, bh_ns now,
                struct bh_device_login *ret_login)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_device_login login = { .state = BH_DEVICE_PENDING };
    struct bh_err err;

    if (answer->status >= 400 && answer->status <= 499)
        return BH_FAULT_CLIENT_REFUSED;
    if (answer->status != 200)
        return BH_FAULT_PROVIDER_DOWN;
    if (bh_json_parse(answer->body, answer->length, &json, &err) != BH_OK)
        return BH_FAULT_RESPONSE_JSON;
    if (!device_read_begin(bh_json_root(json), loopback, now, &login))
        return BH_FAULT_RESPONSE_VALUE;
    *ret_login = login;
    return BH_FAULT_NONE;
}

bool
bh_device_due(struct bh_device_login *login, bh_ns now)
{
    if (login->state == BH_DEVICE_PENDING && now >= login->expires)
        login->state = BH_DEVICE_EXPIRED;
    return login->state == BH_DEVICE_PENDING && now >= login->next_poll;
}

bh_rc
bh_device_poll(const struct bh_device_login *login, const struct bh_provider *provider,
               const struct bh_relying_party *client, struct bh_arena *arena,
               struct bh_https_request *ret_request)
{
    BH_AUTO(bh_buf_fini) struct bh_buf form = { .max = BH_FORM_BYTES_MAX };

    BH_ASSERT(login->state == BH_DEVICE_PENDING);
    bh_form_put(&form, "grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    bh_form_put(&form, "device_code", login->device_code);
    return bh_provider_post(bh_provider_token_url(provider, client), client, &form, arena, ret_request);
}

/* What each error of the token endpoint does; what is not listed ends the login. */
static const struct {
    const char *error;
    enum bh_device_state next;
    enum bh_identity_fault fault;
    bool slower;
} errors[] = {
    { "authorization_pending", BH_DEVICE_PENDING, BH_FAULT_NONE, false },
    { "slow_down", BH_DEVICE_PENDING, BH_FAULT_NONE, true },
    { "access_denied", BH_DEVICE_DENIED, BH_FAULT_DEVICE_DENIED, false },
    { "expired_token", BH_DEVICE_EXPIRED, BH_FAULT_DEVICE_EXPIRED, false },
    { "invalid_grant", BH_DEVICE_DENIED, BH_FAULT_GRANT_REFUSED, false },
};

static void
device_wait_on(struct bh_device_login *login, bool slower, bh_ns now)
{
    if (slower && login->interval_s < BH_DEVICE_INTERVAL_MAX_S)
        login->interval_s += BH_DEVICE_INTERVAL_S;
    login->next_poll = now + login->interval_s * BH_NS_PER_S;
}

static enum bh_identity_fault
device_read_error(struct bh_device_login *login, const struct bh_https_response *answer, bh_ns now)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_err err;
    const char *error = "";

    if (bh_json_parse(answer->body, answer->length, &json, &err) == BH_OK)
        error = bh_json_text(bh_json_get(bh_json_root(json), "error"), "");
    for (size_t i = 0; i < BH_COUNT(errors); i++) {
        if (strcmp(error, errors[i].error) != 0)
            continue;
        login->state = errors[i].next;
        device_wait_on(login, errors[i].slower, now);
        return errors[i].fault;
    }
    login->state = BH_DEVICE_DENIED;
    return BH_FAULT_CLIENT_REFUSED;
}

enum bh_identity_fault
bh_device_receive(struct bh_device_login *login, const struct bh_https_response *answer, bh_ns now,
                  struct bh_arena *arena, struct bh_tokens *ret_tokens)
{
    enum bh_identity_fault fault;

    BH_ASSERT(login->state == BH_DEVICE_PENDING);
    if (answer->status >= 400 && answer->status <= 499)
        return device_read_error(login, answer, now);
    if (answer->status != 200) {
        device_wait_on(login, true, now);
        return BH_FAULT_NONE;
    }
    fault = bh_tokens_receive(answer, true, arena, ret_tokens);
    login->state = fault == BH_FAULT_NONE ? BH_DEVICE_DONE : BH_DEVICE_DENIED;
    return fault;
}
