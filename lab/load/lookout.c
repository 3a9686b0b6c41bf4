#include "lab/load/lookout.h"

#include <stdlib.h>

#include "base/assert.h"

void
bh_lookout_init(struct bh_lookout *lookout, uint64_t slot_ns)
{
    *lookout = (struct bh_lookout){ .foresight.slot_ns = slot_ns };
}

void
bh_lookout_fini(struct bh_lookout *lookout)
{
    free(lookout->foresight.rows);
    *lookout = (struct bh_lookout){ 0 };
}

uint64_t
bh_lookout_due_ns(const struct bh_lookout *lookout)
{
    return lookout->foresight.slot_ns ? lookout->next_ns : UINT64_MAX;
}

void
bh_lookout_look(struct bh_lookout *lookout, const struct bh_engine *engine, uint64_t now_ns)
{
    struct bh_forecast_series *foresight = &lookout->foresight;
    uint32_t rows = foresight->count + bh_forecast_series_needed(engine);

    if (rows > foresight->max) {
        foresight->rows = realloc(foresight->rows, rows * sizeof *foresight->rows);
        BH_ASSERT(foresight->rows);
        foresight->max = rows;
    }
    bh_forecast_series_observe(foresight, engine, now_ns);
    lookout->next_ns = now_ns + foresight->slot_ns / BH_FORECAST_SAMPLES;
}
