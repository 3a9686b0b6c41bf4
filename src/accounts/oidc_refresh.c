#include "accounts/oidc_refresh.h"

#include <string.h>

#include "base/log.h"
#include "accounts/oidc.h"

enum { REFRESHED_AT_ONCE_MAX = 16, REFRESH_EVERY_S = 600, REFRESH_LATER_S = 60 };

struct due {
    struct bh_accounts *accounts;
    struct bh_arena *arena;
    bh_ns now;
    struct bh_session sessions[REFRESHED_AT_ONCE_MAX];
    uint32_t count;
};

static bool
refresh_find_due(void *self, const struct bh_document_row *row)
{
    struct due *due = self;
    struct bh_session *session = &due->sessions[due->count];
    struct bh_err err;

    if (bh_session_of(&due->accounts->documents, row, due->arena, session, &err) == BH_OK && session->refresh
        && session->identity && session->refresh_ns && session->refresh_ns <= due->now)
        due->count++;
    return due->count < REFRESHED_AT_ONCE_MAX;
}

/* Whether an earlier group is not among the present ones. */
static bool
refresh_lost_role(const struct bh_texts *roles_before, const struct bh_texts *has)
{
    for (uint32_t i = 0; i < roles_before->count; i++) {
        uint32_t at = 0;

        while (at < has->count && strcmp(has->items[at], roles_before->items[i]) != 0)
            at++;
        if (at == has->count)
            return true;
    }
    return false;
}

/* ---- one session ---- */

enum outcome { STAYS, LATER, OUT };

static enum outcome
oidc_refresh_request(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session *session,
                     struct bh_oidc_sign_in *sign_in)
{
    struct bh_issuer_view *issuer = sign_in->issuer;
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;
    struct bh_err err;

    if (bh_issuer_prove(accounts, call, issuer, &err) != BH_OK
        || bh_refresh_ask(&issuer->provider, &issuer->client, session->refresh, call->arena, &request)
               != BH_OK
        || bh_issuer_ask(accounts, call, &request, &answer, &err) != BH_OK)
        return LATER;
    fault = bh_tokens_receive(&answer, false, call->arena, &sign_in->tokens);
    if (fault == BH_FAULT_NONE)
        return STAYS;
    bh_issuer_refused(issuer, fault, &err);
    return fault == BH_FAULT_GRANT_REFUSED ? OUT : LATER;
}

/* What the new tokens say of the user. */
static enum outcome
oidc_refresh_decide(struct bh_accounts *accounts, struct bh_call *call, struct bh_session *session,
                    struct bh_oidc_sign_in *sign_in)
{
    struct bh_token_rules rules = { .subject = strchr(session->identity, '/') + 1 };
    struct bh_texts groups;
    struct bh_err err;
    bh_rc rc;

    if (sign_in->tokens.refresh)
        session->refresh = sign_in->tokens.refresh;
    if (!sign_in->tokens.id)
        return STAYS;
    rc = bh_oidc_sign_in_check(accounts, call, &rules, sign_in, &err);
    if (rc == BH_UNAVAILABLE)
        return LATER;
    if (rc != BH_OK || bh_oidc_sign_in_groups(call, sign_in, &groups, &err) != BH_OK
        || refresh_lost_role(&session->groups, &groups))
        return OUT;
    session->groups = groups;
    return STAYS;
}

static enum outcome
oidc_refresh_one(struct bh_accounts *accounts, struct bh_call *call, struct bh_session *session)
{
    const char *slash = strchr(session->identity, '/');
    const char *name =
        slash ? bh_arena_strndup(call->arena, session->identity, (size_t)(slash - session->identity)) : NULL;
    struct bh_oidc_sign_in sign_in = { .host = NULL };
    struct bh_err err;
    enum outcome outcome;
    bh_rc rc;

    if (!name)
        return LATER;
    rc = bh_issuer_ready(accounts, call, name, &sign_in.issuer, &err);
    if (rc != BH_OK) /* the site file no longer has the issuer: the session ends */
        return rc == BH_NOT_FOUND ? OUT : LATER;
    outcome = oidc_refresh_request(accounts, call, session, &sign_in);
    return outcome == STAYS ? oidc_refresh_decide(accounts, call, session, &sign_in) : outcome;
}

