#include "engine/forecast/defrag_join.h"

#include "base/assert.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

enum { IDEAS_MOST = 32, SIZES_MOST = 64, TOUCHED_MOST = 2 * BH_MOVE_PLACEMENTS_MAX };

/* ---- what could begin ---- */

/* A way to keep some SKU. */
struct size {
    uint32_t model, profile;
    uint64_t parts;
};
struct join_sizes {
    struct size at[SIZES_MOST];
    uint32_t count;
};

static void
join_add_size(struct join_sizes *sizes, const struct size *size)
{
    for (uint32_t i = 0; i < sizes->count; i++)
        if (sizes->at[i].model == size->model && sizes->at[i].profile == size->profile)
            return;
    if (sizes->count < SIZES_MOST)
        sizes->at[sizes->count++] = *size;
}

static void
join_list_sizes(const struct bh_engine *engine, struct join_sizes *ret_sizes)
{
    ret_sizes->count = 0;
    for (uint32_t at = 0; bh_slot_next(engine, TABLE_SKU, &at);) {
        const struct sku *sku = sku_at(engine, at);

        for (uint32_t row = 0; row < sku->model_count; row++)
            join_add_size(ret_sizes,
                          &(struct size){ sku->models[row], sku->profiles[row], sku->equivalents[row] });
    }
}

/* How many partitions of the size could begin on the GPU. */
static uint64_t
join_capacity_on(const struct gpu *gpu, const struct bh_occupancy *occupancy, const struct size *size)
{
    if (!bh_capacity_accepts(gpu, size->profile))
        return 0;
    return bh_partition_capacity(occupancy, (enum bh_gpu_model)size->model, size->profile);
}

/* The same on a node's GPUs of the size's model together; and how many GPUs those are. */
static uint64_t
join_capacity_at(const struct bh_search *search, uint32_t node, const struct size *size, uint32_t *ret_gpus)
{
    const struct bh_engine *engine = search->engine;
    uint64_t capacity = 0;

    *ret_gpus = 0;
    for (uint32_t at = node_at(engine, node)->first_gpu; at; at = bh_gpu_after(engine, at)) {
        const struct gpu *gpu = gpu_at(engine, at);
        struct bh_occupancy occupancy;

        *ret_gpus += gpu->model == size->model;
        if (gpu->model != size->model || !bh_capacity_offered(engine, gpu))
            continue;
        bh_capacity_occupancy(search, at, &occupancy);
        capacity += join_capacity_on(gpu, &occupancy, size);
    }
    return capacity;
}

/* What jobs of so many partitions each could take, summed over 1, and for whole GPUs 2, 4, 8...;
 * how many such numbers there are is added. */
static uint64_t
join_usable(uint64_t capacity, uint64_t gpus, const struct size *size, uint32_t *numbers)
{
    uint64_t sum = 0;

    for (uint64_t partitions = 1;
         partitions == 1 || (size->profile == BH_PROFILE_WHOLE.v && partitions <= gpus); partitions *= 2) {
        sum += capacity / partitions * partitions * size->parts;
        ++*numbers;
    }
    return sum;
}

static uint64_t
defrag_join_potential(const struct bh_search *search, uint32_t node, const struct join_sizes *sizes)
{
    uint32_t models = node_at(search->engine, node)->models;
    uint64_t sum = 0;

    for (; models; models &= models - 1) {
        uint32_t numbers = 0, gpus;
        uint64_t all = 0;

        for (uint32_t i = 0; i < sizes->count; i++) {
            uint64_t capacity;

            if (sizes->at[i].model != (uint32_t)__builtin_ctz(models))
                continue;
            capacity = join_capacity_at(search, node, &sizes->at[i], &gpus);
            all += join_usable(capacity, gpus, &sizes->at[i], &numbers);
        }
        sum += numbers ? all / numbers : 0;
    }
    return sum;
}

uint64_t
bh_defrag_potential(const struct bh_search *search, uint32_t node)
{
    struct join_sizes sizes;

    join_list_sizes(search->engine, &sizes);
    return defrag_join_potential(search, node, &sizes);
}

/* Nodes, each once. */
struct nodes {
    uint32_t at[TOUCHED_MOST], count;
};

static void
defrag_join_touch(const struct bh_engine *engine, uint32_t gpu_id, struct nodes *nodes)
{
    uint32_t node = gpu_at(engine, gpu_find(engine, gpu_id))->node;

    for (uint32_t i = 0; i < nodes->count; i++)
        if (nodes->at[i] == node)
            return;
    BH_ASSERT(nodes->count < TOUCHED_MOST);
    nodes->at[nodes->count++] = node;
}

static uint64_t
join_potential_of(const struct bh_search *search, const struct nodes *nodes)
{
    struct join_sizes sizes;
    uint64_t sum = 0;

    join_list_sizes(search->engine, &sizes);
    for (uint32_t i = 0; i < nodes->count; i++)
        sum += defrag_join_potential(search, nodes->at[i], &sizes);
    return sum;
}

