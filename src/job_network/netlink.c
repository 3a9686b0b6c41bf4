#include "job_network/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

enum { REPLY_BYTES = 64 << 10, PATIENCE_S = 10 };

/* ---- building ---- */

static void *
netlink_extend(struct bh_netlink_request *request, size_t size)
{
    size_t at = NLMSG_ALIGN(request->header.nlmsg_len);

    BH_ASSERT(at + NLMSG_ALIGN(size) <= sizeof request->bytes);
    memset(request->bytes + at, 0, NLMSG_ALIGN(size));
    request->header.nlmsg_len = (uint32_t)(at + size);
    return request->bytes + at;
}

void
bh_netlink_begin(struct bh_netlink_request *request, uint16_t type, uint16_t flags, const void *family,
                 size_t size)
{
    request->header = (struct nlmsghdr){ .nlmsg_len = NLMSG_HDRLEN,
                                         .nlmsg_type = type,
                                         .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags) };
    memcpy(netlink_extend(request, size), family, size);
}

void
bh_netlink_put(struct bh_netlink_request *request, uint16_t type, const void *bytes, size_t length)
{
    struct rtattr *attribute = netlink_extend(request, RTA_LENGTH(length));

    attribute->rta_type = type;
    attribute->rta_len = (uint16_t)RTA_LENGTH(length);
    if (length > 0)
        memcpy(RTA_DATA(attribute), bytes, length);
}

void
bh_netlink_put_u32(struct bh_netlink_request *request, uint16_t type, uint32_t value)
{
    bh_netlink_put(request, type, &value, sizeof value);
}

void
bh_netlink_put_text(struct bh_netlink_request *request, uint16_t type, const char *text)
{
    bh_netlink_put(request, type, text, strlen(text) + 1);
}

struct rtattr *
bh_netlink_nest(struct bh_netlink_request *request, uint16_t type)
{
    struct rtattr *nest = netlink_extend(request, RTA_LENGTH(0));

    nest->rta_type = type;
    nest->rta_len = RTA_LENGTH(0);
    return nest;
}

void
bh_netlink_end(struct bh_netlink_request *request, struct rtattr *nest)
{
    const char *end = request->bytes + NLMSG_ALIGN(request->header.nlmsg_len);

    nest->rta_len = (uint16_t)(end - (const char *)nest);
}

/* ---- asking ---- */

bh_rc
bh_netlink_open(int protocol, int *ret_fd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    const struct timeval patience = { .tv_sec = PATIENCE_S };

    if (fd < 0)
        return bh_err_errno(err, "open a netlink socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0)
        return bh_err_errno(err, "set up a netlink socket");
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

static bh_rc
netlink_refused(int number, struct bh_err *err)
{
    bh_rc rc = number == EEXIST || number == EBUSY                       ? BH_CONFLICT
               : number == ENODEV || number == ENOENT || number == ESRCH ? BH_NOT_FOUND
               : number == EPERM                                         ? BH_DENIED
                                                                         : BH_IO;

    return bh_err_sys(err, rc, BH_SYS_ERRNO, number, "%s", strerror(number));
}

struct netlink_receiver {
    bh_netlink_message_fn take;
    void *self;
};

/* One datagram of answers.  `ret_done`: it was the last. */
static bh_rc
netlink_receive_replies(const struct nlmsghdr *message, size_t length,
                        const struct netlink_receiver *receiver, bool *ret_done, struct bh_err *err)
{

    for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
        if (message->nlmsg_type == NLMSG_ERROR) {
            const struct nlmsgerr *answer = NLMSG_DATA(message);

            *ret_done = true;
            return answer->error ? netlink_refused(-answer->error, err) : BH_OK;
        }
        *ret_done = message->nlmsg_type == NLMSG_DONE;
        if (*ret_done)
            return BH_OK;
        if (receiver->take)
            receiver->take(message, receiver->self);
    }
    return BH_OK;
}

bh_rc
bh_netlink_list(int fd, struct bh_netlink_request *request, bh_netlink_message_fn take, void *self,
                struct bh_err *err)
{
    static _Alignas(struct nlmsghdr) char answer[REPLY_BYTES]; /* one thread asks */
    static uint32_t sequence;
    const struct netlink_receiver receiver = { take, self };
    bool done = false;
    bh_rc rc = BH_OK;

    request->header.nlmsg_seq = ++sequence;
    if (send(fd, request->bytes, request->header.nlmsg_len, 0) < 0)
        return bh_err_errno(err, "ask the kernel");
    while (rc == BH_OK && !done) {
        ssize_t n = recv(fd, answer, sizeof answer, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return bh_err_errno(err, "hear from the kernel");
        if (((const struct nlmsghdr *)(const void *)answer)->nlmsg_seq != sequence)
            continue; /* what an earlier one left */
        rc = netlink_receive_replies((const void *)answer, (size_t)n, &receiver, &done, err);
    }
    return rc;
}

bh_rc
bh_netlink_ask(int fd, struct bh_netlink_request *request, struct bh_err *err)
{
    request->header.nlmsg_flags |= NLM_F_ACK;
    return bh_netlink_list(fd, request, NULL, NULL, err);
}

const struct rtattr *
bh_netlink_find(const void *attributes, size_t length, uint16_t type)
{
    const struct rtattr *attribute = attributes;

    for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length))
        if ((attribute->rta_type & NLA_TYPE_MASK) == type)
            return attribute;
    return NULL;
}
