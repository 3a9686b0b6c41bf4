#include "http_server/server.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "http_server/ticks_test.h"

/* The contract of ports/http.h over raw sockets, with a toy handler. */

enum {
    SOMEBODY = 12345, /* a uid that need not exist */
    HALVES = 40,
    CROWD = 100
};

static char folder[] = "/tmp/bh-server-test-XXXXXX";
static char socket_path[64];
static struct bh_server *server;

/* ---- the toy ---- */

static void
put_parameter(void *self, const char *name, const char *value)
{
    bh_buf_printf(self, "%s=%s;", name, value);
}

static const char *
or_dash(const char *text)
{
    return text ? text : "-";
}

static void
http_server_test_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    reply->status = 200;
    bh_reply_header(reply, "X-Toy", "yes");
    bh_reply_header(reply, "Set-Cookie", "a=1");
    bh_reply_header(reply, "Set-Cookie", "b=2");
    if (strcmp(request->path, "/ticks") == 0) {
        bh_ticks_start(reply, 3);
        return;
    }
    if (strcmp(request->path, "/forever") == 0) {
        bh_ticks_start(reply, -1);
        return;
    }
    bh_buf_printf(&reply->body,
                  "%s %s body=%zu uid=%u gids=%u unix=%d from=%s query=", bh_method_names[request->method],
                  request->path, request->body_length, request->transport->uid, request->transport->gid_count,
                  request->transport->unix_socket, request->transport->address);
    request->each_query(request, put_parameter, &reply->body);
    bh_buf_printf(&reply->body, " auth=%s key=%s cookie=%s origin=%s site=%s host=%s",
                  or_dash(request->authorization), or_dash(request->idempotency_key),
                  or_dash(request->cookie), or_dash(request->origin), or_dash(request->fetch_site),
                  or_dash(request->host));
    if (strlen(request->body) != request->body_length)
        bh_buf_puts(&reply->body, " NUL");
}

/* ---- a client ---- */

static int
dial(void)
{
    struct bh_err err;
    int fd;

    assert_int_equal(bh_unix_connect(socket_path, &fd, &err), BH_OK);
    return fd;
}

/* Sends, not minding when the server has closed already. */
static void
http_server_test_send(int fd, const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        at += sent;
        length -= (size_t)sent;
    }
}

/* What comes until the server closes, `until` was seen or nothing comes for ten seconds. */
static const char *
http_server_test_receive(int fd, const char *until)
{
    static char text[256 << 10];
    size_t length = 0;

    text[0] = '\0';
    while (length + 1 < sizeof text && !(until && strstr(text, until))) {
        struct pollfd wait = { fd, POLLIN, 0 };
        ssize_t got;

        if (poll(&wait, 1, 10000) <= 0)
            break;
        got = recv(fd, text + length, sizeof text - 1 - length, 0);
        if (got <= 0)
            break;
        length += (size_t)got;
        text[length] = '\0';
    }
    return text;
}

static const char *
http_server_test_exchange(const char *request, const char *until)
{
    int fd = dial();
    const char *reply;

    http_server_test_send(fd, request, strlen(request));
    reply = http_server_test_receive(fd, until);
    bh_fd_close(fd);
    return reply;
}

