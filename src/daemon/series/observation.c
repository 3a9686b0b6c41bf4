#include "daemon/series/observation.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/vec.h"

void
bh_observation_init(struct bh_observation *observation, struct bh_arena *arena)
{
    *observation = (struct bh_observation){ .arena = arena };
}

void
bh_observation_fini(struct bh_observation *observation)
{
    free(observation->values);
}

void
bh_observation_put(struct bh_observation *observation, const struct bh_series_object *object,
                   enum bh_series_row row, uint64_t value)
{
    BH_ASSERT(bh_series_rows[row].kind == object->kind);
    if (!object->name || !object->name[0] || strlen(object->name) > BH_SERIES_NAME_MAX)
        return;
    if (bh_vec_reserve(&observation->values, &observation->capacity, (size_t)observation->count + 1,
                       BH_OBSERVED_MAX))
        observation->values[observation->count++] = (struct bh_observed_value){ *object, row, value };
}
