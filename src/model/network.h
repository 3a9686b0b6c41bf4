#ifndef BH_MODEL_NETWORK_H
#define BH_MODEL_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* What network a job has, and the addresses it may reach: IPv4 prefixes, protocols and ports.
 * Names of hosts are not resolved anywhere. */

enum bh_network_mode {
    BH_NETWORK_NONE,   /* loopback only */
    BH_NETWORK_TENANT, /* the other jobs of its tenant on the same node */
    BH_NETWORK_EGRESS, /* outward through NAT, to what is allowed */
    BH_NETWORK_MODES
};

extern const char *const bh_network_mode_names[BH_NETWORK_MODES];

/* An IPv4 prefix; the address in host order, with no bit set behind the prefix. */
struct bh_cidr {
    uint32_t address, bits;
};

enum { BH_CIDR_TEXT = 20 };

/* "10.0.0.0/8", or an address alone.  BH_INVALID: no address, a bit behind the prefix. */
BH_MUST_USE bh_rc bh_cidr_parse(const char *text, struct bh_cidr *ret_cidr, struct bh_err *err);
void bh_cidr_format(struct bh_cidr cidr, char ret_text[BH_CIDR_TEXT]);

/* Whether every address of `below` is one of `above`. */
bool bh_cidr_covers(struct bh_cidr above, struct bh_cidr below);

enum bh_net_protocol {
    BH_NET_ANY, /* TCP, UDP and ping */
    BH_NET_TCP,
    BH_NET_UDP,
    BH_NET_PING,
};

/* One entry of an allow-list. */
struct bh_net_rule {
    struct bh_cidr to;
    enum bh_net_protocol protocol;
    uint32_t first, last; /* ports of TCP and UDP; 0 and 65535 are all */
};

enum { BH_NET_RULES_MAX = 64, BH_NET_RESOLVERS_MAX = 3 };

/* "10.0.0.0/8", "10.0.0.0/8 tcp", "10.1.2.3 udp 53", "0.0.0.0/0 tcp 8000-8080", "10.0.0.0/8 ping".
 *   BH_INVALID  not of this form, a port with something that has none
 *   BH_RANGE    a port of 0 or over 65535, an empty range */
BH_MUST_USE bh_rc bh_net_rule_parse(const char *text, struct bh_net_rule *ret_rule, struct bh_err *err);

/* Whether everything that `below` allows is allowed by `above`. */
bool bh_net_rule_covers(const struct bh_net_rule *above, const struct bh_net_rule *below);

/* "100Mbit", "2Gbit", "512kbit" (powers of 1000) in bits a second.
 *   BH_INVALID  not of this form
 *   BH_RANGE    under 64 kbit or over 1000 Gbit */
BH_MUST_USE bh_rc bh_bandwidth_parse(const char *text, uint64_t *ret_bps, struct bh_err *err);

#endif
