#include "node/sandbox/network_conf.h"

#include "base/test.h"

static void
test_conf(void **state)
{
    static const struct {
        const char *name;
        struct bh_conf conf;
        bh_rc rc;
        const char *msg;
    } cases[] = {
#define CONF(pool, most, ...) { .network_pool = pool, .bandwidth_max = most, __VA_ARGS__ }
        { "nothing", CONF("", "", .write_uid_min = 0), BH_OK, "" },
        { "both", CONF("10.213.0.0/16", "", .networks = { { "tenant", "egress" }, 2 }), BH_OK, "" },
        { "a word", CONF("10.213.0.0/16", "", .networks = { { "host" }, 1 }), BH_INVALID,
          "networks: \"host\" is not known" },
        { "no pool", CONF("", "", .networks = { { "tenant" }, 1 }), BH_INVALID,
          "networks: jobs have no addresses" },
        { "small pool", CONF("10.213.0.0/30", "", .write_uid_min = 0), BH_RANGE,
          "network_pool: 10.213.0.0/30 is not within /8 and /29" },
        { "no prefix", CONF("everything", "", .write_uid_min = 0), BH_INVALID,
          "network_pool: \"everything\" is not an IPv4 prefix" },
        { "deny", CONF("", "", .egress_deny = { { "172.16.0.0/12", "x" }, 2 }), BH_INVALID,
          "egress_deny: \"x\" is not an IPv4 prefix" },
        { "uplink", CONF("", "", .network_uplinks = { { "eth0\" }" }, 1 }), BH_INVALID,
          "network_uplinks: \"eth0\" }\" is not an interface" },
        { "bandwidth", CONF("", "fast", .write_uid_min = 0), BH_INVALID,
          "bandwidth_max: \"fast\" is not a bandwidth" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_network_conf conf;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name, bh_network_conf_read(&cases[i].conf, &conf, &err), cases[i].rc);
        BH_CHECK_STR(cases[i].name, err.msg, cases[i].msg);
    }
    BH_CHECK_DONE();
}

static void
test_check(void **state)
{
    static const char *dns = "10.0.0.53", *other = "10.0.0.54";
    static const char *rule = "10.0.0.53 udp 53";
    static const struct {
        const char *name;
        struct bh_msg_network asked;
        bh_rc rc;
    } cases[] = {
        { "offered", { .mode = BH_NETWORK_EGRESS, .allow = { &rule, 1 } }, BH_OK },
        { "resolver", { .mode = BH_NETWORK_EGRESS, .allow = { &rule, 1 }, .resolvers = { &dns, 1 } }, BH_OK },
        { "another resolver",
          { .mode = BH_NETWORK_EGRESS, .allow = { &rule, 1 }, .resolvers = { &other, 1 } },
          BH_DENIED },
        { "not offered", { .mode = BH_NETWORK_TENANT }, BH_DENIED },
        { "none", { .mode = BH_NETWORK_NONE }, BH_INVALID },
        { "unknown", { .mode = BH_NETWORK_MODES }, BH_INVALID },
    };
    const struct bh_network_conf conf = { .offered = { [BH_NETWORK_EGRESS] = true } };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_network_lists lists = { .allow_count = 0 };
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].name,
                    bh_network_lists_read(&cases[i].asked.allow, &cases[i].asked.deny, &lists, &err), BH_OK);
        BH_CHECK_EQ(cases[i].name, bh_network_conf_check(&conf, &cases[i].asked, &lists, &err), cases[i].rc);
    }
    BH_CHECK_DONE();
}

static void
test_bandwidth(void **state)
{
    static const struct {
        const char *name;
        uint64_t most, asked, given;
    } cases[] = {
        { "neither", 0, 0, 0 }, { "asked", 0, 5, 5 }, { "not asked", 9, 0, 9 },
        { "less", 9, 5, 5 },    { "more", 9, 10, 9 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name,
                    bh_network_conf_bandwidth(&(struct bh_network_conf){ .bandwidth_max = cases[i].most },
                                              cases[i].asked),
                    cases[i].given);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_conf),
    cmocka_unit_test(test_check),
    cmocka_unit_test(test_bandwidth),
};
BH_TEST_MAIN(tests)
