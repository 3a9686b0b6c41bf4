#include <string.h>

#include "web/headers.h"
#include "web/signin_pages.h"
#include "web/visit.h"

enum { BODY_MAX = 1 << 15, ISSUERS_MAX = 16 };

void
bh_show_root(struct bh_visit *visit)
{
    bh_redirect(visit->reply, visit->session[0] ? "/account" : "/signin");
}

/* The sign-in page, with what can be done here. */
static void
put_signin(struct bh_visit *visit, uint32_t status, enum bh_notice notice)
{
    BH_AUTO(bh_said_fini)
    struct bh_said ways = { 0 };
    struct bh_issuer_view issuers[ISSUERS_MAX];
    struct bh_signin_view view = { .frame = bh_visit_frame(visit, NULL),
                                   .issuers = issuers,
                                   .account = bh_visit_field(visit, "account"),
                                   .next =
                                       bh_next_path(bh_visit_field(visit, "next"), "") };
    bh_json_value list;

    ways = bh_visit_ask(visit, BH_GET, "/v1/sign-in", NULL);
    list = ways.json ? bh_json_get(bh_json_root(ways.json), "issuers") : NULL;
    view.passkey =
        ways.json && bh_json_truth(bh_json_get(bh_json_root(ways.json), "passkeys"));
    view.local =
        ways.json && bh_json_truth(bh_json_get(bh_json_root(ways.json), "accounts"));
    for (size_t i = 0; i < bh_json_count(list) && i < ISSUERS_MAX; i++) {
        const char *name = bh_json_text(bh_json_get(bh_json_at(list, i), "name"), "");

        issuers[view.issuer_count++] = (struct bh_issuer_view) { name, name };
    }
    if (notice != BH_NOTICE_NONE)
        view.frame.notice = notice;
    if (!bh_said_well(&ways))
        view.frame.notice = bh_visit_notice(&ways, BH_NOTICE_UNAVAILABLE);
    bh_page_headers(visit->reply, status, true);
    bh_signin_page(&visit->reply->body, &view);
}

void
bh_show_signin(struct bh_visit *visit)
{
    put_signin(visit, 200, BH_NOTICE_NONE);
}

/* What a cookie can hold without ending. */
static bool
is_cookie(const char *text, size_t size)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._";

    return text[strspn(text, plain)] == '\0' && strlen(text) < size;
}

/* Keep the session that the API has given; false when it gave none. */
static bool
keep_session(struct bh_visit *visit, const struct bh_said *said)
{
    const char *session = bh_said_text(said, "session");
    const char *device = bh_said_text(said, "device");

    if (!bh_said_well(said) || strncmp(session, "bs_", 3) != 0 ||
        !is_cookie(session, BH_SESSION_TEXT_MAX))
        return false;
    bh_visit_sign_in(visit, session, is_cookie(device, BH_DEVICE_TEXT_MAX) ? device : "");
    return true;
}

/* The API has said yes and given a session, or no. */
static void
take_session(struct bh_visit *visit, const struct bh_said *said)
{
    if (keep_session(visit, said))
        bh_visit_go(visit, bh_next_path(bh_visit_field(visit, "next"), "/account"),
                    BH_NOTICE_NONE);
    else
        put_signin(visit, 403, bh_visit_notice(said, BH_NOTICE_REFUSED));
}

/* Whoever signs in anew leaves the session that this browser had. */
static void
leave_session(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    if (visit->session[0])
        said = bh_visit_ask(visit, BH_POST, "/v1/sign-out", NULL);
    visit->session[0] = '\0';
}

static void
put_given(struct bh_json_writer *w, const struct bh_visit *visit, const char *name)
{
    if (bh_visit_field(visit, name)[0])
        bh_json_str(w, name, bh_visit_field(visit, name));
}

void
bh_take_signin(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    put_given(&w, visit, "account");
    put_given(&w, visit, "code");
    if (visit->device[0])
        bh_json_str(&w, "device", visit->device);
    bh_json_str(&w, "host", "browser");
    put_given(&w, visit, "password");
    bh_json_close(&w, '}');
    leave_session(visit);
    if (bh_buf_text(&body))
        said = bh_visit_ask(visit, BH_POST, "/v1/sign-in", memory);
    bh_secret_wipe(memory, sizeof memory);
    take_session(visit, &said);
}

void
bh_take_signin_options(struct bh_visit *visit)
{
    bh_visit_pass(visit, BH_POST, "/v1/sign-in/challenge");
}

/* The script's answer is the body that the API takes: its reader is as strict as any of
 * ours would be. */
void
bh_take_signin_passkey(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    leave_session(visit);
    said = bh_visit_ask(visit, BH_POST, "/v1/sign-in", bh_visit_field(visit, "answer"));
    take_session(visit, &said);
}

/* ---- at a provider ---- */

/* Where to go on to stands behind the id, encoded: cookies have their own letters. */
void
bh_show_provider(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };
    const char *next = bh_next_path(bh_visit_field(visit, "next"), "/account"), *address;
    char memory[BODY_MAX];
    struct bh_json_writer w;
    struct bh_buf body;

    bh_buf_init_fixed(&body, memory, sizeof memory);
    w = bh_json_begin(&body);
    bh_json_open(&w, NULL, '{');
    bh_json_bool(&w, "again", bh_visit_field(visit, "again")[0] != '\0');
    bh_json_str(&w, "issuer", bh_visit_field(visit, "provider"));
    bh_json_close(&w, '}');
    if (bh_buf_text(&body))
        said = bh_visit_ask(visit, BH_POST, "/v1/sign-in/issuer", memory);
    address = bh_arena_strdup(visit->request->arena, bh_said_text(&said, "address"));
    bh_buf_clear(&body);
    bh_buf_puts(&body, bh_said_text(&said, "id"));
    bh_buf_putc(&body, '.');
    bh_form_put_encoded(&body, next);
    if (!bh_said_well(&said) || !bh_buf_text(&body) || !address ||
        strncmp(address, "http", 4) != 0) {
        put_signin(visit, 503, BH_NOTICE_PROVIDER);
        return;
    }
    bh_visit_keep_login(visit, memory);
    bh_redirect(visit->reply, address);
}

