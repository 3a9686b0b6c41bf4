#include "cli/jobs/forward.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/num.h"
#include "cli/client/duplex.h"
#include "cli/command/terminal.h"
#include "cli/jobs/attach.h"

enum { PORTS_MAX = 16, INPUT_CHUNK = 16 << 10, STACK_BYTES = 512 << 10, BODY_MAX = 1024 };

/* A port of this machine, and the job's that it forwards to. */
struct port {
    uint16_t local, remote;
    int listener;
};

struct forward {
    struct bh_cli *cli;
    const char *ticket;
    struct port ports[PORTS_MAX];
    uint32_t count;
};

/* ---- one connection, in a thread of its own ---- */

struct connection {
    const struct bh_client *client;
    const char *ticket;
    uint16_t remote;
    int fd;
    uint32_t credit;
    bool input_over;
};

static bool
forward_receive(struct connection *c, const struct bh_stream_frame *frame)
{
    struct bh_err ignored, why;

    switch ((int)frame->kind) {
    case BH_STREAM_READY:
    case BH_STREAM_CREDIT_MORE:
        c->credit += frame->number;
        return true;
    case BH_STREAM_STDOUT:
        if (frame->length == 0)
            return shutdown(c->fd, SHUT_WR) == 0;
        return bh_fd_write_all(c->fd, frame->bytes, frame->length, &ignored) == BH_OK;
    case BH_STREAM_ERROR:
        bh_err_set(&why, BH_IO, "%.*s", (int)frame->length, frame->bytes); /* without controls */
        fprintf(stderr, "bulkhead: port %u: %s\n", c->remote, why.msg);
        return false;
    default:
        return frame->kind != BH_STREAM_EXIT;
    }
}

static bool
forward_receive_all(struct connection *c, struct bh_duplex *duplex)
{
    struct bh_stream_frame frame;
    struct bh_err ignored;
    bh_rc rc;

    while ((rc = bh_duplex_next(duplex, &frame, &ignored)) == BH_OK)
        if (!forward_receive(c, &frame))
            return false;
    return rc == BH_NOT_FOUND;
}

static bool
forward_pass_input(struct connection *c, struct bh_duplex *duplex)
{
    char bytes[INPUT_CHUNK];
    size_t available = c->credit < sizeof bytes ? c->credit : sizeof bytes;
    ssize_t got = read(c->fd, bytes, available);
    struct bh_stream_frame frame = { .kind = BH_STREAM_STDIN, .bytes = bytes };
    struct bh_err ignored;

    if (got < 0)
        return errno == EINTR;
    c->input_over = got == 0;
    frame.length = (size_t)got;
    c->credit -= (uint32_t)got;
    return bh_duplex_send(duplex, &frame, &ignored) == BH_OK;
}

static void
forward_carry(struct connection *c, struct bh_duplex *duplex)
{
    bool good = forward_receive_all(c, duplex);

    while (good) {
        struct pollfd polls[2] = {
            { .fd = bh_duplex_fd(duplex), .events = POLLIN },
            { .fd = c->credit > 0 && !c->input_over ? c->fd : -1, .events = POLLIN },
        };

        if (poll(polls, 2, -1) < 0)
            continue;
        if (polls[0].revents)
            good = forward_receive_all(c, duplex);
        if (good && polls[1].revents)
            good = forward_pass_input(c, duplex);
    }
}

static void *
forward_serve(void *self)
{
    BH_AUTO(bh_duplex_close) struct bh_duplex *duplex = NULL;
    struct connection *c = self;
    struct bh_err err;

    if (bh_duplex_open(c->client, c->ticket, c->remote, &duplex, &err) == BH_OK)
        forward_carry(c, duplex);
    else
        fprintf(stderr, "bulkhead: port %u: %s\n", c->remote, err.msg);
    close(c->fd);
    free(c);
    return NULL;
}

static void
forward_accept_port(const struct forward *forward, const struct port *port)
{
    struct connection *c = calloc(1, sizeof *c);
    pthread_attr_t attr;
    pthread_t thread;

    BH_ASSERT(c);
    *c = (struct connection){ .client = &forward->cli->client,
                              .ticket = forward->ticket,
                              .remote = port->remote,
                              .fd = accept4(port->listener, NULL, NULL, SOCK_CLOEXEC) };
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (c->fd < 0 || pthread_create(&thread, &attr, forward_serve, c) != 0) {
        bh_fd_close(c->fd);
        free(c);
    }
    pthread_attr_destroy(&attr);
}

/* ---- ports ---- */

static bh_rc
forward_read_port(const char *text, size_t length, uint64_t least, uint16_t *ret_port, struct bh_err *err)
{
    char word[8];
    uint64_t number;

    if (length >= sizeof word)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a port", text);
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    if (bh_parse_u64(word, &number, err) != BH_OK || number < least || number > UINT16_MAX)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a port", text);
    *ret_port = (uint16_t)number;
    return BH_OK;
}

