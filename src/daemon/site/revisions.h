#ifndef BH_DAEMON_SITE_REVISIONS_H
#define BH_DAEMON_SITE_REVISIONS_H

#include "api/documents/revision.h"
#include "daemon/state/core.h"

/* The site file's revisions at the owner (api/documents/revision.h). */

/* BH_OK when the present revision is `wanted`; BH_CONFLICT names the present one, who applied it
 * and when. */
BH_MUST_USE bh_rc bh_revision_guard(const struct bh_core *core, uint64_t wanted, struct bh_err *err);

/* Put a revision into the open transaction; the oldest goes, with its text, when there are more
 * than BH_REVISIONS_MAX. Failures of the store. */
BH_MUST_USE bh_rc bh_revision_put(struct bh_core *core, const struct bh_revision *revision,
                                  struct bh_err *err);

#endif
