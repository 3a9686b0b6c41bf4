#include "daemon/state/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/vec.h"
#include "daemon/names/catalog.h"

/* Asked before the batch's first text of the tenant is put, as readers do not see that one. */
static bh_rc
find_count(struct bh_core *core, uint32_t tenant, struct bh_text_count **ret_count, struct bh_err *err)
{
    struct bh_text_counts *counts = &core->text_counts;
    struct bh_text_count *count;
    bh_rc rc;

    if (tenant >= counts->capacity) {
        bool fits =
            bh_vec_reserve(&counts->items, &counts->capacity, (size_t)tenant + 1, BH_CATALOG_NAMES_MAX);

        BH_ASSERT(fits);
    }
    count = &counts->items[tenant];
    *ret_count = count;
    if (count->known)
        return BH_OK;
    rc = core->store.ops->count_texts(core->store.self, tenant, &count->bytes, err);
    count->known = rc == BH_OK;
    return rc;
}

bh_rc
bh_texts_bytes(struct bh_core *core, uint32_t tenant, uint64_t *ret_bytes, struct bh_err *err)
{
    struct bh_text_count *count;
    bh_rc rc = find_count(core, tenant, &count, err);

    if (rc != BH_OK)
        return rc;
    *ret_bytes = count->bytes;
    return BH_OK;
}

bh_rc
bh_texts_put(struct bh_core *core, const struct bh_text_row *row, struct bh_err *err)
{
    struct bh_text_count *count;
    bh_rc rc = find_count(core, row->tenant_id, &count, err);

    if (rc != BH_OK)
        return rc;
    rc = core->store.ops->put_text(core->store.self, row, err);
    if (rc != BH_OK)
        return rc;
    count->bytes += row->text.length;
    return BH_OK;
}

void
bh_texts_forget(struct bh_core *core)
{
    struct bh_text_counts *counts = &core->text_counts;

    counts->dropped = false;
    if (counts->capacity)
        memset(counts->items, 0, counts->capacity * sizeof *counts->items);
}

void
bh_texts_free(struct bh_core *core)
{
    free(core->text_counts.items);
}
