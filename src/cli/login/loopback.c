#include "cli/login/loopback.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "cli/login/pkce.h"

enum { BACKLOG = 8, VALUE_MAX = BH_LOOPBACK_CODE_MAX };

#define WAIT_NS (300 * BH_NS_PER_S)
#define CLIENT_NS (5 * BH_NS_PER_S)

/* The answer to the visitor. */
static const struct {
    const char *status, *text;
} answers[BH_LOOPBACK_OUTCOMES] = {
    [BH_LOOPBACK_DONE] = { "200 OK", "Signed in. You can close this window." },
    [BH_LOOPBACK_NO] = { "200 OK", "Not signed in. You can close this window." },
    [BH_LOOPBACK_STATE] = { "400 Bad Request",
                            "This is not the sign-in that the command line is waiting for." },
    [BH_LOOPBACK_QUERY] = { "400 Bad Request", "This is not what the sign-in page sends." },
    [BH_LOOPBACK_PATH] = { "404 Not Found", "Nothing is here." },
    [BH_LOOPBACK_METHOD] = { "405 Method Not Allowed", "Only GET is answered." },
    [BH_LOOPBACK_HOST] = { "400 Bad Request", "This was sent to another host." },
    [BH_LOOPBACK_LARGE] = { "431 Request Header Fields Too Large", "The request is too large." },
    [BH_LOOPBACK_SLOW] = { "408 Request Timeout", "The request took too long." },
};

bh_rc
bh_loopback_open(const char *state, struct bh_loopback *ret_loopback, struct bh_err *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t length = sizeof at;

    *ret_loopback = (struct bh_loopback){ .state = state, .wait_ns = WAIT_NS, .client_ns = CLIENT_NS };
    ret_loopback->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (ret_loopback->fd < 0 || bind(ret_loopback->fd, (struct sockaddr *)&at, sizeof at) != 0
        || listen(ret_loopback->fd, BACKLOG) != 0
        || getsockname(ret_loopback->fd, (struct sockaddr *)&at, &length) != 0) {
        bh_err_errno(err, "listening on 127.0.0.1");
        bh_loopback_close(ret_loopback);
        return err->rc;
    }
    ret_loopback->port = ntohs(at.sin_port);
    return BH_OK;
}

void
bh_loopback_close(struct bh_loopback *loopback)
{
    bh_fd_close(loopback->fd);
    loopback->fd = -1;
}

/* ---- a request ---- */

/* One parameter of a query, taken when it is `name` and comes first. */
struct loopback_parameter {
    const char *name;
    char value[VALUE_MAX]; /* "" : it did not come */
};

/* Codes and states are base64url: nothing in them is ever percent-encoded. */
static bool
loopback_read_parameter(struct loopback_parameter *into, const char *value, size_t length)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789-_.~";

    if (*into->value || length == 0 || length >= VALUE_MAX || strspn(value, allowed) < length)
        return false;
    memcpy(into->value, value, length);
    into->value[length] = '\0';
    return true;
}

/* "code=...&state=...": each at most once, nothing else. */
static bool
loopback_read_query(const char *query, struct loopback_parameter *parameters, size_t count)
{
    while (*query) {
        size_t name = strcspn(query, "=&"), whole = strcspn(query, "&");
        bool taken = false;

        for (size_t i = 0; name < whole && i < count; i++)
            if (strlen(parameters[i].name) == name && strncmp(parameters[i].name, query, name) == 0)
                taken = loopback_read_parameter(&parameters[i], query + name + 1, whole - name - 1);
        if (!taken)
            return false;
        query += whole + (query[whole] == '&');
    }
    return true;
}

static enum bh_loopback_outcome
loopback_judge_query(const struct bh_loopback *loopback, const char *query,
                     char ret_code[BH_LOOPBACK_CODE_MAX])
{
    struct loopback_parameter parameters[] = { { .name = "code" }, { .name = "state" }, { .name = "error" } };
    const char *code = parameters[0].value, *error = parameters[2].value;

    if (!loopback_read_query(query, parameters, BH_COUNT(parameters)) || !*code == !*error)
        return BH_LOOPBACK_QUERY;
    if (!bh_pkce_same(parameters[1].value, loopback->state))
        return BH_LOOPBACK_STATE;
    if (*error)
        return BH_LOOPBACK_NO;
    memcpy(ret_code, code, strlen(code) + 1);
    return BH_LOOPBACK_DONE;
}

/* The Host header is this listener: a page elsewhere whose name was pointed at 127.0.0.1
 * sends its own. */
static bool
loopback_is_own_host(const struct bh_loopback *loopback, const char *headers)
{
    char own[32];
    uint32_t found = 0;

    snprintf(own, sizeof own, "127.0.0.1:%u", loopback->port);
    for (const char *line = headers; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *value = line + 5;

        if (strncasecmp(line, "host:", 5) != 0)
            continue;
        value += strspn(value, " \t");
        if (strncmp(value, own, strlen(own)) != 0 || !strchr("\r\n", value[strlen(own)]))
            return false;
        found++;
    }
    return found == 1;
}

