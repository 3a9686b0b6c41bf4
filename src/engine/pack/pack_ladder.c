#include "engine/pack/pack_ladder.h"

#include <string.h>

#include "base/assert.h"

void
bh_pack_ladder_build(struct bh_pack_ladder *ladder, const int64_t *rungs, uint32_t count)
{
    uint32_t reached = 0;
    uint64_t length;

    BH_ASSERT(count <= BH_PACK_RUNGS_MAX);
    memcpy(ladder->rung, rungs, count * sizeof *rungs);
    ladder->rung[count] = INT64_MAX;
    ladder->low = ladder->rung[0];
    ladder->shift = 0;
    length = count ? (uint64_t)(rungs[count - 1] - rungs[0]) : 0;
    while (length >> ladder->shift >= BH_PACK_STRETCHES)
        ladder->shift++;
    for (uint64_t stretch = 0; stretch < BH_PACK_STRETCHES; stretch++) {
        while (reached < count && (uint64_t)(rungs[reached] - ladder->low) <= stretch << ladder->shift)
            reached++;
        ladder->below[stretch] = (uint8_t)reached;
    }
}
