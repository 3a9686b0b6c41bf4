#include <string.h>

#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/page.h"

enum { BODY_MAX = 1 << 15, ISSUERS_MAX = 16 };

/* The sign-in page, with what can be done here. */
static void
put_signin(struct bh_page *page, uint32_t status, enum bh_notice notice)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response ways = { 0 };
    struct bh_signin_issuer issuers[ISSUERS_MAX];
    struct bh_signin_view view = { .frame = bh_page_frame(page, NULL),
                                   .issuers = issuers,
                                   .account = bh_page_field(page, "account"),
                                   .next = bh_next_path(bh_page_field(page, "next"), "") };
    bh_json_value list;

    ways = bh_page_call(page, BH_GET, "/v1/sign-in", NULL);
    list = ways.json ? bh_json_get(bh_json_root(ways.json), "issuers") : NULL;
    view.passkey = ways.json && bh_json_truth(bh_json_get(bh_json_root(ways.json), "passkeys"));
    view.local = ways.json && bh_json_truth(bh_json_get(bh_json_root(ways.json), "accounts"));
    for (size_t i = 0; i < bh_json_count(list) && i < ISSUERS_MAX; i++) {
        const char *name = bh_json_text(bh_json_get(bh_json_at(list, i), "name"), "");

        issuers[view.issuer_count++] = (struct bh_signin_issuer){ name, name };
    }
    if (notice != BH_NOTICE_NONE)
        view.frame.notice = notice;
    if (!bh_api_response_is_ok(&ways))
        view.frame.notice = bh_page_notice(&ways, BH_NOTICE_UNAVAILABLE);
    bh_page_headers(page->reply, status, true);
    bh_signin_page(&page->reply->body, &view);
}

void
bh_show_signin(struct bh_page *page)
{
    put_signin(page, 200, BH_NOTICE_NONE);
}

/* What a cookie can hold without ending. */
static bool
signin_is_cookie(const char *text, size_t size)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

    return text[strspn(text, plain)] == '\0' && strlen(text) < size;
}

/* Keep the session that the API has given; false when it gave none. */
static bool
signin_store_session(struct bh_page *page, const struct bh_api_response *response)
{
    const char *session = bh_api_response_text(response, "session");
    const char *device = bh_api_response_text(response, "device");

    if (!bh_api_response_is_ok(response) || strncmp(session, "bs_", 3) != 0
        || !signin_is_cookie(session, BH_SESSION_TEXT_MAX))
        return false;
    bh_page_sign_in(page, session, signin_is_cookie(device, BH_DEVICE_TEXT_MAX) ? device : "");
    return true;
}

/* The API has said yes and given a session, or no. */
static void
signin_accept_session(struct bh_page *page, const struct bh_api_response *response)
{
    if (signin_store_session(page, response))
        bh_page_redirect(page, bh_next_path(bh_page_field(page, "next"), "/"), BH_NOTICE_NONE);
    else
        put_signin(page, 403, bh_page_notice(response, BH_NOTICE_REFUSED));
}

/* A new sign-in ends the session that this browser had. */
static void
signin_leave_session(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    if (page->session[0])
        response = bh_page_call(page, BH_POST, "/v1/sign-out", NULL);
    page->session[0] = '\0';
}

/* NULL: it is empty. */
static const char *
signin_field(const struct bh_page *page, const char *name)
{
    return bh_page_field(page, name)[0] ? bh_page_field(page, name) : NULL;
}

void
bh_post_signin(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    const struct bh_page_member members[] = {
        { "account", signin_field(page, "account") },        { "code", signin_field(page, "code") },
        { "device", page->device[0] ? page->device : NULL }, { "host", "browser" },
        { "password", signin_field(page, "password") },      { NULL, NULL }
    };

    signin_leave_session(page);
    response = bh_page_call_with(page, BH_POST, "/v1/sign-in", members);
    signin_accept_session(page, &response);
}

void
bh_post_signin_options(struct bh_page *page)
{
    bh_page_forward(page, BH_POST, "/v1/sign-in/challenge");
}

/* The script's answer is the body that the API takes: the API's reader is as strict as any of the pages'
 * own. */
void
bh_post_signin_passkey(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    signin_leave_session(page);
    response = bh_page_call(page, BH_POST, "/v1/sign-in", bh_page_field(page, "answer"));
    signin_accept_session(page, &response);
}

/* ---- at a provider ---- */

/* Where to continue follows the id, encoded: cookies have their own letters. */
void
bh_show_provider(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    const char *next = bh_next_path(bh_page_field(page, "next"), "/"), *address;
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_bool(&w, "again", bh_page_field(page, "again")[0] != '\0');
    bh_json_str(&w, "issuer", bh_page_field(page, "provider"));
    bh_json_close(&w, '}');
    if (bh_buf_text(&body))
        response = bh_page_call(page, BH_POST, "/v1/sign-in/issuer", memory);
    address = bh_arena_strdup(page->request->arena, bh_api_response_text(&response, "address"));
    bh_buf_clear(&body);
    bh_buf_puts(&body, bh_api_response_text(&response, "id"));
    bh_buf_putc(&body, '.');
    bh_form_put_encoded(&body, next);
    if (!bh_api_response_is_ok(&response) || !bh_buf_text(&body) || !address
        || strncmp(address, "http", 4) != 0) {
        put_signin(page, 503, BH_NOTICE_PROVIDER);
        return;
    }
    bh_page_store_login(page, memory);
    bh_redirect(page->reply, address);
}

