#include <string.h>

#include "web/account_pages.h"
#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/visit.h"

enum {
    PASSKEYS_MAX = 16,
    TOKENS_MAX = 200,
    SESSIONS_MAX = 100,
    CODES_MAX = 16,
    BODY_MAX = 1 << 15
};

static const char *
text_of(bh_json_value object, const char *name)
{
    return bh_json_text(bh_json_get(object, name), "");
}

static bh_ns
time_of(bh_json_value object, const char *name)
{
    return bh_json_number(bh_json_get(object, name), 0);
}

static bh_json_value
list_of(const struct bh_said *said, const char *name)
{
    return said->json ? bh_json_get(bh_json_root(said->json), name) : NULL;
}

static bool
truth_of(const struct bh_said *said, const char *name)
{
    return said->json && bh_json_truth(bh_json_get(bh_json_root(said->json), name));
}

/* ---- what the account page shows ---- */

static uint32_t
read_passkeys(bh_json_value list, struct bh_passkey_view views[PASSKEYS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(list) && count < PASSKEYS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);

        views[count++] = (struct bh_passkey_view) {
            .id = text_of(row, "id"),
            .name = text_of(row, "name"),
            .created = time_of(row, "created_ns"),
            .used = time_of(row, "last_used_ns"),
            .synced = bh_json_truth(bh_json_get(row, "synced")),
        };
    }
    return count;
}

/* Those that still work; one's own. */
static uint32_t
read_tokens(bh_json_value list, const char *account, struct bh_token_view views[TOKENS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(list) && count < TOKENS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);
        const char *note = text_of(row, "note");

        if (strcmp(text_of(row, "state"), "valid") != 0 ||
            strcmp(text_of(row, "principal"), account) != 0)
            continue;
        views[count++] = (struct bh_token_view) {
            .id = text_of(row, "id"),
            .name = note[0] ? note : text_of(row, "id"),
            .created = time_of(row, "created_ns"),
            .used = time_of(row, "last_used_ns"),
            .expires = time_of(row, "expires_ns"),
        };
    }
    return count;
}

/* "corp, with a code": who vouched, and what was shown. */
static const char *
how_of(bh_json_value row, struct bh_arena *arena)
{
    const char *issuer = text_of(row, "issuer"), *level = text_of(row, "level");
    const char *shown = strcmp(level, "passkey") == 0 ? "with a passkey"
                        : strcmp(level, "code") == 0  ? "with a code"
                                                      : "without a second factor";
    const char *how = bh_arena_printf(
        arena, "%s, %s", issuer[0] ? issuer : "an account of this site", shown);

    return how ? how : shown;
}

static uint32_t
read_sessions(bh_json_value list, struct bh_arena *arena,
              struct bh_session_view views[SESSIONS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(list) && count < SESSIONS_MAX; i++) {
        bh_json_value row = bh_json_at(list, i);
        const char *host = text_of(row, "host");

        views[count++] = (struct bh_session_view) {
            .id = text_of(row, "id"),
            .how = how_of(row, arena),
            .from = host[0] ? host : text_of(row, "kind"),
            .begun = time_of(row, "created_ns"),
            .seen = time_of(row, "last_used_ns"),
            .present = bh_json_truth(bh_json_get(row, "this")),
        };
    }
    return count;
}

/* The session is none any more: the cookie goes, and the person signs in again. */
static bool
is_over(struct bh_visit *visit, const struct bh_said *said)
{
    if (said->status != 401 || said->again)
        return false;
    bh_visit_sign_out(visit);
    bh_visit_go(visit, "/signin", BH_NOTICE_NONE);
    return true;
}

void
bh_show_account(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said account = { 0 };
    BH_AUTO(bh_said_fini)
    struct bh_said tokens = { 0 };
    BH_AUTO(bh_said_fini)
    struct bh_said sessions = { 0 };
    struct bh_passkey_view passkey_views[PASSKEYS_MAX];
    struct bh_token_view token_views[TOKENS_MAX];
    struct bh_session_view session_views[SESSIONS_MAX];
    struct bh_account_view view = { .passkeys = passkey_views,
                                    .tokens = token_views,
                                    .sessions = session_views };
    const char *name;

    account = bh_visit_ask(visit, BH_GET, "/v1/account", NULL);
    if (is_over(visit, &account))
        return;
    if (!bh_said_well(&account)) {
        bh_visit_error(visit, account.status);
        return;
    }
    tokens = bh_visit_ask(visit, BH_GET, "/v1/tokens", NULL);
    sessions = bh_visit_ask(visit, BH_GET, "/v1/sessions", NULL);
    name = bh_said_text(&account, "name");
    view.frame = bh_visit_frame(visit, name);
    view.passkey_count = read_passkeys(list_of(&account, "passkeys"), passkey_views);
    view.token_count = read_tokens(list_of(&tokens, "items"), name, token_views);
    view.session_count =
        read_sessions(list_of(&sessions, "items"), visit->request->arena, session_views);
    view.recovery_left = (uint32_t)bh_said_number(&account, "recovery_left");
    view.totp = truth_of(&account, "totp");
    view.local = truth_of(&account, "password");
    if (view.frame.notice == BH_NOTICE_NONE && !view.totp && view.passkey_count == 0)
        view.frame.notice = BH_NOTICE_ENROL_FIRST;
    bh_page_headers(visit->reply, 200, true);
    bh_account_page(&visit->reply->body, &view);
}

