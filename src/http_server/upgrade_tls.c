#include "http_server/upgrade_tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/time.h"

enum { CHUNK = 16 << 10, DRAIN_MS = 2000 };

struct carry {
    gnutls_session_t session;
    int tcp, plain;
    size_t up_length, up_sent, down_length, down_sent;
    bool up_over, down_over, failed;
    char up[CHUNK], down[CHUNK]; /* from the client, and to it */
};

static bool
is_transient(ssize_t code)
{
    return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED;
}

static void
read_plain(struct carry *c)
{
    ssize_t got = gnutls_record_recv(c->session, c->up, sizeof c->up);

    c->up_sent = c->up_length = 0;
    if (got > 0)
        c->up_length = (size_t)got;
    else
        c->up_over = !is_transient(got);
}

static void
write_tls(struct carry *c)
{
    ssize_t went = send(c->plain, c->up + c->up_sent, c->up_length - c->up_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (went > 0)
        c->up_sent += (size_t)went;
    else if (errno != EAGAIN && errno != EINTR)
        c->failed = true;
}

static void
read_tls(struct carry *c)
{
    ssize_t got = recv(c->plain, c->down, sizeof c->down, MSG_DONTWAIT);

    c->down_sent = c->down_length = 0;
    if (got > 0)
        c->down_length = (size_t)got;
    else
        c->down_over = got == 0 || (errno != EAGAIN && errno != EINTR);
}

/* A record that did not go whole is tried again with the same bytes. */
static void
write_plain(struct carry *c)
{
    ssize_t went = gnutls_record_send(c->session, c->down + c->down_sent, c->down_length - c->down_sent);

    if (went > 0)
        c->down_sent += (size_t)went;
    else if (!is_transient(went))
        c->failed = true;
}

static bool
has_plain(const struct carry *c)
{
    return c->up_sent < c->up_length;
}

static bool
has_tls(const struct carry *c)
{
    return c->down_sent < c->down_length;
}

/* False: over. */
static bool
upgrade_tls_poll_once(struct carry *c)
{
    bool waits = gnutls_record_check_pending(c->session) > 0 && !has_plain(c);
    struct pollfd polls[2] = {
        { .fd = c->tcp, .events = (short)((has_plain(c) ? 0 : POLLIN) | (has_tls(c) ? POLLOUT : 0)) },
        { .fd = c->plain, .events = (short)((has_tls(c) ? 0 : POLLIN) | (has_plain(c) ? POLLOUT : 0)) },
    };

    if (poll(polls, 2, waits ? 0 : -1) < 0)
        return errno == EINTR;
    if (!has_plain(c) && (waits || polls[0].revents))
        read_plain(c);
    if (!has_tls(c) && polls[1].revents)
        read_tls(c);
    if (has_plain(c))
        write_tls(c);
    if (has_tls(c))
        write_plain(c);
    return !c->failed && !c->up_over && !(c->down_over && !has_tls(c));
}

/* What the client sent and was not read would make the kernel throw away what it has yet to
 * receive: let it read its last frame and close first. */
static void
drain_tcp(struct carry *c)
{
    struct pollfd polled = { .fd = c->tcp, .events = POLLIN };
    bh_ns until = bh_time_monotonic() + DRAIN_MS * BH_NS_PER_MS;
    ssize_t got;

    (void)!gnutls_bye(c->session, GNUTLS_SHUT_WR);
    do
        got = gnutls_record_recv(c->session, c->up, sizeof c->up);
    while (bh_time_monotonic() < until && (got > 0 || (is_transient(got) && poll(&polled, 1, DRAIN_MS) > 0)));
}

void
bh_upgrade_tls_carry(struct MHD_Connection *mhd, int tcp, int plain)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    struct carry *c = calloc(1, sizeof *c);

    BH_ASSERT(c && info);
    c->session = (gnutls_session_t)info->tls_session;
    c->tcp = tcp;
    c->plain = plain;
    while (upgrade_tls_poll_once(c))
        ;
    shutdown(plain, SHUT_RDWR);
    if (c->down_over && !c->failed)
        drain_tcp(c);
    free(c);
}
