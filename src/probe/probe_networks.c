#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe/probe.h"

enum { TIMEOUT_MS = 300, HTTP = 80 };

static int
try_connect(const char *address, uint16_t port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fault = 0;
    struct pollfd polled = { .fd = fd, .events = POLLOUT };
    socklen_t size = sizeof fault;

    inet_pton(AF_INET, address, &to.sin_addr);
    if (fd < 0)
        return errno;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (poll(&polled, 1, TIMEOUT_MS) <= 0)
        return ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &size);
    return fault;
}

BH_TRY(host_loopback, try_connect("127.0.0.1", (uint16_t)strtoul(targets->port, NULL, 10)))
BH_TRY(tenant_address, try_connect(targets->address, HTTP))
BH_TRY(metadata, try_connect("169.254.169.254", HTTP))

int
bh_try_abstract_socket(const struct bh_targets *targets)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t length = strnlen(targets->abstract, sizeof name.sun_path - 1);

    memcpy(name.sun_path + 1, targets->abstract, length);
    return bh_probe_result(connect(fd, (struct sockaddr *)&name,
                                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)));
}

/* Ask for a veth pair, and read what the kernel says. */
int
bh_try_add_interface(const struct bh_targets *targets)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
        struct rtattr name;
        char text[8];
        struct rtattr link_info;
        struct rtattr kind;
        char kind_text[8];
    } ask = {
        .head = { sizeof ask, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, 1, 0 },
        .name = { sizeof(struct rtattr) + 8, IFLA_IFNAME },
        .text = "bhprobe",
        .link_info = { 2 * sizeof(struct rtattr) + 8, IFLA_LINKINFO },
        .kind = { sizeof(struct rtattr) + 8, IFLA_INFO_KIND },
        .kind_text = "ifb",
    };
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[512];
    } reply = { 0 };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0 || send(fd, &ask, sizeof ask, 0) < 0
        || recv(fd, &reply, sizeof reply, 0) < (ssize_t)sizeof reply.head)
        return errno;
    return reply.head.nlmsg_type == NLMSG_ERROR ? -reply.error.error : 0;
}
