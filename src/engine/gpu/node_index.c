#include "engine/gpu/node_index.h"

#include <string.h>

#include "base/assert.h"
#include "engine/state/slots.h"

enum {
    SHAPES = 2 * WANTS_MAX, /* those that are expected, and others that are asked for */
    KINDS = 4,
    MODELS = 8,
    /* Demand is forgotten by half when so many GPUs' jobs were asked for: a few days of a busy
     * site, and weeks of a quiet one. */
    DEMAND_MAX = 4096,
    LAST = UINT32_MAX, /* ends the list of nodes that were touched */
};

static struct bh_pack_caps
index_caps_of(const struct bh_engine_caps *caps)
{
    return (
        struct bh_pack_caps){ .nodes = caps->nodes + 1, .shapes = SHAPES, .kinds = KINDS, .models = MODELS };
}

/* The list of touched nodes, then the index. */
static uint64_t
index_list_bytes(const struct bh_engine_caps *caps)
{
    return (((uint64_t)caps->nodes + 1) * sizeof(uint32_t) + 63) & ~(uint64_t)63;
}

uint64_t
bh_node_index_bytes(const struct bh_engine_caps *caps)
{
    struct bh_pack_caps pack = index_caps_of(caps);

    return index_list_bytes(caps) + bh_pack_size(&pack);
}

static uint32_t *
index_next_touched(const struct bh_engine *engine, uint32_t node)
{
    return (uint32_t *)bh_block_at(engine, engine->hints.node_index_offset) + node;
}

static struct bh_pack *
node_index_at(const struct bh_engine *engine)
{
    return bh_block_at(engine, engine->hints.node_index_offset + index_list_bytes(&engine->caps));
}

/* ---- demand ---- */

/* What jobs of the SKU may take whole. */
static uint64_t
index_models_of(const struct sku *sku)
{
    uint64_t models = 0;

    for (uint32_t row = 0; row < sku->model_count; row++)
        if (sku->profiles[row] == BH_PROFILE_WHOLE.v)
            models |= UINT64_C(1) << sku->models[row];
    return models;
}

/* The row of a want; a new one takes the place of the rarest. */
static struct demand_row *
index_row_for(struct demand *demand, const struct demand_row *want)
{
    uint32_t rarest = 0;

    BH_ASSERT(demand->count <= WANTS_MAX);
    for (uint32_t i = 0; i < demand->count; i++) {
        const struct demand_row *row = &demand->asked[i];

        if (row->models == want->models && row->gpus == want->gpus && row->cpu_milli == want->cpu_milli
            && row->memory_mib == want->memory_mib)
            return &demand->asked[i];
        rarest = row->weight < demand->asked[rarest].weight ? i : rarest;
    }
    if (demand->count < WANTS_MAX)
        rarest = demand->count++;
    demand->sum -= demand->asked[rarest].weight;
    demand->asked[rarest] = *want;
    return &demand->asked[rarest];
}

static void
index_forget_half(struct demand *demand)
{
    demand->sum = 0;
    for (uint32_t i = 0; i < demand->count; i++) {
        demand->asked[i].weight /= 2;
        demand->sum += demand->asked[i].weight;
    }
}

/* What is expected is what was asked for so far.  That is said anew when as much has been
 * asked for again: first often, then ever more rarely. */
static void
node_index_expect(struct demand *demand)
{
    BH_ASSERT(demand->count <= WANTS_MAX);
    if (demand->sum < demand->renew_at)
        return;
    memcpy(demand->expected, demand->asked, sizeof(demand->expected));
    demand->expected_count = demand->count;
    demand->version++;
    if (demand->sum >= DEMAND_MAX)
        index_forget_half(demand);
    demand->renew_at = demand->sum < DEMAND_MAX / 2 ? 2 * demand->sum : DEMAND_MAX;
}

void
bh_node_index_demand(struct bh_engine *engine, uint32_t slot)
{
    struct demand *demand = &engine->core.demand;
    const struct job *job = job_at(engine, slot);
    struct demand_row want = { .models = index_models_of(sku_at(engine, job->sku)),
                               .gpus = job->count,
                               .cpu_milli = job->cpu_milli,
                               .memory_mib = job->memory_mib };

    BH_ASSERT(job->id != 0 && demand->count <= WANTS_MAX);
    if (want.models == 0)
        return;
    index_row_for(demand, &want)->weight += job->gang;
    demand->sum += job->gang;
    node_index_expect(demand);
}

/* ---- the index ---- */

void
bh_node_index_invalidate(struct bh_engine *engine, uint32_t node)
{
    uint32_t *next = index_next_touched(engine, node);

    BH_ASSERT(node != 0);
    BH_ASSERT(node_at(engine, node)->id != 0);
    if (*next)
        return;
    *next = engine->hints.node_index_changed ? engine->hints.node_index_changed : LAST;
    engine->hints.node_index_changed = node;
}

