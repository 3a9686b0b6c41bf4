#ifndef BH_JOB_NETWORK_LINK_H
#define BH_JOB_NETWORK_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ports/network.h"

/* Interfaces, addresses, routes and queues, over a socket of NETLINK_ROUTE; each call is for the
 * network namespace of the socket.  Failures: BH_NOT_FOUND, BH_CONFLICT, BH_DENIED, BH_IO, and
 * the message says what was being done. */

/* A pair of interfaces: one here, one in the namespace of `netns_fd`. */
struct bh_link_pair {
    const char *here, *there;
    uint8_t mac_here[6], mac_there[6];
    uint32_t group; /* of the one here */
    int netns_fd;
};

/* Neither end is up. */
BH_MUST_USE bh_rc bh_link_make_pair(int fd, const struct bh_link_pair *pair, struct bh_err *err);
/* Removes the other end, too. */
BH_MUST_USE bh_rc bh_link_remove(int fd, const char *name, struct bh_err *err);

/* Its number; 0: there is none. */
uint32_t bh_link_find(int fd, const char *name);

/* Up; `arp`: it asks for hardware addresses and answers. */
BH_MUST_USE bh_rc bh_link_set_up(int fd, uint32_t index, bool arp, struct bh_err *err);

/* Both ends of a pair are up when this is called: wait until this one really sends, which the
 * kernel sees to a moment later.  BH_TIMEOUT. */
BH_MUST_USE bh_rc bh_link_await(int fd, const char *name, struct bh_err *err);

/* Addresses in host order. */
BH_MUST_USE bh_rc bh_link_add_address(int fd, uint32_t index, uint32_t address, struct bh_err *err);
/* To `to` by the interface, through `gateway` unless that is 0. */
BH_MUST_USE bh_rc bh_link_add_route(int fd, uint32_t index, struct bh_cidr to, uint32_t gateway,
                                    struct bh_err *err);
/* A permanent neighbor entry: the address is never resolved by a request. */
BH_MUST_USE bh_rc bh_link_add_neighbor(int fd, uint32_t index, uint32_t address, const uint8_t mac[6],
                                       struct bh_err *err);

/* What leaves by the interface is held to that many bits a second. */
BH_MUST_USE bh_rc bh_link_set_rate(int fd, uint32_t index, uint64_t bps, struct bh_err *err);

/* Received and sent as the kernel here counts them. */
BH_MUST_USE bh_rc bh_link_count(int fd, const char *name, struct bh_network_counters *ret_counters,
                                struct bh_err *err);

/* Every interface of the namespace, by name. */
typedef void (*bh_link_fn)(const char *name, void *self);
BH_MUST_USE bh_rc bh_link_each(int fd, bh_link_fn seen, void *self, struct bh_err *err);

#endif
