#ifndef BH_NODE_SHARE_SHARE_COUNTS_H
#define BH_NODE_SHARE_SHARE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "share/message.h"

/* A lease's GPU memory by three counts: what its processes reserved, what the driver's library
 * of theirs asked the kernel for, what the driver says.  They never agree to the byte; that
 * they differ for a while is worth one line.  Nothing is done about it. */
struct bh_share_counts {
    uint8_t apart[BH_SHARE_DEVICES_MAX]; /* states in a row in which they differed */
    bool notified[BH_SHARE_DEVICES_MAX];
};

enum { BH_SHARE_COUNTS_APART_MIB = 64, BH_SHARE_COUNTS_STATES = 3 };

/* The next state, about a second later.  The bits of the devices whose counts differ by more
 * than APART_MIB since STATES states, each reported once until they agree again.  Without a count
 * of the library's nothing is reported; with a part of one, only when that part is the larger. */
uint32_t bh_share_counts_check(struct bh_share_counts *counts, const struct bh_share_lease_state *state);

/* Whether to notify the job's submitter of a device whose counts were found to differ: only when all three
 * are complete, and the library took more than was reserved.  Other differences are reported by `more`, or
 * need no notice, as managed memory that is on no GPU. */
bool bh_share_counts_must_notify(const struct bh_share_lease_state *state, uint32_t device);

#endif
