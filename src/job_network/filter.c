#include "job_network/filter.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "job_network/netlink.h"

enum { OUTPUT_MAX = 200, TUPLE_SOURCE = 1 /* CTA_FILTER_F_CTA_IP_SRC */ };

/* ---- the program ---- */

static bh_rc
filter_spawn(const char *program, const char *const argv[], int in, struct bh_filter_change *ret_change,
             struct bh_err *err)
{
    static const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL };
    struct bh_process_options options;
    int ends[2];
    pid_t pid;
    bh_rc rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bh_err_errno(err, "pipe");
    options = (struct bh_process_options){
        .search = true,
        .argv = argv,
        .envp = env,
        .fds = { { STDIN_FILENO, in }, { STDOUT_FILENO, ends[1] }, { STDERR_FILENO, ends[1] } },
        .fd_count = 3,
    };
    rc = bh_process_start(&options, &pid, NULL, err);
    close(ends[1]);
    if (rc != BH_OK) {
        close(ends[0]);
        bh_err_set(err, BH_UNAVAILABLE, "%.80s does not run: %s", program, strerror(err->sys));
        return bh_err_hint(err, "install nftables, or set nft in node.conf");
    }
    *ret_change = (struct bh_filter_change){ pid, ends[0] };
    return BH_OK;
}

bh_rc
bh_filter_begin(const char *program, const char *text, size_t length, struct bh_filter_change *ret_change,
                struct bh_err *err)
{
    const char *const argv[] = { program, "-f", "-", NULL };
    BH_AUTO(bh_fd_close) int in = memfd_create("bulkhead-rules", MFD_CLOEXEC);
    bh_rc rc;

    if (in < 0)
        return bh_err_errno(err, "make a file in memory");
    rc = bh_fd_write_all(in, text, length, err);
    if (rc != BH_OK)
        return rc;
    if (lseek(in, 0, SEEK_SET) != 0)
        return bh_err_errno(err, "go back in a file in memory");
    return filter_spawn(program, argv, in, ret_change, err);
}

bh_rc
bh_filter_end(struct bh_filter_change *change, struct bh_err *err)
{
    char output[OUTPUT_MAX] = "", rest[256];
    size_t length = 0;
    int status;
    ssize_t n;

    if (change->pid <= 0)
        return BH_OK;
    while ((n = read(change->answer, output + length, sizeof output - 1 - length)) > 0)
        length += (size_t)n;
    while (n == 0 && length == sizeof output - 1 && read(change->answer, rest, sizeof rest) > 0)
        ;
    close(change->answer);
    status = bh_process_wait(change->pid);
    *change = (struct bh_filter_change){ .answer = -1 };
    if (status == 0)
        return BH_OK;
    output[strcspn(output, "\n")] = '\0';
    return bh_err_set(err, BH_CONFLICT, "nft: %s", *output ? output : "failed");
}

bh_rc
bh_filter_check(const char *program, struct bh_err *err)
{
    const char *const argv[] = { program, "--version", NULL };
    BH_AUTO(bh_fd_close) int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct bh_filter_change change = { .answer = -1 };
    bh_rc rc = filter_spawn(program, argv, in, &change, err);

    if (rc != BH_OK)
        return rc;
    if (bh_filter_end(&change, err) != BH_OK) {
        bh_err_set(err, BH_UNAVAILABLE, "%.80s does not run", program);
        rc = bh_err_hint(err, "install nftables, or set nft in node.conf");
    }
    return rc;
}

/* ---- tables ---- */

static void
filter_begin(struct bh_netlink_request *request, uint8_t subsystem, uint8_t type, uint8_t family)
{
    const struct nfgenmsg header = { .nfgen_family = family, .version = NFNETLINK_V0 };

    bh_netlink_begin(request, (uint16_t)(subsystem << 8 | type), NLM_F_ACK, &header, sizeof header);
}

static const struct rtattr *
filter_attribute_of(const struct nlmsghdr *message, uint16_t type)
{
    return bh_netlink_find((const char *)NLMSG_DATA(message) + NLMSG_ALIGN(sizeof(struct nfgenmsg)),
                           NLMSG_PAYLOAD(message, NLMSG_ALIGN(sizeof(struct nfgenmsg))), type);
}

/* A number in network order. */
static uint64_t
filter_number_in(const struct rtattr *attribute)
{
    uint64_t number = 0;

    if (attribute && RTA_PAYLOAD(attribute) == sizeof number)
        memcpy(&number, RTA_DATA(attribute), sizeof number);
    return be64toh(number);
}

