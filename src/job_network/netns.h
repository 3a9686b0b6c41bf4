#ifndef BH_JOB_NETWORK_NETNS_H
#define BH_JOB_NETWORK_NETNS_H

#include "ports/network.h"

/* A job's end: a network namespace of its own that belongs to this machine's root, so that no process within
 * can change it, and a /sys that shows it. */

/* Make it, with loopback up and IPv6 off, and mount it and its /sys at the place; the calling
 * thread is back in `home`, the namespace it came from, in any case.  `ret_links`: a socket of
 * NETLINK_ROUTE in it, the caller's.  On failure nothing is mounted. */
BH_MUST_USE bh_rc bh_netns_make(const struct bh_network_place *place, int home, int *ret_links,
                                struct bh_err *err);
void bh_netns_unmount(const struct bh_network_place *place);

/* Write a setting of the current network namespace: "ipv4/conf/bhj3/forwarding". */
BH_MUST_USE bh_rc bh_netns_set(const char *setting, const char *value, struct bh_err *err);
/* '0' or '1' and so on; '\0': there is no such setting. */
char bh_netns_setting(const char *setting);

#endif
