#include "people/oidc.h"

#include <stdio.h>
#include <string.h>

#include "people/session.h"

/* From a machine without a browser (RFC 8628).  The command line polls us, we poll the
 * provider when it is time: nobody makes us ask more often. */

static bh_rc
ask_code(struct bh_people *people, struct bh_call *call, struct bh_issuer_view *issuer,
         struct bh_device_login *ret_login, struct bh_err *err)
{
    struct bh_https_request request;
    struct bh_https_answer answer;
    enum bh_fault fault;
    bh_rc rc = bh_issuer_prove(people, call, issuer, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_device_ask(&issuer->provider, &issuer->client, call->arena, &request);
    if (rc == BH_UNAVAILABLE)
        return bh_err_set(err, rc, "the issuer has no sign-in for machines without a browser");
    if (rc == BH_OK)
        rc = bh_issuer_ask(people, call, &request, &answer, err);
    if (rc != BH_OK)
        return rc;
    fault = bh_device_begin(&answer, issuer->site->loopback, bh_people_now(people), ret_login);
    return fault == BH_FAULT_NONE ? BH_OK : bh_issuer_refused(issuer, fault, err);
}

bh_rc
bh_serve_device(struct bh_people *people, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_device_request request = { 0 };
    struct bh_json_writer w = bh_call_writer(call);
    struct bh_pending draft = { .kind = BH_PENDING_DEVICE };
    struct bh_issuer_view *issuer;
    char id[33];
    bh_rc rc = bh_call_body(call, &bh_sign_in_device_request_fields, &request, err);

    if (rc == BH_OK)
        rc = bh_issuer_ready(people, call, request.issuer, &issuer, err);
    if (rc == BH_OK)
        rc = ask_code(people, call, issuer, &draft.device, err);
    if (rc != BH_OK)
        return rc;
    snprintf(draft.issuer, sizeof draft.issuer, "%s", issuer->site->name);
    snprintf(draft.host, sizeof draft.host, "%s", request.host ? request.host : "");
    draft.expires = draft.device.expires;
    rc = bh_pending_put(people, &draft, id, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "address", draft.device.address);
    bh_json_str(&w, "address_complete", draft.device.address_complete);
    bh_json_str(&w, "code", draft.device.user_code);
    bh_json_ns(&w, "expires_ns", draft.expires);
    bh_json_str(&w, "id", id);
    bh_json_u64(&w, "interval_s", draft.device.interval_s);
    bh_json_close(&w, '}');
    bh_secret_wipe(&draft, sizeof draft);
    return BH_OK;
}

/* Put what was taken out back, for the next poll. */
static void
put_back(struct bh_people *people, const struct bh_pending *pending)
{
    pthread_mutex_lock(&people->mutex);
    for (uint32_t i = 0; i < BH_PENDING_MAX; i++)
        if (people->pending[i].kind == BH_PENDING_NONE) {
            people->pending[i] = *pending;
            break;
        }
    pthread_mutex_unlock(&people->mutex);
}

static void
put_waiting(struct bh_call *call, const struct bh_device_login *login)
{
    struct bh_json_writer w = bh_call_writer(call);

    bh_json_open(&w, NULL, '{');
    bh_json_u64(&w, "interval_s", login->interval_s);
    bh_json_str(&w, "state", "waiting");
    bh_json_close(&w, '}');
}

/* Ask the provider once; when the login is done then, the arrival has its tokens. */
static bh_rc
poll_once(struct bh_people *people, struct bh_call *call, struct bh_device_login *login,
          struct bh_arrival *arrival, struct bh_err *err)
{
    struct bh_issuer_view *issuer = arrival->issuer;
    struct bh_https_request request;
    struct bh_https_answer answer;
    enum bh_fault fault;
    bh_rc rc = bh_issuer_prove(people, call, issuer, err);

    if (rc == BH_OK)
        rc = bh_device_poll(login, &issuer->provider, &issuer->client, call->arena, &request);
    if (rc == BH_OK)
        rc = bh_issuer_ask(people, call, &request, &answer, err);
    if (rc != BH_OK)
        return rc;
    fault = bh_device_take(login, &answer, bh_people_now(people), call->arena,
                           &arrival->tokens);
    return fault == BH_FAULT_NONE ? BH_OK : bh_issuer_refused(issuer, fault, err);
}

static bh_rc
go_on(struct bh_people *people, struct bh_call *call, struct bh_pending *pending,
      struct bh_err *err)
{
    struct bh_arrival arrival = { .kind = BH_SESSION_COMMAND_LINE };
    struct bh_token_wish wish = { 0 };
    bh_rc rc = bh_issuer_ready(people, call, pending->issuer, &arrival.issuer, err);

    if (rc == BH_OK && bh_device_due(&pending->device, bh_people_now(people)))
        rc = poll_once(people, call, &pending->device, &arrival, err);
    if (rc != BH_OK) {
        if (pending->device.state == BH_DEVICE_WAITING) /* it may answer the next time */
            put_back(people, pending);
        return rc;
    }
    if (pending->device.state == BH_DEVICE_WAITING) {
        put_waiting(call, &pending->device);
        put_back(people, pending);
        return BH_OK;
    }
    if (pending->device.state != BH_DEVICE_DONE)
        return bh_issuer_refused(arrival.issuer, BH_FAULT_DEVICE_EXPIRED, err);
    arrival.host = bh_arena_strdup(call->arena, pending->host);
    rc = bh_arrival_check(people, call, &wish, &arrival, err);
    return rc == BH_OK ? bh_arrival_admit(people, call, &arrival, err) : rc;
}

bh_rc
bh_serve_poll(struct bh_people *people, struct bh_call *call, struct bh_err *err)
{
    struct bh_pending pending;
    bh_rc rc;

    if (!bh_pending_take(people, BH_PENDING_DEVICE, call->id, 0, &pending)) {
        bh_err_set(err, BH_NOT_FOUND, "no such sign-in is under way");
        return bh_err_hint(err, "its time is over, or it was taken already: begin again");
    }
    rc = go_on(people, call, &pending, err);
    bh_secret_wipe(&pending, sizeof pending);
    return rc;
}
