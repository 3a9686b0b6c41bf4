#include "web/web.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "web/headers.h"
#include "web/live.h"
#include "web/page.h"
#include "web/view.h"

/* "__Host-" has browsers see to it that no other host set the cookie. */
#define SESSION_COOKIE "__Host-bulkhead"
#define FORM_COOKIE "__Host-bulkhead-form"
#define DEVICE_COOKIE "__Host-bulkhead-device"
#define LOGIN_COOKIE "__Host-bulkhead-login"
#define COOKIE_RULES "; Path=/; Secure; HttpOnly; SameSite=Lax"

enum access { ACCESS_OPEN, ACCESS_SIGNED_IN };

static const struct route {
    enum bh_method method;
    const char *path;
    enum access access;
    bh_page_fn function;
} pages[] = {
#define BH_PAGE(method, path, access, function) { BH_##method, path, ACCESS_##access, function },
#include "tables/pages.tbl"
#undef BH_PAGE
};

struct bh_web *
bh_web_new(const struct bh_web_options *options)
{
    struct bh_web *web = calloc(1, sizeof *web);

    BH_ASSERT(web);
    web->options = *options;
    if (options->owner)
        web->live = bh_live_new(web, options->owner, &(struct bh_live_limits){ 0 });
    return web;
}

void
bh_web_stop(struct bh_web *web)
{
    if (web)
        bh_live_stop(web->live);
}

void
bh_web_free(struct bh_web *web)
{
    if (!web)
        return;
    bh_live_free(web->live);
    free(web);
}

static void
web_set_cookie(struct bh_page *page, const char *name, const char *value, const char *more)
{
    const char *text = bh_arena_printf(page->request->arena, "%s=%s%s%s", name, value, COOKIE_RULES, more);

    if (text)
        bh_reply_header(page->reply, "Set-Cookie", text);
}

/* The session ends at the server when it ends; the browser's copy goes with the browser. */
void
bh_page_sign_in(struct bh_page *page, const char *session, const char *device)
{
    if (device[0])
        web_set_cookie(page, DEVICE_COOKIE, device, "; Max-Age=31536000");
    web_set_cookie(page, SESSION_COOKIE, session, "");
    web_set_cookie(page, FORM_COOKIE, "", "; Max-Age=0");
}

void
bh_page_sign_out(struct bh_page *page)
{
    web_set_cookie(page, SESSION_COOKIE, "", "; Max-Age=0");
}

void
bh_page_store_login(struct bh_page *page, const char *text)
{
    web_set_cookie(page, LOGIN_COOKIE, text ? text : "", text ? "; Max-Age=600" : "; Max-Age=0");
}

bool
bh_page_login(const struct bh_page *page, char *ret_text, size_t size)
{
    return bh_cookie_find(page->request, LOGIN_COOKIE, ret_text, size);
}

/* Forms before signing in are bound to the browser by a cookie of their own.  False: there
 * is no randomness to make one of. */
static bool
web_bind_forms(struct bh_page *page)
{
    uint8_t random[BH_SECRET_BYTES];
    char secret[BH_SECRET_TEXT];
    struct bh_err err;

    if (page->session[0]) {
        bh_csrf_token(page->session, page->csrf);
        return true;
    }
    if (!bh_cookie_find(page->request, FORM_COOKIE, secret, sizeof secret)
        || strlen(secret) != BH_SECRET_TEXT - 1) {
        if (page->web->options.crypto->random(random, sizeof random, &err) != BH_OK)
            return false;
        bh_secret_text(random, secret);
        web_set_cookie(page, FORM_COOKIE, secret, "");
    }
    bh_csrf_token(secret, page->csrf);
    return true;
}

/* Read what was posted into the arena; answers and returns false when it did not come from
 * one of our pages. */
static bool
web_receive(struct bh_page *page)
{
    const struct bh_request *request = page->request;
    struct bh_form *form = bh_arena_alloc(request->arena, sizeof *form);
    const char *origin = bh_arena_printf(request->arena, "https://%s", request->host ? request->host : "");
    enum bh_identity_fault fault;

    if (!form || !origin) {
        bh_page_error(page, 503);
        return false;
    }
    fault = bh_form_receive(request, origin, page->csrf, form);
    if (fault != BH_FAULT_NONE) {
        bh_page_error(page, fault == BH_FAULT_ELSEWHERE ? 403 : 400);
        return false;
    }
    page->form = form;
    return true;
}

/* Read the browser's cookies; false: answered, there is no randomness for its forms. */
static bool
web_know_browser(struct bh_page *page)
{
    if (!bh_cookie_find(page->request, SESSION_COOKIE, page->session, sizeof page->session)
        || strncmp(page->session, "bs_", 3) != 0)
        page->session[0] = '\0';
    if (!bh_cookie_find(page->request, DEVICE_COOKIE, page->device, sizeof page->device))
        page->device[0] = '\0';
    if (web_bind_forms(page))
        return true;
    bh_page_error(page, 503);
    return false;
}

static void
web_serve_page(struct bh_page *page, const struct route *route)
{
    if (!web_know_browser(page))
        return;
    if (route->access == ACCESS_SIGNED_IN && !page->session[0])
        bh_page_require_sign_in(page);
    else if (route->method == BH_GET || web_receive(page))
        route->function(page);
    bh_secret_wipe(page->session, sizeof page->session);
}

static void
web_serve_view(struct bh_page *page, enum bh_site_view view, const char *id)
{
    if (page->request->method != BH_GET) {
        bh_page_error(page, 405);
        return;
    }
    if (!web_know_browser(page))
        return;
    if (page->session[0])
        bh_site_view_serve(page, view, id);
    else
        bh_page_require_sign_in(page);
    bh_secret_wipe(page->session, sizeof page->session);
}

/* What is no page is asked of the API; that there is no such thing is a page for a browser. */
static void
web_pass_on(struct bh_page *page)
{
    const struct bh_web_options *web = &page->web->options;
    const char *accept = page->request->accept;
    struct bh_reply *reply = page->reply;

    web->api(web->api_self, page->request, reply);
    if (reply->status != 404 || !accept || !strstr(accept, "text/html"))
        return;
    bh_buf_clear(&reply->body);
    reply->header_count = 0;
    bh_page_error(page, 404);
}

void
bh_web_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    struct bh_web *web = self;
    struct bh_page page = { .web = web, .request = request, .reply = reply };
    const struct bh_asset *asset = bh_asset_find(request->path);
    const char *id;
    enum bh_site_view view = bh_site_view_find(request->path, request->arena, &id);
    bool known = false;

    for (size_t i = 0; i < BH_COUNT(pages); i++) {
        if (strcmp(pages[i].path, request->path) != 0)
            continue;
        known = true;
        if (pages[i].method == request->method) {
            web_serve_page(&page, &pages[i]);
            return;
        }
    }
    if (view != BH_SITE_VIEWS)
        web_serve_view(&page, view, id);
    else if (asset && request->method == BH_GET)
        bh_asset_reply(reply, asset);
    else if (asset || known)
        bh_page_error(&page, 405);
    else
        web_pass_on(&page);
}
