/* Scenarios: whatever people do and whatever fails when, no invariant of the engine
 * breaks, its node never gets a senseless order, and the history replays to the same state. */
#include "base/assert.h"
#include "replay/scenario.h"
#include "tests/fuzz/fuzz.h"

enum { BYTES_MAX = 8 << 10 }; /* longer ones only take longer */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_tap tap = { .out = NULL };

    if (size == 0 || size > BYTES_MAX)
        return 0;
    bh_scenario_play_text(&tap, "fuzz", (const char *)data, size);
    BH_ASSERT(tap.count > 0);
    BH_ASSERT(!tap.broken);
    return 0;
}
