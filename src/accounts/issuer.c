#include "accounts/issuer.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "identity/assertion.h"
#include "accounts/accounts_internal.h"

enum { SECRET_FILE_MAX = 16384 };

/* ---- what is kept ---- */

/* The row of an issuer: its own, or that of an issuer that is no longer in the site file. */
static struct bh_issuer *
issuer_slot_of(struct bh_accounts *accounts, const struct bh_site_sign_in *sign_in,
               const struct bh_site_issuer *site)
{
    struct bh_issuer *free_slot = NULL;

    BH_ASSERT(bh_mutex_is_held(&accounts->mutex));
    for (uint32_t i = 0; i < BH_ISSUERS_MAX; i++) {
        struct bh_issuer *at = &accounts->issuers[i];

        if (strcmp(at->name, site->name) == 0 && strcmp(at->url, site->url) == 0)
            return at;
        if (!bh_sign_in_issuer(sign_in, at->name, strlen(at->name)) || strcmp(at->name, site->name) == 0)
            free_slot = at;
    }
    if (!free_slot)
        return NULL;
    *free_slot = (struct bh_issuer){ .fetched = 0 };
    snprintf(free_slot->name, sizeof free_slot->name, "%s", site->name);
    snprintf(free_slot->url, sizeof free_slot->url, "%s", site->url);
    return free_slot;
}

static const char *
issuer_secret_path(const struct bh_accounts *accounts, struct bh_arena *arena,
                   const struct bh_site_issuer *site)
{
    return bh_arena_printf(arena, "%s/%s", accounts->options.secrets_dir, site->client_secret);
}

/* A secret's file as text, without the end of its line. */
static bh_rc
issuer_read_secret(const struct bh_accounts *accounts, struct bh_call *call,
                   const struct bh_site_issuer *site, const char **ret_secret, struct bh_err *err)
{
    const char *path = issuer_secret_path(accounts, call->arena, site);
    char *memory = bh_arena_alloc(call->arena, SECRET_FILE_MAX + 1);
    struct bh_buf text;
    bh_rc rc;

    if (!path || !memory)
        return bh_err_set(err, BH_FULL, "no room for a secret");
    bh_buf_init_fixed(&text, memory, SECRET_FILE_MAX + 1);
    rc = bh_file_read(path, SECRET_FILE_MAX, &text, err);
    while (rc == BH_OK && text.length > 0 && strchr("\r\n", memory[text.length - 1]))
        text.length--;
    if (rc == BH_OK && text.length == 0)
        rc = bh_err_set(err, BH_INVALID, "%s is empty", path);
    *ret_secret = bh_buf_text(&text);
    return rc;
}

static bool
issuer_uses_secret(const struct bh_site_issuer *site)
{
    return site->client_secret && site->client_auth != BH_CLIENT_KEY;
}

static bh_rc
issuer_fill_client(const struct bh_accounts *accounts, struct bh_call *call, struct bh_issuer_view *view,
                   struct bh_err *err)
{
    const struct bh_site_issuer *site = view->site;
    const char *address = call->dir->sign_in->address;

    view->client = (struct bh_relying_party){ .id = site->client_id,
                                              .loopback = site->loopback,
                                              .scope = site->scope ? site->scope : "openid profile" };
    view->client.redirect = bh_arena_printf(call->arena, "%s/signin/callback", address ? address : "");
    if (!view->client.redirect)
        return bh_err_set(err, BH_FULL, "no room for an address");
    return issuer_uses_secret(site) ? issuer_read_secret(accounts, call, site, &view->client.secret, err)
                                    : BH_OK;
}

/* ---- asking ---- */

bh_rc
bh_issuer_ask(struct bh_accounts *accounts, struct bh_call *call, const struct bh_https_request *request,
              struct bh_https_response *ret_answer, struct bh_err *err)
{
    bh_rc rc = bh_https_ask(&accounts->options.https, request, call->arena, ret_answer, err);

    if (rc != BH_OK)
        return rc;
    if (ret_answer->status == 0)
        bh_log(PROVIDER_SILENT, BH_STR("url", request->url), BH_U64("cause", (uint64_t)ret_answer->cause));
    return BH_OK;
}

bh_rc
bh_issuer_refused(const struct bh_issuer_view *view, enum bh_identity_fault fault, struct bh_err *err)
{
    bool down = fault == BH_FAULT_PROVIDER_DOWN;

    bh_log(SIGN_IN_REFUSED, BH_STR("issuer", view->site->name), BH_STR("fault", bh_fault_name(fault)));
    bh_err_set(err, down ? BH_UNAVAILABLE : BH_UNAUTHENTICATED,
               down ? "the identity provider does not answer" : "the sign-in could not be completed");
    return bh_err_hint(err, "start again; if it persists, the cause is in bulkheadd's log");
}

