#include "api/documents/minimum.h"

#include <inttypes.h>

#include "base/num.h"

enum { TEXT_MAX = 4096 };

bh_rc
bh_minimum_read(const struct bh_store *store, uint64_t *ret_minimum, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(TEXT_MAX);
    const char *text;
    uint64_t minimum = 0;
    bh_rc rc = store->ops->get_meta(store->self, BH_META_MINIMUM, arena, &text, err);

    if (rc == BH_OK && bh_parse_u64(text, &minimum, err) != BH_OK)
        return bh_err_set(err, BH_BUG, "the store's \"" BH_META_MINIMUM "\" is no number");
    if (rc == BH_OK || rc == BH_NOT_FOUND)
        *ret_minimum = minimum;
    return rc == BH_NOT_FOUND ? BH_OK : rc;
}

bh_rc
bh_minimum_check(const struct bh_store *store, uint64_t seq, struct bh_err *err)
{
    uint64_t minimum;
    bh_rc rc = bh_minimum_read(store, &minimum, err);

    if (rc != BH_OK || seq >= minimum)
        return rc;
    bh_err_set(err, BH_NOT_FOUND, "record %" PRIu64 " was pruned: the log has its hash alone", seq);
    return bh_err_hint(err,
                       "bulkhead audit show %" PRIu64 " --export FOLDER reads it in the folder that it was "
                       "pruned into, which proves it by itself",
                       seq);
}
