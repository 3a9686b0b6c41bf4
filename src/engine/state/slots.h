#ifndef BH_ENGINE_STATE_SLOTS_H
#define BH_ENGINE_STATE_SLOTS_H

#include "base/assert.h"
#include "engine/state/state_internal.h"

/* Slot tables: records of one size in the engine's block, found by id through an
 * open-addressing index.  Freed slots are zeroed and used again last-in first-out,
 * so that the same history gives the same bytes whatever the capacities. */

/* Lay the tables out behind `start`; returns where the last one ends. */
uint64_t bh_slots_layout(struct table tables[TABLES], const struct bh_engine_caps *caps, uint64_t start);

/* What stands at an offset of the block.  Tables are laid out aligned, and readers of
 * a const engine do not write through it. */
static inline void *
bh_block_at(const struct bh_engine *engine, uint64_t offset)
{
    return (char *)(uintptr_t)engine + offset;
}

/* The slot's record; slot 0 is a record of zeroes that is never written. */
static inline void *
bh_slot_at(const struct bh_engine *engine, enum table_kind kind, uint32_t slot)
{
    const struct table *table = &engine->tables[kind];

    return bh_block_at(engine, table->offset + (uint64_t)slot * table->slot_size);
}

/* The slot with that id, or 0. */
uint32_t bh_slot_find(const struct bh_engine *engine, enum table_kind kind, uint64_t id);

/* A zeroed slot for a new id; there must be room. */
uint32_t bh_slot_add(struct bh_engine *engine, enum table_kind kind, uint64_t id);

void bh_slot_remove(struct bh_engine *engine, enum table_kind kind, uint32_t slot);

/* How many more slots the table has. */
uint32_t bh_slots_free(const struct bh_engine *engine, enum table_kind kind);

/* Fill the table's index from its live slots. */
void bh_slots_reindex(struct bh_engine *engine, enum table_kind kind);

#define BH_SLOT_ACCESSOR(noun, table_kind_of)                                                                \
    static inline struct noun *noun##_at(const struct bh_engine *engine, uint32_t slot)                      \
    {                                                                                                        \
        return bh_slot_at(engine, table_kind_of, slot);                                                      \
    }                                                                                                        \
    static inline uint32_t noun##_find(const struct bh_engine *engine, uint64_t id)                          \
    {                                                                                                        \
        return bh_slot_find(engine, table_kind_of, id);                                                      \
    }
BH_SLOT_ACCESSOR(tenant, TABLE_TENANT)
BH_SLOT_ACCESSOR(sku, TABLE_SKU)
BH_SLOT_ACCESSOR(node, TABLE_NODE)
BH_SLOT_ACCESSOR(gpu, TABLE_GPU)
BH_SLOT_ACCESSOR(job, TABLE_JOB)
BH_SLOT_ACCESSOR(lease, TABLE_LEASE)
BH_SLOT_ACCESSOR(partition, TABLE_PARTITION)
BH_SLOT_ACCESSOR(class, TABLE_CLASS)
BH_SLOT_ACCESSOR(gpu_group, TABLE_GPU_GROUP)
BH_SLOT_ACCESSOR(metered, TABLE_METERED)
#undef BH_SLOT_ACCESSOR

/* The next partition on the same GPU, and the next GPU on the same node; 0 is none. */
static inline uint32_t
bh_partition_after(const struct bh_engine *engine, uint32_t slot)
{
    const struct partition *partition = partition_at(engine, slot);
    uint32_t next = partition->next_on_gpu;

    BH_ASSERT(next == 0 || (partition_at(engine, next)->gpu == partition->gpu && next != slot));
    return next;
}

static inline uint32_t
bh_gpu_after(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    uint32_t next = gpu->next_on_node;

    BH_ASSERT(next == 0 || (gpu_at(engine, next)->node == gpu->node && gpu_at(engine, next)->id > gpu->id));
    return next;
}

/* for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) */
bool bh_slot_next(const struct bh_engine *engine, enum table_kind kind, uint32_t *slot);

static inline struct hint *
bh_class_hint(const struct bh_engine *engine, uint32_t slot)
{
    return (struct hint *)bh_block_at(engine, engine->hints.class_offset) + slot;
}

static inline struct hint *
bh_lease_hint(const struct bh_engine *engine, uint32_t slot)
{
    return (struct hint *)bh_block_at(engine, engine->hints.lease_offset) + slot;
}

static inline struct node_hint *
bh_node_hint(const struct bh_engine *engine, uint32_t slot)
{
    return (struct node_hint *)bh_block_at(engine, engine->hints.node_offset) + slot;
}

static inline struct tenant_hint *
bh_tenant_hint(const struct bh_engine *engine, uint32_t slot)
{
    return (struct tenant_hint *)bh_block_at(engine, engine->hints.tenant_offset) + slot;
}

#endif
