#ifndef BH_DAEMON_STATE_TALLY_H
#define BH_DAEMON_STATE_TALLY_H

#include <stdatomic.h>

#include "api/documents/tally.h"

/* Counts of the owner thread (api/documents/tally.h): those of the open batch, and those that are durable,
 * which any thread may read.  All zeros is an empty one. */
struct bh_tallies {
    uint32_t open[BH_TALLIES];
    _Atomic uint64_t durable[BH_TALLIES];
};

/* One more in the open batch. */
void bh_tally_count(struct bh_tallies *book, uint32_t what);

/* The batch is durable, after a commit that took so long; or it was thrown away. */
void bh_tally_committed(struct bh_tallies *book, uint64_t took_ns);
void bh_tally_aborted(struct bh_tallies *book);

void bh_tally_read(const struct bh_tallies *book, uint64_t ret_tally[BH_TALLIES]);

#endif
