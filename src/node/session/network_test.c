/* Jobs with networks: bulkhead-node, crun and the kernel together, in a world of the test's own. */

#include "node/sandbox/network.h"

#include <linux/netlink.h>
#include <signal.h>
#include <unistd.h>

#include "base/test.h"
#include "base/time.h"
#include "job_network/filter.h"
#include "job_network/link.h"
#include "job_network/netlink.h"
#include "job_network/rules.h"
#include "job_network/testbed_test.h"
#include "node/session/node_fixture_test.h"

#define OFFERS                                                                                               \
    "networks = tenant\nnetworks = egress\nnetwork_pool = 10.213.0.0/16\n"                                   \
    "network_uplinks = up0\nnetwork_forwarding = 1\n"
#define LISTEN                                                                                               \
    "exec perl -e 'use IO::Socket::INET; $| = 1; $s = IO::Socket::INET->new(Listen => 1, "                   \
    "LocalPort => 7000) or die $!; print \"listening\\n\"; $c = $s->accept; print <$c>;'"

static struct bh_testbed testbed;

static void
use_conf(const char *more)
{
    bh_test_node_end(&the_node, SIGTERM);
    bh_test_write_conf(&the_node, more);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
}

/* ---- jobs ---- */

static struct bh_msg_outcome
network_test_start(uint64_t lease, const char *tenant, const char *script, struct bh_msg_network network)
{
    const struct test_job job = { .lease = lease, .script = script };
    struct bh_msg_start message;
    const char *args[3];

    message = bh_test_start_message(&job, args, NULL);
    snprintf(message.tenant, sizeof message.tenant, "%s", tenant);
    message.network = network;
    message.order = ++the_node.order;
    bh_test_send(BH_MSG_START, &message);
    return bh_test_receive(BH_MSG_OUTCOME, message.order).outcome;
}

static void
start_well(uint64_t lease, const char *tenant, const char *script, struct bh_msg_network network)
{
    struct bh_msg_outcome outcome = network_test_start(lease, tenant, script, network);

    if (outcome.outcome != 0)
        fail_msg("start %u: %s", (unsigned)lease, outcome.why);
}

/* Run it to its end: its exit status. */
static int
network_test_run(uint64_t lease, const char *tenant, const char *script, struct bh_msg_network network)
{
    start_well(lease, tenant, script, network);
    return bh_test_receive(BH_MSG_ENDED, lease).ended.exit_status;
}

static const struct bh_msg_network tenant_network = { .mode = BH_NETWORK_TENANT };

static void
network_test_stop(uint64_t lease)
{
    struct bh_msg_stop message = { .lease = lease };

    BH_CHECK_EQ("stop", bh_test_order(BH_MSG_STOP, &message).outcome, 0);
    bh_test_receive(BH_MSG_ENDED, lease);
}

/* ---- what is left ---- */

static void
count_link(const char *name, void *self)
{
    *(uint32_t *)self += strncmp(name, BH_NETWORK_PREFIX, 3) == 0;
}

static uint32_t
count_links(int links)
{
    uint32_t count = 0;
    struct bh_err err;

    assert_int_equal(bh_link_each(links, count_link, &count, &err), BH_OK);
    return count;
}

/* The kernel takes a namespace's interfaces away a little after its last process. */
static void
check_nothing_left(void)
{
    int links = -1, filters = -1;
    struct bh_err err;

    assert_int_equal(bh_netlink_open(NETLINK_ROUTE, &links, &err), BH_OK);
    assert_int_equal(bh_netlink_open(NETLINK_NETFILTER, &filters, &err), BH_OK);
    (void)bh_test_await(count_links(links) == 0 && bh_filter_table(filters, BH_NETWORK_TABLE) == 0);
    BH_CHECK_EQ("interfaces", count_links(links), 0);
    BH_CHECK_EQ("table", bh_filter_table(filters, BH_NETWORK_TABLE), 0);
    close(links);
    close(filters);
}

