#include "engine/gpu/pool.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gpu/gpu_group.h"
#include "engine/state/slots.h"

/* Demand is forgotten by half when so many partitions of a model were asked for: a few days of
 * a busy site, and weeks of a quiet one. */
enum { DEMAND_MAX = 4096 };

static void *
pool_figures_at(const struct bh_engine *engine, uint32_t number)
{
    return bh_block_at(engine, engine->hints.figures_offset + (uint64_t)(number - 1) * bh_pool_bytes());
}

uint64_t
bh_pool_bytes(void)
{
    return (bh_mig_size() + 15) & ~(uint64_t)15;
}

void
bh_pool_add_model(struct bh_engine *engine, uint32_t model)
{
    struct core *core = &engine->core;
    uint32_t profiles;

    BH_ASSERT(model < MODELS_MAX);
    BH_ASSERT(core->pool_count <= POOLS_MAX);
    bh_profile_first((enum bh_gpu_model)model, &profiles);
    if (profiles == 0 || core->pool_of[model] || core->pool_count == POOLS_MAX)
        return;
    core->pool_of[model] = (uint8_t)++core->pool_count;
    bh_mig_init(pool_figures_at(engine, core->pool_count), (enum bh_gpu_model)model);
}

void
bh_pool_restore(struct bh_engine *engine)
{
    for (uint32_t model = 0; model < MODELS_MAX; model++)
        if (engine->core.pool_of[model])
            bh_mig_init(pool_figures_at(engine, engine->core.pool_of[model]), (enum bh_gpu_model)model);
}

/* The model's figures, or NULL. */
static const struct bh_mig *
pool_figures_of(const struct bh_engine *engine, uint32_t model)
{
    uint32_t number = engine->core.pool_of[model];

    return number ? pool_figures_at(engine, number) : NULL;
}

static struct pool *
pool_of(struct bh_engine *engine, uint32_t model)
{
    return &engine->core.pools[engine->core.pool_of[model] - 1];
}

void
bh_pool_follow(struct bh_engine *engine, uint32_t slot, bool offered)
{
    struct gpu *gpu = gpu_at(engine, slot);
    const struct bh_mig *figures = pool_figures_of(engine, gpu->model);
    struct bh_mig_pool *pool;

    BH_ASSERT(gpu->id != 0 && gpu->pooled <= 1);
    BH_ASSERT(engine->core.pool_of[gpu->model] <= engine->core.pool_count);
    BH_ASSERT(gpu->pooled == (gpu->gpu_group != 0));
    BH_ASSERT(!gpu->pooled || gpu_group_at(engine, gpu->gpu_group)->occupancy.units == gpu->pooled_as.units);
    if (!figures)
        return;
    pool = &pool_of(engine, gpu->model)->capacity;
    if (gpu->pooled)
        bh_mig_pool_remove(figures, pool, &gpu->pooled_as);
    gpu->pooled = offered && gpu->mig_capable;
    bh_gpu_group_update(engine, slot, gpu->pooled);
    /* bytes, not values: what lies between members is part of the state */
    memcpy(&gpu->pooled_as, &gpu->occupancy, sizeof(gpu->pooled_as));
    if (gpu->pooled)
        bh_mig_pool_add(figures, pool, &gpu->pooled_as);
    else
        memset(&gpu->pooled_as, 0, sizeof(gpu->pooled_as));
}

static void
pool_count_demand(struct bh_engine *engine, uint32_t model, uint32_t profile_id, uint32_t partitions)
{
    const struct bh_mig *figures = pool_figures_of(engine, model);
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });
    struct pool *pool;

    if (!figures || !profile)
        return;
    pool = pool_of(engine, model);
    pool->asked[bh_mig_shape(figures, profile)] += partitions;
    pool->asked_sum += partitions;
    if (pool->asked_sum < DEMAND_MAX)
        return;
    pool->asked_sum = 0;
    for (uint32_t i = 0; i < BH_MIG_SHAPES_MAX; i++) {
        pool->asked[i] /= 2;
        pool->asked_sum += pool->asked[i];
    }
}

void
bh_pool_demand_add(struct bh_engine *engine, uint32_t slot, uint32_t partitions)
{
    const struct sku *sku = sku_at(engine, slot);

    BH_ASSERT(sku->id != 0 && sku->model_count <= BH_SKU_MODELS_MAX);
    BH_ASSERT(partitions > 0);
    for (uint32_t row = 0; row < sku->model_count; row++)
        pool_count_demand(engine, sku->models[row], sku->profiles[row], partitions);
}

_Static_assert(BH_COUNT(((struct bh_demand_view *)0)->partitions) == BH_MIG_SHAPES_MAX, "one for each shape");

bool
bh_pool_demand(const struct bh_engine *engine, uint32_t model, struct bh_demand_view *ret_view)
{
    const struct bh_mig *figures = pool_figures_of(engine, model);
    uint32_t count;
    const struct bh_profile *profile = bh_profile_first((enum bh_gpu_model)model, &count);

    if (!figures)
        return false;
    *ret_view = (struct bh_demand_view){ .shapes = bh_mig_shapes(figures) };
    memcpy(ret_view->partitions, engine->core.pools[engine->core.pool_of[model] - 1].asked,
           sizeof ret_view->partitions);
    for (uint32_t row = count; row > 0; row--) /* the first comes last */
        ret_view->profiles[bh_mig_shape(figures, &profile[row - 1])] = profile[row - 1].id.v;
    return true;
}

const struct bh_mig *
bh_pool_prices(const struct bh_engine *engine, uint32_t model, struct bh_mig_prices *ret_prices)
{
    const struct bh_mig *figures = pool_figures_of(engine, model);
    struct bh_mig_demand demand = { .weights = { 0 } };
    const struct pool *pool;

    if (!figures)
        return NULL;
    pool = &engine->core.pools[engine->core.pool_of[model] - 1];
    for (uint32_t i = 0; i < bh_mig_shapes(figures); i++)
        demand.weights[i] = 1 + pool->asked[i];
    bh_mig_price(figures, &demand, &pool->capacity, ret_prices);
    return figures;
}
