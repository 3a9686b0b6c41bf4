#include "node/unpack/relay.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/test.h"

static void
read_address(const char *text, struct sockaddr_storage *ret_address)
{
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        memcpy(ret_address, &in, sizeof in);
    else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
        memcpy(ret_address, &in6, sizeof in6);
    else
        fail_msg("%s is no address", text);
}

static void
test_may_reach(void **state)
{
    static const char *const deny[] = { "10.66.0.0/16", "2001:4860::/32" };
    static const struct {
        const char *address;
        bool listed, plain; /* by a name; by an address of the loopback */
    } cases[] = {
        { "1.1.1.1", true, false },
        { "10.1.2.3", true, false }, /* a registry of one's own */
        { "192.168.1.1", true, false },
        { "10.66.1.2", false, false },
        { "127.0.0.1", false, true },
        { "127.9.9.9", false, true },
        { "0.0.0.0", false, false },
        { "169.254.169.254", false, false },
        { "169.254.1.1", false, false },
        { "168.63.129.16", false, false },
        { "168.63.129.17", true, false },
        { "100.100.100.200", false, false },
        { "192.0.0.192", false, false },
        { "224.0.0.1", false, false },
        { "255.255.255.255", false, false },
        { "2606:4700::1", true, false },
        { "2001:4860::1", false, false },
        { "fd12::1", true, false },
        { "fd00:ec2::254", false, false },
        { "::1", false, true },
        { "::", false, false },
        { "fe80::1", false, false },
        { "ff02::1", false, false },
        { "::ffff:127.0.0.1", false, true },
        { "::ffff:169.254.169.254", false, false },
        { "::ffff:10.66.1.2", false, false },
        { "64:ff9b::169.254.169.254", false, false },
        { "2002:7f00:1::", false, true }, /* 6to4 of 127.0.0.1 */
    };
    const struct bh_relay relay = { .deny = deny, .deny_count = BH_COUNT(deny) };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct sockaddr_storage address = { 0 };

        read_address(cases[i].address, &address);
        BH_CHECK_EQ(cases[i].address, bh_relay_may_reach(&relay, false, (const struct sockaddr *)&address),
                    cases[i].listed);
        BH_CHECK_EQ(cases[i].address, bh_relay_may_reach(&relay, true, (const struct sockaddr *)&address),
                    cases[i].plain);
    }
    BH_CHECK_DONE();
}

/* What cannot be read denies all: it was meant to deny something. */
static void
test_deny_that_cannot_be_read(void **state)
{
    static const char *const deny[] = { "the management network" };
    const struct bh_relay relay = { .deny = deny, .deny_count = 1 };
    struct sockaddr_storage address = { 0 };

    read_address("1.1.1.1", &address);
    BH_CHECK("denied", !bh_relay_may_reach(&relay, false, (const struct sockaddr *)&address));
    BH_CHECK_DONE();
}

static void
test_addresses_in_the_cell(void **state)
{
    static const struct bh_registry hosts[] = {
        { .host = "nvcr.io", .port = 443 },
        { .host = "127.0.0.1", .port = 5000, .plain = true },
        { .host = "nvcr.io", .port = 5000 },
        { .host = "auth.docker.io", .port = 443 },
    };
    static const char *const wanted[] = { "127.1.0.1", "127.0.0.1", "127.1.0.1", "127.1.0.4" };
    const struct bh_relay relay = { .hosts = hosts, .host_count = BH_COUNT(hosts) };

    for (uint32_t i = 0; i < BH_COUNT(hosts); i++) {
        char text[16];

        bh_relay_address(&relay, i, text);
        BH_CHECK_STR(hosts[i].host, text, wanted[i]);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_may_reach),
    cmocka_unit_test(test_deny_that_cannot_be_read),
    cmocka_unit_test(test_addresses_in_the_cell),
};
BH_TEST_MAIN(tests)