static bool
index_is_of_one_model(const struct node *node)
{
    return (node->models & (node->models - 1)) == 0;
}

/* What is left of what the node has, room that is kept not counted; UINT32_MAX where it is not
 * limited. */
static uint32_t
index_rest_of(uint32_t has, uint64_t used)
{
    if (has == 0)
        return UINT32_MAX;
    return used < has ? (uint32_t)(has - used) : 0;
}

static void
node_index_put_node(struct bh_engine *engine, uint32_t slot)
{
    const struct node *node = node_at(engine, slot);
    struct bh_pack_node left = { .cpu_milli = index_rest_of(node->cpu_milli, node->cpu_used),
                                 .memory_mib = index_rest_of(node->memory_mib, node->memory_used) };

    BH_ASSERT(node->id != 0 && node->empty <= node->gpu_count);
    if (!node->models)
        return;
    engine->hints.node_index_mixed = engine->hints.node_index_mixed || !index_is_of_one_model(node);
    left.model = (uint32_t)__builtin_ctz(node->models);
    left.gpus = node->gpu_count < BH_PACK_GPUS_MAX ? node->gpu_count : BH_PACK_GPUS_MAX;
    for (uint32_t i = 0; i < left.gpus && i < node->empty && index_is_of_one_model(node); i++)
        left.parts[i] = BH_GPU_PARTS;
    bh_pack_set_node(node_index_at(engine), slot, &left);
}

static struct bh_pack_shape
index_shape_of(uint32_t cpu_milli, uint32_t memory_mib, uint32_t gpus, uint64_t models)
{
    return (struct bh_pack_shape){ .cpu_milli = cpu_milli,
                                   .memory_mib = memory_mib,
                                   .gpus = gpus,
                                   .parts = BH_GPU_PARTS,
                                   .models = models };
}

static void
node_index_build(struct bh_engine *engine)
{
    const struct demand *demand = &engine->core.demand;
    struct bh_pack_caps caps = index_caps_of(&engine->caps);
    struct bh_pack *pack = bh_pack_init(node_index_at(engine), &caps, BH_PACK_BULKHEAD);

    memset(index_next_touched(engine, 0), 0, (size_t)index_list_bytes(&engine->caps));
    engine->hints.node_index_changed = 0;
    engine->hints.node_index_mixed = false;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);)
        node_index_put_node(engine, slot);
    for (uint32_t i = 0; i < demand->expected_count; i++) {
        const struct demand_row *want = &demand->expected[i];
        struct bh_pack_shape shape =
            index_shape_of(want->cpu_milli, want->memory_mib, want->gpus, want->models);
        bool taken = want->weight == 0 || bh_pack_expect(pack, bh_pack_shape(pack, &shape), want->weight);

        BH_ASSERT(taken);
    }
    engine->hints.node_index_version = demand->version + 1;
}

void
bh_node_index_update(struct bh_engine *engine)
{
    bool current = engine->hints.node_index_version == engine->core.demand.version + 1;
    uint32_t next;

    if (engine->core.demand.version == 0)
        return; /* no job ever asked for whole GPUs */
    if (current && engine->hints.node_index_changed == 0)
        return; /* tables and levels follow from nodes and demand alone */
    if (!current)
        node_index_build(engine);
    for (uint32_t node = engine->hints.node_index_changed; node && node != LAST; node = next) {
        next = *index_next_touched(engine, node);
        *index_next_touched(engine, node) = 0;
        node_index_put_node(engine, node);
    }
    engine->hints.node_index_changed = 0;
    bh_pack_prepare(node_index_at(engine));
    bh_pack_reckon(node_index_at(engine));
}

static bool
index_is_ready(const struct bh_engine *engine)
{
    return engine->hints.node_index_version != 0;
}

int64_t
bh_node_index_cost(const struct bh_engine *engine, uint32_t node, const struct bh_node_request *want)
{
    struct bh_pack_shape shape = index_shape_of(want->cpu_milli, want->memory_mib, want->gpus, want->models);
    int32_t score;

    if (!index_is_ready(engine) || want->gpus > BH_PACK_GPUS_MAX
        || !bh_pack_judge(node_index_at(engine), node, &shape, &score))
        return 0;
    return -(int64_t)score;
}

bool
bh_node_index_find(struct bh_engine *engine, const struct bh_node_request *want, uint32_t *ret_node)
{
    struct bh_pack_shape shape = index_shape_of(want->cpu_milli, want->memory_mib, want->gpus, want->models);
    struct bh_pack_placement assignment;
    uint32_t number;

    *ret_node = 0;
    if (!index_is_ready(engine) || engine->hints.node_index_mixed)
        return false;
    number = bh_pack_shape(node_index_at(engine), &shape);
    if (number == UINT32_MAX)
        return false;
    if (bh_pack_find(node_index_at(engine), number, &assignment))
        *ret_node = assignment.node;
    return true;
}
