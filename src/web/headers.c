#include "web/headers.h"

/* What a page may do: this site's script and sheet, pictures within itself, and forms to this site. */
#define POLICY_REST                                                                                          \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "                        \
    "frame-ancestors 'none'; base-uri 'none'; connect-src 'self'; "                                          \
    "require-trusted-types-for 'script'; trusted-types bulkhead"
static const char policy_rest[] = POLICY_REST;
static const char policy[] = POLICY_REST "; form-action 'self'";

static void
put_headers(struct bh_reply *reply, const char *content_policy)
{
    reply->content_type = "text/html; charset=utf-8";
    bh_reply_header(reply, "Content-Security-Policy", content_policy);
    /* With no-referrer browsers say "Origin: null" even of our own forms. */
    bh_reply_header(reply, "Referrer-Policy", "same-origin");
    bh_reply_header(reply, "X-Frame-Options", "DENY");
    bh_reply_header(reply, "Cross-Origin-Opener-Policy", "same-origin");
    bh_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}

void
bh_page_headers(struct bh_reply *reply, uint32_t status, bool https)
{
    reply->status = status;
    put_headers(reply, policy);
    if (https)
        bh_reply_header(reply, "Strict-Transport-Security", "max-age=63072000");
}

void
bh_page_headers_loopback(struct bh_reply *reply, struct bh_arena *arena, uint16_t port)
{
    const char *content_policy =
        bh_arena_printf(arena, "%s; form-action 'self' http://127.0.0.1:%u", policy_rest, port);

    reply->status = 200;
    put_headers(reply, content_policy ? content_policy : policy);
    bh_reply_header(reply, "Strict-Transport-Security", "max-age=63072000");
}

void
bh_data_headers(struct bh_reply *reply)
{
    bh_reply_header(reply, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    bh_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}

void
bh_redirect(struct bh_reply *reply, const char *path)
{
    reply->status = 303;
    reply->content_type = "text/plain; charset=utf-8";
    bh_reply_header(reply, "Location", path);
    bh_reply_header(reply, "Referrer-Policy", "no-referrer");
}

void
bh_asset_reply(struct bh_reply *reply, const struct bh_asset *asset)
{
    reply->status = 200;
    reply->content_type = asset->type;
    bh_reply_header(reply, "Cache-Control", "public, max-age=31536000, immutable");
    bh_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
    bh_buf_put(&reply->body, asset->bytes, asset->length);
}
