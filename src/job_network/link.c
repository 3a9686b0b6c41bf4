#include "job_network/link.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <string.h>

#include "base/time.h"
#include "job_network/netlink.h"

/* The queue before the cap, and how much may leave at once. */
enum {
    QUEUE_MS = 50,
    BURST_MS = 10,
    BURST_MIN_BYTES = 64 << 10,
    QUEUE_MIN_BYTES = 128 << 10,
    HOST_BITS = 32,
    POLLS_MAX = 500
};

static bh_rc
link_err(bh_rc rc, const char *what, struct bh_err *err)
{
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", what);
}

/* ---- interfaces ---- */

bh_rc
bh_link_make_pair(int fd, const struct bh_link_pair *pair, struct bh_err *err)
{
    const struct ifinfomsg none = { .ifi_family = AF_UNSPEC };
    struct bh_netlink_request request;
    struct rtattr *kind, *facts, *peer;

    bh_netlink_begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &none, sizeof none);
    bh_netlink_put_text(&request, IFLA_IFNAME, pair->here);
    bh_netlink_put(&request, IFLA_ADDRESS, pair->mac_here, sizeof pair->mac_here);
    bh_netlink_put_u32(&request, IFLA_GROUP, pair->group);
    kind = bh_netlink_nest(&request, IFLA_LINKINFO);
    bh_netlink_put_text(&request, IFLA_INFO_KIND, "veth");
    facts = bh_netlink_nest(&request, IFLA_INFO_DATA);
    peer = bh_netlink_nest(&request, VETH_INFO_PEER);
    /* the peer's family header stands before its attributes */
    memset(request.bytes + request.header.nlmsg_len, 0, sizeof none);
    request.header.nlmsg_len += sizeof none;
    bh_netlink_put_text(&request, IFLA_IFNAME, pair->there);
    bh_netlink_put(&request, IFLA_ADDRESS, pair->mac_there, sizeof pair->mac_there);
    bh_netlink_put_u32(&request, IFLA_NET_NS_FD, (uint32_t)pair->netns_fd);
    bh_netlink_end(&request, peer);
    bh_netlink_end(&request, facts);
    bh_netlink_end(&request, kind);
    return link_err(bh_netlink_ask(fd, &request, err), "make an interface", err);
}

bh_rc
bh_link_remove(int fd, const char *name, struct bh_err *err)
{
    const struct ifinfomsg none = { .ifi_family = AF_UNSPEC };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_DELLINK, 0, &none, sizeof none);
    bh_netlink_put_text(&request, IFLA_IFNAME, name);
    return link_err(bh_netlink_ask(fd, &request, err), "remove an interface", err);
}

struct link_found {
    uint32_t index;
    uint8_t state;
    struct bh_network_counters *counters;
};

static void
read_link(const struct nlmsghdr *message, void *self)
{
    const struct ifinfomsg *link = NLMSG_DATA(message);
    const struct rtattr *stats;
    struct rtnl_link_stats64 numbers;
    struct link_found *found = self;

    if (message->nlmsg_type != RTM_NEWLINK)
        return;
    found->index = (uint32_t)link->ifi_index;
    stats = bh_netlink_find(IFLA_RTA(link), IFLA_PAYLOAD(message), IFLA_OPERSTATE);
    if (stats)
        found->state = *(const uint8_t *)RTA_DATA(stats);
    stats = bh_netlink_find(IFLA_RTA(link), IFLA_PAYLOAD(message), IFLA_STATS64);
    if (!found->counters || !stats || RTA_PAYLOAD(stats) < sizeof numbers)
        return;
    memcpy(&numbers, RTA_DATA(stats), sizeof numbers);
    *found->counters = (struct bh_network_counters){
        .rx_bytes = numbers.rx_bytes,
        .rx_packets = numbers.rx_packets,
        .tx_bytes = numbers.tx_bytes,
        .tx_packets = numbers.tx_packets,
    };
}

static bh_rc
link_read(int fd, const char *name, struct link_found *found, struct bh_err *err)
{
    const struct ifinfomsg none = { .ifi_family = AF_UNSPEC };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_GETLINK, NLM_F_ACK, &none, sizeof none);
    bh_netlink_put_text(&request, IFLA_IFNAME, name);
    return bh_netlink_list(fd, &request, read_link, found, err);
}

uint32_t
bh_link_find(int fd, const char *name)
{
    struct link_found found = { 0 };
    struct bh_err ignored;

    return link_read(fd, name, &found, &ignored) == BH_OK ? found.index : 0;
}

bh_rc
bh_link_count(int fd, const char *name, struct bh_network_counters *ret_counters, struct bh_err *err)
{
    struct bh_network_counters counters = { 0 };
    struct link_found found = { .counters = &counters };
    bh_rc rc = link_read(fd, name, &found, err);

    if (rc == BH_OK)
        *ret_counters = counters;
    return link_err(rc, "read the counters of an interface", err);
}

struct every {
    bh_link_fn seen;
    void *self;
};

static void
link_add_name(const struct nlmsghdr *message, void *self)
{
    const struct ifinfomsg *link = NLMSG_DATA(message);
    const struct every *every = self;
    const struct rtattr *name;

    if (message->nlmsg_type != RTM_NEWLINK)
        return;
    name = bh_netlink_find(IFLA_RTA(link), IFLA_PAYLOAD(message), IFLA_IFNAME);
    if (name)
        every->seen(RTA_DATA(name), every->self);
}