/* Ask for the configuration, outside the mutex: others are served meanwhile. */
static bh_rc
issuer_discover(struct bh_accounts *accounts, struct bh_call *call, struct bh_issuer_view *view,
                struct bh_err *err)
{
    const struct bh_site_issuer *site = view->site;
    struct bh_https_request request;
    struct bh_https_response answer;
    struct bh_issuer *slot;
    enum bh_identity_fault fault;
    bh_rc rc = bh_provider_ask(site->url, site->loopback, call->arena, &request, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ask(accounts, call, &request, &answer, err);
    if (rc != BH_OK)
        return rc;
    fault = bh_provider_receive(&answer, site->url, site->loopback, &view->provider);
    bh_mutex_lock(&accounts->mutex);
    slot = issuer_slot_of(accounts, call->dir->sign_in, site);
    if (slot && fault == BH_FAULT_NONE) {
        slot->provider = view->provider;
        slot->fetched = bh_accounts_now(accounts);
        slot->failed = 0;
    } else if (slot) {
        slot->failed = bh_accounts_now(accounts);
    }
    bh_mutex_unlock(&accounts->mutex);
    return fault == BH_FAULT_NONE ? BH_OK : bh_issuer_refused(view, fault, err);
}

/* What is kept and young enough.  A provider that fails is left alone for a moment; its last
 * configuration serves meanwhile. */
static bool
issuer_known(struct bh_accounts *accounts, struct bh_call *call, struct bh_issuer_view *view,
             bool *ret_resting)
{
    bh_ns now = bh_accounts_now(accounts);
    struct bh_issuer *slot;
    bool fresh = false;

    bh_mutex_lock(&accounts->mutex);
    slot = issuer_slot_of(accounts, call->dir->sign_in, view->site);
    *ret_resting = slot && slot->failed && now < slot->failed + BH_ISSUER_PAUSE_S * BH_NS_PER_S;
    if (slot && slot->fetched) {
        view->provider = slot->provider;
        fresh = *ret_resting || now < slot->fetched + BH_DISCOVERY_S * BH_NS_PER_S;
    }
    bh_mutex_unlock(&accounts->mutex);
    return fresh;
}

bh_rc
bh_issuer_ready(struct bh_accounts *accounts, struct bh_call *call, const char *name,
                struct bh_issuer_view **ret_view, struct bh_err *err)
{
    struct bh_issuer_view *view = bh_arena_alloc(call->arena, sizeof *view);
    bool resting;
    bh_rc rc;

    if (!view)
        return bh_err_set(err, BH_FULL, "no room for a sign-in");
    view->site = bh_sign_in_issuer(call->dir->sign_in, name, strlen(name));
    if (!view->site || !accounts->options.https.ops)
        return bh_err_set(err, BH_NOT_FOUND, "there is no issuer \"%.60s\"", name);
    *ret_view = view;
    rc = issuer_fill_client(accounts, call, view, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "issuer %.63s", name);
    if (issuer_known(accounts, call, view, &resting))
        return BH_OK;
    return resting ? bh_issuer_refused(view, BH_FAULT_PROVIDER_DOWN, err)
                   : issuer_discover(accounts, call, view, err);
}

/* ---- keys ---- */

static bh_rc
issuer_fetch_keys(struct bh_accounts *accounts, struct bh_call *call, struct bh_issuer_view *view,
                  struct bh_err *err)
{
    struct bh_https_request request = { .url = view->provider.jwks };
    struct bh_https_response answer;
    struct bh_issuer *slot;
    enum bh_identity_fault fault = BH_FAULT_NONE;
    bh_rc rc = bh_issuer_ask(accounts, call, &request, &answer, err);

    bh_mutex_lock(&accounts->mutex);
    slot = issuer_slot_of(accounts, call->dir->sign_in, view->site);
    if (slot && rc == BH_OK)
        fault = bh_jwks_cache_receive(&slot->keys, &answer, bh_accounts_now(accounts));
    else if (slot)
        slot->keys.asking = false;
    bh_mutex_unlock(&accounts->mutex);
    if (fault != BH_FAULT_NONE) /* the last keys may serve on */
        bh_log(SIGN_IN_REFUSED, BH_STR("issuer", view->site->name), BH_STR("fault", bh_fault_name(fault)));
    return rc;
}

bh_rc
bh_issuer_keys(struct bh_accounts *accounts, struct bh_call *call, bool unknown_key,
               struct bh_issuer_view *view, struct bh_err *err)
{
    const struct bh_jwks *keys = NULL;
    struct bh_issuer *slot;
    bool due;
    bh_rc rc = BH_OK;

    bh_mutex_lock(&accounts->mutex);
    slot = issuer_slot_of(accounts, call->dir->sign_in, view->site);
    due = slot && bh_jwks_cache_due(&slot->keys, unknown_key, bh_accounts_now(accounts));
    bh_mutex_unlock(&accounts->mutex);
    if (due)
        rc = issuer_fetch_keys(accounts, call, view, err);
    if (rc != BH_OK)
        return rc;
    bh_mutex_lock(&accounts->mutex);
    slot = issuer_slot_of(accounts, call->dir->sign_in, view->site);
    if (slot)
        keys = bh_jwks_cache_keys(&slot->keys, bh_accounts_now(accounts));
    if (keys)
        view->jwks = *keys;
    bh_mutex_unlock(&accounts->mutex);
    view->algs = view->provider.algs;
    return keys ? BH_OK : bh_issuer_refused(view, BH_FAULT_PROVIDER_DOWN, err);
}

/* ---- proving Bulkhead's identity to the issuer ---- */

bh_rc
bh_issuer_prove(struct bh_accounts *accounts, struct bh_call *call, struct bh_issuer_view *view,
                struct bh_err *err)
{
    BH_AUTO(bh_assertion_key_free) struct bh_assertion_key *key = NULL;
    uint8_t random[BH_SECRET_BYTES];
    struct bh_assertion_request client_assertion = { view->client.id,
                                                     bh_provider_token_url(&view->provider, &view->client),
                                                     random, bh_accounts_now(accounts) };
    const char *pem;
    bh_rc rc;

    if (view->site->client_auth != BH_CLIENT_KEY)
        return BH_OK;
    rc = issuer_read_secret(accounts, call, view->site, &pem, err);
    if (rc == BH_OK)
        rc = bh_assertion_key_open(pem, strlen(pem), NULL, &key, err);
    if (rc == BH_OK)
        rc = accounts->options.crypto->random(random, sizeof random, err);
    if (rc == BH_OK)
        rc = bh_assertion_make(key, &client_assertion, call->arena, &view->client.assertion, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "issuer %.63s: client_secret", view->site->name);
}
