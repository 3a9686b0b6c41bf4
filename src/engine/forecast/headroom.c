#include "engine/forecast/headroom.h"

#include "base/assert.h"
#include "model/quantity.h"

enum { WHOLE_PERMILLE = 1000, RESERVE_MAX = 10000 };
#define GPUS_MAX (UINT32_C(1) << 30)

uint64_t
bh_headroom_lend(uint64_t guarantee, const struct bh_forecast_bound *bound)
{
    BH_ASSERT(bound->value <= BH_FORECAST_VALUE_MAX);
    return bound->firm && bound->value < guarantee ? guarantee - bound->value : 0;
}

/* Whole GPUs for a bound with its reserve: at most 2^32 * 11 / 4200, so nothing overflows.
 */
static uint32_t
gpus_for(const struct bh_forecast_bound *bound, uint32_t reserve_permille)
{
    uint64_t with_reserve = (uint64_t)bound->value * (WHOLE_PERMILLE + reserve_permille);
    uint64_t gpu = (uint64_t)BH_GPU_PARTS * WHOLE_PERMILLE;

    return (uint32_t)((with_reserve + gpu - 1) / gpu);
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t
headroom_smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Grains that are missing: rounded up, unless the last would pass `most`. */
static uint32_t
gpus_to_add(const struct bh_headroom_pool *pool, uint32_t wanted)
{
    uint32_t target = headroom_smaller(larger(wanted, pool->least), pool->most);
    uint32_t missing = target > pool->capacity ? target - pool->capacity : 0;
    uint32_t capacity = pool->most > pool->capacity ? pool->most - pool->capacity : 0;
    uint32_t grains = (missing + pool->grain - 1) / pool->grain;

    return headroom_smaller(grains, capacity / pool->grain) * pool->grain;
}

static uint32_t
gpus_to_spare(const struct bh_headroom_pool *pool, uint32_t wanted)
{
    uint32_t target = larger(wanted, pool->least);
    uint32_t spare = pool->capacity > target ? pool->capacity - target : 0;

    return spare / pool->grain * pool->grain;
}

struct bh_headroom_scale
bh_headroom_propose(const struct bh_headroom_pool *pool)
{
    struct bh_headroom_scale scale = { .move = BH_HEADROOM_KEEP };

    BH_ASSERT(pool->grain > 0 && pool->grain < GPUS_MAX);
    BH_ASSERT(pool->capacity < GPUS_MAX && pool->most < GPUS_MAX && pool->least <= pool->most);
    BH_ASSERT(pool->reserve_permille <= RESERVE_MAX);
    scale.wanted = gpus_for(pool->need, pool->reserve_permille);
    scale.wanted_later = gpus_for(pool->later, pool->reserve_permille);
    scale.gpus = gpus_to_add(pool, scale.wanted);
    if (scale.gpus > 0) {
        scale.move = BH_HEADROOM_GROW;
        return scale;
    }
    if (pool->need->firm && pool->later->firm)
        scale.gpus = gpus_to_spare(pool, larger(scale.wanted, scale.wanted_later));
    if (scale.gpus > 0)
        scale.move = BH_HEADROOM_SHRINK;
    return scale;
}

/* Permille of the capacity; what does not fit counts as the largest there is. */
static uint32_t
permille_of(uint32_t value, uint64_t capacity)
{
    uint64_t permille = (uint64_t)value * WHOLE_PERMILLE / capacity;

    return permille > UINT32_MAX ? UINT32_MAX : (uint32_t)permille;
}

struct bh_headroom_heat
bh_headroom_test_node(const struct bh_forecast_bound *use, uint64_t capacity, uint32_t mark_permille)
{
    struct bh_headroom_heat heat;

    BH_ASSERT(capacity > 0);
    BH_ASSERT(mark_permille > 0);
    heat.level_permille = permille_of(use->level, capacity);
    heat.projected_permille = permille_of(use->value, capacity);
    heat.hot = heat.projected_permille >= mark_permille;
    return heat;
}
