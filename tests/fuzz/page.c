/* What a browser, and an API that says anything, make of the pages.  Parts are separated by
 * NUL: path, query, cookies, form, the API's answer; the first byte is the method and how
 * the API answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/fuzz/fuzz.h"
#include "web/form.h"
#include "web/web.h"

enum { PARTS = 5 };

static const char *parts[PARTS];
static uint32_t api_status;

static void
api(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    reply->status = api_status;
    bh_buf_puts(&reply->body, parts[4]);
    if (api_status == 401)
        bh_reply_header(reply, "WWW-Authenticate", "Bearer error=\"insufficient_user_authentication\"");
}

static bh_rc
zeros(void *ret_bytes, size_t length, struct bh_err *err)
{
    memset(ret_bytes, 0, length);
    return BH_OK;
}

static const char *
query(const struct bh_request *request, const char *name)
{
    static struct bh_form form;

    if (bh_form_parse(parts[1], strlen(parts[1]), &form) != BH_FAULT_NONE)
        return NULL;
    return bh_form_get(&form, name);
}

static void
each_query(const struct bh_request *request, void (*sink)(void *self, const char *name, const char *value),
           void *self)
{
    static struct bh_form form;

    if (bh_form_parse(parts[1], strlen(parts[1]), &form) == BH_FAULT_NONE)
        for (uint32_t i = 0; i < form.count; i++)
            sink(self, form.pairs[i].name, form.pairs[i].value);
}

/* No header ends early, no text becomes an element: those of the page never begin with x, and its scripts
 * are assets. */
static void
check(struct bh_reply *reply)
{
    const char *body = bh_buf_text(&reply->body), *script;

    BH_ASSERT(reply->status >= 200 && reply->status < 600);
    for (uint32_t i = 0; i < reply->header_count; i++)
        for (const char *c = reply->headers[i].value; *c; c++)
            BH_ASSERT((unsigned char)*c >= ' ' && *c != 0x7f);
    if (!body || !reply->content_type || strncmp(reply->content_type, "text/html", 9) != 0)
        return;
    BH_ASSERT(!strstr(body, "<x") && !strstr(body, "javascript:\""));
    for (script = strstr(body, "<script"); script; script = strstr(script + 1, "<script"))
        BH_ASSERT(strncmp(script, "<script src=\"/assets/", 21) == 0);
}

static void
visit(struct bh_web *web, enum bh_method method, struct bh_arena *arena)
{
    char form[BH_FORM_BYTES_MAX + 64], token[BH_SECRET_TEXT];
    struct bh_request request = { .method = method,
                                  .path = parts[0],
                                  .cookie = parts[2],
                                  .body = form,
                                  .host = "gpu.example",
                                  .origin = "https://gpu.example",
                                  .content_type = "application/x-www-form-urlencoded",
                                  .arena = arena,
                                  .query = query,
                                  .each_query = each_query };
    struct bh_reply reply = { 0 };

    /* the token of this session's user, so that forms get further than their token */
    bh_csrf_token("bs_s", token);
    snprintf(form, sizeof form, "csrf=%s&%.8000s", token, parts[3]);
    request.body_length = strlen(form);
    bh_buf_init(&reply.body, 1 << 22);
    bh_web_handle(web, &request, &reply);
    check(&reply);
    bh_buf_fini(&reply.body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct bh_crypto_ops crypto = { .random = zeros };
    static const uint32_t statuses[] = { 200, 201, 400, 401, 403, 409, 503, 307 };
    struct bh_web *web;
    struct bh_arena *arena;
    char *text;

    if (size < 1 || size > 1 << 15)
        return 0;
    text = calloc(1, size + PARTS);
    BH_ASSERT(text);
    memcpy(text, data + 1, size - 1);
    parts[0] = text;
    for (size_t i = 1; i < PARTS; i++)
        parts[i] = parts[i - 1] + strlen(parts[i - 1]) + 1;
    api_status = statuses[data[0] >> 2 & 7];
    arena = bh_arena_new(1 << 22);
    web = bh_web_new(&(struct bh_web_options){ .api = api, .crypto = &crypto, .site = "Bulkhead" });
    visit(web, data[0] & 3, arena);
    bh_web_free(web);
    bh_arena_free(arena);
    free(text);
    return 0;
}