/* ---- what one does there ---- */

/* Back to the account, with how it went. */
static void
finish(struct bh_visit *visit, const struct bh_said *said, enum bh_notice done,
       enum bh_notice refused)
{
    if (is_over(visit, said))
        return;
    if (bh_said_well(said))
        bh_visit_go(visit, "/account", done);
    else
        bh_visit_refuse(visit, said, "/account", refused);
}

/* Remove the thing whose id the form names; ids are letters, digits, '-' and '_' alone, so
 * that none leads elsewhere. */
static void
remove_one(struct bh_visit *visit, const char *folder, enum bh_notice done,
           enum bh_notice refused)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    BH_AUTO(bh_said_fini)
    struct bh_said said = { .status = 400 };
    const char *id = bh_visit_field(visit, "id");
    const char *path = bh_arena_printf(visit->request->arena, "%s/%s", folder, id);

    if (path && id[0] && id[strspn(id, plain)] == '\0')
        said = bh_visit_ask(visit, BH_DELETE, path, NULL);
    finish(visit, &said, done, refused);
}

void
bh_take_passkey_options(struct bh_visit *visit)
{
    bh_visit_pass(visit, BH_POST, "/v1/account/passkeys/challenge");
}

void
bh_take_passkey_remove(struct bh_visit *visit)
{
    remove_one(visit, "/v1/account/passkeys", BH_NOTICE_PASSKEY_REMOVED,
               BH_NOTICE_LAST_FACTOR);
}

void
bh_take_token_revoke(struct bh_visit *visit)
{
    remove_one(visit, "/v1/tokens", BH_NOTICE_TOKEN_REVOKED, BH_NOTICE_STALE);
}

void
bh_take_session_end(struct bh_visit *visit)
{
    remove_one(visit, "/v1/sessions", BH_NOTICE_SESSION_ENDED, BH_NOTICE_STALE);
}

void
bh_take_totp_new(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };
    struct bh_totp_view view;

    said = bh_visit_ask(visit, BH_POST, "/v1/account/totp", NULL);
    if (!bh_said_well(&said)) {
        finish(visit, &said, BH_NOTICE_NONE, BH_NOTICE_REFUSED);
        return;
    }
    view =
        (struct bh_totp_view) { bh_visit_frame(visit, ""), bh_said_text(&said, "address"),
                                bh_said_text(&said, "secret") };
    bh_page_headers(visit->reply, 200, true);
    bh_totp_page(&visit->reply->body, &view);
}

/* Show the codes of a reply; false when it has none. */
static bool
put_codes(struct bh_visit *visit, const struct bh_said *said)
{
    const char *codes[CODES_MAX];
    struct bh_codes_view view = { bh_visit_frame(visit, NULL), codes, 0 };
    bh_json_value list = list_of(said, "recovery");

    for (size_t i = 0; i < bh_json_count(list) && view.count < CODES_MAX; i++)
        codes[view.count++] = bh_json_text(bh_json_at(list, i), "");
    if (view.count == 0)
        return false;
    bh_page_headers(visit->reply, 200, true);
    bh_codes_page(&visit->reply->body, &view);
    return true;
}

void
bh_take_passkey(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask(visit, BH_POST, "/v1/account/passkeys",
                        bh_visit_field(visit, "answer"));
    if (!bh_said_well(&said) || !put_codes(visit, &said))
        finish(visit, &said, BH_NOTICE_PASSKEY_ADDED,
               said.status == 409 ? BH_NOTICE_PASSKEY_KNOWN : BH_NOTICE_REFUSED);
}

void
bh_take_totp(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask_with(visit, BH_PUT, "/v1/account/totp", "code",
                             bh_visit_field(visit, "code"));
    if (said.status == 400) /* it was not the app's code: the secret is void */
        bh_visit_go(visit, "/account", BH_NOTICE_REFUSED);
    else if (!bh_said_well(&said) || !put_codes(visit, &said))
        finish(visit, &said, BH_NOTICE_TOTP_ADDED, BH_NOTICE_REFUSED);
}

