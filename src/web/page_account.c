#include <string.h>

#include "web/account_pages.h"
#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/page.h"

enum { PASSKEYS_MAX = 16, TOKENS_MAX = 200, SESSIONS_MAX = 100, CODES_MAX = 16 };

static const char *
account_handler_text_of(bh_json_value object, const char *name)
{
    return bh_json_text(bh_json_get(object, name), "");
}

static bh_ns
account_time_of(bh_json_value object, const char *name)
{
    return bh_json_number(bh_json_get(object, name), 0);
}

static bh_json_value
account_list_of(const struct bh_api_response *response, const char *name)
{
    return response->json ? bh_json_get(bh_json_root(response->json), name) : NULL;
}

static bool
account_truth_of(const struct bh_api_response *response, const char *name)
{
    return response->json && bh_json_truth(bh_json_get(bh_json_root(response->json), name));
}

/* What the account's pages have in common: the navigation, and lines that are read. */
static struct bh_page_frame
account_frame(struct bh_page *page)
{
    struct bh_page_frame frame = bh_page_frame(page, NULL);

    bh_page_who(page, &frame);
    frame.section = BH_SECTION_ACCOUNT;
    frame.narrow = true;
    return frame;
}

/* ---- what the account page shows ---- */

static uint32_t
account_read_passkeys(bh_json_value list, struct bh_passkey_view views[PASSKEYS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(list) && count < PASSKEYS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);

        views[count++] = (struct bh_passkey_view){
            .id = account_handler_text_of(row, "id"),
            .name = account_handler_text_of(row, "name"),
            .created = account_time_of(row, "created_ns"),
            .used = account_time_of(row, "last_used_ns"),
            .synced = bh_json_truth(bh_json_get(row, "synced")),
        };
    }
    return count;
}

/* Those that still work; one's own. */
static uint32_t
account_read_tokens(bh_json_value list, const char *account, struct bh_token_view views[TOKENS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(list) && count < TOKENS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);
        const char *label = account_handler_text_of(row, "note");

        if (strcmp(account_handler_text_of(row, "state"), "valid") != 0
            || strcmp(account_handler_text_of(row, "principal"), account) != 0)
            continue;
        views[count++] = (struct bh_token_view){
            .id = account_handler_text_of(row, "id"),
            .name = label[0] ? label : account_handler_text_of(row, "id"),
            .created = account_time_of(row, "created_ns"),
            .used = account_time_of(row, "last_used_ns"),
            .expires = account_time_of(row, "expires_ns"),
        };
    }
    return count;
}

/* "corp, with a code": the issuer, and the factor that was shown. */
static const char *
account_how_of(bh_json_value row, struct bh_arena *arena)
{
    const char *issuer = account_handler_text_of(row, "issuer"),
               *level = account_handler_text_of(row, "level");
    const char *shown = strcmp(level, "passkey") == 0 ? "with a passkey"
                        : strcmp(level, "code") == 0  ? "with a code"
                                                      : "without a second factor";
    const char *how = bh_arena_printf(arena, "%s, %s", issuer[0] ? issuer : "an account of this site", shown);

    return how ? how : shown;
}

static uint32_t
account_read_sessions(bh_json_value list, struct bh_arena *arena, struct bh_session_view views[SESSIONS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(list) && count < SESSIONS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);
        const char *host = account_handler_text_of(row, "host");

        views[count++] = (struct bh_session_view){
            .id = account_handler_text_of(row, "id"),
            .how = account_how_of(row, arena),
            .from = host[0] ? host : account_handler_text_of(row, "kind"),
            .begun = account_time_of(row, "created_ns"),
            .last_used = account_time_of(row, "last_used_ns"),
            .present = bh_json_truth(bh_json_get(row, "this")),
        };
    }
    return count;
}

/* The session is over: remove the cookie, and let the user sign in again. */
static bool
account_handler_is_over(struct bh_page *page, const struct bh_api_response *response)
{
    if (response->status != 401 || response->step_up)
        return false;
    bh_page_sign_out(page);
    bh_page_redirect(page, "/signin", BH_NOTICE_SESSION_OVER);
    return true;
}

