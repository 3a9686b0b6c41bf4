/* What passes between jobs' networks and what does not, in the kernel, with sockets and with
 * frames that no job could make. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/test.h"
#include "base/time.h"
#include "job_network/filter.h"
#include "job_network/kernel.h"
#include "job_network/link.h"
#include "job_network/netlink.h"
#include "job_network/rules.h"
#include "job_network/netns.h"
#include "job_network/testbed_test.h"

enum { SLOTS = 8, PORT = 7000 };

static struct {
    struct bh_testbed testbed;
    struct bh_network network;
    struct bh_kernel_options options;
    char marker[96];
    uint32_t times;    /* how often what is repeated is */
    int spaces[SLOTS]; /* of the jobs that are attached */
} it;

static const char *const uplinks[] = { "up0" };
static const struct bh_cidr pool = { 0x0ad50000, 24 };
static const struct bh_cidr management[] = { { 0xcb007180, 25 } }; /* TESTBED_OTHER is within */

/* ---- jobs ---- */

static bh_rc
try_attach(const struct bh_network_job *job, struct bh_err *err)
{
    struct bh_network_place place = bh_testbed_place(&it.testbed, job->slot);
    bh_rc rc = it.network.ops->attach(it.network.self, job, &place, err);

    if (rc == BH_OK)
        it.spaces[job->slot] = bh_testbed_netns(&place);
    return rc;
}

static void
attach(const struct bh_network_job *job)
{
    struct bh_err err = { 0 };

    if (try_attach(job, &err) != BH_OK)
        fail_msg("attach %u: %s", job->slot, err.msg);
}

static void
attach_tenant(uint32_t slot, uint32_t group)
{
    attach(&(struct bh_network_job){ .slot = slot, .mode = BH_NETWORK_TENANT, .group = group });
}

static void
attach_egress(uint32_t slot, const char *rule)
{
    static struct bh_net_rule rules[SLOTS];
    struct bh_err err;

    assert_int_equal(bh_net_rule_parse(rule, &rules[slot], &err), BH_OK);
    attach(&(struct bh_network_job){
        .slot = slot, .mode = BH_NETWORK_EGRESS, .allow = &rules[slot], .allow_count = 1 });
}

static void
detach(uint32_t slot)
{
    struct bh_network_place place = bh_testbed_place(&it.testbed, slot);
    struct bh_err err = { 0 };

    if (it.network.ops->detach(it.network.self, slot, &err) != BH_OK)
        fail_msg("detach %u: %s", slot, err.msg);
    bh_netns_unmount(&place);
    if (it.spaces[slot] >= 0)
        close(it.spaces[slot]);
    it.spaces[slot] = -1;
}

static struct bh_network_counters
counters(uint32_t slot)
{
    struct bh_network_counters counters = { 0 };
    struct bh_err err;

    assert_int_equal(it.network.ops->counters(it.network.self, slot, &counters, &err), BH_OK);
    return counters;
}

static uint32_t
address(uint32_t slot)
{
    return bh_network_address(pool, slot);
}

/* What became of a connection from a job to a server in another namespace. */
static int
reach(uint32_t slot, int space, struct bh_testbed_traffic traffic)
{
    pid_t server = bh_testbed_listen(space, traffic);
    int answer;

    if (traffic.bytes == 0)
        traffic.bytes = 1;
    answer = bh_testbed_run(it.spaces[slot], bh_testbed_send, &traffic);
    if (traffic.udp && answer == 0) { /* that it was sent says nothing */
        bh_time_sleep(100 * BH_NS_PER_MS);
        answer = waitpid(server, NULL, WNOHANG) == server ? 0 : ETIMEDOUT;
        if (answer == 0)
            return 0;
    }
    kill(server, SIGKILL);
    bh_testbed_wait(server);
    return answer;
}

/* ---- which jobs reach which ---- */

