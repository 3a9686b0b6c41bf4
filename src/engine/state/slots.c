#include "engine/state/slots.h"

#include <string.h>

#include "base/assert.h"

enum { ALIGNMENT = 16 };

static uint64_t
slots_aligned(uint64_t offset)
{
    return (offset + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

/* At least twice the capacity, so that probes stay short. */
static uint32_t
slots_index_size(uint32_t capacity)
{
    uint32_t size = 16;

    while (size < capacity * 2)
        size *= 2;
    return size;
}

static const uint32_t slot_sizes[TABLES] = {
    [TABLE_TENANT] = sizeof(struct tenant),
    [TABLE_SKU] = sizeof(struct sku),
    [TABLE_NODE] = sizeof(struct node),
    [TABLE_GPU] = sizeof(struct gpu),
    [TABLE_JOB] = sizeof(struct job),
    [TABLE_LEASE] = sizeof(struct lease),
    [TABLE_PARTITION] = sizeof(struct partition),
    [TABLE_CLASS] = sizeof(struct class),
    [TABLE_GPU_GROUP] = sizeof(struct gpu_group),
    [TABLE_METERED] = sizeof(struct metered),
};

_Static_assert(sizeof(struct job) <= 192, "10,000 pending jobs must stay below 3 MB");

uint64_t
bh_slots_layout(struct table tables[TABLES], const struct bh_engine_caps *caps, uint64_t start)
{
    const uint32_t capacities[TABLES] = {
        [TABLE_TENANT] = caps->tenants,
        [TABLE_SKU] = caps->skus,
        [TABLE_NODE] = caps->nodes,
        [TABLE_GPU] = caps->gpus,
        [TABLE_JOB] = caps->jobs,
        [TABLE_LEASE] = caps->leases,
        [TABLE_PARTITION] = caps->partitions,
        [TABLE_CLASS] = caps->classes,
        [TABLE_GPU_GROUP] = caps->gpus,
        [TABLE_METERED] = caps->metered,
    };
    uint64_t at = slots_aligned(start);

    for (uint32_t i = 0; i < TABLES; i++) {
        uint32_t indexed = slots_index_size(capacities[i]);

        tables[i] = (struct table){
            .capacity = capacities[i], .index_mask = indexed - 1, .slot_size = slot_sizes[i], .offset = at
        };
        at = slots_aligned(at + ((uint64_t)capacities[i] + 1) * slot_sizes[i]);
        tables[i].index_offset = at;
        at = slots_aligned(at + (uint64_t)indexed * sizeof(uint32_t));
    }
    return at;
}

static uint32_t *
slots_index_of(const struct bh_engine *engine, enum table_kind kind)
{
    return bh_block_at(engine, engine->tables[kind].index_offset);
}

static uint64_t
slots_id_at(const struct bh_engine *engine, enum table_kind kind, uint32_t slot)
{
    return ((const struct slot *)bh_slot_at(engine, kind, slot))->id;
}

static uint32_t
slots_home_of(uint64_t id, uint32_t mask)
{
    return (uint32_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & mask;
}

/* Whether the slot at that place of the index was put there by its id: it is at home, or behind
 * others. */
static bool
slots_may_stand(const struct bh_engine *engine, enum table_kind kind, uint32_t at)
{
    const uint32_t *index = slots_index_of(engine, kind);
    uint32_t mask = engine->tables[kind].index_mask;
    uint64_t id = slots_id_at(engine, kind, index[at]);

    return id != 0 && (slots_home_of(id, mask) == at || index[(at - 1) & mask] != 0);
}

/* Where the id stands in the index, or the empty place where it would. */
static uint32_t
slots_probe(const struct bh_engine *engine, enum table_kind kind, uint64_t id)
{
    const uint32_t *index = slots_index_of(engine, kind);
    uint32_t mask = engine->tables[kind].index_mask;
    uint32_t at = slots_home_of(id, mask);

    while (index[at] && slots_id_at(engine, kind, index[at]) != id) {
        BH_ASSERT(slots_may_stand(engine, kind, at));
        at = (at + 1) & mask;
    }
    return at;
}

uint32_t
bh_slot_find(const struct bh_engine *engine, enum table_kind kind, uint64_t id)
{
    return id ? slots_index_of(engine, kind)[slots_probe(engine, kind, id)] : 0;
}

uint32_t
bh_slots_free(const struct bh_engine *engine, enum table_kind kind)
{
    return engine->tables[kind].capacity - engine->tables[kind].live;
}

uint32_t
bh_slot_add(struct bh_engine *engine, enum table_kind kind, uint64_t id)
{
    struct table *table = &engine->tables[kind];
    uint32_t slot = table->free_head;
    uint32_t at = slots_probe(engine, kind, id);
    struct slot *head;

    BH_ASSERT(id != 0 && slots_index_of(engine, kind)[at] == 0);
    BH_ASSERT(table->live < table->capacity);
    BH_ASSERT(table->free_head <= table->high && (table->free_head == 0) == (table->live == table->high));
    if (slot == 0)
        slot = ++table->high;
    head = bh_slot_at(engine, kind, slot);
    BH_ASSERT(head->id == 0);
    if (slot == table->free_head)
        table->free_head = head->next_free;
    head->next_free = 0;
    head->id = id;
    table->live++;
    slots_index_of(engine, kind)[at] = slot;
    return slot;
}

/* Take a place out of the index and move up those that probed past it. */
static void
slots_unindex(struct bh_engine *engine, enum table_kind kind, uint32_t hole)
{
    uint32_t *index = slots_index_of(engine, kind);
    uint32_t mask = engine->tables[kind].index_mask;

    for (uint32_t at = (hole + 1) & mask; index[at]; at = (at + 1) & mask) {
        uint32_t home = slots_home_of(slots_id_at(engine, kind, index[at]), mask);

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        index[hole] = index[at];
        hole = at;
    }
    index[hole] = 0;
}

void
bh_slot_remove(struct bh_engine *engine, enum table_kind kind, uint32_t slot)
{
    struct table *table = &engine->tables[kind];
    struct slot *head = bh_slot_at(engine, kind, slot);
    uint32_t at = slots_probe(engine, kind, head->id);

    BH_ASSERT(slot != 0 && slot <= table->high);
    BH_ASSERT(head->id != 0 && slots_index_of(engine, kind)[at] == slot);
    BH_ASSERT(table->live > 0 && table->free_head <= table->high);
    slots_unindex(engine, kind, at);
    memset(head, 0, table->slot_size);
    head->next_free = table->free_head;
    table->free_head = slot;
    table->live--;
}

void
bh_slots_reindex(struct bh_engine *engine, enum table_kind kind)
{
    for (uint32_t slot = 0; bh_slot_next(engine, kind, &slot);)
        slots_index_of(engine, kind)[slots_probe(engine, kind, slots_id_at(engine, kind, slot))] = slot;
}

bool
bh_slot_next(const struct bh_engine *engine, enum table_kind kind, uint32_t *slot)
{
    while (*slot < engine->tables[kind].high)
        if (slots_id_at(engine, kind, ++*slot))
            return true;
    return false;
}
