#include "cli/login/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "cli/login/pkce.h"

#define STATE "sssssssssssssssssssssssssssssssssssssssssss"
#define OK_HEAD "Host: HOST\r\n\r\n"

static int
loopback_test_connect(uint16_t port)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Visitors, one after the other; what each is answered. */
struct visitors {
    uint16_t port;
    const char *const *requests; /* HOST means the listener's own */
    size_t count;
    bool slow, alone; /* one sends less than it announces; none brings a code */
    char answers[4][1024];
    pthread_t thread;
};

static void
put_request(struct bh_buf *out, const char *text, uint16_t port)
{
    const char *host;

    for (; (host = strstr(text, "HOST")); text = host + 4) {
        bh_buf_put(out, text, (size_t)(host - text));
        bh_buf_printf(out, "127.0.0.1:%u", port);
    }
    bh_buf_puts(out, text);
}

static void *
outcome(void *self)
{
    struct visitors *v = self;

    for (size_t i = 0; i < v->count; i++) {
        char text[BH_LOOPBACK_REQUEST_MAX * 2];
        struct bh_buf out;
        struct bh_err unread;
        size_t held = 0;
        ssize_t got;
        int fd = loopback_test_connect(v->port);

        bh_buf_init_fixed(&out, text, sizeof text);
        put_request(&out, v->requests[i], v->port);
        if (bh_fd_write_all(fd, out.bytes, out.length, &unread) == BH_OK)
            while (held < sizeof v->answers[i] - 1
                   && (got = read(fd, v->answers[i] + held, sizeof v->answers[i] - 1 - held)) > 0)
                held += (size_t)got;
        close(fd);
    }
    return NULL;
}

static bh_rc
loopback_test_receive(struct visitors *v, char ret_code[BH_LOOPBACK_CODE_MAX], struct bh_err *err)
{
    struct bh_loopback loopback;
    bh_rc rc;

    assert_int_equal(bh_loopback_open(STATE, &loopback, err), BH_OK);
    loopback.wait_ns = (v->alone ? 3 : 120) * BH_NS_PER_S;
    loopback.client_ns = (v->slow ? 1 : 60) * BH_NS_PER_S;
    v->port = loopback.port;
    assert_int_equal(pthread_create(&v->thread, NULL, outcome, v), 0);
    rc = bh_loopback_wait(&loopback, ret_code, err);
    bh_loopback_close(&loopback);
    pthread_join(v->thread, NULL);
    return rc;
}

#define GOOD "GET /?code=abc&state=" STATE " HTTP/1.1\r\n" OK_HEAD