/* A session, or for a signed-in user the proof that it is still the same. */
static bool
signin_accept_callback(struct bh_page *page, const struct bh_api_response *response)
{
    if (!bh_api_response_text(response, "session")[0])
        return bh_api_response_is_ok(response);
    signin_leave_session(page);
    return signin_store_session(page, response);
}

/* Where to continue, from after the id in the cookie. */
static const char *
signin_stored_next(struct bh_page *page, const char *encoded)
{
    struct bh_form *form = bh_arena_alloc(page->request->arena, sizeof *form);
    const char *pair = bh_arena_printf(page->request->arena, "next=%s", encoded);

    if (!form || !pair || bh_form_parse(pair, strlen(pair), form) != BH_FAULT_NONE)
        return "/";
    return bh_next_path(bh_form_get(form, "next"), "/");
}

void
bh_show_callback(struct bh_page *page)
{
    static const char hex[] = "0123456789abcdef";
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { .status = 400 };
    char stored[BH_LOGIN_TEXT_MAX];
    const char *path;
    size_t id;

    if (!bh_page_login(page, stored, sizeof stored)) {
        put_signin(page, 403, BH_NOTICE_STALE);
        return;
    }
    bh_page_store_login(page, NULL);
    id = strspn(stored, hex);
    path = bh_arena_printf(page->request->arena, "/v1/sign-in/issuer/%.*s", (int)id, stored);
    if (path && id > 0 && stored[id] == '.')
        response =
            bh_page_call_with(page, BH_POST, path,
                              (struct bh_page_member[]){ { "query", bh_page_query(page) }, { NULL, NULL } });
    if (signin_accept_callback(page, &response))
        bh_page_redirect(page, signin_stored_next(page, stored + id + 1), BH_NOTICE_NONE);
    else
        put_signin(page, 403, BH_NOTICE_PROVIDER_DENIED);
}

static void
signin_put_signed_out(struct bh_page *page, const char *provider)
{
    struct bh_signed_out_view view = { bh_page_frame(page, NULL), provider };

    bh_page_headers(page->reply, 200, true);
    bh_signed_out_page(&page->reply->body, &view);
}

/* Where the provider has a place to sign out, the page says so at once: what the API says
 * of it is for this moment. */
void
bh_post_signout(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };

    response = bh_page_call(page, BH_POST, "/v1/sign-out", NULL);
    bh_page_sign_out(page);
    if (bh_api_response_text(&response, "logout")[0])
        signin_put_signed_out(page, bh_api_response_text(&response, "logout"));
    else if (bh_api_response_is_ok(&response) || response.status == 401)
        bh_redirect(page->reply, "/signedout");
    else
        bh_page_redirect(page, "/signin", BH_NOTICE_SESSION_LEFT);
}

void
bh_show_signed_out(struct bh_page *page)
{
    signin_put_signed_out(page, "");
}

/* ---- a first visit ---- */

static void
signin_put_enroll(struct bh_page *page, uint32_t status, enum bh_notice notice)
{
    struct bh_enroll_view view = { .frame = bh_page_frame(page, NULL),
                                   .account = bh_page_field(page, "account"),
                                   .code = true };

    view.frame.notice = notice;
    bh_page_headers(page->reply, status, true);
    bh_enroll_page(&page->reply->body, &view);
}

void
bh_show_enroll(struct bh_page *page)
{
    signin_put_enroll(page, 200, BH_NOTICE_NONE);
}

/* Without any account, the user is the first admin. */
static bool
signin_is_first(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response ways = { 0 };

    ways = bh_page_call(page, BH_GET, "/v1/sign-in", NULL);
    return bh_api_response_is_ok(&ways) && ways.json
           && !bh_json_truth(bh_json_get(bh_json_root(ways.json), "accounts"));
}

void
bh_post_enroll(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini)
    struct bh_api_response response = { 0 };
    bool first = signin_is_first(page);
    /* "enrol" is the code that an admin gives out, "code" the first admin's */
    const struct bh_page_member members[] = { { "account", bh_page_field(page, "account") },
                                              { first ? "code" : "enrol", bh_page_field(page, "code") },
                                              { "password", bh_page_field(page, "password") },
                                              { NULL, NULL } };

    if (strcmp(bh_page_field(page, "password"), bh_page_field(page, "repeated")) != 0) {
        signin_put_enroll(page, 400, BH_NOTICE_PASSWORD_TWICE);
        return;
    }
    response = first ? bh_page_call_with(page, BH_POST, "/v1/sign-in/first", members)
                     : bh_page_call_with(page, BH_PUT, "/v1/account/password", members);
    if (!bh_api_response_is_ok(&response))
        signin_put_enroll(page, 403, bh_page_notice(&response, BH_NOTICE_REFUSED));
    else if (first)
        signin_accept_session(page, &response);
    else
        bh_page_redirect(page, "/signin", BH_NOTICE_PASSWORD_SET);
}