struct bh_defrag_capacity
bh_defrag_touched(const struct bh_shift *shift)
{
    const struct bh_engine *engine = shift->engine;
    struct bh_search search = { .engine = engine, .past = shift->past };
    struct nodes nodes = { .count = 0 };
    struct bh_defrag_capacity capacity;

    for (uint32_t i = 0; i < shift->job_count; i++)
        for (uint32_t at = 0; (at = bh_gang_next(engine, shift->jobs[i], at)) != 0;)
            defrag_join_touch(engine, lease_at(engine, at)->placements[0].gpu, &nodes);
    for (uint32_t i = 0; i < shift->taking_count; i++)
        defrag_join_touch(engine, shift->taking[i].placement.gpu, &nodes);
    capacity.before = join_potential_of(&search, &nodes);
    bh_shift_imagine(shift, &search);
    capacity.after = join_potential_of(&search, &nodes);
    return capacity;
}

/* ---- jobs that could move away ---- */

/* All jobs on a GPU, all on a node, or one job: slots, two of them 0. */
struct idea {
    uint32_t gpu, node, job;
    __int128 score; /* what is gained beyond what that must be worth, at most */
};

static bool
join_start_shift(const struct bh_engine *engine, const struct idea *idea, struct bh_shift *ret_shift)
{
    bh_shift_init(ret_shift, engine);
    if (idea->job)
        return bh_shift_add(ret_shift, idea->job);
    if (idea->gpu) {
        ret_shift->avoid_gpu = (uint32_t)gpu_at(engine, idea->gpu)->id;
        return bh_shift_empty(ret_shift, idea->gpu) && ret_shift->job_count > 0;
    }
    ret_shift->excluded_node = idea->node;
    for (uint32_t gpu = node_at(engine, idea->node)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        if (!bh_shift_empty(ret_shift, gpu))
            return false;
    return ret_shift->job_count > 0;
}

/* What is gained, less what it must be for its cost; with a hundredth of the gain as unit. */
static __int128
join_score_of(const struct bh_shift *shift)
{
    struct bh_defrag_capacity capacity = bh_defrag_touched(shift);
    uint64_t percent = shift->engine->core.settings.defrag.gain_percent;

    if (capacity.after <= capacity.before)
        return 0;
    return (__int128)((bh_part_ns)(capacity.after - capacity.before) * BH_DEFRAG_JOIN_NS * 100)
           - (__int128)(shift->cost * percent);
}

/* The best ideas, the best first. */
struct ideas {
    struct idea at[IDEAS_MOST];
    uint32_t count;
};

/* Keep the idea if it could be worth it when the moved jobs took no capacity elsewhere. */
static void
join_consider(const struct bh_engine *engine, struct ideas *ideas, struct idea idea)
{
    struct bh_shift shift;
    uint32_t at;

    if (!join_start_shift(engine, &idea, &shift))
        return;
    idea.score = join_score_of(&shift);
    if (idea.score <= 0 || (ideas->count == IDEAS_MOST && ideas->at[IDEAS_MOST - 1].score >= idea.score))
        return;
    at = ideas->count < IDEAS_MOST ? ideas->count++ : IDEAS_MOST - 1;
    for (; at > 0 && ideas->at[at - 1].score < idea.score; at--)
        ideas->at[at] = ideas->at[at - 1];
    ideas->at[at] = idea;
}

static void
defrag_join_collect(const struct bh_engine *engine, struct ideas *ideas)
{
    for (uint32_t gpu = 0; bh_slot_next(engine, TABLE_GPU, &gpu);)
        if (gpu_at(engine, gpu)->leased > 0)
            join_consider(engine, ideas, (struct idea){ .gpu = gpu });
    for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);)
        if (node_at(engine, node)->leases > 0 && node_at(engine, node)->leases <= BH_MOVES_MAX)
            join_consider(engine, ideas, (struct idea){ .node = node });
    for (uint32_t job = 0; bh_slot_next(engine, TABLE_JOB, &job);)
        if (job_at(engine, job)->lease)
            join_consider(engine, ideas, (struct idea){ .job = job });
}

bool
bh_defrag_join(const struct bh_engine *engine, struct bh_defrag_plan *ret_plan)
{
    struct ideas ideas = { .count = 0 };
    __int128 best = 0;

    defrag_join_collect(engine, &ideas);
    for (uint32_t i = 0; i < ideas.count && ideas.at[i].score > best; i++) {
        struct bh_defrag_capacity capacity;
        struct bh_shift shift;
        struct bh_ev_move move;
        bh_part_ns gain;

        if (!join_start_shift(engine, &ideas.at[i], &shift) || !bh_shift_place(&shift)
            || join_score_of(&shift) <= best)
            continue;
        capacity = bh_defrag_touched(&shift);
        gain = (bh_part_ns)(capacity.after - capacity.before) * BH_DEFRAG_JOIN_NS;
        if (!bh_shift_write(&shift, gain, &move))
            continue;
        best = join_score_of(&shift);
        *ret_plan = (struct bh_defrag_plan){ .move = move, .capacity = capacity };
    }
    return best > 0;
}
