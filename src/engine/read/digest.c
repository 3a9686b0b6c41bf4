#include "engine/read/digest.h"

#include "engine/state/slots.h"

void
bh_engine_digest(const struct bh_engine *engine, void (*put)(void *self, const void *bytes, size_t length),
                 void *self)
{
    put(self, &engine->core, sizeof(engine->core));
    for (uint32_t i = 0; i < TABLES; i++) {
        const struct table *table = &engine->tables[i];
        uint32_t counts[3] = { table->high, table->live, table->free_head };

        put(self, counts, sizeof(counts));
        put(self, bh_slot_at(engine, (enum table_kind)i, 1), (size_t)table->high * table->slot_size);
    }
}
