#include "accounts/grant.h"

#include <stdio.h>
#include <string.h>

#include "accounts/session.h"
#include "api/request/reply.h"

enum { GRANT_S = 120, CHALLENGE_LENGTH = 43, VERIFIER_MIN = 43 };

bh_rc
bh_serve_grant(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_grant_request request = { 0 };
    struct bh_pending draft = { .kind = BH_PENDING_GRANT, /* of a signed-in user: no flood removes it */
                                .principal = call->caller.subject.principal.v };
    char id[33];
    bh_rc rc = bh_call_body(call, &bh_sign_in_grant_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (call->caller.via != BH_VIA_SESSION)
        return bh_err_set(err, BH_CONFLICT, "only a session can sign a command line in");
    if (strlen(request.challenge) != CHALLENGE_LENGTH)
        return bh_err_set(err, BH_INVALID, "challenge: is not a SHA-256 in base64url");
    snprintf(draft.secret, sizeof draft.secret, "%s", request.challenge);
    snprintf(draft.host, sizeof draft.host, "%s", request.host ? request.host : "");
    snprintf(draft.session, sizeof draft.session, "%s", call->caller.token);
    draft.expires = bh_accounts_now(accounts) + GRANT_S * BH_NS_PER_S;
    rc = bh_pending_put(accounts, &draft, id, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, sign_in_grant, .code = id);
    return BH_OK;
}

/* A session that is bound lets none in that is not. */
static bool
loses_certificate(const struct bh_call *call, const struct bh_session *browsers)
{
    static const uint8_t none[sizeof browsers->certificate];

    return memcmp(browsers->certificate, none, sizeof none) != 0
           && memcmp(call->request->transport->certificate, none, sizeof none) == 0;
}

/* A session like that of the browser it came from; what the provider gave that one to ask
 * again with is good once, and stays there. */
static bh_rc
open_alike(struct bh_accounts *accounts, struct bh_call *call, const struct bh_pending *pending,
           struct bh_err *err)
{
    struct bh_session_opening opening = { .puts = NULL };
    const struct bh_dir_principal *principal;
    bh_rc rc = bh_session_read(&accounts->documents, pending->session, call->arena, &opening.session, err);

    if (rc != BH_OK)
        return rc;
    if (loses_certificate(call, &opening.session)) {
        bh_err_set(err, BH_UNAUTHENTICATED, "the browser used a client certificate");
        return bh_err_hint(err, "use one too: `bulkhead login --client-cert FILE --client-key FILE`");
    }
    opening.principal = opening.session.principal;
    principal = bh_directory_principal(call->dir, (bh_principal_id){ opening.principal });
    if (!principal || principal->gone)
        return bh_err_set(err, BH_NOT_FOUND, "the session has ended");
    opening.name = principal->name;
    opening.session.refresh = NULL;
    opening.session.refresh_ns = opening.session.glass_until_ns = 0;
    opening.session.kind = BH_SESSION_COMMAND_LINE;
    opening.session.version = 0;
    opening.session.host = bh_arena_strdup(call->arena, pending->host);
    return bh_session_open(accounts, call, &opening, err);
}

bh_rc
bh_serve_code(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_code_request request = { 0 };
    char challenge[BH_SECRET_TEXT];
    struct bh_pending pending;
    bh_rc rc = bh_call_body(call, &bh_sign_in_code_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    bh_secret_challenge(request.verifier, challenge);
    if (!bh_pending_consume(accounts, BH_PENDING_GRANT, request.code, BH_ANY_PRINCIPAL, &pending)
        || strlen(request.verifier) < VERIFIER_MIN || !bh_secret_equal(challenge, pending.secret)) {
        bh_err_set(err, BH_UNAUTHENTICATED, "the code has expired");
        return bh_err_hint(err, "start again: `bulkhead login`");
    }
    rc = open_alike(accounts, call, &pending, err);
    if (rc == BH_NOT_FOUND)
        rc = bh_err_set(err, BH_UNAUTHENTICATED, "the browser's session has ended");
    return rc;
}