void
bh_take_totp_remove(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask(visit, BH_DELETE, "/v1/account/totp", NULL);
    finish(visit, &said, BH_NOTICE_TOTP_REMOVED, BH_NOTICE_LAST_FACTOR);
}

void
bh_take_recovery(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask(visit, BH_POST, "/v1/account/recovery", NULL);
    if (!bh_said_well(&said) || !put_codes(visit, &said))
        finish(visit, &said, BH_NOTICE_NONE, BH_NOTICE_REFUSED);
}

/* ---- password, and showing again who one is ---- */

static void
put_password(struct bh_visit *visit, uint32_t status, enum bh_notice notice)
{
    struct bh_enrol_view view = { .frame = bh_visit_frame(visit, NULL),
                                  .account = "",
                                  .old = true };

    view.frame.notice = notice;
    bh_page_headers(visit->reply, status, true);
    bh_enrol_page(&visit->reply->body, &view);
}

void
bh_show_password(struct bh_visit *visit)
{
    put_password(visit, 200, BH_NOTICE_NONE);
}

void
bh_take_password(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said account = { 0 };
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };
    const char *password = bh_visit_field(visit, "password");
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    if (strcmp(password, bh_visit_field(visit, "repeated")) != 0) {
        put_password(visit, 400, BH_NOTICE_PASSWORD_TWICE);
        return;
    }
    account = bh_visit_ask(visit, BH_GET, "/v1/account", NULL);
    if (is_over(visit, &account))
        return;
    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "account", bh_said_text(&account, "name"));
    bh_json_str(&w, "old", bh_visit_field(visit, "old"));
    bh_json_str(&w, "password", password);
    bh_json_close(&w, '}');
    if (bh_buf_text(&body))
        said = bh_visit_ask(visit, BH_PUT, "/v1/account/password", memory);
    bh_secret_wipe(memory, sizeof memory);
    if (bh_said_well(&said)) { /* all sessions have ended with the old one */
        bh_visit_sign_out(visit);
        bh_visit_go(visit, "/signin", BH_NOTICE_PASSWORD_SET);
    } else if (said.status == 400)
        put_password(visit, 400, BH_NOTICE_PASSWORD_WEAK);
    else
        put_password(visit, 403, bh_visit_notice(&said, BH_NOTICE_REFUSED));
}

/* Who vouched for this session; "" for an account of this site. */
static const char *
issuer_of(bh_json_value list)
{
    for (size_t i = 0; i < bh_json_count(list); i++)
        if (bh_json_truth(bh_json_get(bh_json_at(list, i), "this")))
            return text_of(bh_json_at(list, i), "issuer");
    return "";
}

static void
put_again(struct bh_visit *visit, uint32_t status, enum bh_notice notice)
{
    BH_AUTO(bh_said_fini)
    struct bh_said account = { 0 };
    BH_AUTO(bh_said_fini)
    struct bh_said sessions = { 0 };
    struct bh_again_view view;

    account = bh_visit_ask(visit, BH_GET, "/v1/account", NULL);
    if (is_over(visit, &account))
        return;
    view = (struct bh_again_view) {
        .frame = bh_visit_frame(visit, bh_said_text(&account, "name")),
        .passkey = bh_json_count(list_of(&account, "passkeys")) > 0,
        .code = truth_of(&account, "totp") || bh_said_number(&account, "recovery_left") > 0,
        .next = bh_next_path(bh_visit_field(visit, "next"), ""),
    };
    sessions = bh_visit_ask(visit, BH_GET, "/v1/sessions", NULL);
    view.issuer = issuer_of(list_of(&sessions, "items"));
    view.frame.notice = notice;
    bh_page_headers(visit->reply, status, true);
    bh_again_page(&visit->reply->body, &view);
}

void
bh_show_again(struct bh_visit *visit)
{
    put_again(visit, 200, BH_NOTICE_NONE);
}

static void
finish_again(struct bh_visit *visit, const struct bh_said *said)
{
    if (bh_said_well(said))
        bh_visit_go(visit, bh_next_path(bh_visit_field(visit, "next"), "/account"),
                    BH_NOTICE_NONE);
    else
        put_again(visit, 403, bh_visit_notice(said, BH_NOTICE_REFUSED));
}

void
bh_take_again(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask_with(visit, BH_POST, "/v1/prove", "code",
                             bh_visit_field(visit, "code"));
    finish_again(visit, &said);
}

void
bh_take_again_passkey(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask(visit, BH_POST, "/v1/prove", bh_visit_field(visit, "answer"));
    finish_again(visit, &said);
}
