#ifndef BH_CLI_CLIENT_HTTP_H
#define BH_CLI_CLIENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* The client's half of HTTP/1.1, over a unix socket: one request, one reply, then the
 * connection is closed.  Strict and bounded; docs/adr/0004-cli-http.md says why it is
 * our own. */

enum { BH_HTTP_HEADERS_MAX = 32 << 10, BH_HTTP_BODY_MAX = 64 << 20, BH_HTTP_CHALLENGE_MAX = 256 };

struct bh_http_request {
    const char *method, *path; /* the path with its query, encoded */
    const char *body;          /* NULL: none */
    const char *content_type;  /* of the body; NULL: JSON */
    size_t body_length;
    const char *accept, *idempotency_key, *token; /* NULL: left out */
};

/* Takes the body in parts; false ends the transfer. */
typedef bool (*bh_http_sink)(void *self, const char *bytes, size_t length);

/* Reads a reply as it comes, in parts of any size. */
struct bh_http_parser {
    enum bh_http_step {
        BH_HTTP_STATUS,
        BH_HTTP_HEADER,
        BH_HTTP_LENGTH,
        BH_HTTP_TO_CLOSE,
        BH_HTTP_CHUNK_SIZE,
        BH_HTTP_CHUNK,
        BH_HTTP_CHUNK_END,
        BH_HTTP_TRAILER,
        BH_HTTP_DONE
    } step;
    uint32_t status;
    bool has_length, chunked;
    bool stopped;  /* the sink wants no more */
    uint64_t left; /* of the body or of the chunk */
    uint64_t body_bytes, header_bytes;
    char content_type[64];
    uint32_t retry_after_s;                /* Retry-After, when it is a number; 0: absent */
    char challenge[BH_HTTP_CHALLENGE_MAX]; /* WWW-Authenticate; "" when absent or longer */
    size_t line_length;
    char line[4096];
    bh_http_sink sink;
    void *sink_self;
};

void bh_http_parser_init(struct bh_http_parser *parser, bh_http_sink sink, void *self);

/* Take the next bytes of the connection; all are consumed unless the reply is over or
 * the sink stopped it.  BH_IO: not HTTP/1.1, or larger than the limits. */
BH_MUST_USE bh_rc bh_http_parser_feed(struct bh_http_parser *parser, const char *bytes, size_t length,
                                      struct bh_err *err);

/* The connection was closed.  BH_UNCERTAIN: in the middle of the reply. */
BH_MUST_USE bh_rc bh_http_parser_end(struct bh_http_parser *parser, struct bh_err *err);

/* BH_INVALID: a control character in the path, the token or the key. */
BH_MUST_USE bh_rc bh_http_check(const struct bh_http_request *request, struct bh_err *err);

/* Write the request's bytes.  BH_INVALID as bh_http_check; BH_FULL. */
BH_MUST_USE bh_rc bh_http_format(struct bh_buf *out, const struct bh_http_request *request,
                                 struct bh_err *err);

/* Append `text` as part of a path or a query, percent-encoded. */
void bh_http_put_encoded(struct bh_buf *out, const char *text);

#endif
