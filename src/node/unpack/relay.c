#include "node/unpack/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "fetch/address.h"
#include "fetch/sandbox.h"
#include "node/unpack/relay_pipe.h"

enum { BACKLOG = 64, CONNECT_MS = 10000, CONTROL_FD = 3, FIRST_OF_OTHERS = 4, POLL_MS = 1000 };

/* ---- addresses ---- */

/* This machine, what is not routed, groups, and where clouds have their metadata services. */
static const char *const never[] = {
    "0.0.0.0/8",   "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16", "100.100.100.200",
    "192.0.0.192", "224.0.0.0/4", "240.0.0.0/4",    "::/96",         "fd00:ec2::254",
    "fe80::/10",   "fec0::/10",   "ff00::/8",
};

static bool
relay_is_in(const char *text, const struct sockaddr *address)
{
    struct bh_block block;
    struct bh_err ignored;

    return bh_block_parse(text, &block, &ignored) != BH_OK || bh_block_has(&block, address);
}

bool
bh_relay_may_reach(const struct bh_relay *relay, bool plain, const struct sockaddr *address)
{
    bool refused = false;

    if (plain)
        return bh_address_loopback(address);
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6)
        return false;
    for (size_t i = 0; i < BH_COUNT(never); i++)
        refused = refused || relay_is_in(never[i], address);
    for (uint32_t i = 0; i < relay->deny_count; i++)
        refused = refused || relay_is_in(relay->deny[i], address);
    return !refused;
}

/* ---- towards a host ---- */

static void
relay_report_failure(const struct bh_relay *relay, const struct bh_registry *host, const char *why)
{
    snprintf(relay->shared->last_error, sizeof relay->shared->last_error, "%.100s: %.50s", host->host, why);
}

/* One attempt; -1 with errno. */
static int
relay_try_address(const struct addrinfo *address)
{
    BH_AUTO(bh_fd_close)
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    socklen_t length = sizeof errno;
    int failed = 0;

    if (fd < 0)
        return -1;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS)
        return -1;
    if (poll(&ready, 1, CONNECT_MS) <= 0)
        failed = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length) != 0)
        failed = errno;
    errno = failed;
    return failed ? -1 : bh_fd_steal(&fd);
}

/* What a name resolves to counts at this moment, and that address is connected to. */
static int
relay_reach(const struct bh_relay *relay, const struct bh_registry *host)
{
    const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct addrinfo *found = NULL;
    const char *why = "its address is not allowed";
    char port[8];
    int failed, fd = -1;

    snprintf(port, sizeof port, "%u", host->port);
    failed = getaddrinfo(host->host, port, host->plain ? NULL : &hints, &found);
    if (failed)
        why = gai_strerror(failed);
    for (const struct addrinfo *at = failed ? NULL : found; at && fd < 0; at = at->ai_next) {
        if (!bh_relay_may_reach(relay, host->plain, at->ai_addr))
            continue;
        fd = relay_try_address(at);
        why = fd < 0 ? strerror(errno) : why;
    }
    if (!failed)
        freeaddrinfo(found);
    if (fd < 0)
        relay_report_failure(relay, host, why);
    return fd;
}

/* ---- its loop ---- */

struct relay_loop {
    const struct bh_relay *relay;
    int listeners[BH_RELAY_HOSTS_MAX];
    struct bh_relay_pipes pipes;
};

static void
relay_accept_connection(struct relay_loop *loop, uint32_t host)
{
    int inside = accept4(loop->listeners[host], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), outside;

    if (inside < 0)
        return;
    outside = relay_reach(loop->relay, &loop->relay->hosts[host]);
    atomic_store(&loop->relay->shared->moved_at, bh_time_monotonic());
    if (outside < 0)
        close(inside);
    else
        bh_relay_pipe_add(&loop->pipes, inside, outside);
}

/* The sockets of the cell, in the order of the hosts. */
static bool
relay_receive_listeners(struct relay_loop *loop)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof loop->listeners)];
    } control_space;
    char byte;
    struct iovec data = { &byte, 1 };
    struct msghdr message = { .msg_iov = &data,
                              .msg_iovlen = 1,
                              .msg_control = &control_space,
                              .msg_controllen = sizeof control_space };
    size_t bytes = loop->relay->host_count * sizeof(int);
    const struct cmsghdr *header;

    if (recvmsg(CONTROL_FD, &message, MSG_CMSG_CLOEXEC) != 1)
        return false;
    header = CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(bytes))
        return false;
    memcpy(loop->listeners, CMSG_DATA(header), bytes);
    return true;
}

