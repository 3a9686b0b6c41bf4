#include "cli/client/duplex.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/time.h"
#include "cli/client/https.h"

enum { HEAD_MAX = 32 << 10, BODY_MAX = 64 << 10, PATIENCE_MS = 30000 };

struct bh_duplex {
    int fd;
    struct bh_https_connection *tls; /* NULL: the unix socket */
    size_t length, used;             /* of the bytes below; used: by the last frame */
    char bytes[2 * BH_STREAM_FRAME_MAX];
};

/* ---- bytes ---- */

/* Read what is there, at most `size` bytes: how many, 0 at the end, -1 for nothing now. */
static ssize_t
duplex_receive(struct bh_duplex *duplex, char *bytes, size_t size)
{
    ssize_t got;

    if (duplex->tls)
        return bh_https_receive(duplex->tls, bytes, size);
    got = recv(duplex->fd, bytes, size, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    return got;
}

static bh_rc
duplex_broken(struct bh_err *err)
{
    return bh_err_set(err, BH_UNAVAILABLE, "the connection to bulkheadd broke");
}

static bh_rc
duplex_send_all(struct bh_duplex *duplex, const char *bytes, size_t length, struct bh_err *err)
{
    while (length > 0) {
        struct pollfd polled = { .fd = duplex->fd, .events = POLLOUT };
        ssize_t went = duplex->tls ? bh_https_transmit(duplex->tls, bytes, length)
                                   : send(duplex->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (went < 0 && !duplex->tls && errno != EAGAIN && errno != EINTR)
            return duplex_broken(err);
        if (went == 0)
            return duplex_broken(err);
        if (went < 0) {
            (void)!poll(&polled, 1, 1000);
            continue;
        }
        bytes += went;
        length -= (size_t)went;
    }
    return BH_OK;
}

/* ---- the upgrade ---- */

static bh_rc
duplex_connect_to(const struct bh_client *client, struct bh_duplex *duplex, struct bh_err *err)
{
    struct bh_https_options https = { .server = client->server,
                                      .ca_file = client->ca_file,
                                      .pin = client->pin,
                                      .cert = client->cert,
                                      .key = client->key };

    if (client->server)
        return bh_https_connect(&https, &duplex->tls, &duplex->fd, err);
    if (bh_unix_connect(client->socket, &duplex->fd, err) == BH_OK)
        return BH_OK;
    return bh_err_set(err, BH_UNAVAILABLE, "bulkheadd does not answer on %s", client->socket);
}

/* "https://gpu1:8443/" is at gpu1:8443 */
static const char *
duplex_host_of(const struct bh_client *client, char *memory, size_t size)
{
    const char *from = client->server ? client->server + strlen("https://") : "bulkhead";

    snprintf(memory, size, "%.*s", (int)strcspn(from, "/"), from);
    return memory;
}

static bh_rc
duplex_send_head(const struct bh_client *client, struct bh_duplex *duplex, const char *path,
                 struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = HEAD_MAX };
    char host[256];

    bh_buf_printf(&out, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: %s\r\n", path,
                  duplex_host_of(client, host, sizeof host), BH_STREAM_PROTOCOL);
    if (client->token)
        bh_buf_printf(&out, "Authorization: Bearer %s\r\n", client->token);
    bh_buf_puts(&out, "\r\n");
    return out.overflow ? bh_err_set(err, BH_FULL, "the request is too large")
                        : duplex_send_all(duplex, out.bytes, out.length, err);
}

static bool
duplex_collect(void *self, const char *bytes, size_t length)
{
    struct bh_buf *body = self;

    bh_buf_put(body, bytes, length);
    return !body->overflow;
}

/* A reply that is no 101, from its first bytes on. */
static bh_rc
duplex_read_refusal(struct bh_duplex *duplex, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf body = { .max = BODY_MAX };
    struct bh_http_parser parser;
    struct pollfd polled = { .fd = duplex->fd, .events = POLLIN };
    ssize_t got = (ssize_t)duplex->length;
    bh_rc rc = BH_OK;

    bh_http_parser_init(&parser, duplex_collect, &body);
    while (rc == BH_OK && got != 0 && parser.step != BH_HTTP_DONE && !parser.stopped) {
        if (got > 0)
            rc = bh_http_parser_feed(&parser, duplex->bytes, (size_t)got, err);
        else if (poll(&polled, 1, PATIENCE_MS) <= 0)
            break;
        if (rc == BH_OK && parser.step != BH_HTTP_DONE)
            got = duplex_receive(duplex, duplex->bytes, sizeof duplex->bytes);
    }
    return rc == BH_OK ? bh_client_error(parser.status, body.bytes ? body.bytes : "", body.length, err) : rc;
}

/* Up to the end of the head; what follows is frames already. */
static bh_rc
duplex_read_head(struct bh_duplex *duplex, struct bh_err *err)
{
    static const char wanted[] = "HTTP/1.1 101 ";
    bh_ns until = bh_time_monotonic() + PATIENCE_MS * BH_NS_PER_MS;
    const char *end = NULL;

    while (!end) {
        struct pollfd polled = { .fd = duplex->fd, .events = POLLIN };
        ssize_t got =
            duplex_receive(duplex, duplex->bytes + duplex->length, sizeof duplex->bytes - duplex->length);

        if (got == 0 || bh_time_monotonic() > until || duplex->length > HEAD_MAX)
            return duplex_broken(err);
        if (got < 0) {
            (void)!poll(&polled, 1, 1000);
            continue;
        }
        duplex->length += (size_t)got;
        if (duplex->length >= sizeof wanted - 1 && memcmp(duplex->bytes, wanted, sizeof wanted - 1) != 0)
            return duplex_read_refusal(duplex, err);
        end = memmem(duplex->bytes, duplex->length, "\r\n\r\n", 4);
    }
    duplex->used = (size_t)(end + 4 - duplex->bytes);
    return BH_OK;
}

bh_rc
bh_duplex_open(const struct bh_client *client, const char *ticket, uint32_t port,
               struct bh_duplex **ret_duplex, struct bh_err *err)
{
    struct bh_duplex *duplex = calloc(1, sizeof *duplex);
    char path[160];
    bh_rc rc;

    BH_ASSERT(duplex);
    duplex->fd = -1;
    snprintf(path, sizeof path, "/v1/streams/%.100s", ticket);
    if (port)
        snprintf(path, sizeof path, "/v1/streams/%.100s?port=%u", ticket, port);
    rc = duplex_connect_to(client, duplex, err);
    if (rc == BH_OK)
        rc = duplex_send_head(client, duplex, path, err);
    if (rc == BH_OK)
        rc = duplex_read_head(duplex, err);
    if (rc == BH_OK)
        *ret_duplex = duplex;
    else
        bh_duplex_close(duplex);
    return rc;
}

void
bh_duplex_close(struct bh_duplex *duplex)
{
    if (!duplex)
        return;
    if (duplex->tls)
        bh_https_disconnect(duplex->tls);
    else
        bh_fd_close(duplex->fd);
    free(duplex);
}

int
bh_duplex_fd(const struct bh_duplex *duplex)
{
    return duplex->fd;
}

/* ---- frames ---- */

bh_rc
bh_duplex_next(struct bh_duplex *duplex, struct bh_stream_frame *ret_frame, struct bh_err *err)
{
    duplex->length -= duplex->used;
    memmove(duplex->bytes, duplex->bytes + duplex->used, duplex->length);
    duplex->used = 0;
    for (;;) {
        bh_rc rc = bh_stream_next(duplex->bytes, duplex->length, BH_STREAM_NODE, ret_frame, err);
        ssize_t got;

        if (rc == BH_OK)
            duplex->used = ret_frame->size;
        if (rc != BH_NOT_FOUND)
            return rc;
        got = duplex_receive(duplex, duplex->bytes + duplex->length, sizeof duplex->bytes - duplex->length);
        if (got == 0)
            return duplex_broken(err);
        if (got < 0)
            return rc;
        duplex->length += (size_t)got;
    }
}

bh_rc
bh_duplex_send(struct bh_duplex *duplex, const struct bh_stream_frame *frame, struct bh_err *err)
{
    char bytes[BH_STREAM_FRAME_MAX];

    return duplex_send_all(duplex, bytes, bh_stream_put(bytes, frame), err);
}