/* Each is answered so; a good one after it is still heard. */
static const struct {
    const char *name, *request, *status;
    /* clang-format off */
} refused[] = {
    { "another state", "GET /?code=abc&state=x HTTP/1.1\r\n" OK_HEAD, "400" },
    { "a state of the same length",
      "GET /?code=abc&state=tssssssssssssssssssssssssssssssssssssssssss HTTP/1.1\r\n" OK_HEAD, "400" },
    { "a state that goes on", "GET /?code=abc&state=" STATE "s HTTP/1.1\r\n" OK_HEAD, "400" },
    { "no state", "GET /?code=abc HTTP/1.1\r\n" OK_HEAD, "400" },
    { "no code", "GET /?state=" STATE " HTTP/1.1\r\n" OK_HEAD, "400" },
    { "an empty code", "GET /?code=&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "400" },
    { "two codes", "GET /?code=a&code=b&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "400" },
    { "two states", "GET /?code=a&state=x&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "400" },
    { "code and error", "GET /?code=a&error=b&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "400" },
    { "another parameter", "GET /?code=a&state=" STATE "&x=y HTTP/1.1\r\n" OK_HEAD, "400" },
    { "an encoded code", "GET /?code=%61&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "400" },
    { "an error of a stranger", "GET /?error=no&state=x HTTP/1.1\r\n" OK_HEAD, "400" },
    { "another path", "GET /favicon.ico HTTP/1.1\r\n" OK_HEAD, "404" },
    { "another path with the query", "GET /x?code=abc&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "404" },
    { "no path", "GET HTTP/1.1\r\n" OK_HEAD, "404" },
    { "a whole address", "GET http://127.0.0.1/?code=abc&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "404" },
    { "nothing asked", "GET / HTTP/1.1\r\n" OK_HEAD, "400" },
    { "another method", "POST /?code=abc&state=" STATE " HTTP/1.1\r\n" OK_HEAD, "405" },
    { "no HTTP", "hello\r\n\r\n", "405" },
    { "another host", "GET /?code=abc&state=" STATE " HTTP/1.1\r\nHost: evil.example\r\n\r\n", "400" },
    { "a host that begins so", "GET /?code=abc&state=" STATE " HTTP/1.1\r\nHost: HOST.evil.example\r\n\r\n", "400" },
    { "two hosts", "GET /?code=abc&state=" STATE " HTTP/1.1\r\nHost: HOST\r\nHost: x\r\n\r\n", "400" },
    { "the same host twice", "GET /?code=abc&state=" STATE " HTTP/1.1\r\nHost: HOST\r\nhost: HOST\r\n\r\n", "400" },
    { "no host", "GET /?code=abc&state=" STATE " HTTP/1.1\r\n\r\n", "400" },
    { "slow", "GET /?code=abc", "408" },
};
/* clang-format on */

static void
test_refused(void **state)
{
    for (size_t i = 0; i < BH_COUNT(refused); i++) {
        const char *requests[] = { refused[i].request, GOOD };
        struct visitors v = { .requests = requests,
                              .count = 2,
                              .slow = strcmp(refused[i].status, "408") == 0 };
        char code[BH_LOOPBACK_CODE_MAX] = "";
        struct bh_err err;

        BH_CHECK_EQ(refused[i].name, loopback_test_receive(&v, code, &err), BH_OK);
        BH_CHECK_STR(refused[i].name, code, "abc");
        BH_CHECK(refused[i].name, strncmp(v.answers[0], "HTTP/1.1 ", 9) == 0
                                      && strncmp(v.answers[0] + 9, refused[i].status, 3) == 0);
        BH_CHECK(refused[i].name, strncmp(v.answers[1], "HTTP/1.1 200", 12) == 0);
    }
    BH_CHECK_DONE();
}

/* A request that never ends, and one that says nothing, do not keep the browser out. */
static void
test_oversized(void **state)
{
    static char large[BH_LOOPBACK_REQUEST_MAX + 100];
    const char *requests[] = { large, "", GOOD };
    struct visitors v = { .requests = requests, .count = 3, .slow = true };
    char code[BH_LOOPBACK_CODE_MAX] = "";
    struct bh_err err;

    memset(large, 'x', sizeof large - 1);
    assert_int_equal(loopback_test_receive(&v, code, &err), BH_OK);
    assert_string_equal(code, "abc");
    assert_non_null(strstr(v.answers[0], " 431 "));
    assert_non_null(strstr(v.answers[1], " 408 "));
}

static void
test_longest_code(void **state)
{
    char longest[BH_LOOPBACK_CODE_MAX], request[512], code[BH_LOOPBACK_CODE_MAX] = "";
    const char *requests[] = { request };
    struct visitors v = { .requests = requests, .count = 1 };
    struct bh_err err;

    memset(longest, 'c', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    snprintf(request, sizeof request, "GET /?code=%s&state=" STATE " HTTP/1.1\r\n" OK_HEAD, longest);
    assert_int_equal(loopback_test_receive(&v, code, &err), BH_OK);
    assert_string_equal(code, longest);
    snprintf(request, sizeof request, "GET /?code=%sc&state=" STATE " HTTP/1.1\r\n" OK_HEAD, longest);
    v.alone = true;
    assert_int_equal(loopback_test_receive(&v, code, &err), BH_TIMEOUT);
    assert_non_null(strstr(v.answers[0], " 400 "));
}

static void
test_said_no(void **state)
{
    const char *requests[] = { "GET /?error=access_denied&state=" STATE " HTTP/1.1\r\n" OK_HEAD };
    struct visitors v = { .requests = requests, .count = 1 };
    char code[BH_LOOPBACK_CODE_MAX];
    struct bh_err err;

    assert_int_equal(loopback_test_receive(&v, code, &err), BH_DENIED);
    assert_non_null(strstr(v.answers[0], "Not signed in."));
}

static void
test_nobody_comes(void **state)
{
    struct visitors v = { .count = 0, .alone = true };
    char code[BH_LOOPBACK_CODE_MAX];
    struct bh_err err;

    assert_int_equal(loopback_test_receive(&v, code, &err), BH_TIMEOUT);
    assert_non_null(strstr(err.hint, "--device"));
}

/* No page from elsewhere reaches the listener, and its answers are not cached. */
static void
test_only_here(void **state)
{
    struct sockaddr_in at = { 0 };
    socklen_t length = sizeof at;
    struct bh_loopback loopback;
    struct bh_err err;

    assert_int_equal(bh_loopback_open(STATE, &loopback, &err), BH_OK);
    assert_int_equal(getsockname(loopback.fd, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(ntohl(at.sin_addr.s_addr), INADDR_LOOPBACK);
    assert_int_equal(loopback.wait_ns, 300 * BH_NS_PER_S);
    bh_loopback_close(&loopback);
    assert_int_equal(loopback.fd, -1);
}

/* RFC 7636, appendix B. */
static void
test_challenge(void **state)
{
    char challenge[BH_PKCE_TEXT];
    struct bh_pkce one, other;
    struct bh_err err;

    assert_int_equal(bh_pkce_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", challenge, &err),
                     BH_OK);
    assert_string_equal(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    assert_int_equal(bh_pkce_make(&one, &err), BH_OK);
    assert_int_equal(bh_pkce_make(&other, &err), BH_OK);
    assert_int_equal(strlen(one.verifier), 43);
    assert_int_equal(strlen(one.state), 43);
    assert_string_not_equal(one.state, one.verifier);
    assert_string_not_equal(one.verifier, other.verifier);
    assert_string_not_equal(one.state, other.state);
}

static void
test_same(void **state)
{
    assert_true(bh_pkce_same("", ""));
    assert_true(bh_pkce_same("abc", "abc"));
    assert_false(bh_pkce_same("abc", "abd"));
    assert_false(bh_pkce_same("abc", "bbc"));
    assert_false(bh_pkce_same("abc", "ab"));
    assert_false(bh_pkce_same("", "a"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_oversized),
        cmocka_unit_test(test_longest_code), cmocka_unit_test(test_said_no),
        cmocka_unit_test(test_nobody_comes), cmocka_unit_test(test_only_here),
        cmocka_unit_test(test_challenge),    cmocka_unit_test(test_same),
    };

    signal(SIGPIPE, SIG_IGN);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