static void
test_tenants(void **state)
{
    static const struct {
        const char *name;
        uint32_t from, to;
        bool udp;
        int answer;
    } cases[] = {
        { "own tenant", 0, 1, false, 0 },
        { "and back", 1, 0, false, 0 },
        { "own tenant, datagram", 0, 1, true, 0 },
        { "another tenant", 0, 2, false, ECONNREFUSED },
        { "another tenant, datagram", 0, 2, true, ETIMEDOUT },
        { "from another tenant", 2, 0, false, ECONNREFUSED },
        { "egress of the same", 0, 3, false, ECONNREFUSED },
        { "from egress", 3, 0, false, ECONNREFUSED },
        { "egress to egress", 3, 4, false, ECONNREFUSED },
    };

    attach_tenant(0, 1);
    attach_tenant(1, 1);
    attach_tenant(2, 2);
    attach_egress(3, "0.0.0.0/0");
    attach_egress(4, "0.0.0.0/0");
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_testbed_traffic traffic = { .to = address(cases[i].to), .port = PORT, .udp = cases[i].udp };

        BH_CHECK_EQ(cases[i].name, reach(cases[i].from, it.spaces[cases[i].to], traffic), cases[i].answer);
    }
    for (uint32_t slot = 0; slot < 5; slot++)
        detach(slot);
    BH_CHECK_DONE();
}

static void
test_egress(void **state)
{
    static const struct {
        const char *name;
        const char *rule;
        uint32_t to;
        uint16_t port;
        bool udp;
        int answer;
    } cases[] = {
        { "allowed", "203.0.113.0/24 tcp 80", TESTBED_OUTSIDE, 80, false, 0 },
        { "another port", "203.0.113.0/24 tcp 80", TESTBED_OUTSIDE, 81, false, ECONNREFUSED },
        { "another protocol", "203.0.113.0/24 tcp 80", TESTBED_OUTSIDE, 80, true, ETIMEDOUT },
        { "a datagram", "203.0.113.1 udp 53", TESTBED_OUTSIDE, 53, true, 0 },
        { "another address", "203.0.113.2 tcp 80", TESTBED_OUTSIDE, 80, false, ECONNREFUSED },
        { "management", "0.0.0.0/0", TESTBED_OTHER, 80, false, ECONNREFUSED },
        { "management by name", "203.0.113.129", TESTBED_OTHER, 80, false, ECONNREFUSED },
        { "metadata", "0.0.0.0/0", TESTBED_METADATA, 80, false, ECONNREFUSED },
        { "metadata by name", "169.254.169.254", TESTBED_METADATA, 80, false, ECONNREFUSED },
        { "this machine", "0.0.0.0/0", TESTBED_HERE, 80, false, ECONNREFUSED },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        int space = cases[i].to == TESTBED_HERE ? it.testbed.home : it.testbed.outside;
        struct bh_testbed_traffic traffic = { .to = cases[i].to, .port = cases[i].port, .udp = cases[i].udp };

        attach_egress(0, cases[i].rule);
        BH_CHECK_EQ(cases[i].name, reach(0, space, traffic), cases[i].answer);
        detach(0);
    }
    BH_CHECK_DONE();
}

/* From outside to a job, and from this machine to a job: nothing. */
static void
test_inward(void **state)
{
    struct bh_testbed_traffic traffic = { .to = address(0), .port = PORT, .bytes = 1 };
    struct bh_err err;
    int beyond = -1;
    pid_t server;

    attach_egress(0, "0.0.0.0/0");
    assert_int_equal(setns(it.testbed.outside, 0), 0);
    assert_int_equal(bh_netlink_open(NETLINK_ROUTE, &beyond, &err), BH_OK);
    assert_int_equal(setns(it.testbed.home, 0), 0);
    assert_int_equal(bh_link_add_route(beyond, bh_link_find(beyond, "out0"), pool, TESTBED_HERE, &err),
                     BH_OK);
    close(beyond);
    server = bh_testbed_listen(it.spaces[0], traffic);
    BH_CHECK_EQ("from outside", bh_testbed_run(it.testbed.outside, bh_testbed_send, &traffic), ETIMEDOUT);
    BH_CHECK("counted", counters(0).denied_packets > 0);
    BH_CHECK("from here", bh_testbed_run(it.testbed.home, bh_testbed_send, &traffic) != 0);
    kill(server, SIGKILL);
    bh_testbed_wait(server);
    detach(0);
    BH_CHECK_DONE();
}

