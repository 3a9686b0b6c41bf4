#include "shim/driver/connection.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bulkhead/share_page.h"
#include "shim/process/clock.h"

#define RETRY_NS (20 * BH_MS)

enum connection_outcome { ANSWERED, UNREACHABLE, REFUSED };

static int
connection_connect(void)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = BH_SHARE_SOCKET };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof(name)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool
connection_wait_readable(int fd, uint64_t until_ns)
{
    for (;;) {
        struct pollfd wait = { .fd = fd, .events = POLLIN };
        uint64_t now = bh_clock_ns();
        int ready;

        if (now >= until_ns)
            return false;
        ready = poll(&wait, 1, (int)((until_ns - now) / BH_MS) + 1);
        if (ready != 0 && !(ready < 0 && errno == EINTR))
            return ready > 0;
    }
}

/* Keep as many of the received descriptors as have room; the kernel does not close the rest, so they are
 * closed here. */
static unsigned
connection_receive_descriptors(struct msghdr *message, int ret_fd[2])
{
    unsigned count = 0;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; CMSG_LEN((at + 1) * sizeof(int)) <= part->cmsg_len; at++) {
            int fd;

            memcpy(&fd, CMSG_DATA(part) + at * sizeof(int), sizeof(fd));
            if (count < 2)
                ret_fd[count++] = fd;
            else
                close(fd);
        }
    }
    return count;
}

static bool
connection_is_slot(int32_t slot, int32_t asked)
{
    return asked == BH_SHARE_OBSERVE ? slot == -1 : slot >= 0 && slot < BH_SHARE_SLOTS_MAX;
}

static enum connection_outcome
connection_receive(int socket, int32_t asked, struct bh_share_connection *ret_connection)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))];
    struct bh_share_welcome welcome = { 0 };
    struct iovec part = { .iov_base = &welcome, .iov_len = sizeof(welcome) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    int fd[2] = { -1, -1 };
    unsigned count = got < 0 ? 0 : connection_receive_descriptors(&message, fd);

    if (got == (ssize_t)sizeof(welcome) && welcome.magic == BH_SHARE_MAGIC
        && welcome.version == BH_SHARE_VERSION && welcome.answer == BH_SHARE_WELCOME && count == 2
        && connection_is_slot(welcome.slot, asked)) {
        *ret_connection = (struct bh_share_connection){ socket, fd[0], fd[1], welcome.slot };
        return ANSWERED;
    }
    while (count > 0)
        close(fd[--count]);
    return got <= 0 ? UNREACHABLE : REFUSED;
}

static enum connection_outcome
connection_try_open(int32_t slot, uint64_t until_ns, struct bh_share_connection *ret_connection)
{
    struct bh_share_hello hello = { BH_SHARE_MAGIC, BH_SHARE_VERSION, slot, 0 };
    enum connection_outcome result = UNREACHABLE;
    int fd = connection_connect();

    if (fd < 0)
        return UNREACHABLE;
    if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello)
        && connection_wait_readable(fd, until_ns))
        result = connection_receive(fd, slot, ret_connection);
    if (result != ANSWERED)
        close(fd);
    return result;
}

bool
bh_connection_open(int32_t slot, uint64_t until_ns, struct bh_share_connection *ret_connection)
{
    int saved = errno;
    enum connection_outcome result;

    for (;;) {
        result = connection_try_open(slot, until_ns, ret_connection);
        if (result != UNREACHABLE || bh_clock_ns() + RETRY_NS > until_ns)
            break;
        bh_clock_sleep(RETRY_NS);
    }
    errno = saved;
    return result == ANSWERED;
}

bool
bh_connection_send(int socket, const struct bh_share_client_message *message)
{
    int saved = errno;
    ssize_t sent = send(socket, message, sizeof(*message), MSG_NOSIGNAL | MSG_DONTWAIT);

    errno = saved;
    return sent == (ssize_t)sizeof(*message);
}

bool
bh_connection_is_closed(int socket)
{
    struct pollfd look = { .fd = socket, .events = POLLIN };
    int saved = errno;
    bool shut = poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;

    errno = saved;
    return shut;
}
