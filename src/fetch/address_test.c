#include "fetch/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/test.h"

static struct sockaddr_storage
address_of(const char *text)
{
    struct sockaddr_storage storage = { 0 };
    struct sockaddr_in in = { .sin_family = AF_INET };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        memcpy(&storage, &in, sizeof in);
    else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
        memcpy(&storage, &in6, sizeof in6);
    return storage;
}

static void
address_test_addresses(void **state)
{
    static const struct {
        const char *text;
        bool is_public, loopback;
    } rows[] = {
        { "8.8.8.8", true, false },
        { "100.63.255.255", true, false },
        { "100.64.0.0", false, false },
        { "100.128.0.0", true, false },
        { "172.15.255.255", true, false },
        { "172.16.0.0", false, false },
        { "172.31.255.255", false, false },
        { "172.32.0.0", true, false },
        { "10.1.2.3", false, false },
        { "192.168.0.1", false, false },
        { "169.254.169.254", false, false },
        { "127.0.0.1", false, true },
        { "127.255.255.255", false, true },
        { "0.0.0.0", false, false },
        { "224.0.0.1", false, false },
        { "255.255.255.255", false, false },
        { "198.19.255.255", false, false },
        { "2606:4700::1111", true, false },
        { "::", false, false },
        { "::1", false, true },
        { "::2", false, false },
        { "fe80::1", false, false },
        { "fec0::1", false, false },
        { "fd00:ec2::254", false, false },
        { "ff02::1", false, false },
        { "2001:db8::1", false, false },
        { "2001::1", false, false },
        { "::ffff:8.8.8.8", true, false },
        { "::ffff:10.0.0.1", false, false },
        { "::ffff:127.0.0.1", false, true },
        { "::127.0.0.1", false, false },
        { "64:ff9b::8.8.8.8", true, false },
        { "64:ff9b::169.254.169.254", false, false },
        { "2002:7f00:1::", false, true },
        { "2002:808:808::1", true, false },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct sockaddr_storage address = address_of(rows[i].text);
        const struct sockaddr *a = (const void *)&address;

        BH_CHECK_EQ(rows[i].text, bh_address_public(a), rows[i].is_public);
        BH_CHECK_EQ(rows[i].text, bh_address_loopback(a), rows[i].loopback);
    }
    BH_CHECK_DONE();
}

static void
other_families(void **state)
{
    struct sockaddr_storage address = { .ss_family = AF_UNIX };
    struct bh_block all;
    struct bh_err err;

    BH_CHECK_EQ("all", bh_block_parse("::/0", &all, &err), BH_OK);
    BH_CHECK("unix", !bh_address_public((const void *)&address));
    BH_CHECK("unix", !bh_block_has(&all, (const void *)&address));
    BH_CHECK_DONE();
}

static void
blocks(void **state)
{
    static const struct {
        const char *block, *inside, *outside; /* inside NULL: no block */
    } rows[] = {
        { "10.1.0.0/16", "10.1.255.255", "10.2.0.0" },
        { "10.1.2.3", "10.1.2.3", "10.1.2.2" },
        { "10.1.2.3/32", "::ffff:10.1.2.3", "10.1.2.4" },
        { "10.1.2.2/31", "10.1.2.3", "10.1.2.4" },
        { "0.0.0.0/0", "255.1.1.1", "fd00::1" },
        { "fd00::/8", "fdff::1", "fe00::1" },
        { "fd00::1", "fd00::1", "fd00::2" },
        { "::/0", "1.2.3.4", NULL },
        { "10.1.0.0/15", NULL, NULL },
        { "10.1.0.1/16", NULL, NULL },
        { "10.1.0.0/33", NULL, NULL },
        { "10.1.0.0/", NULL, NULL },
        { "10.1.0.0/016", NULL, NULL },
        { "10.1.0/16", NULL, NULL },
        { "10.1.0.0 /16", NULL, NULL },
        { "fd00::/129", NULL, NULL },
        { "gpu.example", NULL, NULL },
        { "/8", NULL, NULL },
        { "", NULL, NULL },
        { "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000/8", NULL, NULL },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_block block = { .bits = 999 };
        struct sockaddr_storage address;
        struct bh_err err;
        bh_rc rc = bh_block_parse(rows[i].block, &block, &err);

        BH_CHECK_EQ(rows[i].block, rc, rows[i].inside ? BH_OK : BH_INVALID);
        if (!rows[i].inside) {
            BH_CHECK_EQ(rows[i].block, block.bits, 999);
            continue;
        }
        address = address_of(rows[i].inside);
        BH_CHECK(rows[i].block, bh_block_has(&block, (const void *)&address));
        if (!rows[i].outside)
            continue;
        address = address_of(rows[i].outside);
        BH_CHECK(rows[i].block, !bh_block_has(&block, (const void *)&address));
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(address_test_addresses),
    cmocka_unit_test(other_families),
    cmocka_unit_test(blocks),
};

BH_TEST_MAIN(tests)