/* ---- frames ---- */

struct forgery {
    const char *name;
    uint32_t slot; /* whose MAC and address it says it has */
    bool mac, ip, ipv6;
    bool passes;
};

static uint16_t
checksum(const void *bytes, size_t length)
{
    const uint16_t *words = bytes;
    uint32_t sum = 0;

    for (size_t i = 0; i < length / 2; i++)
        sum += words[i];
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* A datagram to slot 1 out of slot 0's interface, with another's addresses. */
static int
send_frame(const void *self)
{
    const struct forgery *forgery = self;
    struct {
        struct ether_header ethernet;
        struct iphdr ip;
        struct udphdr udp;
        char byte;
    } __attribute__((packed)) frame = {
        .ip = { .version = 4,
                .ihl = 5,
                .ttl = 64,
                .protocol = IPPROTO_UDP,
                .tot_len = htons(29),
                .saddr = htonl(address(forgery->ip ? forgery->slot : 0)),
                .daddr = htonl(address(1)) },
        .udp = { .source = htons(9), .dest = htons(PORT), .len = htons(9) },
    };
    struct sockaddr_ll to = { .sll_family = AF_PACKET,
                              .sll_halen = 6,
                              .sll_ifindex = (int)if_nametoindex("eth0") };
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct iphdr ip = frame.ip;

    frame.ip.check = checksum(&ip, sizeof ip);
    frame.ethernet.ether_type = htons(forgery->ipv6 ? ETHERTYPE_IPV6 : ETHERTYPE_IP);
    bh_rules_mac(0, false, frame.ethernet.ether_dhost);
    bh_rules_mac(forgery->mac ? forgery->slot : 0, true, frame.ethernet.ether_shost);
    return sendto(fd, &frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to) == (ssize_t)sizeof frame
               ? 0
               : errno;
}

static void
test_forgeries(void **state)
{
    static const struct forgery cases[] = {
        { "an honest one", 0, false, false, false, true },
        { "another tenant's address", 2, false, true, false, false },
        { "a peer's address", 3, false, true, false, false },
        { "a peer's hardware address", 3, true, false, false, false },
        { "both of a peer", 3, true, true, false, false },
        { "IPv6", 0, false, false, true, false },
    };

    attach_tenant(0, 1);
    attach_tenant(1, 1);
    attach_tenant(2, 2);
    attach_tenant(3, 1);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_testbed_traffic traffic = { .to = address(1), .port = PORT, .udp = true };
        pid_t server = bh_testbed_listen(it.spaces[1], traffic);
        uint64_t before = counters(0).denied_packets;
        bool came;

        BH_CHECK_EQ(cases[i].name, bh_testbed_run(it.spaces[0], send_frame, &cases[i]), 0);
        bh_time_sleep(50 * BH_NS_PER_MS);
        came = waitpid(server, NULL, WNOHANG) == server;
        BH_CHECK_EQ(cases[i].name, came, cases[i].passes);
        if (!came) {
            kill(server, SIGKILL);
            bh_testbed_wait(server);
            /* no counter has frames that the kernel does not take for IP */
            BH_CHECK_EQ("counted", counters(0).denied_packets, before + !cases[i].ipv6);
        }
    }
    for (uint32_t slot = 0; slot < 4; slot++)
        detach(slot);
    BH_CHECK_DONE();
}

/* Hardware addresses are never asked for, so a false answer has no effect. */
static int
has_arp(const void *self)
{
    struct ifreq request = { .ifr_name = "eth0" };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    return ioctl(fd, SIOCGIFFLAGS, &request) != 0 || !(request.ifr_flags & IFF_NOARP);
}

static int
has_ipv6(const void *self)
{
    return bh_netns_setting("ipv6/conf/eth0/disable_ipv6") == '0';
}

