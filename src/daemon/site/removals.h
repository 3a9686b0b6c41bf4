#ifndef BH_DAEMON_SITE_REMOVALS_H
#define BH_DAEMON_SITE_REMOVALS_H

#include "daemon/state/core.h"

/* What a name that a site file removes still has: a removal of anything on this list is asked
 * for twice (`apply --prune`), and the list is in the record.
 *
 *   tenant     GPU-hours used, jobs, tenants below
 *   principal  jobs, tokens that are valid, an account, passkeys, sessions
 *   SKU        jobs that have not ended; the plan is refused before it comes to this
 *   dataset    running jobs that mount it */

struct bh_removal {
    enum bh_name_kind kind;
    uint32_t id;
    const uint32_t *tenants; /* that the same file removes: their jobs are cancelled */
    uint32_t tenant_count;
};

/* Append "tenants[acme/vision]: 1.500 GPU-hours used, 3 jobs (1 not ended: it is cancelled)" and the line's
 * end when the name of that id has anything. Nothing is appended for other kinds. Failures of the store. */
BH_MUST_USE bh_rc bh_removal_put(struct bh_core *core, const struct bh_removal *removal, struct bh_buf *out,
                                 struct bh_err *err);

#endif