bh_rc
bh_link_each(int fd, bh_link_fn seen, void *self, struct bh_err *err)
{
    const struct ifinfomsg none = { .ifi_family = AF_UNSPEC };
    struct every every = { seen, self };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_GETLINK, NLM_F_DUMP, &none, sizeof none);
    return link_err(bh_netlink_list(fd, &request, link_add_name, &every, err), "list interfaces", err);
}

bh_rc
bh_link_set_up(int fd, uint32_t index, bool arp, struct bh_err *err)
{
    const struct ifinfomsg link = { .ifi_family = AF_UNSPEC,
                                    .ifi_index = (int)index,
                                    .ifi_flags = IFF_UP | (arp ? 0u : (unsigned)IFF_NOARP),
                                    .ifi_change = IFF_UP | IFF_NOARP };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_NEWLINK, 0, &link, sizeof link);
    return link_err(bh_netlink_ask(fd, &request, err), "set an interface up", err);
}

bh_rc
bh_link_await(int fd, const char *name, struct bh_err *err)
{
    for (int poll_count = 0; poll_count < POLLS_MAX; poll_count++) {
        struct link_found found = { 0 };
        bh_rc rc = link_read(fd, name, &found, err);

        if (rc != BH_OK)
            return link_err(rc, "look at an interface", err);
        if (found.state == IF_OPER_UP)
            return BH_OK;
        bh_time_sleep(BH_NS_PER_MS);
    }
    return bh_err_set(err, BH_TIMEOUT, "interface %s does not come up", name);
}

/* ---- where packets go ---- */

bh_rc
bh_link_add_address(int fd, uint32_t index, uint32_t address, struct bh_err *err)
{
    const struct ifaddrmsg family = {
        .ifa_family = AF_INET, .ifa_prefixlen = HOST_BITS, .ifa_scope = RT_SCOPE_UNIVERSE, .ifa_index = index
    };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &family, sizeof family);
    bh_netlink_put_u32(&request, IFA_LOCAL, htonl(address));
    bh_netlink_put_u32(&request, IFA_ADDRESS, htonl(address));
    return link_err(bh_netlink_ask(fd, &request, err), "give an interface its address", err);
}

bh_rc
bh_link_add_route(int fd, uint32_t index, struct bh_cidr to, uint32_t gateway, struct bh_err *err)
{
    const struct rtmsg family = {
        .rtm_family = AF_INET,
        .rtm_dst_len = (unsigned char)to.bits,
        .rtm_table = RT_TABLE_MAIN,
        .rtm_protocol = RTPROT_STATIC,
        .rtm_type = RTN_UNICAST,
        .rtm_scope = gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
        .rtm_flags = gateway ? RTNH_F_ONLINK : 0,
    };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &family, sizeof family);
    if (to.bits > 0)
        bh_netlink_put_u32(&request, RTA_DST, htonl(to.address));
    if (gateway)
        bh_netlink_put_u32(&request, RTA_GATEWAY, htonl(gateway));
    bh_netlink_put_u32(&request, RTA_OIF, index);
    return link_err(bh_netlink_ask(fd, &request, err), "add a route", err);
}

bh_rc
bh_link_add_neighbor(int fd, uint32_t index, uint32_t address, const uint8_t mac[6], struct bh_err *err)
{
    const struct ndmsg family = { .ndm_family = AF_INET,
                                  .ndm_ifindex = (int)index,
                                  .ndm_state = NUD_PERMANENT };
    struct bh_netlink_request request;

    bh_netlink_begin(&request, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &family, sizeof family);
    bh_netlink_put_u32(&request, NDA_DST, htonl(address));
    bh_netlink_put(&request, NDA_LLADDR, mac, 6);
    return link_err(bh_netlink_ask(fd, &request, err), "note a hardware address", err);
}

/* ---- how fast ---- */

static uint32_t
link_bytes_in(uint64_t rate_bytes, uint32_t ms, uint32_t least)
{
    uint64_t bytes = rate_bytes / 1000 * ms;

    return bytes < least ? least : bytes > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)bytes;
}

bh_rc
bh_link_set_rate(int fd, uint32_t index, uint64_t bps, struct bh_err *err)
{
    const struct tcmsg family = {
        .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)index, .tcm_parent = TC_H_ROOT, .tcm_handle = 0x10000
    };
    uint64_t rate = bps / 8;
    struct tc_tbf_qopt options = {
        .rate = { .linklayer = TC_LINKLAYER_ETHERNET,
                  .rate = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate },
        .limit = link_bytes_in(rate, QUEUE_MS, QUEUE_MIN_BYTES),
    };
    struct bh_netlink_request request;
    struct rtattr *nest;

    bh_netlink_begin(&request, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &family, sizeof family);
    bh_netlink_put_text(&request, TCA_KIND, "tbf");
    nest = bh_netlink_nest(&request, TCA_OPTIONS);
    bh_netlink_put(&request, TCA_TBF_PARMS, &options, sizeof options);
    bh_netlink_put(&request, TCA_TBF_RATE64, &rate, sizeof rate);
    bh_netlink_put_u32(&request, TCA_TBF_BURST, link_bytes_in(rate, BURST_MS, BURST_MIN_BYTES));
    bh_netlink_end(&request, nest);
    return link_err(bh_netlink_ask(fd, &request, err), "cap an interface's bandwidth", err);
}