static void
filter_read_table(const struct nlmsghdr *message, void *self)
{
    *(uint64_t *)self = filter_number_in(filter_attribute_of(message, NFTA_TABLE_HANDLE));
}

uint64_t
bh_filter_table(int fd, const char *table)
{
    struct bh_netlink_request request;
    struct bh_err ignored;
    uint64_t handle = 0;

    filter_begin(&request, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETTABLE, NFPROTO_INET);
    bh_netlink_put_text(&request, NFTA_TABLE_NAME, table);
    return bh_netlink_list(fd, &request, filter_read_table, &handle, &ignored) == BH_OK ? handle : 0;
}

static void
filter_read_counter(const struct nlmsghdr *message, void *self)
{
    const struct rtattr *inside = filter_attribute_of(message, NFTA_OBJ_DATA);
    struct bh_filter_count *count = self;

    if (!inside)
        return;
    count->bytes =
        filter_number_in(bh_netlink_find(RTA_DATA(inside), RTA_PAYLOAD(inside), NFTA_COUNTER_BYTES));
    count->packets =
        filter_number_in(bh_netlink_find(RTA_DATA(inside), RTA_PAYLOAD(inside), NFTA_COUNTER_PACKETS));
}

struct bh_filter_count
bh_filter_counter(int fd, const char *table, const char *name)
{
    struct bh_filter_count count = { 0 };
    struct bh_netlink_request request;
    struct bh_err ignored;

    filter_begin(&request, NFNL_SUBSYS_NFTABLES, NFT_MSG_GETOBJ, NFPROTO_INET);
    bh_netlink_put_text(&request, NFTA_OBJ_TABLE, table);
    bh_netlink_put_text(&request, NFTA_OBJ_NAME, name);
    bh_netlink_put_u32(&request, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
    (void)!bh_netlink_list(fd, &request, filter_read_counter, &count, &ignored);
    return count;
}

bh_rc
bh_filter_watch(int *ret_fd, struct bh_err *err)
{
    /* bound: the kernel says nothing to a socket without an address */
    const struct sockaddr_nl own = { .nl_family = AF_NETLINK };
    const int group = NFNLGRP_NFTABLES;
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = bh_netlink_open(NETLINK_NETFILTER, &fd, err);

    if (rc != BH_OK)
        return rc;
    if (bind(fd, (const struct sockaddr *)&own, sizeof own) != 0)
        return bh_err_errno(err, "bind a netlink socket");
    if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0)
        return bh_err_errno(err, "watch the packet filter");
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

/* What does not fit is lost, and its loss is readable once, too. */
void
bh_filter_drain(int fd)
{
    char bytes[4096];

    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0 || errno == ENOBUFS)
        ;
}

/* ---- connections ---- */

/* Those whose first packet, or whose first answer, came from there. */
static bh_rc
filter_forget(int fd, uint32_t address, bool answers, struct bh_err *err)
{
    uint16_t tuple = answers ? CTA_TUPLE_REPLY : CTA_TUPLE_ORIG;
    struct bh_netlink_request request;
    struct rtattr *outer, *inner;

    filter_begin(&request, NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE, AF_INET);
    outer = bh_netlink_nest(&request, tuple | NLA_F_NESTED);
    inner = bh_netlink_nest(&request, CTA_TUPLE_IP | NLA_F_NESTED);
    bh_netlink_put_u32(&request, CTA_IP_V4_SRC, htonl(address));
    bh_netlink_end(&request, inner);
    bh_netlink_end(&request, outer);
    outer = bh_netlink_nest(&request, CTA_FILTER | NLA_F_NESTED);
    bh_netlink_put_u32(&request, answers ? CTA_FILTER_REPLY_FLAGS : CTA_FILTER_ORIG_FLAGS, TUPLE_SOURCE);
    bh_netlink_end(&request, outer);
    return bh_netlink_ask(fd, &request, err);
}

bh_rc
bh_filter_forget(int fd, uint32_t address, struct bh_err *err)
{
    bh_rc rc = filter_forget(fd, address, false, err);

    if (rc == BH_OK)
        rc = filter_forget(fd, address, true, err);
    return rc == BH_OK || rc == BH_NOT_FOUND ? BH_OK : bh_err_wrap(err, "forget connections");
}
