#include "cli/client/http.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

void
bh_http_parser_init(struct bh_http_parser *parser, bh_http_sink sink, void *self)
{
    *parser = (struct bh_http_parser){ .sink = sink, .sink_self = self };
}

static bh_rc
http_fault(struct bh_err *err, const char *what)
{
    return bh_err_set(err, BH_IO, "the server's reply is not HTTP/1.1: %s", what);
}

/* "HTTP/1.1 200 OK" */
static bh_rc
http_parse_status(struct bh_http_parser *p, struct bh_err *err)
{
    const char *line = p->line;

    if (strncmp(line, "HTTP/1.1 ", 9) != 0 && strncmp(line, "HTTP/1.0 ", 9) != 0)
        return http_fault(err, "bad status line");
    line += 9;
    if (strspn(line, "0123456789") != 3 || (line[3] && line[3] != ' '))
        return http_fault(err, "bad status");
    p->status = (uint32_t)((line[0] - '0') * 100 + (line[1] - '0') * 10 + (line[2] - '0'));
    p->step = BH_HTTP_HEADER;
    return BH_OK;
}

static bh_rc
http_parse_length(struct bh_http_parser *p, const char *value, struct bh_err *err)
{
    uint64_t length;

    if (bh_parse_u64(value, &length, err) != BH_OK || (p->has_length && length != p->left))
        return http_fault(err, "bad Content-Length");
    if (length > BH_HTTP_BODY_MAX)
        return http_fault(err, "the body is too large");
    p->has_length = true;
    p->left = length;
    return BH_OK;
}

static bh_rc
http_parse_encoding(struct bh_http_parser *p, const char *value, struct bh_err *err)
{
    if (strcasecmp(value, "chunked") != 0 || p->chunked)
        return http_fault(err, "unknown Transfer-Encoding");
    p->chunked = true;
    return BH_OK;
}

static bh_rc
http_parse_type(struct bh_http_parser *p, const char *value, struct bh_err *err)
{
    if (strlen(value) >= sizeof p->content_type)
        return http_fault(err, "bad Content-Type");
    memcpy(p->content_type, value, strlen(value) + 1);
    return BH_OK;
}

/* The challenge of a 401.  One that is too long is ignored. */
static bh_rc
http_parse_challenge(struct bh_http_parser *p, const char *value, struct bh_err *err)
{
    if (strlen(value) < sizeof p->challenge)
        memcpy(p->challenge, value, strlen(value) + 1);
    return BH_OK;
}

/* A date is ignored. */
static bh_rc
http_parse_retry(struct bh_http_parser *p, const char *value, struct bh_err *err)
{
    struct bh_err unused;
    uint64_t seconds;

    if (bh_parse_u64(value, &seconds, &unused) == BH_OK && seconds <= UINT32_MAX)
        p->retry_after_s = (uint32_t)seconds;
    return BH_OK;
}

/* Headers that matter here; all others are passed over. */
static const struct {
    const char *name;
    bh_rc (*take)(struct bh_http_parser *p, const char *value, struct bh_err *err);
} headers[] = {
    { "content-length", http_parse_length }, { "transfer-encoding", http_parse_encoding },
    { "content-type", http_parse_type },     { "www-authenticate", http_parse_challenge },
    { "retry-after", http_parse_retry },
};

/* The empty line after the headers: how the body comes. */
static bh_rc
http_begin_body(struct bh_http_parser *p, struct bh_err *err)
{
    if (p->status >= 100 && p->status < 200) { /* an interim reply */
        p->step = BH_HTTP_STATUS;
        return BH_OK;
    }
    if (p->chunked && p->has_length)
        return http_fault(err, "both Content-Length and Transfer-Encoding");
    if (p->status == 204 || p->status == 304 || (p->has_length && p->left == 0))
        p->step = BH_HTTP_DONE;
    else if (p->chunked)
        p->step = BH_HTTP_CHUNK_SIZE;
    else
        p->step = p->has_length ? BH_HTTP_LENGTH : BH_HTTP_TO_CLOSE;
    return BH_OK;
}