static unsigned
count_in(const char *text, const char *what)
{
    unsigned count = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define LAST(path) "GET " path " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

/* ---- the tests ---- */

static void
a_request_arrives_whole(void **state)
{
    char uid[32];
    const char *reply = http_server_test_exchange("POST /v1/a%20b?x=1&y=%41%20b&z HTTP/1.1\r\nHost: x\r\n"
                                                  "Authorization: Bearer t\r\nIdempotency-Key: k\r\n"
                                                  "Cookie: a=1; b=2\r\nOrigin: https://x\r\n"
                                                  "Sec-Fetch-Site: same-origin\r\n"
                                                  "Connection: close\r\nContent-Length: 5\r\n\r\nhello",
                                                  NULL);

    snprintf(uid, sizeof uid, "uid=%u ", getuid());
    BH_CHECK("status", strstr(reply, "HTTP/1.1 200"));
    BH_CHECK("method, path, body", strstr(reply, "POST /v1/a b body=5 "));
    BH_CHECK("uid", strstr(reply, uid));
    BH_CHECK("unix", strstr(reply, "unix=1"));
    BH_CHECK("query", strstr(reply, "query=x=1;y=A b;z=; "));
    BH_CHECK("headers", strstr(reply, "auth=Bearer t key=k cookie=a=1; b=2 "
                                      "origin=https://x site=same-origin host=x"));
    BH_CHECK("extra header", strstr(reply, "X-Toy: yes"));
    BH_CHECK("a header twice", strstr(reply, "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"));
    BH_CHECK("not kept", strstr(reply, "no-store"));
    BH_CHECK("not guessed", strstr(reply, "nosniff"));
    BH_CHECK_DONE();
}

static void
nul_never_cuts_a_text_short(void **state)
{
    const char *reply = http_server_test_exchange(LAST("/v1/jobs%00/secret?tenant=a%00b"), NULL);

    BH_CHECK("path goes on", strstr(reply, "/v1/jobs\x01/secret"));
    BH_CHECK("query goes on", strstr(reply, "tenant=a\x01"
                                            "b;"));
    reply = http_server_test_exchange(LAST("/%zz%4?a=%"), NULL);
    BH_CHECK("half escapes stay", strstr(reply, "GET /%zz%4 "));
    BH_CHECK_DONE();
}

static void
connections_are_kept_and_requests_follow(void **state)
{
    int fd = dial();

    for (int i = 0; i < 3; i++) {
        http_server_test_send(fd, GET("/one"), strlen(GET("/one")));
        BH_CHECK("kept", strstr(http_server_test_receive(fd, "key=-"), "GET /one"));
    }
    bh_fd_close(fd);
    BH_CHECK_EQ("pipelined",
                count_in(http_server_test_exchange(GET("/a") GET("/b") LAST("/c"), NULL), "200 OK"), 3);
    BH_CHECK_DONE();
}

#define TWICE(fields) "GET / HTTP/1.1\r\nHost: x\r\n" fields "Connection: close\r\n\r\n"

static void
bad_requests_are_refused(void **state)
{
    static const struct {
        const char *name, *request, *status;
    } cases[] = {
        { "other method", "PATCH / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", " 405 " },
        { "options", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", " 405 " },
        { "no host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", " 400 " },
        { "two keys", TWICE("Idempotency-Key: a\r\nidempotency-key: b\r\n"), " 400 " },
        { "the same key twice", TWICE("Idempotency-Key: a\r\nIdempotency-Key: a\r\n"), " 400 " },
        { "two callers", TWICE("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"), " 400 " },
        { "two types", TWICE("Content-Type: text/yaml\r\nContent-Type: application/json\r\n"), " 400 " },
        { "large length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", " 413 " },
        { "larger than numbers", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
          " 413 " },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const char *reply = http_server_test_exchange(cases[i].request, "\r\n\r\n");

        BH_CHECK(cases[i].name, strstr(reply, cases[i].status));
    }
    BH_CHECK("shape",
             strstr(http_server_test_exchange(cases[0].request, NULL), "{\"error\":{\"code\":\"invalid\""));
    BH_CHECK("junk is no 200",
             !strstr(http_server_test_exchange("\x16\x03\x01 nonsense\r\n\r\n", NULL), "200 OK"));
    BH_CHECK("still there", strstr(http_server_test_exchange(LAST("/x"), NULL), "GET /x"));
    BH_CHECK_DONE();
}

/* A request of that many parameters: its reply. */
static const char *
http_server_test_query(uint32_t parameters)
{
    BH_AUTO(bh_buf_fini) struct bh_buf request = { .max = 1 << 16 };

    bh_buf_puts(&request, "GET /q?");
    for (uint32_t i = 0; i < parameters; i++)
        bh_buf_puts(&request, i ? "&a=1" : "a=1");
    bh_buf_puts(&request, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    return http_server_test_exchange(bh_buf_text(&request), NULL);
}

static void
long_queries_are_refused(void **state)
{
    static const uint32_t too_many[] = { BH_SERVER_PARAMETERS_MAX + 1, 600, 1000, 5000 };

    BH_CHECK_EQ("the most", count_in(http_server_test_query(BH_SERVER_PARAMETERS_MAX), "a=1;"),
                BH_SERVER_PARAMETERS_MAX);
    for (size_t i = 0; i < BH_COUNT(too_many); i++) {
        const char *reply = http_server_test_query(too_many[i]);

        BH_CHECK("refused", strstr(reply, " 414 "));
        BH_CHECK("with the error",
                 strstr(reply, "{\"error\":{\"code\":\"invalid\",\"message\":\"the query has"));
    }
    BH_CHECK("still there", strstr(http_server_test_exchange(LAST("/x?a=b"), NULL), "query=a=b;"));
    BH_CHECK_DONE();
}

static void
huge_headers_are_refused(void **state)
{
    int fd = dial();
    char *huge = malloc(200000);
    const char *reply;

    assert_non_null(huge);
    memset(huge, 'a', 200000);
    http_server_test_send(fd, "GET / HTTP/1.1\r\nHost: x\r\nX: ", 27);
    http_server_test_send(fd, huge, 200000);
    http_server_test_send(fd, "\r\n\r\n", 4);
    reply = http_server_test_receive(fd, "\r\n\r\n");
    BH_CHECK("refused", !strstr(reply, "200 OK"));
    bh_fd_close(fd);
    free(huge);
    BH_CHECK("still there", strstr(http_server_test_exchange(LAST("/x"), NULL), "GET /x"));
    BH_CHECK_DONE();
}

static const char *
send_body(size_t bytes)
{
    int fd = dial();
    char *part = malloc(65536), head[96];
    const char *reply;

    assert_non_null(part);
    memset(part, 'b', 65536);
    http_server_test_send(fd, head,
                          (size_t)snprintf(head, sizeof head,
                                           "POST /c HTTP/1.1\r\nHost: x\r\n"
                                           "Content-Length: %zu\r\n\r\n",
                                           bytes));
    for (size_t now; bytes > 0; bytes -= now) {
        now = bytes < 65536 ? bytes : 65536;
        http_server_test_send(fd, part, now);
    }
    reply = http_server_test_receive(fd, "}");
    bh_fd_close(fd);
    free(part);
    return strstr(reply, "body=") ? "taken" : strstr(reply, " 413 ") ? "413" : "cut";
}

static void
bodies_have_a_limit(void **state)
{
    BH_CHECK_STR("largest", send_body(BH_SERVER_BODY_MAX), "taken");
    BH_CHECK_STR("one more", send_body(BH_SERVER_BODY_MAX + 1), "413");
    BH_CHECK("still there", strstr(http_server_test_exchange(LAST("/x"), NULL), "GET /x"));
    BH_CHECK_DONE();
}

static void
half_requests_delay_no_other_client(void **state)
{
    int halves[HALVES];

    for (int i = 0; i < HALVES; i++) {
        halves[i] = dial();
        http_server_test_send(halves[i], "POST /half HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
                              (size_t)(20 + i % 30));
    }
    BH_CHECK("served meanwhile", strstr(http_server_test_exchange(LAST("/x"), NULL), "GET /x"));
    for (int i = 0; i < HALVES; i++)
        bh_fd_close(halves[i]);
    BH_CHECK("and after", strstr(http_server_test_exchange(LAST("/x"), NULL), "GET /x"));
    BH_CHECK_DONE();
}

static void
streams_end_and_vanished_readers_are_noticed(void **state)
{
    int fd;

    BH_CHECK_EQ("three ticks", count_in(http_server_test_exchange(LAST("/ticks"), NULL), "tick"), 3);
    fd = dial();
    http_server_test_send(fd, GET("/forever"), strlen(GET("/forever")));
    BH_CHECK("headers and first part at once", strstr(http_server_test_receive(fd, "tick"), "200 OK"));
    bh_fd_close(fd);
    BH_CHECK("closed", bh_ticks_all_closed());
    fd = dial();
    http_server_test_send(fd, GET("/forever"), strlen(GET("/forever")));
    (void)http_server_test_receive(fd, "tick");
    shutdown(fd, SHUT_RD);
    bh_fd_close(fd);
    BH_CHECK("closed again", bh_ticks_all_closed());
    BH_CHECK_DONE();
}

static unsigned
count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    unsigned count = 0;

    assert_non_null(tasks);
    while ((entry = readdir(tasks)))
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Waited for: a connection's thread ends when its stream has left it. */
static bool
has_threads(unsigned wanted)
{
    for (int i = 0; i < 1500 && count_threads() > wanted; i++)
        bh_time_sleep(20 * BH_NS_PER_MS);
    return count_threads() <= wanted;
}

static void
streams_have_no_threads_of_their_own(void **state)
{
    unsigned threads, connections = bh_server_connections(server);
    int clients[CROWD];
    size_t good = 0;

    assert_true(has_threads(count_threads()));
    threads = count_threads();
    for (int i = 0; i < CROWD; i++) {
        clients[i] = dial();
        http_server_test_send(clients[i], GET("/forever"), strlen(GET("/forever")));
        good += strstr(http_server_test_receive(clients[i], "tick"), "Connection: close\r\n") != NULL;
    }
    BH_CHECK_EQ("each says that its connection ends with it", good, CROWD);
    BH_CHECK_EQ("counted", bh_server_connections(server), connections + CROWD);
    BH_CHECK("without threads", has_threads(threads));
    for (int i = 0; i < CROWD; i++)
        BH_CHECK("served on", strstr(http_server_test_receive(clients[i], "tick"), "tick"));
    for (int i = 0; i < CROWD; i++)
        bh_fd_close(clients[i]);
    BH_CHECK("closed", bh_ticks_all_closed());
    BH_CHECK_DONE();
}

static void
an_old_client_gets_no_chunks(void **state)
{
    const char *reply = http_server_test_exchange("GET /ticks HTTP/1.0\r\n\r\n", NULL);

    BH_CHECK("the body as it is", strstr(reply, "\r\n\r\ntick\ntick\ntick\n"));
    BH_CHECK("and nothing else", !strstr(reply, "tick\n\r") && !strstr(reply, "chunked"));
    BH_CHECK("closed", bh_ticks_all_closed());
    BH_CHECK_DONE();
}

static void
a_stop_ends_open_streams(void **state)
{
    struct bh_err err;
    struct bh_server *other;
    char path[80];
    int fd, client;
    uint64_t began;

    snprintf(path, sizeof path, "%s/other", folder);
    assert_int_equal(bh_unix_listen(path, 0600, &fd, &err), BH_OK);
    assert_int_equal(
        bh_server_start(&(struct bh_server_options){ .handler = http_server_test_handle, .fd = fd }, &other,
                        &err),
        BH_OK);
    assert_int_equal(bh_unix_connect(path, &client, &err), BH_OK);
    http_server_test_send(client, GET("/forever"), strlen(GET("/forever")));
    (void)http_server_test_receive(client, "tick");
    BH_CHECK_EQ("connections", bh_server_connections(other), 1);
    began = bh_time_monotonic();
    bh_server_stop(other);
    BH_CHECK("soon", bh_time_monotonic() - began < 30 * BH_NS_PER_S);
    BH_CHECK("closed", bh_ticks_all_closed());
    bh_fd_close(client);
    unlink(path);
    BH_CHECK_DONE();
}

/* How long a connection stays open on which a byte comes every 0.1 s; 0: this program was away for
 * so long once that it fell idle. */
static uint64_t
http_server_test_send_slowly(const char *path)
{
    uint64_t began = bh_time_monotonic(), last = began, now = began, gap = 0;
    struct bh_err err;
    bool open = true;
    int client;

    assert_int_equal(bh_unix_connect(path, &client, &err), BH_OK);
    http_server_test_send(client, "GET / HTTP/1.1\r\nX: ", 19);
    while (open && now - began < 30 * BH_NS_PER_S) {
        char byte;

        open = send(client, "a", 1, MSG_NOSIGNAL) == 1 && recv(client, &byte, 1, MSG_DONTWAIT) < 0
               && errno == EAGAIN;
        now = bh_time_monotonic();
        gap = now - last > gap ? now - last : gap;
        last = now;
        bh_time_sleep(100 * BH_NS_PER_MS);
    }
    BH_CHECK("ended", !open);
    bh_fd_close(client);
    return gap < BH_NS_PER_S / 2 ? now - began : 0;
}

/* Bytes that drip never let a connection fall idle: the deadline of a request ends it. */
static void
dripping_requests_have_a_deadline(void **state)
{
    struct bh_server_options options = { .handler = http_server_test_handle, .idle_s = 1 };
    BH_AUTO(bh_server_stop) struct bh_server *other = NULL;
    struct bh_err err;
    char path[80];
    uint64_t took = 0;

    snprintf(path, sizeof path, "%s/drip", folder);
    assert_int_equal(bh_unix_listen(path, 0600, &options.fd, &err), BH_OK);
    assert_int_equal(bh_server_start(&options, &other, &err), BH_OK);
    for (int i = 0; i < 10 && took == 0; i++)
        took = http_server_test_send_slowly(path);
    BH_CHECK("not before its time", took > 2 * BH_NS_PER_S);
    unlink(path);
    BH_CHECK_DONE();
}

static void
wrong_options_are_refused(void **state)
{
    struct bh_server_options plain = { .handler = http_server_test_handle, .fd = -1 };
    struct bh_server *none = NULL;
    struct bh_err err;

    assert_int_equal(bh_tcp_listen("127.0.0.1", 0, &plain.fd, &err), BH_OK);
    BH_CHECK("has a port", bh_tcp_port(plain.fd) != 0);
    BH_CHECK_EQ("no plain TCP", bh_server_start(&plain, &none, &err), BH_INVALID);
    plain.certificate = "x";
    assert_int_equal(bh_tcp_listen("127.0.0.1", 0, &plain.fd, &err), BH_OK);
    BH_CHECK_EQ("no key", bh_server_start(&plain, &none, &err), BH_INVALID);
    plain.key = "y";
    assert_int_equal(bh_tcp_listen("127.0.0.1", 0, &plain.fd, &err), BH_OK);
    BH_CHECK_EQ("no PEM", bh_server_start(&plain, &none, &err), BH_INVALID);
    BH_CHECK_EQ("closed by then", fcntl(plain.fd, F_GETFD), -1);
    BH_CHECK("no server", !none);
    BH_CHECK_EQ("a name", bh_tcp_listen("localhost", 0, &plain.fd, &err), BH_INVALID);
    BH_CHECK_DONE();
}

static int
http_server_test_start(void **state)
{
    struct bh_err err;
    int fd;

    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(folder) || chmod(folder, 0755) != 0)
        return -1;
    snprintf(socket_path, sizeof socket_path, "%s/s", folder);
    if (bh_unix_listen(socket_path, 0600, &fd, &err) != BH_OK)
        return -1;
    return bh_server_start(
               &(struct bh_server_options){ .handler = http_server_test_handle, .fd = fd, .idle_s = 5 },
               &server, &err)
                   == BH_OK
               ? 0
               : -1;
}

static int
http_server_test_stop(void **state)
{
    bh_server_stop(server);
    unlink(socket_path);
    return rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_arrives_whole),
        cmocka_unit_test(nul_never_cuts_a_text_short),
        cmocka_unit_test(connections_are_kept_and_requests_follow),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(long_queries_are_refused),
        cmocka_unit_test(huge_headers_are_refused),
        cmocka_unit_test(bodies_have_a_limit),
        cmocka_unit_test(half_requests_delay_no_other_client),
        cmocka_unit_test(streams_end_and_vanished_readers_are_noticed),
        cmocka_unit_test(streams_have_no_threads_of_their_own),
        cmocka_unit_test(an_old_client_gets_no_chunks),
        cmocka_unit_test(a_stop_ends_open_streams),
        cmocka_unit_test(dripping_requests_have_a_deadline),
        cmocka_unit_test(wrong_options_are_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, http_server_test_start, http_server_test_stop);
}
