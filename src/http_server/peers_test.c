/* Who gets a place, and which heads are read, over raw sockets. */
#include "http_server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"
#include "http_server/peers.h"

enum { SOMEBODY = 12345, OTHER, THIRD }; /* uids that need not exist */

/* A server with 8 places. */
struct fixture {
    struct bh_server *server;
    char folder[32], path[48];
};

static struct fixture fixture;

static void
peers_test_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    reply->status = 200;
    reply->known = strcmp(request->path, "/known") == 0;
    bh_buf_printf(&reply->body, "path=%s", request->path);
}

static int
open_fixture(void **state)
{
    struct bh_server_options options = { .handler = peers_test_handle, .connections_max = 8 };
    struct bh_err err;

    fixture = (struct fixture){ .folder = "/tmp/bh-peers-test-XXXXXX" };
    assert_non_null(mkdtemp(fixture.folder));
    assert_int_equal(chmod(fixture.folder, 0755), 0);
    snprintf(fixture.path, sizeof fixture.path, "%s/s", fixture.folder);
    assert_int_equal(bh_unix_listen(fixture.path, 0666, &options.fd, &err), BH_OK);
    assert_int_equal(bh_server_start(&options, &fixture.server, &err), BH_OK);
    return 0;
}

static int
close_fixture(void **state)
{
    bh_server_stop(fixture.server);
    unlink(fixture.path);
    return rmdir(fixture.folder);
}

/* ---- who comes ---- */

static int
connect_as(uid_t uid)
{
    struct bh_err err;
    int fd;

    assert_int_equal(seteuid(uid), 0);
    assert_int_equal(bh_unix_connect(fixture.path, &fd, &err), BH_OK);
    assert_int_equal(seteuid(getuid()), 0);
    return fd;
}

/* Sends, not minding when the server has closed already. */
static void
peers_test_send(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return;
        bytes += sent;
        length -= (size_t)sent;
    }
}

/* What comes until the server closes or `until` was seen. */
static const char *
peers_test_receive(int fd, const char *until)
{
    static char text[64 << 10];
    size_t length = 0;

    text[0] = '\0';
    while (length + 1 < sizeof text && !(until && strstr(text, until))) {
        struct pollfd wait = { fd, POLLIN, 0 };
        ssize_t got = poll(&wait, 1, 20000) <= 0 ? 0 : recv(fd, text + length, sizeof text - 1 - length, 0);

        if (got <= 0)
            break;
        length += (size_t)got;
        text[length] = '\0';
    }
    return text;
}

static bool
is_served(int fd, const char *path)
{
    char request[80];

    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    peers_test_send(fd, request, strlen(request));
    return strstr(peers_test_receive(fd, "path="), "200 OK") != NULL;
}