static void
test_inside(void **state)
{
    char path[160];
    struct stat st;

    attach_tenant(0, 1);
    BH_CHECK_EQ("ARP", bh_testbed_run(it.spaces[0], has_arp, NULL), 0);
    BH_CHECK_EQ("IPv6", bh_testbed_run(it.spaces[0], has_ipv6, NULL), 0);
    snprintf(path, sizeof path, "%s/class/net/eth0", bh_testbed_place(&it.testbed, 0).sys);
    BH_CHECK("/sys shows its own", stat(path, &st) == 0);
    snprintf(path, sizeof path, "%s/class/net/up0", bh_testbed_place(&it.testbed, 0).sys);
    BH_CHECK("and not this machine's", stat(path, &st) != 0);
    detach(0);
    BH_CHECK_DONE();
}

/* ---- counting and capping ---- */

static void
test_counters(void **state)
{
    struct bh_testbed_traffic traffic = { .to = address(1), .port = PORT, .bytes = 1 << 20 };
    struct bh_network_counters from, to;

    attach_tenant(0, 1);
    attach_tenant(1, 1);
    BH_CHECK_EQ("sent", reach(0, it.spaces[1], traffic), 0);
    from = counters(0);
    to = counters(1);
    BH_CHECK_EQ("what one sent the other received", from.tx_bytes, to.rx_bytes);
    BH_CHECK_EQ("and the answers", from.rx_bytes, to.tx_bytes);
    BH_CHECK("all bytes", from.tx_bytes >= traffic.bytes);
    BH_CHECK("and little more", from.tx_bytes < traffic.bytes + traffic.bytes / 10);
    BH_CHECK_EQ("nothing denied", from.denied_packets + to.denied_packets, 0);
    detach(0);
    detach(1);
    BH_CHECK_DONE();
}

/* Of either direction; what may leave at once (64 KiB) is little beside what is sent. */
static void
test_cap(void **state)
{
    static const struct {
        const char *name;
        uint32_t from, to;
    } cases[] = { { "what it sends", 0, 1 }, { "what it receives", 1, 0 } };
    const uint64_t bps = 40000000, bytes = 3 << 20;

    attach(
        &(struct bh_network_job){ .slot = 0, .mode = BH_NETWORK_TENANT, .group = 1, .bandwidth_bps = bps });
    attach_tenant(1, 1);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_testbed_traffic traffic = { .to = address(cases[i].to), .port = PORT, .bytes = bytes };
        bh_ns began = bh_time_monotonic();
        uint64_t ms, wanted = bytes * 8000 / bps;

        BH_CHECK_EQ(cases[i].name, reach(cases[i].from, it.spaces[cases[i].to], traffic), 0);
        ms = (bh_time_monotonic() - began) / BH_NS_PER_MS;
        printf("# %s: %" PRIu64 " ms for %" PRIu64 " bytes, wanted %" PRIu64 "\n", cases[i].name, ms, bytes,
               wanted);
        BH_CHECK("not faster than 15 %", ms * 100 >= wanted * 85);
    }
    detach(0);
    detach(1);
    BH_CHECK_DONE();
}

/* ---- what is left ---- */

static void
count_link(const char *name, void *self)
{
    *(uint32_t *)self += strncmp(name, BH_NETWORK_PREFIX, 3) == 0;
}

static uint32_t
links_left(void)
{
    uint32_t count = 0;
    struct bh_err err;
    int links = -1;

    assert_int_equal(bh_netlink_open(NETLINK_ROUTE, &links, &err), BH_OK);
    assert_int_equal(bh_link_each(links, count_link, &count, &err), BH_OK);
    close(links);
    return count;
}

static uint64_t
table_left(void)
{
    struct bh_err err;
    int filters = -1;
    uint64_t table;

    assert_int_equal(bh_netlink_open(NETLINK_NETFILTER, &filters, &err), BH_OK);
    table = bh_filter_table(filters, BH_NETWORK_TABLE);
    close(filters);
    return table;
}

