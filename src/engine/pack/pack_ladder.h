#ifndef BH_ENGINE_PACK_PACK_LADDER_H
#define BH_ENGINE_PACK_PACK_LADDER_H

#include <stdint.h>

/* How many of some ascending rungs are at or below a value: a search that takes a step or
 * two, because a table says how many rungs are below the value's stretch. */

enum { BH_PACK_RUNGS_MAX = 100, BH_PACK_STRETCHES = 256 };

struct bh_pack_ladder {
    int64_t low;                         /* where the first stretch begins: the first rung */
    uint32_t shift;                      /* a stretch is 2^shift long */
    int64_t rung[BH_PACK_RUNGS_MAX + 1]; /* and INT64_MAX behind the last */
    uint8_t below[BH_PACK_STRETCHES];    /* rungs at or below where a stretch begins */
};

/* Build it from `count` rungs (at most BH_PACK_RUNGS_MAX), each above the one before. */
void bh_pack_ladder_build(struct bh_pack_ladder *ladder, const int64_t *rungs, uint32_t count);

/* How many rungs are at or below `value`, which is not INT64_MAX. */
static inline uint32_t
bh_pack_ladder_count(const struct bh_pack_ladder *ladder, int64_t value)
{
    uint64_t stretch;
    uint32_t count;

    if (value < ladder->low)
        return 0;
    stretch = (uint64_t)(value - ladder->low) >> ladder->shift;
    count = ladder->below[stretch < BH_PACK_STRETCHES ? stretch : BH_PACK_STRETCHES - 1];
    while (value >= ladder->rung[count])
        count++;
    return count;
}

#endif
