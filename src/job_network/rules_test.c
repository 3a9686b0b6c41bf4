#include "job_network/rules.h"

#include "base/test.h"

static const char *const uplinks[] = { "up0" };
static const struct bh_cidr management[] = { { 0xac100000, 12 } };
static const struct bh_rules_site site = {
    .pool = { 0x0ad50000, 16 },
    .uplinks = uplinks,
    .uplink_count = 1,
    .deny = management,
    .deny_count = 1,
};

static char memory[16384];

static const char *
rules_test_text_of(void (*put)(struct bh_buf *out))
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    put(&out);
    assert_false(out.overflow);
    return bh_buf_text(&out);
}

static void
put_table(struct bh_buf *out)
{
    bh_rules_put_table(out, &site);
}

static void
put_guarded(struct bh_buf *out)
{
    struct bh_rules_site guarded = site;

    guarded.guard = true;
    bh_rules_put_table(out, &guarded);
}

static void
test_table(void **state)
{
    static const char *const wanted[] = {
        "add table inet bulkhead\ndelete table inet bulkhead\n", /* in the place of one */
        "169.254.0.0/16",
        "10.213.0.0/16",
        "172.16.0.0/12",
        "set uplinks { type ifname; elements = { \"up0\" }; }",
        "ip saddr 10.213.0.0/16 oifname != \"bhj*\" masquerade",
    };
    const char *text = rules_test_text_of(put_table);

    for (size_t i = 0; i < BH_COUNT(wanted); i++)
        BH_CHECK(wanted[i], strstr(text, wanted[i]) != NULL);
    BH_CHECK("no guard", strstr(text, "iifname @uplinks oifname") == NULL);
    text = rules_test_text_of(put_guarded);
    BH_CHECK("guard", strstr(text, "iifname @uplinks oifname != \"bhj*\" drop") != NULL);
    BH_CHECK_DONE();
}

static void
test_tenant_job(void **state)
{
    const struct bh_network_job job = { .slot = 300, .mode = BH_NETWORK_TENANT, .group = 7 };
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_rules_put_job(&out, &site, &job, (struct bh_rules_count){ 2, 120 });
    BH_CHECK_STR("put", bh_buf_text(&out),
                 "add counter inet bulkhead d300 { packets 2 bytes 120 }\n"
                 "add element inet bulkhead denied { \"bhj300\" : \"d300\" }\n"
                 "add element inet bulkhead pairs { 1650982919 . 1650982919 }\n"
                 "add element inet bulkhead own { \"bhj300\" . 02:62:68:00:01:2c . 10.213.1.46 }\n");
    bh_buf_clear(&out);
    bh_rules_drop_job(&out, &site, &job, false);
    BH_CHECK_STR("drop", bh_buf_text(&out),
                 "delete element inet bulkhead own "
                 "{ \"bhj300\" . 02:62:68:00:01:2c . 10.213.1.46 }\n"
                 "delete element inet bulkhead denied { \"bhj300\" }\n"
                 "delete counter inet bulkhead d300\n");
    bh_buf_clear(&out);
    bh_rules_drop_job(&out, &site, &job, true);
    BH_CHECK("drop the last", strstr(bh_buf_text(&out), "delete element inet bulkhead pairs"));
    BH_CHECK_DONE();
}

static void
test_egress_job(void **state)
{
    static const struct bh_net_rule allow[] = {
        { .to = { 0xcb007100, 24 }, .protocol = BH_NET_TCP, .first = 443, .last = 444 },
        { .to = { 0x0a000035, 32 }, .protocol = BH_NET_UDP, .first = 53, .last = 53 },
        { .to = { 0, 0 }, .protocol = BH_NET_PING, .last = 65535 },
    };
    static const struct bh_cidr deny[] = { { 0xcb007180, 25 } };
    const struct bh_network_job job = { .slot = 3,
                                        .mode = BH_NETWORK_EGRESS,
                                        .group = 9,
                                        .allow = allow,
                                        .allow_count = 3,
                                        .deny = deny,
                                        .deny_count = 1 };
    const char *text, *refusal;
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    bh_rules_put_job(&out, &site, &job, (struct bh_rules_count){ 0 });
    text = bh_buf_text(&out);
    refusal = strstr(text, "e3 ip daddr 203.0.113.128/25 return\n");
    BH_CHECK("denied first", refusal && refusal < strstr(text, "accept"));
    BH_CHECK("ports", strstr(text, "e3 ip daddr 203.0.113.0/24 tcp dport 443-444 accept\n"));
    BH_CHECK("udp", strstr(text, "e3 ip daddr 10.0.0.53/32 udp dport 53-53 accept\n"));
    BH_CHECK("ping", strstr(text, "e3 ip daddr 0.0.0.0/0 icmp type echo-request accept\n"));
    BH_CHECK("no pair", !strstr(text, "pairs")); /* its tenant's jobs do not reach it */
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_tenant_job),
    cmocka_unit_test(test_egress_job),
};
BH_TEST_MAIN(tests)
