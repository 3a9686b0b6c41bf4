#include "web/web.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "web/headers.h"
#include "web/visit.h"

/* "__Host-" has browsers see to it that no other host set the cookie. */
#define SESSION_COOKIE "__Host-bulkhead"
#define FORM_COOKIE "__Host-bulkhead-form"
#define DEVICE_COOKIE "__Host-bulkhead-device"
#define LOGIN_COOKIE "__Host-bulkhead-login"
#define COOKIE_RULES "; Path=/; Secure; HttpOnly; SameSite=Lax"

enum access { ACCESS_OPEN, ACCESS_PERSON };

static const struct page {
    enum bh_method method;
    const char *path;
    enum access access;
    bh_page function;
} pages[] = {
#define BH_PAGE(method, path, access, function)                                            \
    { BH_##method, path, ACCESS_##access, function },
#include "tables/pages.tbl"
#undef BH_PAGE
};

struct bh_web *
bh_web_new(const struct bh_web_options *options)
{
    struct bh_web *web = calloc(1, sizeof *web);

    BH_ASSERT(web);
    web->options = *options;
    return web;
}

void
bh_web_free(struct bh_web *web)
{
    free(web);
}

static void
set_cookie(struct bh_visit *visit, const char *name, const char *value, const char *more)
{
    const char *text = bh_arena_printf(visit->request->arena, "%s=%s%s%s", name, value,
                                       COOKIE_RULES, more);

    if (text)
        bh_reply_header(visit->reply, "Set-Cookie", text);
}

/* The session ends at the server when it ends; the browser's copy goes with the browser. */
void
bh_visit_sign_in(struct bh_visit *visit, const char *session, const char *device)
{
    if (device[0])
        set_cookie(visit, DEVICE_COOKIE, device, "; Max-Age=31536000");
    set_cookie(visit, SESSION_COOKIE, session, "");
    set_cookie(visit, FORM_COOKIE, "", "; Max-Age=0");
}

void
bh_visit_sign_out(struct bh_visit *visit)
{
    set_cookie(visit, SESSION_COOKIE, "", "; Max-Age=0");
}

void
bh_visit_keep_login(struct bh_visit *visit, const char *text)
{
    set_cookie(visit, LOGIN_COOKIE, text ? text : "",
               text ? "; Max-Age=600" : "; Max-Age=0");
}

bool
bh_visit_login(const struct bh_visit *visit, char *ret_text, size_t size)
{
    return bh_cookie_find(visit->request, LOGIN_COOKIE, ret_text, size);
}

/* Forms before signing in are bound to the browser by a cookie of their own.  False: there
 * is no randomness to make one of. */
static bool
bind_forms(struct bh_visit *visit)
{
    uint8_t random[BH_SECRET_BYTES];
    char secret[BH_SECRET_TEXT];
    struct bh_err err;

    if (visit->session[0]) {
        bh_csrf_token(visit->session, visit->csrf);
        return true;
    }
    if (!bh_cookie_find(visit->request, FORM_COOKIE, secret, sizeof secret) ||
        strlen(secret) != BH_SECRET_TEXT - 1) {
        if (visit->web->options.crypto->random(random, sizeof random, &err) != BH_OK)
            return false;
        bh_secret_text(random, secret);
        set_cookie(visit, FORM_COOKIE, secret, "");
    }
    bh_csrf_token(secret, visit->csrf);
    return true;
}

/* Read what was posted into the arena; answers and returns false when it did not come from
 * one of our pages. */
static bool
receive(struct bh_visit *visit)
{
    const struct bh_request *request = visit->request;
    struct bh_form *form = bh_arena_alloc(request->arena, sizeof *form);
    const char *origin =
        bh_arena_printf(request->arena, "https://%s", request->host ? request->host : "");
    enum bh_fault fault;

    if (!form || !origin) {
        bh_visit_error(visit, 503);
        return false;
    }
    fault = bh_form_receive(request, origin, visit->csrf, form);
    if (fault != BH_FAULT_NONE) {
        bh_visit_error(visit, fault == BH_FAULT_ELSEWHERE ? 403 : 400);
        return false;
    }
    visit->form = form;
    return true;
}

/* Somebody who is not signed in is sent to do so, and comes back to the page he asked for.
 */
void
bh_visit_ask_to_sign_in(struct bh_visit *visit)
{
    const char *query = bh_visit_query(visit), *path = NULL;
    struct bh_buf where;

    bh_buf_init(&where, BH_FORM_BYTES_MAX);
    bh_buf_puts(&where, "/signin?next=");
    bh_form_put_encoded(&where, visit->request->path);
    if (query[0])
        bh_form_put_encoded(&where, "?");
    bh_form_put_encoded(&where, query);
    if (visit->request->method == BH_GET && bh_buf_text(&where))
        path = bh_arena_strdup(visit->request->arena, bh_buf_text(&where));
    bh_buf_fini(&where);
    bh_redirect(visit->reply, path ? path : "/signin");
}

static void
serve_page(struct bh_visit *visit, const struct page *page)
{
    if (!bh_cookie_find(visit->request, SESSION_COOKIE, visit->session,
                        sizeof visit->session) ||
        strncmp(visit->session, "bs_", 3) != 0)
        visit->session[0] = '\0';
    if (!bh_cookie_find(visit->request, DEVICE_COOKIE, visit->device, sizeof visit->device))
        visit->device[0] = '\0';
    if (!bind_forms(visit))
        bh_visit_error(visit, 503);
    else if (page->access == ACCESS_PERSON && !visit->session[0])
        bh_visit_ask_to_sign_in(visit);
    else if (page->method == BH_GET || receive(visit))
        page->function(visit);
    bh_secret_wipe(visit->session, sizeof visit->session);
}

void
bh_web_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    struct bh_web *web = self;
    struct bh_visit visit = { .web = web, .request = request, .reply = reply };
    const struct bh_asset *asset = bh_asset_find(request->path);
    bool known = false;

    for (size_t i = 0; i < BH_COUNT(pages); i++) {
        if (strcmp(pages[i].path, request->path) != 0)
            continue;
        known = true;
        if (pages[i].method == request->method) {
            serve_page(&visit, &pages[i]);
            return;
        }
    }
    if (asset && request->method == BH_GET)
        bh_asset_reply(reply, asset);
    else if (asset || known)
        bh_visit_error(&visit, 405);
    else
        web->options.api(web->options.api_self, request, reply);
}
