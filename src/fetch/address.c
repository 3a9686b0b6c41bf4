#include "fetch/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/assert.h"
#include "base/num.h"

/* IANA's special-purpose registries (RFC 6890), and groups. */
static const char *const special[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
    "::/96",         "64:ff9b:1::/48",  "100::/64",       "2001::/23",      "2001:db8::/32",
    "3fff::/20",     "5f00::/16",       "fc00::/7",       "fe80::/10",      "fec0::/10",
    "ff00::/8",
};

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static void
address_map(const uint8_t ipv4[4], uint8_t ret_bytes[16])
{
    uint8_t kept[4];

    memcpy(kept, ipv4, sizeof kept);
    memcpy(ret_bytes, mapped, sizeof mapped);
    memcpy(ret_bytes + sizeof mapped, kept, sizeof kept);
}

/* NAT64 (RFC 6052) and 6to4 (RFC 3056) lead to the IPv4 address that they hold. */
static void
address_unwrap(uint8_t bytes[16])
{
    static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };

    if (memcmp(bytes, nat64, sizeof nat64) == 0)
        address_map(bytes + 12, bytes);
    else if (bytes[0] == 0x20 && bytes[1] == 0x02)
        address_map(bytes + 2, bytes);
}

static bool
read_address(const struct sockaddr *address, uint8_t ret_bytes[16])
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, address, sizeof in);
        address_map((const uint8_t *)&in.sin_addr, ret_bytes);
        return true;
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in;

        memcpy(&in, address, sizeof in);
        memcpy(ret_bytes, &in.sin6_addr, 16);
        address_unwrap(ret_bytes);
        return true;
    }
    return false;
}

static bool
address_bits_equal(const uint8_t a[16], const uint8_t b[16], uint32_t bits)
{
    uint8_t mask = (uint8_t)(0xff00 >> (bits % 8));

    return memcmp(a, b, bits / 8) == 0 && (bits % 8 == 0 || ((a[bits / 8] ^ b[bits / 8]) & mask) == 0);
}

static bool
address_read_bits(const char *text, uint32_t most, uint32_t *ret_bits)
{
    struct bh_err err;

    if (text)
        return bh_parse_u32(text, 0, most, ret_bits, &err) == BH_OK;
    *ret_bits = most;
    return true;
}

static bool
address_rest_is_zero(const struct bh_block *block)
{
    for (uint32_t bit = block->bits; bit < 128; bit++)
        if (block->bytes[bit / 8] & (0x80 >> (bit % 8)))
            return false;
    return true;
}

static bool
address_read_block(const char *text, struct bh_block *block)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    const char *bits = slash ? slash + 1 : NULL;
    uint8_t ipv4[4];

    if (length >= sizeof address)
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    if (inet_pton(AF_INET, address, ipv4) == 1) {
        address_map(ipv4, block->bytes);
        if (!address_read_bits(bits, 32, &block->bits))
            return false;
        block->bits += 96;
    } else if (inet_pton(AF_INET6, address, block->bytes) != 1
               || !address_read_bits(bits, 128, &block->bits)) {
        return false;
    }
    return address_rest_is_zero(block);
}

bh_rc
bh_block_parse(const char *text, struct bh_block *ret_block, struct bh_err *err)
{
    struct bh_block block;

    if (!address_read_block(text, &block))
        return bh_err_set(err, BH_INVALID, "\"%.60s\" is not a block of addresses", text);
    *ret_block = block;
    return BH_OK;
}

bool
bh_block_has(const struct bh_block *block, const struct sockaddr *address)
{
    uint8_t bytes[16];

    return read_address(address, bytes) && address_bits_equal(block->bytes, bytes, block->bits);
}

static bool
address_in_block(const char *text, const struct sockaddr *address)
{
    struct bh_block block;

    BH_ASSERT(address_read_block(text, &block));
    return bh_block_has(&block, address);
}

bool
bh_address_public(const struct sockaddr *address)
{
    uint8_t bytes[16];

    if (!read_address(address, bytes))
        return false;
    for (size_t i = 0; i < BH_COUNT(special); i++)
        if (address_in_block(special[i], address))
            return false;
    return true;
}

bool
bh_address_loopback(const struct sockaddr *address)
{
    return address_in_block("127.0.0.0/8", address) || address_in_block("::1", address);
}