/* ---- what follows ---- */

struct theirs {
    const struct bh_documents *documents;
    struct bh_arena *arena;
    const char *identity;
    struct bh_document_put puts[64];
    uint32_t count;
};

static bool
refresh_revoke_sessions(void *self, const struct bh_document_row *row)
{
    struct theirs *theirs = self;
    struct bh_session session;
    struct bh_err err;

    if (theirs->count == BH_COUNT(theirs->puts))
        return false;
    if (bh_session_of(theirs->documents, row, theirs->arena, &session, &err) != BH_OK || !session.identity
        || strcmp(session.identity, theirs->identity) != 0)
        return true;
    if (bh_session_drop(&session, theirs->arena, &theirs->puts[theirs->count], &err) == BH_OK)
        theirs->puts[theirs->count++].blind = true;
    return true;
}

static bh_rc
refresh_end_all(struct bh_accounts *accounts, struct bh_call *call, const struct bh_session *session,
                struct bh_err *err)
{
    const struct bh_store *store = &accounts->options.store;
    struct theirs theirs = { .documents = &accounts->documents,
                             .arena = call->arena,
                             .identity = session->identity };
    struct bh_accounts_change change = { .verb = "session.lost",
                                         .puts = theirs.puts,
                                         .object = { "account", session->principal } };
    struct bh_answer answer;
    bh_rc rc = store->ops->list_documents(
        store->self, &(struct bh_document_filter){ BH_DOCUMENT_SESSION, session->principal },
        refresh_revoke_sessions, &theirs, err);

    change.put_count = theirs.count;
    bh_log(SESSION_LOST, BH_U64("principal", session->principal));
    return rc == BH_OK ? bh_accounts_commit(accounts, call, &change, &answer, err) : rc;
}

static bh_rc
refresh_write(struct bh_accounts *accounts, struct bh_call *call, struct bh_session *session, bool later,
              struct bh_err *err)
{
    struct bh_document_put put;
    struct bh_accounts_change change = {
        .verb = "session.refresh", .puts = &put, .put_count = 1, .object = { "account", session->principal }
    };
    struct bh_answer answer;
    bh_rc rc;

    session->refresh_ns =
        bh_accounts_now(accounts) + (later ? REFRESH_LATER_S : REFRESH_EVERY_S) * BH_NS_PER_S;
    rc = bh_session_put(session, call->arena, &put, err);
    put.blind = !later; /* the token that was used is no longer valid */
    return rc == BH_OK ? bh_accounts_commit(accounts, call, &change, &answer, err) : rc;
}

void
bh_oidc_refresh(struct bh_accounts *accounts, struct bh_call *call)
{
    const struct bh_store *store = &accounts->options.store;
    struct due *due = bh_arena_alloc(call->arena, sizeof *due);
    struct bh_err err = { 0 };
    bh_rc rc;

    if (!due)
        return;
    *due = (struct due){ .accounts = accounts, .arena = call->arena, .now = bh_accounts_now(accounts) };
    rc = store->ops->list_documents(store->self, &(struct bh_document_filter){ BH_DOCUMENT_SESSION, 0 },
                                    refresh_find_due, due, &err);
    for (uint32_t i = 0; rc == BH_OK && i < due->count; i++) {
        enum outcome outcome = oidc_refresh_one(accounts, call, &due->sessions[i]);

        rc = outcome == OUT ? refresh_end_all(accounts, call, &due->sessions[i], &err)
                            : refresh_write(accounts, call, &due->sessions[i], outcome == LATER, &err);
        if (rc == BH_CONFLICT)
            rc = BH_OK; /* it was used, or ended, meanwhile */
    }
    if (rc != BH_OK && rc != BH_UNAVAILABLE)
        bh_log(PEOPLE_NOT_TENDED, BH_ERRLOG(&err));
}
