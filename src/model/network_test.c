#include "model/network.h"

#include "base/test.h"

static void
test_cidr(void **state)
{
    static const struct {
        const char *text, *again;
        bh_rc rc;
    } cases[] = {
        { "10.0.0.0/8", "10.0.0.0/8", BH_OK },
        { "0.0.0.0/0", "0.0.0.0/0", BH_OK },
        { "255.255.255.255", "255.255.255.255/32", BH_OK },
        { "192.168.1.128/25", "192.168.1.128/25", BH_OK },
        { "192.168.1.129/25", NULL, BH_INVALID }, /* a bit behind the prefix */
        { "10.0.0/8", NULL, BH_INVALID },
        { "10.0.0.0/33", NULL, BH_INVALID },
        { "10.0.0.256", NULL, BH_INVALID },
        { "010.0.0.0/8", NULL, BH_INVALID }, /* octal to some */
        { "10.0.0.0/", NULL, BH_INVALID },
        { "10.0.0.0/8 ", NULL, BH_INVALID },
        { "::1", NULL, BH_INVALID },
        { "example.org", NULL, BH_INVALID },
        { "", NULL, BH_INVALID },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { 0 };
        struct bh_cidr cidr;
        char text[BH_CIDR_TEXT];

        BH_CHECK_EQ(cases[i].text, bh_cidr_parse(cases[i].text, &cidr, &err), cases[i].rc);
        if (cases[i].rc != BH_OK)
            continue;
        bh_cidr_format(cidr, text);
        BH_CHECK_STR(cases[i].text, text, cases[i].again);
    }
    BH_CHECK_DONE();
}

static void
test_covers(void **state)
{
    static const struct {
        const char *above, *below;
        bool covers;
    } cases[] = {
        { "10.0.0.0/8", "10.1.0.0/16", true },  { "10.1.0.0/16", "10.0.0.0/8", false },
        { "10.0.0.0/16", "10.0.0.0/8", false }, { "0.0.0.0/0", "8.8.8.8", true },
        { "8.8.8.8", "8.8.8.8", true },         { "8.8.8.8", "8.8.8.9", false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { 0 };
        struct bh_cidr above, below;

        BH_CHECK_EQ(cases[i].above, bh_cidr_parse(cases[i].above, &above, &err), BH_OK);
        BH_CHECK_EQ(cases[i].below, bh_cidr_parse(cases[i].below, &below, &err), BH_OK);
        BH_CHECK_EQ(cases[i].below, bh_cidr_covers(above, below), cases[i].covers);
    }
    BH_CHECK_DONE();
}

static void
test_rule(void **state)
{
    static const struct {
        const char *text;
        bh_rc rc;
        enum bh_net_protocol protocol;
        uint32_t first, last;
    } cases[] = {
        { "10.0.0.0/8", BH_OK, BH_NET_ANY, 0, 65535 },
        { "10.0.0.0/8 tcp", BH_OK, BH_NET_TCP, 0, 65535 },
        { "10.0.0.53 udp 53", BH_OK, BH_NET_UDP, 53, 53 },
        { "0.0.0.0/0 tcp 8000-8080", BH_OK, BH_NET_TCP, 8000, 8080 },
        { "10.0.0.0/8 ping", BH_OK, BH_NET_PING, 0, 65535 },
        { "10.0.0.0/8 ping 1", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 443", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 sctp 1", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 tcp 443 drop", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 tcp  443", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 ", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 tcp 0", BH_RANGE, 0, 0, 0 },
        { "10.0.0.0/8 tcp 65536", BH_RANGE, 0, 0, 0 },
        { "10.0.0.0/8 tcp 90-80", BH_RANGE, 0, 0, 0 },
        { "10.0.0.0/8 tcp 443\nquit", BH_INVALID, 0, 0, 0 },
        { "10.0.0.0/8 tcp }", BH_INVALID, 0, 0, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_net_rule rule = { 0 };
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].text, bh_net_rule_parse(cases[i].text, &rule, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].text, rule.protocol, cases[i].protocol);
        BH_CHECK_EQ(cases[i].text, rule.first, cases[i].first);
        BH_CHECK_EQ(cases[i].text, rule.last, cases[i].last);
    }
    BH_CHECK_DONE();
}

static void
test_rule_covers(void **state)
{
    static const struct {
        const char *above, *below;
        bool covers;
    } cases[] = {
        { "10.0.0.0/8", "10.1.0.0/16 tcp 443", true },
        { "10.0.0.0/8 tcp", "10.1.0.0/16 tcp 443", true },
        { "10.0.0.0/8 tcp 440-450", "10.1.0.0/16 tcp 443", true },
        { "10.0.0.0/8 tcp 443", "10.1.0.0/16 tcp", false },
        { "10.0.0.0/8 tcp 443", "10.1.0.0/16 tcp 443-444", false },
        { "10.0.0.0/8 tcp", "10.1.0.0/16 udp 443", false },
        { "10.0.0.0/8 tcp", "10.1.0.0/16", false },
        { "10.0.0.0/8 ping", "10.1.0.0/16 ping", true },
        { "10.1.0.0/16", "10.0.0.0/8", false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_net_rule above, below;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(cases[i].above, bh_net_rule_parse(cases[i].above, &above, &err), BH_OK);
        BH_CHECK_EQ(cases[i].below, bh_net_rule_parse(cases[i].below, &below, &err), BH_OK);
        BH_CHECK_EQ(cases[i].below, bh_net_rule_covers(&above, &below), cases[i].covers);
    }
    BH_CHECK_DONE();
}

static void
test_bandwidth(void **state)
{
    static const struct {
        const char *text;
        bh_rc rc;
        uint64_t bps;
    } cases[] = {
        { "100Mbit", BH_OK, 100000000 },
        { "64kbit", BH_OK, 64000 },
        { "1000Gbit", BH_OK, UINT64_C(1000000000000) },
        { "63kbit", BH_RANGE, 0 },
        { "1001Gbit", BH_RANGE, 0 },
        { "99999999999999999999Gbit", BH_RANGE, 0 },
        { "100", BH_INVALID, 0 },
        { "100M", BH_INVALID, 0 },
        { "1.5Gbit", BH_INVALID, 0 },
        { "Mbit", BH_INVALID, 0 },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_err err = { 0 };
        uint64_t bps = 0;

        BH_CHECK_EQ(cases[i].text, bh_bandwidth_parse(cases[i].text, &bps, &err), cases[i].rc);
        BH_CHECK_EQ(cases[i].text, bps, cases[i].bps);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_cidr),        cmocka_unit_test(test_covers),    cmocka_unit_test(test_rule),
    cmocka_unit_test(test_rule_covers), cmocka_unit_test(test_bandwidth),
};
BH_TEST_MAIN(tests)