/* A session, or for who was signed in that it is still him. */
static bool
take_return(struct bh_visit *visit, const struct bh_said *said)
{
    if (!bh_said_text(said, "session")[0])
        return bh_said_well(said);
    leave_session(visit);
    return keep_session(visit, said);
}

/* Where to go on to, from behind the id in the cookie. */
static const char *
kept_next(struct bh_visit *visit, const char *encoded)
{
    struct bh_form *form = bh_arena_alloc(visit->request->arena, sizeof *form);
    const char *pair = bh_arena_printf(visit->request->arena, "next=%s", encoded);

    if (!form || !pair || bh_form_parse(pair, strlen(pair), form) != BH_FAULT_NONE)
        return "/account";
    return bh_next_path(bh_form_get(form, "next"), "/account");
}

void
bh_show_callback(struct bh_visit *visit)
{
    static const char hex[] = "0123456789abcdef";
    BH_AUTO(bh_said_fini)
    struct bh_said said = { .status = 400 };
    char kept[BH_LOGIN_TEXT_MAX];
    const char *path;
    size_t id;

    if (!bh_visit_login(visit, kept, sizeof kept)) {
        put_signin(visit, 403, BH_NOTICE_STALE);
        return;
    }
    bh_visit_keep_login(visit, NULL);
    id = strspn(kept, hex);
    path = bh_arena_printf(visit->request->arena, "/v1/sign-in/issuer/%.*s", (int)id, kept);
    if (path && id > 0 && kept[id] == '.')
        said = bh_visit_ask_with(visit, BH_POST, path, "query", bh_visit_query(visit));
    if (take_return(visit, &said))
        bh_visit_go(visit, kept_next(visit, kept + id + 1), BH_NOTICE_NONE);
    else
        put_signin(visit, 403, BH_NOTICE_PROVIDER_DENIED);
}

static void
put_signed_out(struct bh_visit *visit, const char *provider)
{
    struct bh_signed_out_view view = { bh_visit_frame(visit, NULL), provider };

    bh_page_headers(visit->reply, 200, true);
    bh_signed_out_page(&visit->reply->body, &view);
}

/* Where the provider has a place to sign out, the page says so at once: what the API says
 * of it is for this moment. */
void
bh_take_signout(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { 0 };

    said = bh_visit_ask(visit, BH_POST, "/v1/sign-out", NULL);
    bh_visit_sign_out(visit);
    if (bh_said_text(&said, "logout")[0])
        put_signed_out(visit, bh_said_text(&said, "logout"));
    else
        bh_redirect(visit->reply, "/signedout");
}

void
bh_show_signed_out(struct bh_visit *visit)
{
    put_signed_out(visit, "");
}

/* ---- a first visit ---- */

static void
put_enrol(struct bh_visit *visit, uint32_t status, enum bh_notice notice)
{
    struct bh_enrol_view view = { .frame = bh_visit_frame(visit, NULL),
                                  .account = bh_visit_field(visit, "account"),
                                  .code = true };

    view.frame.notice = notice;
    bh_page_headers(visit->reply, status, true);
    bh_enrol_page(&visit->reply->body, &view);
}

void
bh_show_enrol(struct bh_visit *visit)
{
    put_enrol(visit, 200, BH_NOTICE_NONE);
}

/* What the form holds, as the operation wants it: "enrol" is the code of somebody whom an
 * admin gave one, "code" the first admin's. */
static void
put_enrolment(struct bh_buf *body, const struct bh_visit *visit, bool first)
{
    struct bh_json_writer w = bh_json_begin(body);

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "account", bh_visit_field(visit, "account"));
    bh_json_str(&w, first ? "code" : "enrol", bh_visit_field(visit, "code"));
    bh_json_str(&w, "password", bh_visit_field(visit, "password"));
    bh_json_close(&w, '}');
}

/* Where no account is known yet, it is the first admin who comes. */
static bool
is_first(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said ways = { 0 };

    ways = bh_visit_ask(visit, BH_GET, "/v1/sign-in", NULL);
    return bh_said_well(&ways) && ways.json &&
           !bh_json_truth(bh_json_get(bh_json_root(ways.json), "accounts"));
}

void
bh_take_enrol(struct bh_visit *visit)
{
    BH_AUTO(bh_said_fini)
    struct bh_said said = { .status = 400 };
    bool first = is_first(visit);
    char memory[BODY_MAX];
    struct bh_buf body;

    if (strcmp(bh_visit_field(visit, "password"), bh_visit_field(visit, "repeated")) != 0) {
        put_enrol(visit, 400, BH_NOTICE_PASSWORD_TWICE);
        return;
    }
    bh_buf_init_fixed(&body, memory, sizeof memory);
    put_enrolment(&body, visit, first);
    if (bh_buf_text(&body))
        said = first ? bh_visit_ask(visit, BH_POST, "/v1/sign-in/first", memory)
                     : bh_visit_ask(visit, BH_PUT, "/v1/account/password", memory);
    bh_secret_wipe(memory, sizeof memory);
    if (!bh_said_well(&said))
        put_enrol(visit, 403, bh_visit_notice(&said, BH_NOTICE_REFUSED));
    else if (first)
        take_session(visit, &said);
    else
        bh_visit_go(visit, "/signin", BH_NOTICE_PASSWORD_SET);
}