/* "8080", "9000:8080", "0:8080" */
static bh_rc
forward_read_pair(const char *text, struct port *ret_port, struct bh_err *err)
{
    const char *colon = strchr(text, ':'), *remote = colon ? colon + 1 : text;
    bh_rc rc = forward_read_port(remote, strlen(remote), 1, &ret_port->remote, err);

    ret_port->local = ret_port->remote;
    if (rc != BH_OK)
        return rc;
    if (colon)
        return forward_read_port(text, (size_t)(colon - text), 0, &ret_port->local, err);
    return BH_OK;
}

/* On this machine's loopback, and nowhere else. */
static bh_rc
forward_listen_at(struct port *port, struct bh_err *err)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port->local),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;
    int on = 1;

    port->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (port->listener < 0)
        return bh_err_errno(err, "make a socket");
    setsockopt(port->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(port->listener, (struct sockaddr *)&address, size) != 0 || listen(port->listener, 64) != 0
        || getsockname(port->listener, (struct sockaddr *)&address, &size) != 0)
        return bh_err_set(err, BH_CONFLICT, "127.0.0.1:%u: %s", port->local, strerror(errno));
    port->local = ntohs(address.sin_port);
    return BH_OK;
}

static bh_rc
forward_open_ports(struct forward *forward, struct bh_err *err)
{
    const struct bh_args *args = forward->cli->args;
    bh_rc rc = BH_OK;

    if (args->count - 1 > PORTS_MAX)
        return bh_err_set(err, BH_RANGE, "at most %d ports at once", PORTS_MAX);
    for (uint32_t i = 1; i < args->count && rc == BH_OK; i++) {
        struct port *port = &forward->ports[forward->count++];

        port->listener = -1;
        rc = forward_read_pair(args->arguments[i], port, err);
        if (rc == BH_OK)
            rc = forward_listen_at(port, err);
    }
    return rc;
}

/* ---- the command ---- */

static bh_rc
forward_show_ports(const struct forward *forward, struct bh_err *err)
{
    bool json = bh_cli_output(forward->cli) == BH_OUT_JSON;

    for (uint32_t i = 0; i < forward->count; i++)
        printf(json ? "{\"local\":%u,\"remote\":%u}\n" : "127.0.0.1:%u -> %u\n", forward->ports[i].local,
               forward->ports[i].remote);
    return fflush(stdout) == 0 ? BH_OK : bh_err_errno(err, "standard output");
}

/* Until the forward's own stream ends, which carries nothing, or a signal comes. */
static bh_rc
forward_poll_once(const struct forward *forward, struct bh_duplex *watch, bool *ret_over, struct bh_err *err)
{
    struct pollfd polls[2 + PORTS_MAX] = {
        { .fd = bh_duplex_fd(watch), .events = POLLIN },
        { .fd = bh_terminal_signals(), .events = POLLIN },
    };
    struct bh_stream_frame frame;
    bh_rc rc = bh_duplex_next(watch, &frame, err);

    if (rc == BH_OK) {
        *ret_over = frame.kind == BH_STREAM_EXIT;
        return frame.kind != BH_STREAM_ERROR
                   ? BH_OK
                   : bh_err_set(err, (bh_rc)frame.number, "%.*s", (int)frame.length, frame.bytes);
    }
    if (rc != BH_NOT_FOUND)
        return rc;
    for (uint32_t i = 0; i < forward->count; i++)
        polls[2 + i] = (struct pollfd){ .fd = forward->ports[i].listener, .events = POLLIN };
    (void)!poll(polls, 2 + forward->count, -1);
    for (uint32_t i = 0; i < forward->count; i++)
        if (polls[2 + i].revents)
            forward_accept_port(forward, &forward->ports[i]);
    for (int number; (number = bh_terminal_next_signal()) != 0;)
        *ret_over = *ret_over || number != SIGWINCH;
    return BH_OK;
}

static bh_rc
forward_request(struct forward *forward, struct bh_err *err)
{
    const struct bh_option_value *member = &forward->cli->args->options[BH_OPT_MEMBER];
    char body[64] = "{}";
    struct bh_stream_target target = { forward->cli->args->arguments[0], "/forward", body };

    if (member->given)
        snprintf(body, sizeof body, "{\"member\":%" PRIu64 "}", member->number);
    return bh_stream_ask(forward->cli, &target, &forward->ticket, err);
}

bh_rc
bh_cli_port_forward(struct bh_cli *cli, struct bh_err *err)
{
    BH_AUTO(bh_duplex_close) struct bh_duplex *watch = NULL;
    static struct forward forward; /* connections may outlive this function */
    bool over = false;
    bh_rc rc;

    forward.cli = cli;
    rc = forward_open_ports(&forward, err);
    if (rc == BH_OK)
        rc = forward_request(&forward, err);
    if (rc == BH_OK)
        rc = bh_duplex_open(&cli->client, forward.ticket, 0, &watch, err);
    if (rc == BH_OK)
        rc = forward_show_ports(&forward, err);
    while (rc == BH_OK && !over)
        rc = forward_poll_once(&forward, watch, &over, err);
    for (uint32_t i = 0; i < forward.count; i++)
        bh_fd_close(forward.ports[i].listener);
    return rc;
}
