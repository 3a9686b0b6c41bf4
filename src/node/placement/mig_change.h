#ifndef BH_NODE_PLACEMENT_MIG_CHANGE_H
#define BH_NODE_PLACEMENT_MIG_CHANGE_H

#include "node/core/node.h"

/* Whether instances of the GPU may be made or destroyed now for a tenant (0: none yet).  BH_CONFLICT: another
 * tenant's job runs on it, and the driver lacks the fix for CVE-2026-24197 (tables/driver_fixes.tbl).  The
 * engine does not order that; this is the second barrier. */
BH_MUST_USE bh_rc bh_mig_change_check(const struct bh_node *node, const char *gpu, uint32_t tenant,
                                      struct bh_err *err);

#endif