void
bh_show_account(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response account = { 0 };
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response tokens = { 0 };
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response sessions = { 0 };
    struct bh_passkey_view passkey_views[PASSKEYS_MAX];
    struct bh_token_view token_views[TOKENS_MAX];
    struct bh_session_view session_views[SESSIONS_MAX];
    struct bh_account_view view = { .passkeys = passkey_views,
                                    .tokens = token_views,
                                    .sessions = session_views };
    const char *name;

    account = bh_page_call(page, BH_GET, "/v1/account", NULL);
    if (account_handler_is_over(page, &account))
        return;
    if (!bh_api_response_is_ok(&account)) {
        bh_page_error(page, account.status);
        return;
    }
    tokens = bh_page_call(page, BH_GET, "/v1/tokens", NULL);
    sessions = bh_page_call(page, BH_GET, "/v1/sessions", NULL);
    name = bh_api_response_text(&account, "name");
    view.frame = account_frame(page);
    view.frame.account = name;
    view.passkey_count = account_read_passkeys(account_list_of(&account, "passkeys"), passkey_views);
    view.token_count = account_read_tokens(account_list_of(&tokens, "items"), name, token_views);
    view.session_count =
        account_read_sessions(account_list_of(&sessions, "items"), page->request->arena, session_views);
    view.recovery_left = (uint32_t)bh_api_response_number(&account, "recovery_left");
    view.totp = account_truth_of(&account, "totp");
    view.local = account_truth_of(&account, "password");
    if (view.frame.notice == BH_NOTICE_NONE && !view.totp && view.passkey_count == 0)
        view.frame.notice = BH_NOTICE_ENROL_FIRST;
    bh_page_headers(page->reply, 200, true);
    bh_account_page(&page->reply->body, &view);
}

/* ---- what one does there ---- */

/* Back to the account, with how it went. */
static void
account_handler_finish(struct bh_page *page, const struct bh_api_response *response, enum bh_notice done,
                       enum bh_notice refused)
{
    if (account_handler_is_over(page, response))
        return;
    if (bh_api_response_is_ok(response))
        bh_page_redirect(page, "/account", done);
    else
        bh_page_refuse(page, response, "/account", refused);
}

/* Remove the thing whose id the form names; ids are letters, digits, '-' and '_' alone, so
 * that none leads elsewhere. */
static void
account_remove_one(struct bh_page *page, const char *folder, enum bh_notice done, enum bh_notice refused)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { .status = 400 };
    const char *id = bh_page_field(page, "id");
    const char *path = bh_arena_printf(page->request->arena, "%s/%s", folder, id);

    if (path && id[0] && id[strspn(id, plain)] == '\0')
        response = bh_page_call(page, BH_DELETE, path, NULL);
    account_handler_finish(page, &response, done, refused);
}

void
bh_post_passkey_options(struct bh_page *page)
{
    bh_page_forward(page, BH_POST, "/v1/account/passkeys/challenge");
}

void
bh_post_passkey_remove(struct bh_page *page)
{
    account_remove_one(page, "/v1/account/passkeys", BH_NOTICE_PASSKEY_REMOVED, BH_NOTICE_LAST_FACTOR);
}

void
bh_post_token_revoke(struct bh_page *page)
{
    account_remove_one(page, "/v1/tokens", BH_NOTICE_TOKEN_REVOKED, BH_NOTICE_STALE);
}

void
bh_post_session_end(struct bh_page *page)
{
    account_remove_one(page, "/v1/sessions", BH_NOTICE_SESSION_ENDED, BH_NOTICE_STALE);
}

void
bh_post_totp_new(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    struct bh_totp_view view;

    response = bh_page_call(page, BH_POST, "/v1/account/totp", NULL);
    if (!bh_api_response_is_ok(&response)) {
        account_handler_finish(page, &response, BH_NOTICE_NONE, BH_NOTICE_REFUSED);
        return;
    }
    view = (struct bh_totp_view){ account_frame(page), bh_api_response_text(&response, "address"),
                                  bh_api_response_text(&response, "secret") };
    bh_page_headers(page->reply, 200, true);
    bh_totp_page(&page->reply->body, &view);
}

/* Show the codes of a reply; false when it has none. */
static bool
account_put_codes(struct bh_page *page, const struct bh_api_response *response)
{
    const char *codes[CODES_MAX];
    struct bh_codes_view view = { .codes = codes };
    bh_json_value list = account_list_of(response, "recovery");

    for (size_t i = 0; i < bh_json_count(list) && view.count < CODES_MAX; i++)
        codes[view.count++] = bh_json_text(bh_json_at(list, i), "");
    if (view.count == 0)
        return false;
    view.frame = account_frame(page);
    bh_page_headers(page->reply, 200, true);
    bh_codes_page(&page->reply->body, &view);
    return true;
}

void
bh_post_passkey(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    response = bh_page_call(page, BH_POST, "/v1/account/passkeys", bh_page_field(page, "answer"));
    if (!bh_api_response_is_ok(&response) || !account_put_codes(page, &response))
        account_handler_finish(page, &response, BH_NOTICE_PASSKEY_ADDED,
                               response.status == 409 ? BH_NOTICE_PASSKEY_KNOWN : BH_NOTICE_REFUSED);
}

void
bh_post_totp(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    const struct bh_page_member members[] = { { "code", bh_page_field(page, "code") }, { NULL, NULL } };

    response = bh_page_call_with(page, BH_PUT, "/v1/account/totp", members);
    if (response.status == 400) /* it was not the app's code: the secret is void */
        bh_page_redirect(page, "/account", BH_NOTICE_REFUSED);
    else if (!bh_api_response_is_ok(&response) || !account_put_codes(page, &response))
        account_handler_finish(page, &response, BH_NOTICE_TOTP_ADDED, BH_NOTICE_REFUSED);
}

