#include "accounts/sessions.h"

#include <string.h>

#include "accounts/attempt.h"
#include "accounts/factor.h"
#include "accounts/passkeys.h"
#include "accounts/session.h"
#include "api/request/reply.h"
#include "api/request/token.h"
#include "base/log.h"

/* The resources of sessions: showing, ending, confirming the user, break-glass. */

#define BREAK_GLASS_NS (UINT64_C(3600) * BH_NS_PER_S)

struct session_list {
    struct bh_accounts *accounts;
    struct bh_call *call;
    struct bh_rows rows;
};

/* A thumbprint in hex, "" where there is none. */
static const char *
sessions_certificate_of(const uint8_t certificate[32], char text[65])
{
    static const uint8_t none[32];
    struct bh_buf hex;

    bh_buf_init_fixed(&hex, text, 65);
    bh_buf_put_hex(&hex, certificate, 32);
    return memcmp(certificate, none, 32) == 0 ? "" : bh_buf_text(&hex);
}

static bool
sessions_put_session(struct session_list *list, const struct bh_session *session)
{
    const struct bh_dir_principal *principal =
        bh_directory_principal(list->call->dir, (bh_principal_id){ session->principal });
    const char *own = list->call->caller.token;
    const char *slash = session->identity ? strchr(session->identity, '/') : NULL;
    char certificate[65];
    uint64_t used;

    bh_mutex_lock(&list->accounts->mutex);
    used = bh_use_at(&list->accounts->uses, session->id);
    bh_mutex_unlock(&list->accounts->mutex);
    return bh_rows_put(
        &list->rows,
        &(struct bh_reply_session_shown){
            .break_glass_until_ns = session->glass_until_ns,
            .certificate = sessions_certificate_of(session->certificate, certificate),
            .created_ns = session->created_ns,
            .expires_ns = session->expires_ns,
            .host = session->host,
            .id = session->id,
            .issuer = { slash ? session->identity : "", slash ? (size_t)(slash - session->identity) : 0 },
            .kind = bh_session_kind_names[session->kind],
            .last_used_ns = used > session->used_ns ? used : session->used_ns,
            .level = bh_level_names[session->level],
            .principal = principal ? principal->name : "",
            .this = own && strcmp(own, session->id) == 0,
        });
}

static bool
list_session(void *self, const struct bh_document_row *row)
{
    struct session_list *list = self;
    struct bh_session session;
    struct bh_err err;

    if (bh_session_of(&list->accounts->documents, row, list->call->arena, &session, &err) == BH_OK)
        return sessions_put_session(list, &session);
    return true;
}

bh_rc
bh_serve_sessions(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct bh_document_filter filter = { BH_DOCUMENT_SESSION, call->caller.subject.principal.v };
    struct session_list list = { accounts, call, bh_rows_begin(call, &bh_reply_session_list_fields) };
    bh_rc rc = BH_OK;

    if (filter.principal_id)
        rc = store->ops->list_documents(store->self, &filter, list_session, &list, err);
    bh_rows_end(&list.rows, NULL);
    return rc;
}

static bh_rc
sessions_drop(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session *session,
              struct bh_err *err)
{
    struct bh_document_put put;
    struct bh_accounts_change change = {
        .verb = "session.end", .puts = &put, .put_count = 1, .object = { "account", session->principal }
    };
    struct bh_answer answer;
    bh_rc rc = bh_session_drop(session, call->arena, &put, err);

    put.blind = true;
    return rc == BH_OK ? bh_accounts_commit(accounts, call, &change, &answer, err) : rc;
}

bh_rc
bh_serve_session_end(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_session session;
    bh_rc rc = BH_NOT_FOUND;

    if (bh_token_id_valid(call->id))
        rc = bh_session_read(&accounts->documents, call->id, call->arena, &session, err);
    if (rc == BH_OK && session.principal != call->caller.subject.principal.v
        && !bh_authz_check(call->dir, &call->caller.subject, "account.any", (bh_tenant_id){ 0 }).allow) {
        call->object = (struct bh_record_object){ "account", session.principal };
        rc = BH_NOT_FOUND;
    }
    if (rc == BH_NOT_FOUND) {
        call->probed = true;
        return bh_err_set(err, BH_NOT_FOUND, "you have no session %.20s", call->id);
    }
    if (rc != BH_OK)
        return rc;
    rc = sessions_drop(accounts, call, &session, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, session_ended, .ended = true, .id = session.id);
    return BH_OK;
}

/* Where the browser can sign out of the provider as well; "" where it cannot. */
static const char *
sessions_logout_of(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session *session)
{
    BH_AUTO(bh_buf_fini) struct bh_buf url = { .max = 8192 };
    const char *slash = strchr(session->identity, '/');
    struct bh_logout_request logout_request = { .state = session->id };
    struct bh_issuer_view *issuer;
    const char *name, *text = NULL;
    struct bh_err unused;

    name = bh_arena_strndup(call->arena, session->identity, (size_t)(slash - session->identity));
    if (!name || bh_issuer_ready(accounts, call, name, &issuer, &unused) != BH_OK)
        return "";
    logout_request.back = call->dir->sign_in->address
                              ? bh_arena_printf(call->arena, "%s/signedout", call->dir->sign_in->address)
                              : NULL;
    if (bh_logout_url(&issuer->provider, &issuer->client, &logout_request, &url) == BH_OK
        && bh_buf_text(&url))
        text = bh_arena_strdup(call->arena, bh_buf_text(&url));
    return text ? text : "";
}