static void
relay_dispatch(struct relay_loop *loop)
{
    struct pollfd fds[BH_RELAY_HOSTS_MAX + 1 + BH_RELAY_PIPE_FDS];
    uint32_t hosts = loop->relay->host_count, count = 0;
    bool control_space = bh_relay_pipes_have_space(&loop->pipes);

    for (; count < hosts; count++)
        fds[count] = (struct pollfd){ .fd = control_space ? loop->listeners[count] : -1, .events = POLLIN };
    fds[count++] = (struct pollfd){ .fd = CONTROL_FD };
    count += bh_relay_pipe_fds(&loop->pipes, fds + count);
    if (poll(fds, count, POLL_MS) < 0 && errno != EINTR)
        _exit(EXIT_FAILURE);
    if (fds[hosts].revents & (POLLHUP | POLLERR))
        _exit(EXIT_SUCCESS); /* its parent went */
    bh_relay_pipe_move(&loop->pipes, fds + hosts + 1, loop->relay->shared);
    for (uint32_t i = 0; i < hosts; i++)
        if (fds[i].revents & POLLIN)
            relay_accept_connection(loop, i);
}

static _Noreturn void
be_relay(const struct bh_relay *relay, int control)
{
    static struct relay_loop loop;
    struct bh_err err;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    loop.relay = relay;
    if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0
        || (control != CONTROL_FD && dup2(control, CONTROL_FD) < 0)
        || close_range(FIRST_OF_OTHERS, ~0u, 0) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR
        || bh_fetch_sandbox_drop(&err) != BH_OK || bh_fetch_sandbox_enter(&err) != BH_OK
        || !relay_receive_listeners(&loop))
        _exit(EXIT_FAILURE);
    while (!atomic_load(&relay->shared->over))
        relay_dispatch(&loop);
    _exit(EXIT_SUCCESS);
}

/* ---- its parent's side ---- */

bh_rc
bh_relay_start(struct bh_relay *relay, struct bh_err *err)
{
    int pair[2];

    BH_ASSERT(relay->host_count > 0 && relay->host_count <= BH_RELAY_HOSTS_MAX);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return bh_err_errno(err, "make a pair of sockets");
    relay->pid = fork();
    if (relay->pid == 0) {
        close(pair[0]);
        be_relay(relay, pair[1]);
    }
    close(pair[1]);
    relay->control = pair[0];
    return relay->pid < 0 ? bh_err_errno(err, "start the relay") : BH_OK;
}

/* A plain one is an address of the loopback already; a name with several ports has one. */
void
bh_relay_address(const struct bh_relay *relay, uint32_t host, char ret_text[16])
{
    uint32_t first = 0;

    while (strcmp(relay->hosts[first].host, relay->hosts[host].host) != 0)
        first++;
    if (relay->hosts[host].plain)
        snprintf(ret_text, 16, "%.15s", relay->hosts[host].host);
    else
        snprintf(ret_text, 16, "127.1.0.%u", first + 1);
}

static bh_rc
relay_switch_on_loopback(struct bh_err *err)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    BH_AUTO(bh_fd_close)
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) != 0)
        return bh_err_errno(err, "switch on the sandbox's loopback");
    return BH_OK;
}

static bh_rc
relay_listen_for(const struct bh_relay *relay, uint32_t host, int *ret_fd, struct bh_err *err)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)relay->hosts[host].port) };
    char text[16];

    bh_relay_address(relay, host, text);
    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0 || inet_pton(AF_INET, text, &at.sin_addr) != 1
        || bind(*ret_fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(*ret_fd, BACKLOG) != 0)
        return bh_err_errno(err, "listen in the sandbox for %.100s", relay->hosts[host].host);
    return BH_OK;
}

static bh_rc
relay_send_listeners(const struct bh_relay *relay, const int *fds, struct bh_err *err)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(BH_RELAY_HOSTS_MAX * sizeof(int))];
    } control_space = { .bytes = { 0 } };
    char byte = 0;
    struct iovec data = { &byte, 1 };
    size_t bytes = relay->host_count * sizeof(int);
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = &control_space, .msg_controllen = CMSG_SPACE(bytes)
    };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), fds, bytes);
    return sendmsg(relay->control, &message, MSG_NOSIGNAL) == 1 ? BH_OK
                                                                : bh_err_errno(err, "talk to the relay");
}

bh_rc
bh_relay_listen(const struct bh_relay *relay, struct bh_err *err)
{
    int fds[BH_RELAY_HOSTS_MAX];
    uint32_t count = 0;
    bh_rc rc = relay_switch_on_loopback(err);

    while (rc == BH_OK && count < relay->host_count) {
        rc = relay_listen_for(relay, count, &fds[count], err);
        count++;
    }
    if (rc == BH_OK)
        rc = relay_send_listeners(relay, fds, err);
    while (count > 0)
        bh_fd_close(fds[--count]);
    return rc;
}

void
bh_relay_stop(struct bh_relay *relay)
{
    if (relay->pid <= 0)
        return;
    kill(relay->pid, SIGKILL);
    while (waitpid(relay->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    bh_fd_close(relay->control);
    relay->pid = 0;
    relay->control = -1;
}