/* The server ended it: its end comes without more bytes. */
static bool
is_ended(int fd)
{
    struct pollfd wait = { fd, POLLIN, 0 };
    char byte;

    return poll(&wait, 1, 20000) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

static bool
is_open(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* How many the server ended; they are not waited for any more. */
static int
ended_of(struct pollfd *ends, size_t count)
{
    static const int gone = -1;
    int ended = 0;

    for (size_t i = 0; i < count; i++) {
        if (ends[i].fd != gone && ends[i].revents)
            ends[i].fd = gone;
        ended += ends[i].fd == gone;
    }
    return ended;
}

/* ---- places ---- */

static void
no_client_takes_all_connections(void **state)
{
    uid_t somebody = geteuid() ? geteuid() : SOMEBODY; /* root has no share */
    struct pollfd ends[6];
    int clients[6];
    size_t open = 0;

    for (size_t i = 0; i < BH_COUNT(clients); i++) {
        clients[i] = connect_as(somebody);
        BH_CHECK("served", is_served(clients[i], "/x"));
        ends[i] = (struct pollfd){ clients[i], POLLIN, 0 };
    }
    /* Which has waited longest the server knows: it may have looked after an answer a little late. */
    for (int ended = 0; ended < 2 && ended >= 0;)
        ended = poll(ends, BH_COUNT(ends), 20000) > 0 ? ended_of(ends, BH_COUNT(ends)) : -1;
    for (size_t i = 0; i < BH_COUNT(clients); i++)
        open += is_open(clients[i]);
    BH_CHECK_EQ("half", open, 4);
    BH_CHECK("the newcomer is one of them", is_open(clients[5]));
    for (size_t i = 0; i < BH_COUNT(clients); i++)
        bh_fd_close(clients[i]);
    BH_CHECK_DONE();
}

/* 600 idle connections of two strangers locked root out. */
static void
unknown_clients_displace_no_known_one(void **state)
{
    int known, root, late, idle[40];

    if (geteuid() != 0) {
        fprintf(stderr, "unknown_clients_displace_no_known_one: left out, only root can be others\n");
        return;
    }
    known = connect_as(THIRD);
    BH_CHECK("known", is_served(known, "/known"));
    for (size_t i = 0; i < BH_COUNT(idle); i++)
        idle[i] = connect_as(i % 2 ? SOMEBODY : OTHER);
    root = connect_as(0);
    BH_CHECK("root", is_served(root, "/x"));
    late = connect_as(THIRD);
    BH_CHECK("who asks at once", is_served(late, "/x"));
    BH_CHECK("who was known before", is_served(known, "/known"));
    BH_CHECK("the oldest stranger made room", is_ended(idle[0]));
    bh_fd_close(known);
    bh_fd_close(root);
    bh_fd_close(late);
    for (size_t i = 0; i < BH_COUNT(idle); i++)
        bh_fd_close(idle[i]);
    BH_CHECK_DONE();
}

/* A client's own requests that are not complete do not give way to its next connection. */
static void
a_holder_of_half_is_refused(void **state)
{
    static const char head[] = "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                               "Content-Length: 1\r\n\r\n";
    uid_t somebody = geteuid() ? geteuid() : SOMEBODY;
    int busy[4], more;
    const char *heard;

    for (size_t i = 0; i < BH_COUNT(busy); i++) {
        busy[i] = connect_as(somebody);
        peers_test_send(busy[i], head, sizeof head - 1);
        BH_CHECK("on its way", strstr(peers_test_receive(busy[i], "100 Continue"), "100 Continue"));
    }
    more = connect_as(somebody);
    peers_test_send(more, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n", 28);
    heard = peers_test_receive(more, NULL);
    BH_CHECK("told so", strstr(heard, "HTTP/1.1 429") && strstr(heard, "\"too_many\"")
                            && strstr(heard, "Retry-After: 1"));
    for (size_t i = 0; i < BH_COUNT(busy); i++) {
        peers_test_send(busy[i], "x", 1);
        BH_CHECK("served", strstr(peers_test_receive(busy[i], "path="), "200 OK"));
    }
    bh_fd_close(more);
    for (size_t i = 0; i < BH_COUNT(busy); i++)
        bh_fd_close(busy[i]);
    BH_CHECK_DONE();
}

/* ---- addresses ---- */

static struct bh_transport
coming_from(const char *address)
{
    struct sockaddr_in v4 = { .sin_family = AF_INET };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    struct bh_transport transport = { 0 };

    assert_true(is_v4 || inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
    bh_peers_read_address(is_v4 ? (const void *)&v4 : (const void *)&v6, &transport);
    return transport;
}

/* A client with one address of IPv6 has 2^64, and is counted once for all of them. */
static void
addresses_are_counted_by_block(void **state)
{
    static const struct {
        const char *name, *address, *block;
        bool evicted; /* by the row's end: ended for a newcomer of its own block */
    } rows[] = {
        { "one of a block", "2001:db8:1:2::1", "2001:db8:1:2::/64", true },
        { "the next block", "2001:db8:1:3::1", "2001:db8:1:3::/64", false },
        { "IPv4", "192.0.2.1", "192.0.2.1", true },
        { "its neighbor", "192.0.2.2", "192.0.2.2", false },
        { "another of the block", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64", false },
        { "IPv4 on a socket of IPv6", "::ffff:192.0.2.1", "192.0.2.1", false },
        { "a third of the block", "2001:db8:1:2::5", "2001:db8:1:2::/64", false },
        { "IPv4 again", "192.0.2.1", "192.0.2.1", false },
    };
    struct bh_connection connections[BH_COUNT(rows)];
    struct bh_peers *peers = bh_peers_new(
        &(struct bh_peers_limits){ .places = { .most = 100, .most_anonymous = 100, .most_each = 2 },
                                   .head = 60 * BH_NS_PER_S,
                                   .request = 60 * BH_NS_PER_S });
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        connections[i] = (struct bh_connection){ .transport = coming_from(rows[i].address), .fd = ends[0] };
        BH_CHECK_STR(rows[i].name, connections[i].transport.address, rows[i].address);
        BH_CHECK_STR(rows[i].name, connections[i].transport.block, rows[i].block);
        bh_peers_add(peers, &connections[i]);
    }
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].name, connections[i].leaving, rows[i].evicted);
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        bh_peers_remove(&connections[i]);
    bh_peers_free(peers);
    bh_fd_close(ends[0]);
    bh_fd_close(ends[1]);
    BH_CHECK_DONE();
}

/* ---- heads ---- */

#define POST "POST /x HTTP/1.1\r\nHost: x\r\n"

/* One head, with this status and our text, and as many bytes behind it as it says. */
static bool
is_one_answer(const char *reply, unsigned status)
{
    const char *body = strstr(reply, "\r\n\r\n"), *length = strstr(reply, "Content-Length: ");
    unsigned long got = strncmp(reply, "HTTP/1.1 ", 9) == 0 ? strtoul(reply + 9, NULL, 10) : 0;

    return body && length && length < body && !strstr(body, "HTTP/1.1 ") && got == status
           && strlen(body + 4) == strtoul(length + 16, NULL, 10)
           && strstr(body, "{\"error\":{\"code\":\"invalid\"") && strstr(reply, "Connection: close");
}

#define FIRST "GET /x HTTP/1.1\r\n"
#define BEHIND "\r\n\r\nGET /behind HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static const struct {
    const char *name, *head;
    size_t nul; /* this place of the head is one; 0: none */
    bool early; /* the library's own answer, before it shows us anything */
} lax_heads[] = {
    { "two hosts", FIRST "Host: x\r\nHost: y" BEHIND, 0 },
    { "space before the colon", FIRST "Host: x\r\nX-Y : z" BEHIND, 0 },
    { "tab before the colon", FIRST "Host: x\r\nX-Y\t: z" BEHIND, 0 },
    { "space in a name", FIRST "Host: x\r\nX Y: z" BEHIND, 0 },
    { "no name", FIRST "Host: x\r\n: z" BEHIND, 0 },
    { "bare LF behind the request line", "GET /x HTTP/1.1\nHost: x" BEHIND, 0 },
    { "bare LF behind a header", FIRST "Host: x\nX: y" BEHIND, 0 },
    { "bare LF before the last header", FIRST "X: y\nHost: x" BEHIND, 0 },
    { "bare LFs at the end", FIRST "Host: x\n\nGET /behind HTTP/1.1\r\nHost: x" BEHIND, 0 },
    { "one bare LF at the end", FIRST "Host: x\r\n\nGET /behind HTTP/1.1\r\nHost: x" BEHIND, 0 },
    { "bare CR in a value", FIRST "Host: x\r\nX: a\rb" BEHIND, 0 },
    { "a line that goes on", FIRST "Host: x\r\nX: a\r\n b" BEHIND, 0 },
    { "the last line goes on", FIRST "X: a\r\nHost: x\r\n\ty" BEHIND, 0 },
    { "two lengths",
      "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
      "Content-Length: 0" BEHIND,
      0 },
    { "a length and chunks",
      "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"
      "Transfer-Encoding: chunked\r\n\r\n0" BEHIND,
      0 },
    { "no host", FIRST "X: y" BEHIND, 0 },
    { "another coding", POST "Transfer-Encoding: gzip" BEHIND, 0 },
    { "a coding that ends like it", POST "Transfer-Encoding: xchunked" BEHIND, 0 },
    { "no coding", POST "Transfer-Encoding: identity" BEHIND, 0 },
    { "two codings", POST "Transfer-Encoding: gzip, chunked" BEHIND, 0 },
    { "two codings the other way", POST "Transfer-Encoding: chunked, identity" BEHIND, 0 },
    { "chunks twice", POST "Transfer-Encoding: chunked,chunked" BEHIND, 0 },
    { "chunks with a weight", POST "Transfer-Encoding: chunked;q=1" BEHIND, 0 },
    { "chunks in quotes", POST "Transfer-Encoding: \"chunked\"" BEHIND, 0 },
    { "chunks and a blank", POST "Transfer-Encoding: chunked " BEHIND, 0 },
    { "an empty coding", POST "Transfer-Encoding:" BEHIND, 0 },
    { "a length below nothing", POST "Content-Length: -1" BEHIND, 0, true },
    { "a length with a sign", POST "Content-Length: +1" BEHIND, 0, true },
    { "a length and more", POST "Content-Length: 1x" BEHIND, 0, true },
    { "a length in hex", POST "Content-Length: 0x1" BEHIND, 0, true },
    { "a list of lengths", POST "Content-Length: 0, 0" BEHIND, 0, true },
    { "more than numbers", POST "Content-Length: 18446744073709551616" BEHIND, 0, true },
    { "all bits", POST "Content-Length: 18446744073709551615" BEHIND, 0, true },
    { "an empty length", POST "Content-Length:" BEHIND, 0, true },
    { "NUL in a value", FIRST "Host: x\r\nX: a?b" BEHIND, sizeof FIRST "Host: x\r\nX: a" - 1 },
    { "NUL behind a value", FIRST "X: a?\r\nHost: x" BEHIND, sizeof FIRST "X: a" - 1 },
    { "NUL in a name", FIRST "Host: x\r\nX?Y: a" BEHIND, sizeof FIRST "Host: x\r\nX" - 1, true },
    { "NUL in the target", "GET /x?y HTTP/1.1\r\nHost: x" BEHIND, sizeof "GET /x" - 1 },
    { "NUL behind the target", "GET /x? HTTP/1.1\r\nHost: x" BEHIND, sizeof "GET /x" - 1 },
    { "NUL in the query", "GET /x?a?b HTTP/1.1\r\nHost: x" BEHIND, sizeof "GET /x?a" - 1 },
    { "NUL in the method", "GET?X /x HTTP/1.1\r\nHost: x" BEHIND, sizeof "GET" - 1 },
    { "NUL in the version", "GET /x HTTP/1.1?x\r\nHost: x" BEHIND, sizeof "GET /x HTTP/1.1" - 1, true },
    { "two blanks", "GET /x  HTTP/1.1\r\nHost: x" BEHIND, 0 },
    { "no version", "GET /x\r\nHost: x" BEHIND, 0, true },
    { "control character", FIRST "Host: x\r\nX: \x01" BEHIND, 0 },
};

/* What two readers could read in two ways is refused, and nothing behind it is answered. */
static void
lax_heads_are_refused(void **state)
{
    int fd;

    for (size_t i = 0; i < BH_COUNT(lax_heads); i++) {
        size_t length = strlen(lax_heads[i].head);
        char head[512];
        const char *reply;

        fd = connect_as(geteuid());
        memcpy(head, lax_heads[i].head, length);
        if (lax_heads[i].nul)
            head[lax_heads[i].nul] = '\0';
        peers_test_send(fd, head, length);
        reply = peers_test_receive(fd, NULL);
        BH_CHECK(lax_heads[i].name,
                 lax_heads[i].early ? !strstr(reply, "200 OK") : is_one_answer(reply, 400));
        bh_fd_close(fd);
    }
    fd = connect_as(geteuid());
    BH_CHECK("a good one", is_served(fd, "/x?a=1&b=2"));
    BH_CHECK("and the next", is_served(fd, "/y"));
    bh_fd_close(fd);
    BH_CHECK_DONE();
}

/* Chunks have lines of their own, which readers read in as many ways as those of the head. */
static void
only_a_length_says_where_a_body_ends(void **state)
{
    static const struct {
        const char *name, *head;
        unsigned status;
    } cases[] = {
        { "chunks", POST "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0" BEHIND, 411 },
        { "chunks by another name", POST "transfer-encoding: CHUNKED\r\n\r\n0" BEHIND, 411 },
        { "chunks with bare LF", POST "Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n" BEHIND, 411 },
        { "chunks with an extension", POST "Transfer-Encoding: chunked\r\n\r\n1;x\nx\n0" BEHIND, 411 },
        { "no chunk", POST "Transfer-Encoding: chunked" BEHIND, 411 },
        { "more than a body may have", POST "Content-Length: 1048577" BEHIND, 413 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        int fd = connect_as(geteuid());

        peers_test_send(fd, cases[i].head, strlen(cases[i].head));
        BH_CHECK(cases[i].name, is_one_answer(peers_test_receive(fd, NULL), cases[i].status));
        bh_fd_close(fd);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_client_takes_all_connections, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(unknown_clients_displace_no_known_one, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(a_holder_of_half_is_refused, open_fixture, close_fixture),
        cmocka_unit_test(addresses_are_counted_by_block),
        cmocka_unit_test_setup_teardown(lax_heads_are_refused, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(only_a_length_says_where_a_body_ends, open_fixture, close_fixture),
    };

    signal(SIGPIPE, SIG_IGN);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
