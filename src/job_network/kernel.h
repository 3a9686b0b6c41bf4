#ifndef BH_JOB_NETWORK_KERNEL_H
#define BH_JOB_NETWORK_KERNEL_H

#include "ports/network.h"

/* The networks of jobs as this machine's kernel makes them: each a network namespace, joined to the machine's
 * by a pair of interfaces.  Routes to single addresses instead of a bridge, so that no job receives another's
 * frames before it; nftables decides (network/rules.h).
 *
 * The calling thread must be the only one of its process: it enters new namespaces.  The texts and lists of
 * the options stay the caller's. */
struct bh_kernel_options {
    const char *nft;            /* the program */
    const char *marker;         /* a file: forwarding of uplinks that was switched on here;
                                   it must not survive a reboot */
    struct bh_cidr pool;        /* addresses of jobs */
    const char *const *uplinks; /* interfaces that egress may leave by */
    uint32_t uplink_count;
    const struct bh_cidr *deny; /* never reached */
    uint32_t deny_count;
    bool may_forward; /* switch forwarding of an uplink on where it is off */
};

/* BH_IO, BH_DENIED: no netlink. */
BH_MUST_USE bh_rc bh_kernel_network_open(const struct bh_kernel_options *options,
                                         struct bh_network *ret_network, struct bh_err *err);

#endif
