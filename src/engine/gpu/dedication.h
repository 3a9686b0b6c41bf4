#ifndef BH_ENGINE_GPU_DEDICATION_H
#define BH_ENGINE_GPU_DEDICATION_H

#include "engine/state/state_internal.h"

/* Nodes that are dedicated.
 *
 * While a job of a tenant that says dedicated_nodes has a lease on a node, suspended ones
 * too, only jobs below that tenant may go there.  All leases on such a node have the same
 * innermost dedicated tenant on their way up: it is the one that the node is dedicated to,
 * and the ledger charges it for what it keeps from others (engine/gpu/ledger.h), from the
 * placement of the first lease to the departure of the last. */

/* A lease (slot) came to its node, or leaves it. */
void bh_dedication_arrive(struct bh_engine *engine, uint32_t lease);
void bh_dedication_leave(struct bh_engine *engine, uint32_t lease);

/* Around a change of the tenant tree: no node is dedicated; each is as its leases say. */
void bh_dedication_suspend(struct bh_engine *engine);
void bh_dedication_restore(struct bh_engine *engine);

/* What is not charged as the leases say, of the node or tenant `ret_id`; NULL: nothing. */
const char *bh_dedication_broken(const struct bh_engine *engine, uint64_t *ret_id);

#endif