static uint32_t
mounts_left(void)
{
    FILE *file = fopen("/proc/self/mounts", "re");
    char line[1024];
    uint32_t count = 0;

    while (file && fgets(line, sizeof line, file))
        count += strstr(line, it.testbed.folder) != NULL;
    if (file)
        fclose(file);
    return count;
}

static void
check_nothing_left(uint32_t mounts)
{
    BH_CHECK_EQ("interfaces", links_left(), 0);
    BH_CHECK_EQ("table", table_left(), 0);
    BH_CHECK_EQ("mounts", mounts_left(), mounts);
    BH_CHECK_EQ("marker", access(it.marker, F_OK), -1);
    BH_CHECK_EQ("forwarding", bh_netns_setting("ipv4/conf/up0/forwarding"), '0');
}

static void
test_again_and_again(void **state)
{
    uint32_t mounts = mounts_left();
    bh_ns began = bh_time_monotonic(), attaching = 0;

    attach_tenant(0, 1); /* the table stands, as on a node with jobs */
    for (uint32_t times = 0; times < it.times; times++) {
        bh_ns before = bh_time_monotonic();

        if (times % 2)
            attach_tenant(1, 1);
        else
            attach_egress(1, "0.0.0.0/0 tcp 443");
        attaching += bh_time_monotonic() - before;
        detach(1);
    }
    detach(0);
    printf("# attach %" PRIu64 " us, attach and detach %" PRIu64 " us\n", attaching / it.times / 1000,
           (bh_time_monotonic() - began) / it.times / 1000);
    check_nothing_left(mounts);
    BH_CHECK_DONE();
}

/* A process is killed somewhere in the middle of attaching; the next one restores what there
 * should be. */
static int
attach_many(const void *self)
{
    struct bh_network network;
    struct bh_err err;

    if (bh_kernel_network_open(&it.options, &network, &err) != BH_OK)
        return 1;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct bh_network_job job = { .slot = slot,
                                      .group = 1,
                                      .mode = slot % 2 ? BH_NETWORK_TENANT : BH_NETWORK_EGRESS };
        struct bh_network_place place = bh_testbed_place(&it.testbed, slot);

        (void)!network.ops->attach(network.self, &job, &place, &err);
    }
    return 0;
}

static void
test_killed(void **state)
{
    uint32_t mounts = mounts_left();
    struct bh_err err = { 0 };

    for (uint32_t round = 0; round < it.times; round++) {
        pid_t pid = bh_testbed_start(it.testbed.home, attach_many, NULL);

        bh_time_sleep((3 + 84 * round / it.times) * BH_NS_PER_MS);
        kill(pid, SIGKILL);
        bh_testbed_wait(pid);
        BH_CHECK_EQ("restore", it.network.ops->restore(it.network.self, NULL, 0, &err), BH_OK);
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            struct bh_network_place place = bh_testbed_place(&it.testbed, slot);

            bh_netns_unmount(&place);
        }
        check_nothing_left(mounts);
    }
    BH_CHECK_DONE();
}

/* "nft flush ruleset", as a firewall's reload does it. */
static void
flush(void)
{
    static const char text[] = "flush ruleset\n";
    struct bh_filter_change change;
    struct bh_err err;

    assert_int_equal(bh_filter_begin("nft", text, strlen(text), &change, &err), BH_OK);
    assert_int_equal(bh_filter_end(&change, &err), BH_OK);
}

