#include "accounts/oidc.h"

#include <stdio.h>
#include <string.h>

#include "accounts/session.h"
#include "api/request/reply.h"

/* From a machine without a browser (RFC 8628).  The command line polls this server, which polls the
 * provider when it is time: no client can make it ask more often. */

static bh_rc
device_ask_code(struct bh_accounts *accounts, struct bh_call *call, struct bh_issuer_view *issuer,
                struct bh_device_login *ret_login, struct bh_err *err)
{
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;
    bh_rc rc = bh_issuer_prove(accounts, call, issuer, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_device_ask(&issuer->provider, &issuer->client, call->arena, &request);
    if (rc == BH_UNAVAILABLE)
        return bh_err_set(err, rc, "the issuer does not support sign-in without a browser");
    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ask(accounts, call, &request, &answer, err);
    if (rc != BH_OK)
        return rc;
    fault = bh_device_begin(&answer, issuer->site->loopback, bh_accounts_now(accounts), ret_login);
    return fault == BH_FAULT_NONE ? BH_OK : bh_issuer_refused(issuer, fault, err);
}

bh_rc
bh_serve_device(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_device_request request = { 0 };
    struct bh_pending draft = { .kind = BH_PENDING_DEVICE };
    struct bh_issuer_view *issuer;
    char id[33];
    bh_rc rc = bh_call_body(call, &bh_sign_in_device_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ready(accounts, call, request.issuer, &issuer, err);
    if (rc != BH_OK)
        return rc;
    rc = device_ask_code(accounts, call, issuer, &draft.device, err);
    if (rc != BH_OK)
        return rc;
    snprintf(draft.issuer, sizeof draft.issuer, "%s", issuer->site->name);
    snprintf(draft.host, sizeof draft.host, "%s", request.host ? request.host : "");
    draft.expires = draft.device.expires;
    rc = bh_pending_put(accounts, &draft, id, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, sign_in_device, .address = draft.device.address,
                  .address_complete = draft.device.address_complete, .code = draft.device.user_code,
                  .expires_ns = draft.expires, .id = id, .interval_s = draft.device.interval_s);
    bh_secret_wipe(&draft, sizeof draft);
    return BH_OK;
}

/* Put what was taken out back, for the next poll. */
static void
device_restore_pending(struct bh_accounts *accounts, const struct bh_pending *pending)
{
    bh_mutex_lock(&accounts->mutex);
    for (uint32_t i = 0; i < BH_PENDING_MAX; i++)
        if (accounts->pending[i].kind == BH_PENDING_NONE) {
            accounts->pending[i] = *pending;
            break;
        }
    bh_mutex_unlock(&accounts->mutex);
}

/* Ask the provider once; when the login is done then, the arrival has its tokens. */
static bh_rc
device_poll_once(struct bh_accounts *accounts, struct bh_call *call, struct bh_device_login *login,
                 struct bh_oidc_sign_in *sign_in, struct bh_err *err)
{
    struct bh_issuer_view *issuer = sign_in->issuer;
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;
    bh_rc rc = bh_issuer_prove(accounts, call, issuer, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_device_poll(login, &issuer->provider, &issuer->client, call->arena, &request);
    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ask(accounts, call, &request, &answer, err);
    if (rc != BH_OK)
        return rc;
    fault = bh_device_receive(login, &answer, bh_accounts_now(accounts), call->arena, &sign_in->tokens);
    return fault == BH_FAULT_NONE ? BH_OK : bh_issuer_refused(issuer, fault, err);
}

static bh_rc
oidc_device_continue(struct bh_accounts *accounts, struct bh_call *call, struct bh_pending *pending,
                     struct bh_err *err)
{
    struct bh_oidc_sign_in sign_in = { .kind = BH_SESSION_COMMAND_LINE };
    struct bh_token_rules rules = { 0 };
    bh_rc rc = bh_issuer_ready(accounts, call, pending->issuer, &sign_in.issuer, err);

    if (rc == BH_OK && bh_device_due(&pending->device, bh_accounts_now(accounts)))
        rc = device_poll_once(accounts, call, &pending->device, &sign_in, err);
    if (rc != BH_OK) {
        if (pending->device.state == BH_DEVICE_PENDING) /* it may answer the next time */
            device_restore_pending(accounts, pending);
        return rc;
    }
    if (pending->device.state == BH_DEVICE_PENDING) {
        BH_REPLY_WITH(call, sign_in_poll, .interval_s = pending->device.interval_s, .state = "waiting");
        device_restore_pending(accounts, pending);
        return BH_OK;
    }
    if (pending->device.state != BH_DEVICE_DONE)
        return bh_issuer_refused(sign_in.issuer, BH_FAULT_DEVICE_EXPIRED, err);
    sign_in.host = bh_arena_strdup(call->arena, pending->host);
    rc = bh_oidc_sign_in_check(accounts, call, &rules, &sign_in, err);
    return rc == BH_OK ? bh_oidc_sign_in_complete(accounts, call, &sign_in, err) : rc;
}

bh_rc
bh_serve_poll(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_pending pending;
    bh_rc rc;

    if (!bh_pending_consume(accounts, BH_PENDING_DEVICE, call->id, 0, &pending)) {
        bh_err_set(err, BH_NOT_FOUND, "no such sign-in is under way");
        return bh_err_hint(err, "it has expired, or was used already: start again");
    }
    rc = oidc_device_continue(accounts, call, &pending, err);
    bh_secret_wipe(&pending, sizeof pending);
    return rc;
}
