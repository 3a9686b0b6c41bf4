#ifndef BH_FAKES_NETWORK_H
#define BH_FAKES_NETWORK_H

#include "ports/network.h"

/* Networks that are only written down, for tests of what stands on the port.  Its pool is
 * 10.0.0.0/24; nothing is ever mounted and all counters are zero. */
BH_MUST_USE bh_rc bh_fake_network_open(struct bh_network *ret_network, struct bh_err *err);

#endif
