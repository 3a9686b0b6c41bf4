#ifndef BH_ENGINE_READ_WHY_HOLDER_H
#define BH_ENGINE_READ_WHY_HOLDER_H

#include "engine/state/state_internal.h"

/* Who holds what a job waits for, and when it leaves. */

bh_job_id bh_why_job_of_lease(const struct bh_engine *engine, uint32_t lease);
bool bh_why_is_stopping(const struct bh_engine *engine, uint32_t lease);

/* By when the lease has left at the latest: a limit strikes, whether it counts already or not, or
 * the grace is over of one that was ordered to end.  UINT64_MAX: not known. */
uint64_t bh_why_leaves_by_ns(const struct bh_engine *engine, uint32_t lease);

/* Name the lease that frees up first; one of which it is not known counts as never. */
void bh_why_name_holder(const struct bh_engine *engine, uint32_t lease, struct bh_reason *reason);

/* A limit that holds a job back. */
struct bh_why_limit {
    enum bh_reason_code code;
    uint32_t whose; /* tenant (slot); 0: of the site, or of a user */
    uint32_t sku, model, principal;
};

/* Name the lease with whose end there is enough under the limit: those that leave before it are not enough.
 */
void bh_why_name_quota_holder(const struct bh_engine *engine, const struct bh_why_limit *limit,
                              struct bh_reason *reason);

#endif
