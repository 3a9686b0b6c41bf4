#include "accounts/oidc.h"

#include <stdio.h>
#include <string.h>

#include "api/request/reply.h"
#include "identity/form.h"
#include "accounts/session.h"

enum {
    ADDRESS_MAX = 8192,
    SKEW_S = 60,
    LOGIN_WITHIN_S = 600,
    STEP_UP_WITHIN_S = 300,
    REFRESH_S = 600,
    PLAIN_SUBJECT_MAX = 60
};

/* ---- the signed-in identity ---- */

static const char *
oidc_identity_of(struct bh_call *call, const struct bh_oidc_sign_in *sign_in)
{
    return bh_arena_printf(call->arena, "%s/%s", sign_in->issuer->site->name, sign_in->token.subject);
}

static bool
oidc_is_plain(const char *subject)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-";

    return strspn(subject, plain) == strlen(subject) && strlen(subject) <= PLAIN_SUBJECT_MAX;
}

/* A subject that cannot be in a name is there by its digest; '~' is in no plain one, so two
 * subjects never have one name. */
static const char *
oidc_name_of(struct bh_accounts *accounts, struct bh_call *call, const struct bh_oidc_sign_in *sign_in)
{
    const char *issuer = sign_in->issuer->site->name, *subject = sign_in->token.subject;
    uint8_t digest[32];
    char hex[65];
    struct bh_buf text;

    if (oidc_is_plain(subject))
        return bh_arena_printf(call->arena, "%s:%s", issuer, subject);
    accounts->options.crypto->sha256(subject, strlen(subject), "", 0, digest);
    bh_buf_init_fixed(&text, hex, sizeof hex);
    bh_buf_put_hex(&text, digest, sizeof digest);
    return bh_buf_text(&text) ? bh_arena_printf(call->arena, "%s:~%.40s", issuer, hex) : NULL;
}

/* The principal of an identity: the one that the site file names, else one of the issuer's, "corp:SUBJECT".
 * NULL: no room. */
static const char *
oidc_principal_of(struct bh_accounts *accounts, struct bh_call *call, const struct bh_oidc_sign_in *sign_in,
                  uint32_t *ret_principal)
{
    const char *identity = oidc_identity_of(call, sign_in), *name;
    const struct bh_dir_principal *principal =
        identity ? bh_directory_principal_known(call->dir, identity) : NULL;

    *ret_principal = principal ? principal->id.v : 0;
    if (principal)
        return principal->name;
    name = oidc_name_of(accounts, call, sign_in);
    principal = name ? bh_directory_principal_named(call->dir, name) : NULL;
    if (principal)
        *ret_principal = principal->id.v;
    return name;
}

bh_rc
bh_oidc_sign_in_groups(struct bh_call *call, const struct bh_oidc_sign_in *sign_in,
                       struct bh_texts *ret_groups, struct bh_err *err)
{
    const struct bh_texts *groups = &sign_in->token.groups;

    *ret_groups =
        (struct bh_texts){ bh_arena_alloc(call->arena, (groups->count + 1) * sizeof(const char *)), 0 };
    if (!ret_groups->items)
        return bh_err_set(err, BH_FULL, "no room for groups");
    for (uint32_t i = 0; i < groups->count; i++) {
        const char *name =
            bh_arena_printf(call->arena, "%s/%s", sign_in->issuer->site->name, groups->items[i]);

        if (!name)
            return bh_err_set(err, BH_FULL, "no room for groups");
        if (bh_directory_group(call->dir, name))
            ret_groups->items[ret_groups->count++] = name;
    }
    return BH_OK;
}

static bool
oidc_has(const struct bh_texts *texts, const char *wanted)
{
    for (uint32_t i = 0; i < texts->count; i++)
        if (strcmp(texts->items[i], wanted) == 0)
            return true;
    return false;
}

/* RFC 8176's methods; "phr" and "phrh" are OpenID's phishing-resistant classes. */
static enum bh_level
oidc_level_of(const struct bh_oidc_sign_in *sign_in)
{
    const struct bh_id_token *token = &sign_in->token;

    if (strcmp(token->acr, "phr") == 0 || strcmp(token->acr, "phrh") == 0)
        return BH_LEVEL_PASSKEY;
    if (oidc_has(&token->amr, "mfa") || oidc_has(&token->amr, "otp") || oidc_has(&token->amr, "hwk")
        || sign_in->issuer->site->second_factor)
        return BH_LEVEL_CODE;
    return BH_LEVEL_NONE;
}

/* ---- their tokens ---- */

