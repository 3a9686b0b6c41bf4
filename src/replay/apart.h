#ifndef BH_REPLAY_APART_H
#define BH_REPLAY_APART_H

#include "engine/read/view.h"

/* Whether all leases are as far from each other as their tenants' boundaries want,
 * worked out here from the tenants' settings alone (docs/isolation.md), not with the
 * engine's own means.  False: `ret_what` says who, in at most `size` bytes. */
bool bh_apart_check(const struct bh_engine *engine, char *ret_what, size_t size);

#endif
