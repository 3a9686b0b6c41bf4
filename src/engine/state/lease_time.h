#ifndef BH_ENGINE_STATE_LEASE_TIME_H
#define BH_ENGINE_STATE_LEASE_TIME_H

#include "engine/state/state_internal.h"

/* How long a lease (slot) has run, and until when it may. */

/* How long it has run, time suspended not counted. */
uint64_t bh_lease_ran_ns(const struct bh_engine *engine, uint32_t lease);

/* When its time limit strikes or its job's deadline, or UINT64_MAX. */
uint64_t bh_lease_deadline_ns(const struct bh_engine *engine, uint32_t lease);

/* When it will have left its partitions, as far as one can tell: by its deadline, else by the
 * assumed run time since it began (as often over as it takes to lie ahead). */
uint64_t bh_lease_ends_ns(const struct bh_engine *engine, uint32_t lease);

#endif