/* ---- tests ---- */

static void
test_peers(void **state)
{
    struct bh_msg_network named = { .mode = BH_NETWORK_TENANT, .name = "server" };

    use_conf(OFFERS);
    start_well(1, "org/dep", LISTEN, named);
    assert_true(bh_test_wait_for_log(1, "listening"));
    BH_CHECK("another tenant",
             network_test_run(2, "org/other", "bash -c ': > /dev/tcp/10.213.0.2/7000'", tenant_network) != 0);
    BH_CHECK("names of others",
             network_test_run(3, "org/other", "grep -q server /etc/hosts", tenant_network) != 0);
    BH_CHECK_EQ(
        "a peer, by name",
        network_test_run(4, "org/dep", "bash -c 'echo hello > /dev/tcp/server.org.dep/7000'", tenant_network),
        0);
    BH_CHECK_EQ("it ends", bh_test_receive(BH_MSG_ENDED, 1).ended.exit_status, 0);
    BH_CHECK("it heard", strstr(bh_test_log(1), "hello") != NULL);
    check_nothing_left();
    BH_CHECK_DONE();
}

/* A job learns of a peer that comes after it, and that it has gone. */
static void
test_names_follow(void **state)
{
    use_conf(OFFERS);
    start_well(1, "org/dep",
               "cat /etc/hosts; until grep -q job-1002 /etc/hosts; do sleep 0.02; done;"
               "echo came; while grep -q job-1002 /etc/hosts; do sleep 0.02; done;"
               "echo went",
               tenant_network);
    assert_true(bh_test_wait_for_log(1, "job-1001.org.dep"));
    start_well(2, "org/dep", "sleep 60", tenant_network);
    BH_CHECK("came", bh_test_wait_for_log(1, "came"));
    network_test_stop(2);
    BH_CHECK("went", bh_test_wait_for_log(1, "went"));
    bh_test_receive(BH_MSG_ENDED, 1);
    check_nothing_left();
    BH_CHECK_DONE();
}

static void
test_egress(void **state)
{
    static const char *allow[] = { "203.0.113.1 tcp 80", "203.0.113.1 udp 53" };
    static const char *resolver = "203.0.113.1";
    const struct bh_msg_network network = { .mode = BH_NETWORK_EGRESS,
                                            .allow = { allow, 2 },
                                            .resolvers = { &resolver, 1 } };
    pid_t server =
        bh_testbed_listen(testbed.outside, (struct bh_testbed_traffic){ .to = TESTBED_OUTSIDE, .port = 80 });

    use_conf(OFFERS);
    BH_CHECK_EQ("allowed",
                network_test_run(1, "org/dep", "bash -c 'echo hello > /dev/tcp/203.0.113.1/80'", network), 0);
    BH_CHECK_EQ("it heard", bh_testbed_wait(server), 0);
    BH_CHECK("not allowed",
             network_test_run(2, "org/dep", "bash -c ': > /dev/tcp/203.0.113.1/81'", network) != 0);
    BH_CHECK_EQ("resolver",
                network_test_run(3, "org/dep", "cat /etc/resolv.conf /etc/nsswitch.conf", network), 0);
    BH_CHECK("resolver", strstr(bh_test_log(3), "nameserver 203.0.113.1\n"));
    BH_CHECK("asked", strstr(bh_test_log(3), "hosts: files dns\n"));
    check_nothing_left();
    BH_CHECK_DONE();
}

