#include "web/web.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "policy/operations.h"
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

    if (page->session[0])
        return true;
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

/* What the browser's cookies say. */
static void
web_read_cookies(struct bh_page *page)
{
    if (!bh_cookie_find(page->request, SESSION_COOKIE, page->session, sizeof page->session)
        || strncmp(page->session, "bs_", 3) != 0)
        page->session[0] = '\0';
    if (!bh_cookie_find(page->request, DEVICE_COOKIE, page->device, sizeof page->device))
        page->device[0] = '\0';
    if (page->session[0])
        bh_csrf_token(page->session, page->csrf);
}

static void
web_serve_page(struct bh_page *page, const struct route *route)
{
    if (!page->id || !web_bind_forms(page))
        bh_page_error(page, 503);
    else if (route->access == ACCESS_SIGNED_IN && !page->session[0])
        bh_page_require_sign_in(page);
    else if (route->method == BH_GET || web_receive(page))
        route->function(page);
}

static void
web_serve_view(struct bh_page *page, enum bh_site_view view)
{
    if (!web_bind_forms(page))
        bh_page_error(page, 503);
    else if (page->session[0])
        bh_site_view_serve(page, view);
    else
        bh_page_require_sign_in(page);
}

static void
web_refuse_method(struct bh_page *page, const char *allowed)
{
    bh_reply_header(page->reply, "Allow", allowed);
    bh_page_error(page, 405);
}

/* Whether the API is asked: by one of its paths, or by what looks like one. */
static bool
web_is_api(const char *path)
{
    struct bh_path_match unused;

    if (strncmp(path, "/v1/", 4) == 0)
        return true;
    for (enum bh_operation op = 0; op < BH_OPERATIONS; op++)
        if (bh_path_matches(bh_operation_get(op)->path, path, &unused))
            return true;
    return false;
}

/* A page of tables/pages.tbl; false: none has the path. */
static bool
web_find_page(struct bh_page *page)
{
    const struct route *other = NULL;

    for (size_t i = 0; i < BH_COUNT(pages); i++) {
        struct bh_path_match match;

        if (!bh_path_matches(pages[i].path, page->request->path, &match))
            continue;
        if (pages[i].method == page->request->method) {
            page->id = match.id ? bh_arena_strndup(page->request->arena, match.id, match.id_length) : "";
            web_serve_page(page, &pages[i]);
            return true;
        }
        other = &pages[i];
    }
    if (other)
        web_refuse_method(page, other->method == BH_GET ? "GET" : "POST");
    return other;
}

static void
web_serve(struct bh_page *page)
{
    const struct bh_request *request = page->request;
    const struct bh_asset *asset = bh_asset_find(request->path);
    enum bh_site_view view;

    if (web_find_page(page))
        return;
    view = bh_site_view_find(request->path, request->arena, &page->id);
    if (view == BH_SITE_VIEWS && !asset)
        bh_page_error(page, 404);
    else if (request->method != BH_GET)
        web_refuse_method(page, "GET");
    else if (asset)
        bh_asset_reply(page->reply, asset);
    else
        web_serve_view(page, view);
}

void
bh_web_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    struct bh_web *web = self;
    BH_AUTO(bh_page_fini)
    struct bh_page page = { .web = web, .request = request, .reply = reply, .id = "" };

    if (web_is_api(request->path)) {
        web->options.api(web->options.api_self, request, reply);
        return;
    }
    web_read_cookies(&page);
    web_serve(&page);
}