bh_rc
bh_serve_sign_out(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_session session;
    bh_rc rc = bh_session_own(accounts, call, &session, err);

    if (rc != BH_OK)
        return rc;
    rc = sessions_drop(accounts, call, &session, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, signed_out, .ended = true,
                  .logout = session.identity ? sessions_logout_of(accounts, call, &session) : "");
    return BH_OK;
}

/* Write the session with its account and the counts: all or nothing. */
static bh_rc
sessions_write_proof(struct bh_accounts *accounts, struct bh_call *call, struct bh_puts *puts,
                     struct bh_session *session, struct bh_err *err)
{
    struct bh_accounts_change change = { .verb = "session.prove",
                                         .puts = puts->items,
                                         .object = { "account", session->principal } };
    struct bh_answer answer;
    bh_rc rc;

    session->shown_ns = bh_accounts_now(accounts);
    rc = bh_session_put(session, call->arena, &puts->items[puts->count++], err);
    change.put_count = puts->count;
    return rc == BH_OK ? bh_accounts_commit(accounts, call, &change, &answer, err) : rc;
}

/* A code, with what must be written when it was right. */
static bh_rc
sessions_prove_by_code(struct bh_accounts *accounts, struct bh_call *call,
                       const struct bh_sign_in_request *request, struct bh_session *session,
                       struct bh_err *err)
{
    struct bh_puts puts = { .count = 0 };
    struct bh_account account;
    struct bh_sign_in_attempt attempt;
    bh_rc rc = bh_account_read(&accounts->documents, session->principal, call->arena, &account, err);

    if (rc == BH_NOT_FOUND || (rc == BH_OK && !bh_account_has_factor(&account)))
        return bh_err_set(err, BH_CONFLICT, "this account has no second factor");
    if (rc != BH_OK)
        return rc;
    attempt = bh_attempt_from_call(accounts, call, call->caller.name, request->device, session->principal);
    rc = bh_attempt_begin(accounts, call, &attempt, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_code_right(accounts, &account, request->code))
        return bh_attempt_failed(accounts, call, &attempt, err);
    rc = bh_attempt_succeeded(accounts, call, &attempt, &puts, err);
    if (rc == BH_OK)
        rc = bh_account_put(&account, call->arena, &puts.items[puts.count++], err);
    session->level = BH_LEVEL_CODE;
    return rc == BH_OK ? sessions_write_proof(accounts, call, &puts, session, err) : rc;
}

/* The same with a passkey. */
static bh_rc
sessions_prove_by_passkey(struct bh_accounts *accounts, struct bh_call *call,
                          const struct bh_sign_in_request *request, struct bh_session *session,
                          struct bh_err *err)
{
    struct bh_sign_in_attempt attempt = bh_passkey_attempt(accounts, call);
    struct bh_puts puts = { .count = 0 };
    struct bh_passkey_proof shown;

    if (!bh_passkey_right(accounts, call, request, &shown) || shown.principal != session->principal)
        return bh_attempt_failed(accounts, call, &attempt, err);
    puts.items[puts.count++] = shown.put;
    session->level = BH_LEVEL_PASSKEY;
    return sessions_write_proof(accounts, call, &puts, session, err);
}

bh_rc
bh_serve_prove(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_request request = { 0 };
    struct bh_session session;
    bh_rc rc = bh_call_body(call, &bh_sign_in_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_session_own(accounts, call, &session, err);
    if (rc != BH_OK)
        return rc;
    rc = request.credential ? sessions_prove_by_passkey(accounts, call, &request, &session, err)
                            : sessions_prove_by_code(accounts, call, &request, &session, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, session_level, .level = bh_level_names[session.level], .shown_ns = session.shown_ns);
    return BH_OK;
}

/* No role allows it: the site file allows it to a principal. */
static bh_rc
sessions_deny_break_glass(struct bh_call *call, struct bh_err *err)
{
    static const struct bh_denial denial = { "glass.break",
                                             { false, BH_RULE_DEFAULT_DENY },
                                             BH_REACH_OBJECT };

    (void)bh_call_deny(call, denial, (bh_tenant_id){ 0 }, err);
    return bh_err_hint(err, "break_glass of a principal in the site file allows it");
}

bh_rc
bh_serve_break_glass(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_reason_request request = { 0 };
    const struct bh_dir_principal *principal =
        bh_directory_principal(call->dir, call->caller.subject.principal);
    struct bh_document_put put;
    struct bh_accounts_change change = { .verb = "glass.break", .puts = &put, .put_count = 1 };
    struct bh_session session;
    struct bh_answer answer;
    bh_rc rc = bh_call_body(call, &bh_reason_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (!principal || !principal->break_glass)
        rc = sessions_deny_break_glass(call, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_session_own(accounts, call, &session, err);
    if (rc != BH_OK)
        return rc;
    if (strlen(request.reason) < 10)
        return bh_err_set(err, BH_INVALID, "reason: give the reason in a sentence");
    session.glass_until_ns = bh_accounts_now(accounts) + BREAK_GLASS_NS;
    rc = bh_session_put(&session, call->arena, &put, err);
    change.object = (struct bh_record_object){ "account", session.principal };
    change.note = request.reason;
    if (rc != BH_OK)
        return rc;
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    bh_log(GLASS_BROKEN, BH_U64("principal", session.principal), BH_U64("until_ns", session.glass_until_ns));
    BH_REPLY_WITH(call, break_glass, .until_ns = session.glass_until_ns);
    return BH_OK;
}
