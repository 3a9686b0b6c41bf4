#include "accounts/oidc.h"

#include <stdio.h>
#include <string.h>

#include "api/request/reply.h"
#include "identity/form.h"
#include "accounts/session.h"

/* Back-channel logout (OpenID Connect Back-Channel Logout 1.0): the provider posts a form with
 * a signed token, and the sessions that it names end. */

/* The token of the form, or of JSON. */
static bh_rc
logout_read_token_parameter(struct bh_call *call, const char **ret_token, struct bh_err *err)
{
    struct bh_sign_in_logout_request request = { 0 };
    const char *type = call->request->content_type;
    struct bh_form *form;
    bh_rc rc;

    if (!type || strncmp(type, "application/x-www-form-urlencoded", 33) != 0) {
        rc = bh_call_body(call, &bh_sign_in_logout_request_fields, &request, err);
        *ret_token = request.logout_token;
        return rc;
    }
    rc = bh_call_alloc(call, sizeof *form, &form, err);
    if (rc != BH_OK)
        return rc;
    if (bh_form_parse(call->request->body, call->request->body_length, form) != BH_FAULT_NONE
        || !bh_form_get(form, "logout_token"))
        return bh_err_set(err, BH_INVALID, "the form has no logout_token");
    *ret_token = bh_form_get(form, "logout_token");
    return BH_OK;
}

/* A posted token, and what it says once it was verified. */
struct logout_word {
    struct bh_issuer_view *issuer;
    const char *token;
    struct bh_logout logout;
};

static bh_rc
read_logout(struct bh_accounts *accounts, struct bh_call *call, struct logout_word *word, struct bh_err *err)
{
    struct bh_issuer_view *issuer = word->issuer;
    const struct bh_logout_rules rules = { issuer->site->url,
                                           issuer->site->client_id,
                                           { bh_accounts_now(accounts), 60, 600 } };
    enum bh_identity_fault fault = BH_FAULT_NONE;
    bh_rc rc = BH_OK;

    for (int unknown = 0; unknown <= 1 && rc == BH_OK; unknown++) {
        struct bh_jws_trust trust = { &issuer->jwks, 0 };

        rc = bh_issuer_keys(accounts, call, unknown, issuer, err);
        if (rc != BH_OK)
            break;
        trust.algs = issuer->algs;
        bh_mutex_lock(&accounts->mutex);
        fault = bh_logout_read(word->token, &trust, &rules, &accounts->logouts, &word->logout);
        bh_mutex_unlock(&accounts->mutex);
        if (fault != BH_FAULT_KEY_UNKNOWN)
            break;
    }
    if (rc != BH_OK || fault == BH_FAULT_NONE)
        return rc;
    bh_issuer_refused(issuer, fault, err);
    return bh_err_set(err, BH_INVALID, "the logout token is refused"); /* 400, as section 2.8 */
}

struct logout_leaving {
    const struct bh_documents *documents;
    struct bh_call *call;
    const char *issuer;        /* "corp/" */
    const char *subject, *sid; /* "" and NULL: whichever */
    struct bh_document_put puts[200];
    uint32_t count;
};

static bool
logout_is_of_subject(const struct logout_leaving *leaving, const struct bh_session *session)
{
    size_t length = strlen(leaving->issuer);

    return strncmp(session->identity, leaving->issuer, length) == 0
           && (!leaving->subject[0] || strcmp(session->identity + length, leaving->subject) == 0);
}

static bool
logout_end_matching_session(void *self, const struct bh_document_row *row)
{
    struct logout_leaving *leaving = self;
    struct bh_session session;
    struct bh_err err;

    if (leaving->count == BH_COUNT(leaving->puts))
        return false;
    if (bh_session_of(leaving->documents, row, leaving->call->arena, &session, &err) != BH_OK
        || !session.identity || !logout_is_of_subject(leaving, &session)
        || (leaving->sid && (!session.sid || strcmp(session.sid, leaving->sid) != 0)))
        return true;
    if (bh_session_drop(&session, leaving->call->arena, &leaving->puts[leaving->count], &err) == BH_OK)
        leaving->puts[leaving->count++].blind = true;
    return true;
}

static bh_rc
logout_end_sessions(struct bh_accounts *accounts, struct bh_call *call, const struct bh_issuer_view *issuer,
                    const struct bh_logout *logout, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_accounts_change change = { .verb = "session.end", .object = { "session", 0 } };
    struct logout_leaving *leaving;
    struct bh_answer answer;
    bh_rc rc = bh_call_alloc(call, sizeof *leaving, &leaving, err);

    if (rc != BH_OK)
        return rc;
    *leaving = (struct logout_leaving){ .documents = &accounts->documents,
                                        .call = call,
                                        .subject = logout->subject,
                                        .sid = logout->session[0] ? logout->session : NULL };
    leaving->issuer = bh_arena_printf(call->arena, "%s/", issuer->site->name);
    if (!leaving->issuer)
        return bh_err_set(err, BH_FULL, "no room to end sessions");
    do {
        leaving->count = 0;
        rc = store->ops->list_documents(store->self, &(struct bh_document_filter){ BH_DOCUMENT_SESSION, 0 },
                                        logout_end_matching_session, leaving, err);
        change.puts = leaving->puts;
        change.put_count = leaving->count;
        if (rc == BH_OK && leaving->count)
            rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    } while (rc == BH_OK && leaving->count == BH_COUNT(leaving->puts));
    return rc;
}

bh_rc
bh_serve_logout(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct logout_word word;
    bh_rc rc = logout_read_token_parameter(call, &word.token, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ready(accounts, call, call->id, &word.issuer, err);
    if (rc != BH_OK)
        return rc;
    rc = read_logout(accounts, call, &word, err);
    if (rc != BH_OK)
        return rc;
    rc = logout_end_sessions(accounts, call, word.issuer, &word.logout, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, sign_in_logout, .ended = true);
    return BH_OK;
}
