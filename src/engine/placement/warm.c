#include "engine/placement/warm.h"

#include "base/assert.h"
#include "engine/gpu/capacity.h"
#include "engine/gpu/exclusive.h"
#include "engine/gpu/layout.h"
#include "engine/gpu/partition.h"
#include "engine/gpu/pool.h"
#include "engine/placement/placement.h"
#include "engine/state/slots.h"

/* After a carve that failed: what is not asked for yet can wait. */
#define RETRY_NS 60000000000ull

void
bh_warm_set(struct bh_engine *engine, uint32_t profile, uint32_t ready)
{
    struct shapes *shapes = &engine->core.shapes;

    BH_ASSERT(profile < PROFILES_MAX);
    BH_ASSERT(ready <= BH_READY_MAX);
    BH_ASSERT(shapes->wanted >= (shapes->ready[profile] > 0));
    shapes->wanted -= shapes->ready[profile] > 0;
    shapes->ready[profile] = (uint16_t)ready;
    shapes->wanted += ready > 0;
    engine->hints.settled = false;
}

void
bh_warm_failed(struct bh_engine *engine)
{
    engine->core.shapes.retry_ns = engine->core.now_ns + RETRY_NS;
    engine->hints.due_known = false;
}

uint64_t
bh_warm_retry_ns(const struct bh_engine *engine)
{
    return engine->core.shapes.retry_ns ? engine->core.shapes.retry_ns : UINT64_MAX;
}

void
bh_warm_tick(struct bh_engine *engine)
{
    if (engine->core.now_ns < bh_warm_retry_ns(engine))
        return;
    engine->core.shapes.retry_ns = 0;
    engine->hints.due_known = false;
}

/* ---- where ---- */

/* Whether an idle partition may go for one that is of no tenant. */
static bool
warm_is_left(const struct bh_engine *engine, const struct partition *partition)
{
    const struct tenant *tenant = tenant_at(engine, tenant_find(engine, partition->tenant));

    return partition->tenant != 0 && tenant->running == 0 && tenant->pending == 0;
}

/* What is on the GPU, or will be: in use, claimed, or idle for a job that may come. */
static void
warm_read_occupancy(const struct bh_engine *engine, uint32_t slot, struct bh_occupancy *ret_occupancy)
{
    struct bh_search search = { .engine = engine };
    const struct gpu *gpu = gpu_at(engine, slot);

    bh_capacity_occupancy(&search, slot, ret_occupancy);
    for (uint32_t at = gpu->idle ? gpu->first_partition : 0; at;) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == BH_PARTITION_IDLE && !warm_is_left(engine, partition))
            bh_capacity_block(ret_occupancy, (enum bh_gpu_model)gpu->model, partition->profile,
                              partition->start);
        at = partition->next_on_gpu;
    }
}

/* A place, and what it costs the jobs to come. */
struct site {
    uint32_t gpu, start; /* slot; 0: none */
    bool misfit;         /* it is kept for partitions of another size */
    int64_t cost;
    bool whole; /* the GPU would have to become one that is divided */
};

static bool
warm_is_better(const struct bh_engine *engine, const struct site *a, const struct site *b)
{
    if (b->gpu == 0 || a->misfit != b->misfit)
        return b->gpu == 0 || !a->misfit;
    if (a->cost != b->cost)
        return a->cost < b->cost;
    if (a->whole != b->whole)
        return b->whole;
    return gpu_at(engine, a->gpu)->id < gpu_at(engine, b->gpu)->id;
}

static struct site
warm_find_site(const struct bh_engine *engine, const struct bh_profile *profile)
{
    struct bh_mig_prices prices;
    const struct bh_mig *figures = bh_pool_prices(engine, profile->model, &prices);
    struct site best = { 0 };

    for (uint32_t slot = 0; figures && bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);
        struct bh_occupancy occupancy;
        struct bh_mig_choice choice;
        struct site site = { .gpu = slot,
                             .whole = !gpu->mig,
                             .misfit = bh_placement_misfits(gpu, profile->id.v) };

        if (gpu->model != profile->model || !gpu->mig_capable || !bh_capacity_offered(engine, gpu)
            || gpu->wanted.mode || !bh_exclusive_with(engine, slot, 0))
            continue;
        warm_read_occupancy(engine, slot, &occupancy);
        choice = bh_mig_choose(figures, &prices, &occupancy, profile);
        site.cost = choice.cost;
        if (choice.starts == 0 || !warm_is_better(engine, &site, &best))
            continue;
        best = site;
        best.start = (uint32_t)__builtin_ctz(choice.starts);
    }
    return best;
}

bool
bh_warm_decide(const struct work *work, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;
    const struct shapes *shapes = &engine->core.shapes;

    if (!engine->core.settings.preshape || shapes->wanted == 0 || shapes->retry_ns)
        return false;
    for (uint32_t id = 0; id < PROFILES_MAX; id++) {
        struct site site;

        if (shapes->unheld[id] >= shapes->ready[id])
            continue;
        site = warm_find_site(engine, bh_profile_get((bh_profile_id){ id }));
        if (!site.gpu)
            continue;
        *ret_decision = (struct bh_decision){ .kind = BH_DO_WARM, .partition_count = 1 };
        ret_decision->partitions[0] = (struct bh_partition){
            { engine->core.next_partition }, { (uint32_t)gpu_at(engine, site.gpu)->id }, id, site.start, true
        };
        return true;
    }
    return false;
}

bh_rc
bh_warm_apply(struct work *work, const struct bh_decision *decision)
{
    struct bh_engine *engine = work->engine;
    const struct bh_partition *partition = &decision->partitions[0];
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ partition->profile });
    uint32_t slot = gpu_find(engine, partition->gpu.v);
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_occupancy occupancy;

    if (decision->partition_count != 1 || decision->job.v || decision->lease.v || !partition->carve
        || partition->partition.v < engine->core.next_partition)
        return BH_CONFLICT;
    if (!slot || !profile || profile->model != (enum bh_gpu_model)gpu->model
        || partition->profile >= PROFILES_MAX || bh_slots_free(engine, TABLE_PARTITION) == 0)
        return BH_CONFLICT;
    bh_capacity_occupancy(&(struct bh_search){ .engine = engine, .past_claims = true }, slot, &occupancy);
    if (!gpu->mig_capable || !bh_exclusive_with(engine, slot, 0)
        || (!bh_capacity_offered(engine, gpu) && !bh_layout_contains(engine, slot, partition))
        || !bh_occupancy_fits(&occupancy, profile, partition->start))
        return BH_CONFLICT;
    bh_partition_carve(work, partition, 0);
    return BH_OK;
}
