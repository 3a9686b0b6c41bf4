#ifndef BH_API_DOCUMENTS_TALLY_H
#define BH_API_DOCUMENTS_TALLY_H

#include <stdint.h>

#include "model/health.h"

enum { BH_TALLY_METHODS = 4, BH_TALLY_RESULTS = 5 }; /* of scrubs, as in wire/message.h */

/* What bulkheadd counted since it started, of transactions that are durable: for metrics, which
 * allow for counters that begin again.  A flat table, so that it is added and copied as one. */
enum bh_tally {
    BH_TALLY_SCRUBS,                                                           /* by method and result */
    BH_TALLY_VERDICTS = BH_TALLY_SCRUBS + BH_TALLY_METHODS * BH_TALLY_RESULTS, /* failed, passed,
                                                                                         inconclusive */
    BH_TALLY_HEALTH = BH_TALLY_VERDICTS + 3,         /* by the health that a GPU came to */
    BH_TALLY_COMMITS = BH_TALLY_HEALTH + BH_HEALTHS, /* by what they took, a bucket each */
    BH_TALLY_COMMIT_BOUNDS = 10,
    BH_TALLY_COMMIT_NS = BH_TALLY_COMMITS + BH_TALLY_COMMIT_BOUNDS + 1, /* of all of them */
    BH_TALLIES
};

/* Of the buckets of commits; the last bucket has none. */
extern const uint64_t bh_tally_commit_bounds_ns[BH_TALLY_COMMIT_BOUNDS];

static inline uint32_t
bh_tally_scrub(uint32_t method, uint32_t result)
{
    return BH_TALLY_SCRUBS + method * BH_TALLY_RESULTS + result;
}

#endif