/* No process in the job can change its network, and its /sys is not this machine's. */
static void
test_inside(void **state)
{
    static const struct {
        const char *name, *script;
        bool works;
    } cases[] = {
        { "its interface", "test -d /sys/class/net/eth0", true },
        { "this machine's", "test -d /sys/class/net/up0", false },
        { "/sys read-only", "echo 1 > /sys/class/net/eth0/tx_queue_len", false },
        { "forwarding", "echo 1 > /proc/sys/net/ipv4/ip_forward", false },
        { "a raw socket", "perl -MSocket -e 'socket(S, PF_INET, SOCK_RAW, 1) or exit 1'", false },
        { "an address", "ip address add 10.213.0.9/32 dev eth0", false },
        { "loopback", "bash -c ': > /dev/tcp/127.0.0.1/1' 2>&1 | grep -q refused", true },
        { "no IPv6", "test -s /proc/net/if_inet6", false },
    };

    use_conf(OFFERS);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, network_test_run(i + 1, "org/dep", cases[i].script, tenant_network) == 0,
                    cases[i].works);
    check_nothing_left();
    BH_CHECK_DONE();
}

static void
test_refused(void **state)
{
    static const char *bad = "10.0.0.0/8 tcp } ; flush ruleset";
    static const struct {
        const char *name, *conf;
        struct bh_msg_network network;
        bh_rc rc;
        const char *why;
    } cases[] = {
        { "not offered",
          "",
          { .mode = BH_NETWORK_TENANT },
          BH_DENIED,
          "network: this node does not offer tenant; the administrator can add it to networks in "
          "node.conf" },
        { "no nft",
          OFFERS "nft = /nonexistent\n",
          { .mode = BH_NETWORK_TENANT },
          BH_UNAVAILABLE,
          "network: /nonexistent does not run: No such file or directory; install nftables, or set "
          "nft in node.conf" },
        { "no rule", OFFERS, { .mode = BH_NETWORK_EGRESS, .allow = { &bad, 1 } }, BH_INVALID, NULL },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_msg_outcome outcome;

        use_conf(cases[i].conf);
        outcome = network_test_start(i + 1, "org/dep", "true", cases[i].network);
        BH_CHECK_EQ(cases[i].name, outcome.rc, cases[i].rc);
        if (cases[i].why)
            BH_CHECK_STR(cases[i].name, outcome.why, cases[i].why);
        check_nothing_left();
    }
    BH_CHECK_DONE();
}

static void
test_traffic(void **state)
{
    struct bh_msg_traffic traffic;
    const struct bh_msg_traffic_item *item;

    use_conf(OFFERS "sample_interval_ms = 100\n");
    start_well(1, "org/dep", LISTEN, tenant_network);
    assert_true(bh_test_wait_for_log(1, "listening"));
    start_well(2, "org/dep", "head -c 100000 /dev/zero | bash -c 'cat > /dev/tcp/job-1001/7000'",
               tenant_network);
    do {
        traffic = bh_test_receive(BH_MSG_TRAFFIC, 0).traffic;
        item = traffic.items.items;
    } while (!item->final || item->lease != 2);
    BH_CHECK("sent", item->tx_bytes >= 100000 && item->tx_bytes < 120000);
    BH_CHECK("answers", item->rx_bytes > 0 && item->rx_bytes < 20000);
    bh_test_receive(BH_MSG_ENDED, 1);
    BH_CHECK_DONE();
}

/* A job's end reports what its network carried, and the next node reports it again. */
static void
test_carried(void **state)
{
    const struct bh_msg_network network = tenant_network;
    struct bh_msg_carried sent, again;

    use_conf(OFFERS);
    start_well(1, "org/dep", LISTEN, network);
    assert_true(bh_test_wait_for_log(1, "listening"));
    start_well(2, "org/dep", "head -c 50000 /dev/zero | bash -c 'cat > /dev/tcp/job-1001/7000'", network);
    sent = bh_test_receive(BH_MSG_ENDED, 2).ended.carried;
    BH_CHECK("counted", sent.counted && sent.tx_bytes >= 50000 && sent.rx_packets > 0);
    bh_test_receive(BH_MSG_ENDED, 1);
    network_test_run(3, "org/dep", "true", (struct bh_msg_network){ .mode = BH_NETWORK_NONE });
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    again = bh_test_receive(BH_MSG_ENDED, 2).ended.carried;
    BH_CHECK("told again",
             again.counted && again.tx_bytes == sent.tx_bytes && again.rx_packets == sent.rx_packets);
    BH_CHECK("none without a network", !bh_test_receive(BH_MSG_ENDED, 3).ended.carried.counted);
    check_nothing_left();
    BH_CHECK_DONE();
}