enum bh_loopback_outcome
bh_loopback_judge(const struct bh_loopback *loopback, char *text, char ret_code[BH_LOOPBACK_CODE_MAX])
{
    char *end = strchr(text, '\n'), *target = text + 4, *query;

    BH_ASSERT(end);
    if (strncmp(text, "GET ", 4) != 0)
        return BH_LOOPBACK_METHOD;
    if (!loopback_is_own_host(loopback, end + 1))
        return BH_LOOPBACK_HOST;
    *end = '\0';
    target[strcspn(target, " \r")] = '\0';
    if (target[0] != '/' || (target[1] && target[1] != '?'))
        return BH_LOOPBACK_PATH;
    query = target[1] ? target + 2 : target + 1;
    return loopback_judge_query(loopback, query, ret_code);
}

/* ---- visitors ---- */

/* Wait until the socket has something, or until `until`: then false. */
static bool
loopback_await(int fd, bh_ns until)
{
    for (;;) {
        bh_ns now = bh_time_monotonic();
        struct pollfd watched = { .fd = fd, .events = POLLIN };
        int ready;

        if (now >= until)
            return false;
        ready = poll(&watched, 1, (int)((until - now) / BH_NS_PER_MS) + 1);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
}

/* Read up to the empty line after the headers.  BH_LOOPBACK_OUTCOMES: the visitor left. */
static enum bh_loopback_outcome
loopback_read_head(int fd, bh_ns until, char text[BH_LOOPBACK_REQUEST_MAX])
{
    size_t length = 0;

    for (;;) {
        ssize_t got;

        if (!loopback_await(fd, until))
            return BH_LOOPBACK_SLOW;
        got = recv(fd, text + length, BH_LOOPBACK_REQUEST_MAX - 1 - length, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return BH_LOOPBACK_OUTCOMES;
        length += (size_t)got;
        text[length] = '\0';
        if (strlen(text) < length)
            return BH_LOOPBACK_QUERY; /* a NUL */
        if (strstr(text, "\r\n\r\n"))
            return BH_LOOPBACK_DONE;
        if (length == BH_LOOPBACK_REQUEST_MAX - 1)
            return BH_LOOPBACK_LARGE;
    }
}

static void
loopback_respond(int fd, enum bh_loopback_outcome outcome)
{
    char text[1024];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_buf_printf(&out,
                  "HTTP/1.1 %s\r\nContent-Type: text/html; charset=utf-8\r\n"
                  "Content-Security-Policy: default-src 'none'\r\nCache-Control: no-store\r\n"
                  "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
                  "Connection: close\r\n\r\n<!doctype html><title>Bulkhead</title><p>%s</p>\n",
                  answers[outcome].status, answers[outcome].text);
    /* The socket's buffer takes it at once; a client that does not read gets no more. */
    if (send(fd, out.bytes, out.length, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        shutdown(fd, SHUT_WR);
}

/* What is left unread would make closing a reset, which takes the answer away. */
static void
loopback_drain(int fd)
{
    bh_ns until = bh_time_monotonic() + 200 * BH_NS_PER_MS;
    char bytes[4096];

    while (loopback_await(fd, until) && recv(fd, bytes, sizeof bytes, 0) > 0)
        ;
}

static enum bh_loopback_outcome
loopback_receive(const struct bh_loopback *loopback, int fd, bh_ns until, char ret_code[BH_LOOPBACK_CODE_MAX])
{
    char text[BH_LOOPBACK_REQUEST_MAX];
    bh_ns patience = bh_time_monotonic() + loopback->client_ns;
    enum bh_loopback_outcome outcome = loopback_read_head(fd, patience < until ? patience : until, text);

    if (outcome == BH_LOOPBACK_DONE)
        outcome = bh_loopback_judge(loopback, text, ret_code);
    if (outcome < BH_LOOPBACK_OUTCOMES)
        loopback_respond(fd, outcome);
    if (outcome < BH_LOOPBACK_OUTCOMES)
        loopback_drain(fd);
    return outcome;
}

bh_rc
bh_loopback_wait(const struct bh_loopback *loopback, char ret_code[BH_LOOPBACK_CODE_MAX], struct bh_err *err)
{
    bh_ns until = bh_time_monotonic() + loopback->wait_ns;

    while (loopback_await(loopback->fd, until)) {
        BH_AUTO(bh_fd_close) int fd = accept4(loopback->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        enum bh_loopback_outcome outcome;

        if (fd < 0 && (errno == EINTR || errno == EAGAIN || errno == ECONNABORTED))
            continue;
        if (fd < 0)
            return bh_err_errno(err, "waiting for the browser");
        outcome = loopback_receive(loopback, fd, until, ret_code);
        if (outcome == BH_LOOPBACK_DONE)
            return BH_OK;
        if (outcome == BH_LOOPBACK_NO)
            return bh_err_set(err, BH_DENIED, "the sign-in was refused in the browser");
    }
    bh_err_set(err, BH_TIMEOUT, "the browser did not return");
    return bh_err_hint(err, "on a machine without a browser: bulkhead login --device");
}
