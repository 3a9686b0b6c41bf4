#include "api/fixture_test.h"

#include <inttypes.h>
#include <stdio.h>

/* Of every object each tenth interval has samples, of 20 and 40. */
static bh_rc
fixture_read_series(void *self, const struct bh_series_query *query, bh_series_sink sink, void *sink_self,
                    struct bh_err *err)
{
    const struct bh_point point = { 2, 20, 40, 60 };
    struct fixture *f = self;

    snprintf(f->series_of, sizeof f->series_of, "%s %.40s of %" PRIu32,
             bh_series_kind_names[query->object.kind], query->object.name, query->object.tenant_id);
    for (uint64_t interval = query->first; interval <= query->last; interval++)
        if (interval % 10 == 0 && !sink(sink_self, interval, &point))
            break;
    return BH_OK;
}

const struct bh_series_store_ops bh_fixture_series = { .read = fixture_read_series };
