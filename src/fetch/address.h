#ifndef BH_FETCH_ADDRESS_H
#define BH_FETCH_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/socket.h>

#include "base/err.h"

/* Which addresses may be connected to.  A name that an attacker owns may resolve to
 * anything, so what counts is the address at the moment of connecting.  An IPv4 address
 * within an IPv6 one (mapped, NAT64, 6to4) is judged as the IPv4 address. */

/* Addresses with the same first bits; IPv4 as mapped into IPv6. */
struct bh_block {
    uint8_t bytes[16];
    uint32_t bits;
};

/* "10.1.0.0/16", "fd00::/8"; without a slash one address.  BH_INVALID: no such thing, or
 * with bits behind the slash's. */
BH_MUST_USE bh_rc bh_block_parse(const char *text, struct bh_block *ret_block, struct bh_err *err);

/* False for addresses of other families. */
bool bh_block_has(const struct bh_block *block, const struct sockaddr *address);

/* Is it an address of the public internet: none that is private, local to the link or the
 * machine, shared, reserved, of a group, for examples, nor of a cloud's metadata? */
bool bh_address_public(const struct sockaddr *address);

bool bh_address_loopback(const struct sockaddr *address);

#endif
