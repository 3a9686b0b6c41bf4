#include "identity/login.h"

#include <string.h>

#include "base/assert.h"
#include "identity/form.h"

void
bh_login_init(struct bh_login *login, const uint8_t random[BH_LOGIN_RANDOM], bh_ns now)
{
    *login = (struct bh_login){ .begun = now };
    bh_secret_text(random, login->state);
    bh_secret_text(random + BH_SECRET_BYTES, login->nonce);
    bh_secret_text(random + 2 * BH_SECRET_BYTES, login->verifier);
}

bh_rc
bh_login_begin(const struct bh_provider *provider, const struct bh_relying_party *client,
               const struct bh_login_request *request, struct bh_login *login, struct bh_buf *url)
{
    char challenge[BH_SECRET_TEXT], seconds[24];
    struct bh_buf digits;

    BH_ASSERT(login->state[0] && !login->used);
    bh_secret_challenge(login->verifier, challenge);
    bh_buf_puts(url, provider->authorization);
    bh_form_put(url, "response_type", "code");
    bh_form_put(url, "client_id", client->id);
    bh_form_put(url, "redirect_uri", client->redirect);
    bh_form_put(url, "scope", client->scope);
    bh_form_put(url, "state", login->state);
    bh_form_put(url, "nonce", login->nonce);
    bh_form_put(url, "code_challenge", challenge);
    bh_form_put(url, "code_challenge_method", "S256");
    if (request->fresh) {
        bh_buf_init_fixed(&digits, seconds, sizeof seconds);
        bh_buf_put_u64(&digits, request->max_age_s);
        bh_form_put(url, "prompt", "login");
        bh_form_put(url, "max_age", bh_buf_text(&digits));
    }
    if (request->acr_values)
        bh_form_put(url, "acr_values", request->acr_values);
    if (request->hint)
        bh_form_put(url, "login_hint", request->hint);
    return bh_buf_text(url) ? BH_OK : BH_FULL;
}

static enum bh_identity_fault
check_state(struct bh_login *login, const char *state, bh_ns now)
{
    if (!state)
        return BH_FAULT_STATE_MISSING;
    if (!bh_secret_equal(state, login->state))
        return BH_FAULT_STATE_WRONG;
    if (login->used)
        return BH_FAULT_STATE_USED;
    login->used = true;
    if (now < login->begun || now - login->begun > BH_LOGIN_SECONDS * BH_NS_PER_S)
        return BH_FAULT_STATE_EXPIRED;
    return BH_FAULT_NONE;
}

/* RFC 9207: the answer of one provider must not be taken for another's. */
static enum bh_identity_fault
check_issuer(const struct bh_provider *provider, const char *iss)
{
    if (!iss)
        return provider->iss_parameter ? BH_FAULT_CALLBACK_ISS_MISSING : BH_FAULT_NONE;
    return strcmp(iss, provider->issuer) == 0 ? BH_FAULT_NONE : BH_FAULT_CALLBACK_ISS;
}

/* RFC 6749's error codes are small letters and '_'. */
static void
store_error(const char *error, struct bh_login *login)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz_";

    if (strlen(error) <= BH_LOGIN_ERROR_MAX && error[strspn(error, plain)] == '\0')
        memcpy(login->error, error, strlen(error) + 1);
}

enum bh_identity_fault
bh_login_callback(struct bh_login *login, const struct bh_provider *provider, const char *query, bh_ns now)
{
    struct bh_form form;
    enum bh_identity_fault fault = bh_form_parse(query, strlen(query), &form);
    const char *code;

    if (fault == BH_FAULT_NONE)
        fault = check_state(login, bh_form_get(&form, "state"), now);
    if (fault == BH_FAULT_NONE)
        fault = check_issuer(provider, bh_form_get(&form, "iss"));
    if (fault != BH_FAULT_NONE)
        return fault;
    if (bh_form_get(&form, "error")) {
        store_error(bh_form_get(&form, "error"), login);
        return BH_FAULT_CALLBACK_ERROR;
    }
    code = bh_form_get(&form, "code");
    if (!code || !code[0] || strlen(code) > BH_CODE_MAX)
        return BH_FAULT_CALLBACK_CODE;
    memcpy(login->code, code, strlen(code) + 1);
    return BH_FAULT_NONE;
}

bh_rc
bh_login_ask(const struct bh_login *login, const struct bh_provider *provider,
             const struct bh_relying_party *client, struct bh_arena *arena,
             struct bh_https_request *ret_request)
{
    BH_AUTO(bh_buf_fini) struct bh_buf form = { .max = 2 * BH_FORM_BYTES_MAX };

    BH_ASSERT(login->code[0]);
    bh_form_put(&form, "grant_type", "authorization_code");
    bh_form_put(&form, "code", login->code);
    bh_form_put(&form, "redirect_uri", client->redirect);
    bh_form_put(&form, "code_verifier", login->verifier);
    return bh_provider_post(bh_provider_token_url(provider, client), client, &form, arena, ret_request);
}

bh_rc
bh_refresh_ask(const struct bh_provider *provider, const struct bh_relying_party *client, const char *refresh,
               struct bh_arena *arena, struct bh_https_request *ret_request)
{
    BH_AUTO(bh_buf_fini) struct bh_buf form = { .max = 4 * BH_TOKEN_TEXT_MAX };

    bh_form_put(&form, "grant_type", "refresh_token");
    bh_form_put(&form, "refresh_token", refresh);
    return bh_provider_post(bh_provider_token_url(provider, client), client, &form, arena, ret_request);
}