static enum bh_identity_fault
oidc_read_token(struct bh_accounts *accounts, struct bh_call *call, const struct bh_token_rules *expected,
                struct bh_oidc_sign_in *sign_in)
{
    const struct bh_issuer_view *issuer = sign_in->issuer;
    const struct bh_jws_trust trust = { &issuer->jwks, issuer->algs };
    const struct bh_id_token_rules rules = {
        .issuer = issuer->site->url,
        .client = issuer->site->client_id,
        .when = { bh_accounts_now(accounts), SKEW_S, expected->subject ? 0 : LOGIN_WITHIN_S },
        .nonce = expected->nonce,
        .code = expected->code,
        .access_token = sign_in->tokens.access,
        .subject = expected->subject,
        .max_age = expected->fresh,
        .max_age_s = STEP_UP_WITHIN_S,
        .groups = issuer->site->groups_claim ? issuer->site->groups_claim : "groups",
    };

    return bh_id_token_read(sign_in->tokens.id, &trust, &rules, call->arena, &sign_in->token);
}

bh_rc
bh_oidc_sign_in_check(struct bh_accounts *accounts, struct bh_call *call,
                      const struct bh_token_rules *expected, struct bh_oidc_sign_in *sign_in,
                      struct bh_err *err)
{
    struct bh_issuer_view *issuer = sign_in->issuer;
    enum bh_identity_fault fault;
    bh_rc rc = bh_issuer_keys(accounts, call, false, issuer, err);

    if (rc != BH_OK)
        return rc;
    fault = oidc_read_token(accounts, call, expected, sign_in);
    if (fault == BH_FAULT_KEY_UNKNOWN) { /* the provider may have a new one */
        rc = bh_issuer_keys(accounts, call, true, issuer, err);
        if (rc == BH_OK)
            fault = oidc_read_token(accounts, call, expected, sign_in);
    }
    if (rc == BH_OK && fault != BH_FAULT_NONE)
        rc = bh_issuer_refused(issuer, fault, err);
    return rc;
}

/* ---- admitting them ---- */

bh_rc
bh_oidc_sign_in_complete(struct bh_accounts *accounts, struct bh_call *call,
                         const struct bh_oidc_sign_in *sign_in, struct bh_err *err)
{
    bh_ns now = bh_accounts_now(accounts);
    struct bh_session_opening opening = {
        .session = { .host = sign_in->host,
                     .kind = sign_in->kind,
                     .level = oidc_level_of(sign_in),
                     .identity = oidc_identity_of(call, sign_in),
                     .refresh = sign_in->tokens.refresh,
                     .refresh_ns = sign_in->tokens.refresh ? now + REFRESH_S * BH_NS_PER_S : 0,
                     .sid = sign_in->token.session[0] ? sign_in->token.session : NULL }
    };
    bh_rc rc = bh_oidc_sign_in_groups(call, sign_in, &opening.session.groups, err);

    if (rc != BH_OK)
        return rc;
    opening.name = oidc_principal_of(accounts, call, sign_in, &opening.principal);
    if (!opening.name)
        return bh_err_set(err, BH_FULL, "no room for a name");
    if (!opening.principal)
        opening.person = opening.name;
    return bh_session_open(accounts, call, &opening, err);
}

/* A signed-in user has shown a factor again. */
static bh_rc
oidc_complete_step_up(struct bh_accounts *accounts, struct bh_call *call,
                      const struct bh_oidc_sign_in *sign_in, struct bh_session *session, struct bh_err *err)
{
    struct bh_document_put put;
    struct bh_accounts_change change = {
        .verb = "session.prove", .puts = &put, .put_count = 1, .object = { "account", session->principal }
    };
    struct bh_answer answer;
    bh_rc rc;

    session->level = oidc_level_of(sign_in);
    session->shown_ns = bh_accounts_now(accounts);
    rc = bh_session_put(session, call->arena, &put, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_accounts_commit(accounts, call, &change, &answer, err);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, session_level, .level = bh_level_names[session->level],
                  .shown_ns = session->shown_ns);
    return BH_OK;
}

/* ---- with a browser ---- */

