#include "engine/step/engine.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gpu/node_index.h"
#include "engine/gpu/pool.h"
#include "engine/preempt/move.h"
#include "engine/queue/preemptible.h"
#include "engine/queue/queue.h"
#include "engine/state/slots.h"

#define MAGIC 0x656e69676e654842ull /* "BHengine" */

/* Where everything stands in a block of these capacities; returns its length. */
static uint64_t
lay_out(struct bh_engine *header, const struct bh_engine_caps *caps)
{
    uint64_t end = bh_slots_layout(header->tables, caps, sizeof(*header));

    header->hints.class_offset = end;
    end += ((uint64_t)caps->classes + 1) * sizeof(struct hint);
    header->hints.lease_offset = end;
    end += ((uint64_t)caps->leases + 1) * sizeof(struct hint);
    header->hints.tenant_offset = end;
    end += ((uint64_t)caps->tenants + 1) * sizeof(struct tenant_hint);
    header->hints.node_offset = end;
    end += ((uint64_t)caps->nodes + 1) * sizeof(struct node_hint);
    header->hints.preemptible_offset = end;
    end += ((uint64_t)caps->leases + 1) * sizeof(struct preemptible);
    header->hints.queue_offset = end;
    end += ((uint64_t)caps->classes + caps->leases) * sizeof(struct bh_queue_entry);
    header->hints.figures_offset = end = (end + 15) & ~(uint64_t)15;
    end += POOLS_MAX * bh_pool_bytes();
    header->hints.node_index_offset = end = (end + 63) & ~(uint64_t)63;
    end += bh_node_index_bytes(caps);
    return end;
}

size_t
bh_engine_size(const struct bh_engine_caps *caps)
{
    struct bh_engine header;

    return (size_t)lay_out(&header, caps);
}

struct bh_engine *
bh_engine_init(void *memory, const struct bh_engine_caps *caps)
{
    struct bh_engine *engine = memory;

    BH_ASSERT(((uintptr_t)memory & 15) == 0);
    memset(memory, 0, bh_engine_size(caps));
    engine->length = lay_out(engine, caps);
    engine->magic = MAGIC;
    engine->layout = BH_ENGINE_LAYOUT;
    engine->caps = engine->wanted = *caps;
    engine->core.next_lease = engine->core.next_partition = 1;
    engine->core.next_sequence = engine->core.generation = engine->core.window = 1;
    engine->core.settings.half_life_ns = BH_HALF_LIFE_DEFAULT_NS;
    engine->core.settings.assumed_run_ns = BH_ASSUMED_RUN_DEFAULT_NS;
    engine->core.settings.backfill = true;
    bh_move_configure(engine, &(struct bh_defrag){ .mode = BH_DEFRAG_OFF });
    engine->hints.hopeless_ns = UINT64_MAX;
    return engine;
}

struct bh_engine *
bh_engine_grow(const struct bh_engine *engine, void *memory, const struct bh_engine_caps *caps)
{
    struct bh_engine *grown = bh_engine_init(memory, caps);

    memcpy(&grown->core, &engine->core, sizeof(grown->core));
    grown->hints.hopeless_ns = engine->hints.hopeless_ns;
    for (uint32_t i = 0; i < TABLES; i++) {
        const struct table *from = &engine->tables[i];
        struct table *to = &grown->tables[i];

        BH_ASSERT(to->capacity >= from->high);
        memcpy((char *)memory + to->offset, (const char *)engine + from->offset,
               ((size_t)from->high + 1) * from->slot_size);
        to->high = from->high;
        to->live = from->live;
        to->free_head = from->free_head;
        bh_slots_reindex(grown, (enum table_kind)i);
    }
    bh_pool_restore(grown);
    bh_preemptible_copy(grown, engine);
    return grown;
}

/* Whether the tables are where this build would put them. */
static bool
is_laid_out(const struct bh_engine *engine)
{
    struct bh_engine want;

    if (lay_out(&want, &engine->caps) != engine->length)
        return false;
    for (uint32_t i = 0; i < TABLES; i++) {
        const struct table *have = &engine->tables[i], *table = &want.tables[i];

        if (have->offset != table->offset || have->index_offset != table->index_offset
            || have->capacity != table->capacity || have->index_mask != table->index_mask
            || have->slot_size != table->slot_size || have->high > have->capacity || have->live > have->high
            || have->free_head > have->high)
            return false;
    }
    return want.hints.class_offset == engine->hints.class_offset
           && want.hints.lease_offset == engine->hints.lease_offset
           && want.hints.tenant_offset == engine->hints.tenant_offset
           && want.hints.node_offset == engine->hints.node_offset
           && want.hints.preemptible_offset == engine->hints.preemptible_offset
           && want.hints.queue_offset == engine->hints.queue_offset
           && want.hints.figures_offset == engine->hints.figures_offset
           && want.hints.node_index_offset == engine->hints.node_index_offset;
}

struct bh_engine *
bh_engine_adopt(void *bytes, size_t length)
{
    struct bh_engine *engine = bytes;

    if (((uintptr_t)bytes & 15) != 0 || length < sizeof(*engine))
        return NULL;
    if (engine->magic != MAGIC || engine->layout != BH_ENGINE_LAYOUT || engine->length != length)
        return NULL;
    return is_laid_out(engine) ? engine : NULL;
}

struct bh_engine_caps
bh_engine_caps(const struct bh_engine *engine)
{
    return engine->caps;
}

struct bh_engine_caps
bh_engine_wanted(const struct bh_engine *engine)
{
    return engine->wanted;
}
