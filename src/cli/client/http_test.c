#include "cli/client/http.h"

#include "base/test.h"

struct taken {
    char bytes[65536];
    size_t length;
    size_t stop_after; /* 0: never */
};

static bool
http_test_sink(void *self, const char *bytes, size_t length)
{
    struct taken *taken = self;

    if (taken->length + length < sizeof taken->bytes) {
        memcpy(taken->bytes + taken->length, bytes, length);
        taken->length += length;
    }
    return !taken->stop_after || taken->length < taken->stop_after;
}

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *name, *reply;
    bh_rc rc;
    uint32_t status;
    const char *body;
    /* clang-format off */
} replies[] = {
    { "length", OK "Content-Length: 5\r\n\r\nhello", BH_OK, 200, "hello" },
    { "length 0", OK "Content-Length: 0\r\n\r\n", BH_OK, 200, "" },
    { "to the close", OK "\r\nhello", BH_OK, 200, "hello" },
    { "chunks", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=1\r\n world\r\n0\r\n\r\n", BH_OK, 200, "hello world" },
    { "trailer", OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\n\r\n", BH_OK, 200, "a" },
    { "bare newlines", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", BH_OK, 200, "a" },
    { "interim reply", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\na", BH_OK, 200, "a" },
    { "no reason phrase", "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", BH_OK, 404, "" },
    { "204 has no body", "HTTP/1.1 204 No Content\r\n\r\n", BH_OK, 204, "" },
    { "what follows is not ours", OK "Content-Length: 1\r\n\r\nabc", BH_OK, 200, "a" },
    { "junk", "SSH-2.0-OpenSSH\r\n", BH_IO, 0, NULL },
    { "junk status", "HTTP/1.1 2xx OK\r\n\r\n", BH_IO, 0, NULL },
    { "long status", "HTTP/1.1 2000 OK\r\n\r\n", BH_IO, 0, NULL },
    { "HTTP/2", "HTTP/2 200\r\n\r\n", BH_IO, 0, NULL },
    { "negative length", OK "Content-Length: -1\r\n\r\n", BH_IO, 200, NULL },
    { "length that overflows", OK "Content-Length: 99999999999999999999\r\n\r\n", BH_IO, 200, NULL },
    { "length too large", OK "Content-Length: 99999999999\r\n\r\n", BH_IO, 200, NULL },
    { "two lengths", OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\na", BH_IO, 200, NULL },
    { "both framings", OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", BH_IO, 200, NULL },
    { "unknown encoding", OK "Transfer-Encoding: gzip\r\n\r\n", BH_IO, 200, NULL },
    { "no colon", OK "Content-Length 5\r\n\r\nhello", BH_IO, 200, NULL },
    { "folded header", OK "X: a\r\n b\r\n\r\n", BH_IO, 200, NULL },
    { "bad chunk size", OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", BH_IO, 200, NULL },
    { "chunk size overflow", OK "Transfer-Encoding: chunked\r\n\r\n123456789\r\n", BH_IO, 200, NULL },
    { "chunk longer than said", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", BH_IO, 200, NULL },
    { "cut in the status", "HTTP/1.1 2", BH_UNCERTAIN, 0, NULL },
    { "cut in the headers", OK "Content-Length: 5\r\n", BH_UNCERTAIN, 200, NULL },
    { "cut in the body", OK "Content-Length: 5\r\n\r\nhel", BH_UNCERTAIN, 200, NULL },
    { "cut in a chunk", OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", BH_UNCERTAIN, 200, NULL },
    { "cut before the last chunk", OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", BH_UNCERTAIN, 200, NULL },
    { "nothing", "", BH_UNCERTAIN, 0, NULL },
};
/* clang-format on */

/* The whole reply in pieces of `step` bytes. */
static bh_rc
http_test_parse(const char *reply, size_t step, struct bh_http_parser *parser, struct taken *taken)
{
    struct bh_err err;
    size_t length = strlen(reply);
    bh_rc rc = BH_OK;

    *taken = (struct taken){ .length = 0 };
    bh_http_parser_init(parser, http_test_sink, taken);
    for (size_t at = 0; rc == BH_OK && at < length; at += step)
        rc = bh_http_parser_feed(parser, reply + at, length - at < step ? length - at : step, &err);
    return rc == BH_OK ? bh_http_parser_end(parser, &err) : rc;
}

static const struct {
    const char *name, *header, *challenge;
} challenges[] = {
    { "none", "", "" },
    { "as it is", "WWW-Authenticate: Bearer realm=\"bulkhead\"\r\n", "Bearer realm=\"bulkhead\"" },
    { "in any case", "www-authenticate:  x \r\n", "x" },
    { "another header", "X-WWW-Authenticate: x\r\n", "" },
    { "too long",
      "WWW-Authenticate: "
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
      "\r\n",
      "" },
};

/* What the server wants to be shown. */
static void
test_challenges(void **state)
{
    static struct taken taken;

    for (size_t i = 0; i < BH_COUNT(challenges); i++) {
        struct bh_http_parser parser;
        char reply[1024];

        snprintf(reply, sizeof reply, "HTTP/1.1 401 X\r\n%sContent-Length: 0\r\n\r\n", challenges[i].header);
        BH_CHECK_EQ(challenges[i].name, http_test_parse(reply, 7, &parser, &taken), BH_OK);
        BH_CHECK_STR(challenges[i].name, parser.challenge, challenges[i].challenge);
    }
    BH_CHECK_DONE();
}

/* However the bytes are cut, the outcome is the same. */
static void
test_replies(void **state)
{
    static const size_t steps[] = { 1, 2, 3, 7, 64, 65536 };
    static struct taken taken;

    for (size_t i = 0; i < BH_COUNT(replies); i++)
        for (size_t s = 0; s < BH_COUNT(steps); s++) {
            struct bh_http_parser parser;
            bh_rc rc = http_test_parse(replies[i].reply, steps[s], &parser, &taken);

            BH_CHECK_EQ(replies[i].name, rc, replies[i].rc);
            BH_CHECK_EQ(replies[i].name, parser.status, replies[i].status);
            taken.bytes[taken.length] = '\0';
            if (rc == BH_OK)
                BH_CHECK_STR(replies[i].name, taken.bytes, replies[i].body);
        }
    BH_CHECK_DONE();
}

/* A server that never stops with its headers. */
static void
test_endless_headers(void **state)
{
    static const char line[] = "X-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
    static struct taken taken;
    struct bh_http_parser parser;
    struct bh_err err;
    bh_rc rc;
    size_t fed = 0;

    bh_http_parser_init(&parser, http_test_sink, &taken);
    rc = bh_http_parser_feed(&parser, OK, strlen(OK), &err);
    for (; rc == BH_OK && fed < 4 * (size_t)BH_HTTP_HEADERS_MAX; fed += strlen(line))
        rc = bh_http_parser_feed(&parser, line, strlen(line), &err);
    assert_int_equal(rc, BH_IO);
    assert_true(fed <= BH_HTTP_HEADERS_MAX + strlen(line));
}

static void
test_one_long_line(void **state)
{
    static struct taken taken;
    static char line[8192];
    struct bh_http_parser parser;
    struct bh_err err;

    memset(line, 'a', sizeof line);
    bh_http_parser_init(&parser, http_test_sink, &taken);
    assert_int_equal(bh_http_parser_feed(&parser, line, sizeof line, &err), BH_IO);
}

static void
test_sink_stops(void **state)
{
    static struct taken taken = { .stop_after = 3 };
    struct bh_http_parser parser;
    struct bh_err err;
    const char *reply = OK "\r\nabcdef";

    bh_http_parser_init(&parser, http_test_sink, &taken);
    for (const char *c = reply; *c; c++)
        assert_int_equal(bh_http_parser_feed(&parser, c, 1, &err), BH_OK);
    assert_true(parser.stopped);
    assert_int_equal(taken.length, 3);
    assert_int_equal(bh_http_parser_end(&parser, &err), BH_OK);
}

static void
test_format(void **state)
{
    struct bh_http_request request = {
        .method = "POST", .path = "/v1/jobs", .body = "{}", .body_length = 2, .idempotency_key = "k"
    };
    struct bh_buf out;
    struct bh_err err;

    bh_buf_init(&out, 65536);
    assert_int_equal(bh_http_format(&out, &request, &err), BH_OK);
    assert_string_equal(bh_buf_text(&out), "POST /v1/jobs HTTP/1.1\r\nHost: bulkhead\r\nConnection: close\r\n"
                                           "Idempotency-Key: k\r\nContent-Type: application/json\r\n"
                                           "Content-Length: 2\r\n\r\n{}");
    bh_buf_clear(&out);
    request.idempotency_key = "k\r\nX-Evil: 1";
    assert_int_equal(bh_http_format(&out, &request, &err), BH_INVALID);
    bh_buf_clear(&out);
    bh_http_put_encoded(&out, "a/b c&d=\xc3\xa4");
    assert_string_equal(bh_buf_text(&out), "a%2Fb%20c%26d%3D%C3%A4");
    bh_buf_fini(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replies),         cmocka_unit_test(test_challenges),
    cmocka_unit_test(test_endless_headers), cmocka_unit_test(test_one_long_line),
    cmocka_unit_test(test_sink_stops),      cmocka_unit_test(test_format),
};
BH_TEST_MAIN(tests)