bh_rc
bh_serve_issuer(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_issuer_request request = { 0 };
    struct bh_pending draft = { .kind = BH_PENDING_ISSUER };
    struct bh_login_request expected = { 0 };
    uint8_t random[BH_LOGIN_RANDOM];
    struct bh_issuer_view *issuer;
    struct bh_caller caller = { .token = NULL };
    char memory[ADDRESS_MAX], id[33];
    struct bh_buf url;
    bh_rc rc = bh_call_body(call, &bh_sign_in_issuer_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ready(accounts, call, request.issuer, &issuer, err);
    if (rc != BH_OK)
        return rc;
    rc = accounts->options.crypto->random(random, sizeof random, err);
    if (rc != BH_OK)
        return rc;
    if (request.again)
        bh_session_of_request(accounts, call, &caller);
    snprintf(draft.session, sizeof draft.session, "%s", caller.token ? caller.token : "");
    expected.fresh = draft.session[0] != '\0';
    expected.max_age_s = expected.fresh ? STEP_UP_WITHIN_S : 0;
    snprintf(draft.issuer, sizeof draft.issuer, "%s", issuer->site->name);
    draft.expires = bh_accounts_now(accounts) + BH_LOGIN_SECONDS * BH_NS_PER_S;
    bh_login_init(&draft.login, random, bh_accounts_now(accounts));
    bh_secret_wipe(random, sizeof random);
    bh_buf_init_fixed(&url, memory, sizeof memory);
    rc = bh_login_begin(&issuer->provider, &issuer->client, &expected, &draft.login, &url);
    if (rc != BH_OK)
        return bh_err_set(err, rc, "the issuer's address is too long");
    rc = bh_pending_put(accounts, &draft, id, err);
    bh_secret_wipe(&draft, sizeof draft);
    if (rc != BH_OK)
        return rc;
    BH_REPLY_WITH(call, sign_in_begun, .address = bh_buf_text(&url), .id = id);
    return BH_OK;
}

/* Exchange the code that came back. */
static bh_rc
oidc_exchange(struct bh_accounts *accounts, struct bh_call *call, const struct bh_login *login,
              struct bh_oidc_sign_in *sign_in, struct bh_err *err)
{
    struct bh_issuer_view *issuer = sign_in->issuer;
    struct bh_https_request request;
    struct bh_https_response answer;
    enum bh_identity_fault fault;
    bh_rc rc = bh_issuer_prove(accounts, call, issuer, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_login_ask(login, &issuer->provider, &issuer->client, call->arena, &request);
    if (rc != BH_OK)
        return rc;
    rc = bh_issuer_ask(accounts, call, &request, &answer, err);
    if (rc != BH_OK)
        return rc;
    fault = bh_tokens_receive(&answer, true, call->arena, &sign_in->tokens);
    return fault == BH_FAULT_NONE ? BH_OK : bh_issuer_refused(issuer, fault, err);
}

static bh_rc
oidc_complete_callback(struct bh_accounts *accounts, struct bh_call *call, struct bh_pending *pending,
                       const char *query, struct bh_err *err)
{
    struct bh_issuer_view *issuer;
    struct bh_oidc_sign_in sign_in = { .host = "browser", .kind = BH_SESSION_BROWSER };
    struct bh_token_rules expected = { .nonce = pending->login.nonce,
                                       .code = pending->login.code,
                                       .fresh = pending->session[0] != '\0' };
    struct bh_session session;
    enum bh_identity_fault fault;
    bh_rc rc = bh_issuer_ready(accounts, call, pending->issuer, &issuer, err);

    if (rc != BH_OK)
        return rc;
    fault = bh_login_callback(&pending->login, &issuer->provider, query, bh_accounts_now(accounts));
    if (fault != BH_FAULT_NONE)
        return bh_issuer_refused(issuer, fault, err);
    sign_in.issuer = issuer;
    if (expected.fresh) {
        rc = bh_session_read(&accounts->documents, pending->session, call->arena, &session, err);
        if (rc != BH_OK || !session.identity)
            return bh_err_set(err, BH_CONFLICT, "the session has ended, or not of an issuer");
        expected.subject = strchr(session.identity, '/') + 1;
    }
    rc = oidc_exchange(accounts, call, &pending->login, &sign_in, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_oidc_sign_in_check(accounts, call, &expected, &sign_in, err);
    if (rc != BH_OK)
        return rc;
    return expected.fresh ? oidc_complete_step_up(accounts, call, &sign_in, &session, err)
                          : bh_oidc_sign_in_complete(accounts, call, &sign_in, err);
}

bh_rc
bh_serve_return(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_return_request request = { 0 };
    struct bh_pending pending;
    bh_rc rc = bh_call_body(call, &bh_sign_in_return_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_pending_consume(accounts, BH_PENDING_ISSUER, call->id, 0, &pending)) {
        bh_err_set(err, BH_NOT_FOUND, "no such sign-in is under way");
        return bh_err_hint(err, "start again; a sign-in must finish within ten minutes");
    }
    rc = oidc_complete_callback(accounts, call, &pending, request.query, err);
    bh_secret_wipe(&pending, sizeof pending);
    return rc;
}