static void
test_flushed(void **state)
{
    struct bh_testbed_traffic traffic = { .to = address(2), .port = PORT };
    struct bh_err err;
    bool made = false;

    attach_tenant(0, 1);
    attach_tenant(1, 1);
    attach_tenant(2, 2);
    BH_CHECK_EQ("denied", reach(0, it.spaces[2], traffic), ECONNREFUSED);
    flush();
    BH_CHECK_EQ("seen", poll(&(struct pollfd){ it.network.ops->watch(it.network.self), POLLIN, 0 }, 1, 5000),
                1);
    BH_CHECK_EQ("repair", it.network.ops->repair(it.network.self, &made, &err), BH_OK);
    BH_CHECK("made", made);
    BH_CHECK_EQ("denied again", reach(0, it.spaces[2], traffic), ECONNREFUSED);
    traffic.to = address(1);
    BH_CHECK_EQ("a peer", reach(0, it.spaces[1], traffic), 0);
    flush();
    attach_tenant(3, 1); /* rules that others removed are all made anew with the next job */
    BH_CHECK_EQ("repaired by it", it.network.ops->repair(it.network.self, &made, &err), BH_OK);
    BH_CHECK("repaired by it", !made);
    for (uint32_t slot = 0; slot < 4; slot++)
        detach(slot);
    BH_CHECK_DONE();
}

static void
test_refused(void **state)
{
    static const struct {
        const char *name, *nft, *uplink, *msg, *hint;
    } cases[] = {
        { "no nft", "/nonexistent/nft", "up0", "/nonexistent/nft does not run: No such file or directory",
          "install nftables, or set nft in node.conf" },
        { "no interface", "nft", "up9", "there is no interface up9", "correct network_uplinks in node.conf" },
        { "no forwarding", "nft", "up0", "up0 does not forward packets",
          "sysctl -w net.ipv4.conf.up0.forwarding=1, or network_forwarding = 1 in node.conf" },
    };
    uint32_t mounts = mounts_left();

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        const struct bh_network_job job = { .slot = 0, .mode = BH_NETWORK_EGRESS };
        struct bh_network_place place = bh_testbed_place(&it.testbed, 0);
        struct bh_kernel_options options = it.options;
        struct bh_network network;
        struct bh_err err = { 0 };

        options.nft = cases[i].nft;
        options.uplinks = &cases[i].uplink;
        options.may_forward = false;
        assert_int_equal(bh_kernel_network_open(&options, &network, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, network.ops->check(network.self, job.mode, &err), BH_UNAVAILABLE);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].msg);
        BH_CHECK_STR(cases[i].name, err.hint, cases[i].hint);
        BH_CHECK_EQ(cases[i].name, network.ops->attach(network.self, &job, &place, &err), BH_UNAVAILABLE);
        network.ops->close(network.self);
        check_nothing_left(mounts);
    }
    BH_CHECK_DONE();
}

/* ---- all ---- */

static int
set_up(void **state)
{
    struct bh_err err;

    bh_testbed_enter(&it.testbed);
    for (int i = 0; i < SLOTS; i++)
        it.spaces[i] = -1;
    snprintf(it.marker, sizeof it.marker, "%s/forwarding", it.testbed.folder);
    it.options = (struct bh_kernel_options){ .nft = "nft",
                                             .marker = it.marker,
                                             .pool = pool,
                                             .uplinks = uplinks,
                                             .uplink_count = 1,
                                             .deny = management,
                                             .deny_count = 1,
                                             .may_forward = true };
    return bh_kernel_network_open(&it.options, &it.network, &err) != BH_OK;
}

static int
tear_down(void **state)
{
    it.network.ops->close(it.network.self);
    bh_testbed_leave(&it.testbed);
    return 0;
}

/* network_walls [TIMES] */
int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tenants),   cmocka_unit_test(test_egress),
        cmocka_unit_test(test_forgeries), cmocka_unit_test(test_inside),
        cmocka_unit_test(test_counters),  cmocka_unit_test(test_cap),
        cmocka_unit_test(test_inward),    cmocka_unit_test(test_again_and_again),
        cmocka_unit_test(test_killed),    cmocka_unit_test(test_flushed),
        cmocka_unit_test(test_refused),
    };

    struct bh_err err;

    cmocka_set_message_output(CM_OUTPUT_TAP);
    it.times = 6;
    if (argc > 1 && bh_parse_u32(argv[1], 1, 100000, &it.times, &err) != BH_OK)
        return 2;
    if (bh_testbed_obstacle()) {
        printf("1..0 # SKIP %s\n", bh_testbed_obstacle());
        return 0;
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