/* The next node knows the network of a job that runs on, and ends it with the job. */
static void
test_node_killed(void **state)
{
    use_conf(OFFERS);
    start_well(1, "org/dep", LISTEN, tenant_network);
    assert_true(bh_test_wait_for_log(1, "listening"));
    bh_test_node_end(&the_node, SIGKILL);
    bh_test_node_start(&the_node);
    bh_test_hello(&the_node);
    BH_CHECK("a stranger",
             network_test_run(2, "org/other", "bash -c ': > /dev/tcp/10.213.0.2/7000'", tenant_network) != 0);
    BH_CHECK_EQ(
        "a peer",
        network_test_run(3, "org/dep", "bash -c 'echo hello > /dev/tcp/job-1001/7000'", tenant_network), 0);
    bh_test_receive(BH_MSG_ENDED, 1);
    check_nothing_left();
    BH_CHECK_DONE();
}

/* Another program reloads the machine's firewall. */
static void
test_flushed(void **state)
{
    struct bh_filter_change change;
    struct bh_err err;

    use_conf(OFFERS "sample_interval_ms = 3600000\n");
    start_well(1, "org/dep", LISTEN, tenant_network);
    assert_true(bh_test_wait_for_log(1, "listening"));
    assert_int_equal(bh_filter_begin("/usr/sbin/nft", "flush ruleset\n", 14, &change, &err), BH_OK);
    assert_int_equal(bh_filter_end(&change, &err), BH_OK);
    BH_CHECK("made again", bh_test_await(strstr(bh_test_read("node.log"), "it is restored")));
    BH_CHECK("another tenant",
             network_test_run(2, "org/other", "bash -c ': > /dev/tcp/10.213.0.2/7000'", tenant_network) != 0);
    network_test_stop(1);
    check_nothing_left();
    BH_CHECK_DONE();
}

/* Wherever in a start it is killed, the next one leaves nothing of what did not come to life. */
static void
test_killed_anywhere(void **state)
{
    struct bh_msg_retain nothing = { 0 };

    use_conf(OFFERS);
    for (uint64_t round = 1; round <= 6; round++) {
        const struct test_job job = { .lease = round, .script = "sleep 60" };
        struct bh_msg_start message;
        const char *args[3];

        message = bh_test_start_message(&job, args, NULL);
        message.network = tenant_network;
        message.order = ++the_node.order;
        bh_test_send(BH_MSG_START, &message);
        bh_time_sleep((2 + 6 * (round - 1)) * BH_NS_PER_MS);
        bh_test_node_end(&the_node, SIGKILL);
        bh_test_node_start(&the_node);
        bh_test_hello(&the_node);
        bh_test_send(BH_MSG_RETAIN, &nothing);
        bh_test_receive_within(BH_MSG_ENDED, round, 300, &(struct test_message){ 0 });
        check_nothing_left();
    }
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BH_NODE_TEST(test_peers),       BH_NODE_TEST(test_names_follow),    BH_NODE_TEST(test_egress),
        BH_NODE_TEST(test_inside),      BH_NODE_TEST(test_refused),         BH_NODE_TEST(test_traffic),
        BH_NODE_TEST(test_node_killed), BH_NODE_TEST(test_killed_anywhere), BH_NODE_TEST(test_flushed),
        BH_NODE_TEST(test_carried),
    };
    int status;

    if (bh_testbed_obstacle()) {
        printf("1..0 # SKIP %s\n", bh_testbed_obstacle());
        return 0;
    }
    bh_testbed_enter(&testbed);
    status = bh_test_main(argc, argv, tests, BH_COUNT(tests));
    bh_testbed_leave(&testbed);
    return status;
}
