#include "api/documents/tally.h"

#include "base/time.h"
#include "wire/message.h"

_Static_assert((int)BH_TALLY_METHODS == (int)BH_SCRUB_METHODS
                   && (int)BH_TALLY_RESULTS == (int)BH_SCRUB_RESULTS,
               "all of them");

const uint64_t bh_tally_commit_bounds_ns[BH_TALLY_COMMIT_BOUNDS] = {
    BH_NS_PER_MS / 4,  BH_NS_PER_MS / 2,  BH_NS_PER_MS,       5 * BH_NS_PER_MS / 2, 5 * BH_NS_PER_MS,
    10 * BH_NS_PER_MS, 25 * BH_NS_PER_MS, 100 * BH_NS_PER_MS, BH_NS_PER_S,          5 * BH_NS_PER_S,
};