static bh_rc
http_parse_header(struct bh_http_parser *p, struct bh_err *err)
{
    char *value = strchr(p->line, ':');

    if (!*p->line)
        return http_begin_body(p, err);
    if (!value || value == p->line || isspace((unsigned char)*p->line))
        return http_fault(err, "bad header");
    *value++ = '\0';
    value += strspn(value, " \t");
    for (char *end = value + strlen(value); end > value && strchr(" \t", end[-1]);)
        *--end = '\0';
    for (size_t i = 0; i < BH_COUNT(headers); i++)
        if (strcasecmp(p->line, headers[i].name) == 0)
            return headers[i].take(p, value, err);
    return BH_OK;
}

/* "1a2b" or "1a2b;extension" */
static bh_rc
http_parse_chunk_size(struct bh_http_parser *p, struct bh_err *err)
{
    size_t digits = strspn(p->line, "0123456789abcdefABCDEF");
    uint64_t size = 0;

    if (digits == 0 || digits > 8 || (p->line[digits] && !strchr("; \t", p->line[digits])))
        return http_fault(err, "bad chunk size");
    for (size_t i = 0; i < digits; i++) {
        char c = (char)tolower((unsigned char)p->line[i]);

        size = size * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    p->left = size;
    p->step = size ? BH_HTTP_CHUNK : BH_HTTP_TRAILER;
    return BH_OK;
}

static bh_rc
http_parse_chunk_end(struct bh_http_parser *p, struct bh_err *err)
{
    if (*p->line)
        return http_fault(err, "a chunk is longer than its size");
    p->step = BH_HTTP_CHUNK_SIZE;
    return BH_OK;
}

static bh_rc
http_parse_trailer(struct bh_http_parser *p, struct bh_err *err)
{
    if (!*p->line)
        p->step = BH_HTTP_DONE;
    return BH_OK;
}

static bh_rc (*const parse_line[])(struct bh_http_parser *p, struct bh_err *err) = {
    [BH_HTTP_STATUS] = http_parse_status,         [BH_HTTP_HEADER] = http_parse_header,
    [BH_HTTP_CHUNK_SIZE] = http_parse_chunk_size, [BH_HTTP_CHUNK_END] = http_parse_chunk_end,
    [BH_HTTP_TRAILER] = http_parse_trailer,
};

/* Collect a line; how many bytes were taken.  *ret_whole says that it is complete, in
 * p->line without its end. */
static size_t
http_collect_line(struct bh_http_parser *p, const char *bytes, size_t length, bool *ret_whole)
{
    const char *end = memchr(bytes, '\n', length);
    size_t take = end ? (size_t)(end - bytes) : length;

    if (take > sizeof p->line - 1 - p->line_length)
        take = sizeof p->line - 1 - p->line_length;
    memcpy(p->line + p->line_length, bytes, take);
    p->line_length += take;
    *ret_whole = take < length && bytes[take] == '\n';
    if (!*ret_whole)
        return take;
    if (p->line_length > 0 && p->line[p->line_length - 1] == '\r')
        p->line_length--;
    p->line[p->line_length] = '\0';
    return take + 1;
}

static bh_rc
http_feed_line(struct bh_http_parser *p, const char **bytes, size_t *length, struct bh_err *err)
{
    bool whole, oversized;
    size_t taken = http_collect_line(p, *bytes, *length, &whole);
    size_t held = p->line_length;

    *bytes += taken;
    *length -= taken;
    p->header_bytes += taken;
    oversized = p->header_bytes > BH_HTTP_HEADERS_MAX && p->step <= BH_HTTP_HEADER;
    if (oversized || (!whole && held >= sizeof p->line - 1))
        return http_fault(err, "a header is too large");
    if (!whole)
        return BH_OK;
    p->line_length = 0;
    if (memchr(p->line, '\0', held))
        return http_fault(err, "a NUL in a header");
    return parse_line[p->step](p, err);
}

static bh_rc
http_feed_body(struct bh_http_parser *p, const char **bytes, size_t *length, struct bh_err *err)
{
    bool bounded = p->step != BH_HTTP_TO_CLOSE;
    size_t take = bounded && p->left < *length ? (size_t)p->left : *length;

    p->body_bytes += take;
    if (!p->sink(p->sink_self, *bytes, take))
        p->stopped = true;
    *bytes += take;
    *length -= take;
    if (!bounded)
        return BH_OK;
    p->left -= take;
    if (p->left == 0)
        p->step = p->step == BH_HTTP_CHUNK ? BH_HTTP_CHUNK_END : BH_HTTP_DONE;
    return BH_OK;
}

static bool
http_in_body(const struct bh_http_parser *p)
{
    return p->step == BH_HTTP_LENGTH || p->step == BH_HTTP_TO_CLOSE || p->step == BH_HTTP_CHUNK;
}

bh_rc
bh_http_parser_feed(struct bh_http_parser *p, const char *bytes, size_t length, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    while (rc == BH_OK && length > 0 && p->step != BH_HTTP_DONE && !p->stopped)
        rc = http_in_body(p) ? http_feed_body(p, &bytes, &length, err)
                             : http_feed_line(p, &bytes, &length, err);
    return rc;
}

bh_rc
bh_http_parser_end(struct bh_http_parser *p, struct bh_err *err)
{
    if (p->step == BH_HTTP_DONE || p->step == BH_HTTP_TO_CLOSE || p->stopped)
        return BH_OK;
    bh_err_set(err, BH_UNCERTAIN, "the server closed the connection before the end of its reply");
    return bh_err_hint(err, "check with bulkhead ps before you try again");
}

/* A header's value may end neither its line nor the request. */
static bh_rc
http_check_value(const char *what, const char *value, struct bh_err *err)
{
    for (; value && *value; value++)
        if ((unsigned char)*value < 0x20 || *value == 0x7f)
            return bh_err_set(err, BH_INVALID, "%s: control character", what);
    return BH_OK;
}

bh_rc
bh_http_check(const struct bh_http_request *request, struct bh_err *err)
{
    bh_rc rc = http_check_value("token", request->token, err);

    if (rc != BH_OK)
        return rc;
    rc = http_check_value("idempotency key", request->idempotency_key, err);
    if (rc != BH_OK)
        return rc;
    return http_check_value("path", request->path, err);
}

/* "Name: value", with `before` in front of the value. */
static void
http_put_header(struct bh_buf *out, const char *name, const char *before, const char *value)
{
    if (value)
        bh_buf_printf(out, "%s: %s%s\r\n", name, before, value);
}

bh_rc
bh_http_format(struct bh_buf *out, const struct bh_http_request *request, struct bh_err *err)
{
    bh_rc rc = bh_http_check(request, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_printf(out, "%s %s HTTP/1.1\r\nHost: bulkhead\r\nConnection: close\r\n", request->method,
                  request->path);
    http_put_header(out, "Accept", "", request->accept);
    http_put_header(out, "Idempotency-Key", "", request->idempotency_key);
    http_put_header(out, "Authorization", "Bearer ", request->token);
    if (request->body)
        bh_buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                      request->content_type ? request->content_type : "application/json",
                      request->body_length);
    bh_buf_puts(out, "\r\n");
    if (request->body)
        bh_buf_put(out, request->body, request->body_length);
    return out->overflow ? bh_err_set(err, BH_FULL, "the request is too large") : BH_OK;
}

void
bh_http_put_encoded(struct bh_buf *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (isalnum(c) || strchr("-._~", c))
            bh_buf_putc(out, (char)c);
        else
            bh_buf_printf(out, "%%%02X", c);
    }
}
