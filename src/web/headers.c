#include "web/headers.h"

/* What a page may do: our own script and sheet, forms to us, pictures within itself. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; connect-src 'self'";

void
bh_page_headers(struct bh_reply *reply, uint32_t status, bool https)
{
    reply->status = status;
    reply->content_type = "text/html; charset=utf-8";
    bh_reply_header(reply, "Content-Security-Policy", policy);
    /* With no-referrer browsers say "Origin: null" even of our own forms. */
    bh_reply_header(reply, "Referrer-Policy", "same-origin");
    bh_reply_header(reply, "X-Frame-Options", "DENY");
    bh_reply_header(reply, "Cross-Origin-Opener-Policy", "same-origin");
    bh_reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
    if (https)
        bh_reply_header(reply, "Strict-Transport-Security", "max-age=63072000");
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
