#ifndef BH_ENGINE_GPU_UNCHECKED_H
#define BH_ENGINE_GPU_UNCHECKED_H

#include "engine/state/work_internal.h"

/* Nodes on which jobs fail to start (docs/adr/0056-failed-starts.md).
 *
 * Two failed starts in a row, of different jobs, put a node aside: it gets no new work until it
 * passed a check of its own or an operator uncordons it.  A tenant can make its own starts fail, so
 * the two must be of different tenants, unless no other has a job there or waits; and a node that
 * passed is not put aside again for a minute.  Only the check, in which no tenant has a part, keeps
 * a node aside for longer. */

#define BH_UNCHECKED_REST_NS UINT64_C(60000000000)

/* A start of the job (slot) failed on the node (slot), and nothing that the job asks for is known to
 * be why. */
void bh_unchecked_count_failure(struct work *work, uint32_t node, uint32_t job);

/* A start came well there. */
void bh_unchecked_forget(struct bh_engine *engine, uint32_t node);

/* The node is no longer put aside. */
void bh_unchecked_clear(struct work *work, uint32_t node);

/* The outcome of a check: it stays aside, or it is put aside, when it failed. */
void bh_unchecked_checked(struct work *work, const struct bh_ev_checked *checked);

#endif