void
bh_post_totp_remove(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    response = bh_page_call(page, BH_DELETE, "/v1/account/totp", NULL);
    account_handler_finish(page, &response, BH_NOTICE_TOTP_REMOVED, BH_NOTICE_LAST_FACTOR);
}

void
bh_post_recovery(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    response = bh_page_call(page, BH_POST, "/v1/account/recovery", NULL);
    if (!bh_api_response_is_ok(&response) || !account_put_codes(page, &response))
        account_handler_finish(page, &response, BH_NOTICE_NONE, BH_NOTICE_REFUSED);
}

/* ---- password, and confirming the user ---- */

static void
account_put_password(struct bh_page *page, uint32_t status, enum bh_notice notice)
{
    struct bh_enroll_view view = { .frame = account_frame(page), .account = "", .old = true };

    view.frame.notice = notice;
    bh_page_headers(page->reply, status, true);
    bh_enroll_page(&page->reply->body, &view);
}

void
bh_show_password(struct bh_page *page)
{
    account_put_password(page, 200, BH_NOTICE_NONE);
}

void
bh_post_password(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response account = { 0 };
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    struct bh_page_member members[] = { { "account", NULL },
                                        { "old", bh_page_field(page, "old") },
                                        { "password", bh_page_field(page, "password") },
                                        { NULL, NULL } };

    if (strcmp(bh_page_field(page, "password"), bh_page_field(page, "repeated")) != 0) {
        account_put_password(page, 400, BH_NOTICE_PASSWORD_TWICE);
        return;
    }
    account = bh_page_call(page, BH_GET, "/v1/account", NULL);
    if (account_handler_is_over(page, &account))
        return;
    members[0].text = bh_api_response_text(&account, "name");
    response = bh_page_call_with(page, BH_PUT, "/v1/account/password", members);
    if (bh_api_response_is_ok(&response)) { /* all sessions have ended with the old one */
        bh_page_sign_out(page);
        bh_page_redirect(page, "/signin", BH_NOTICE_PASSWORD_SET);
    } else if (response.status == 400)
        account_put_password(page, 400, BH_NOTICE_PASSWORD_WEAK);
    else
        account_put_password(page, 403, bh_page_notice(&response, BH_NOTICE_REFUSED));
}

/* The issuer of this session; "" for an account of this site. */
static const char *
account_issuer_of(bh_json_value list)
{
    for (size_t i = 0; i < bh_json_count(list); i++)
        if (bh_json_truth(bh_json_get(bh_json_at(list, i), "this")))
            return account_handler_text_of(bh_json_at(list, i), "issuer");
    return "";
}

static void
account_put_step_up(struct bh_page *page, uint32_t status, enum bh_notice notice)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response account = { 0 };
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response sessions = { 0 };
    struct bh_step_up_view view;

    account = bh_page_call(page, BH_GET, "/v1/account", NULL);
    if (account_handler_is_over(page, &account))
        return;
    view = (struct bh_step_up_view){
        .frame = bh_page_frame(page, bh_api_response_text(&account, "name")),
        .passkey = bh_json_count(account_list_of(&account, "passkeys")) > 0,
        .code = account_truth_of(&account, "totp") || bh_api_response_number(&account, "recovery_left") > 0,
        .next = bh_next_path(bh_page_field(page, "next"), ""),
    };
    sessions = bh_page_call(page, BH_GET, "/v1/sessions", NULL);
    view.issuer = account_issuer_of(account_list_of(&sessions, "items"));
    view.frame.notice = notice;
    bh_page_headers(page->reply, status, true);
    bh_step_up_page(&page->reply->body, &view);
}

void
bh_show_step_up(struct bh_page *page)
{
    account_put_step_up(page, 200, BH_NOTICE_NONE);
}

static void
account_finish_step_up(struct bh_page *page, const struct bh_api_response *response)
{
    if (bh_api_response_is_ok(response))
        bh_page_redirect(page, bh_next_path(bh_page_field(page, "next"), "/account"), BH_NOTICE_NONE);
    else
        account_put_step_up(page, 403, bh_page_notice(response, BH_NOTICE_REFUSED));
}

void
bh_post_step_up(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    const struct bh_page_member members[] = { { "code", bh_page_field(page, "code") }, { NULL, NULL } };

    response = bh_page_call_with(page, BH_POST, "/v1/prove", members);
    account_finish_step_up(page, &response);
}

void
bh_post_step_up_passkey(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    response = bh_page_call(page, BH_POST, "/v1/prove", bh_page_field(page, "answer"));
    account_finish_step_up(page, &response);
}
