#ifndef BH_ENGINE_GPU_HOST_H
#define BH_ENGINE_GPU_HOST_H

#include "engine/gpu/capacity.h"

/* Cores and memory of nodes, as jobs take them: so much for each member on its node.
 *
 * A member holds cores while it holds its partitions, and memory until it is gone: one that is
 * suspended stays in memory.  What a node has not reported is not limited, and a job that
 * asks for nothing takes nothing.  Room that is kept for others (claims, reservations)
 * keeps cores and memory for their members, too. */

/* How many more members of the search's job the node has cores and memory for, in what is
 * imagined; UINT32_MAX when they take none. */
uint32_t bh_host_capacity(const struct bh_search *search, uint32_t node);

/* Where that is 0: whether it is for want of cores; else of memory. */
bool bh_host_lacks_cores(const struct bh_search *search, uint32_t node);

/* The same if the node were empty. */
uint32_t bh_host_capacity_ever(const struct bh_engine *engine, uint32_t job, uint32_t node);

/* As bh_engine_hosts_ever. */
bool bh_host_accepts_ever(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                          struct bh_reason *ret_why);

/* Why the nodes that have GPUs of its SKU's models could not hold all members of the job (slot) even if they
 * were empty: NEVER_CORES or NEVER_MEMORY. */
struct bh_reason bh_host_why_never(const struct bh_engine *engine, uint32_t job);

/* Whether the job is one that stays, a service or interactive, not a batch job. */
bool bh_host_lasts(const struct job *job);

/* A lease comes to its node, gives back its cores for a while, takes them again, and goes. */
void bh_host_arrive(struct bh_engine *engine, uint32_t lease);
void bh_host_rest(struct bh_engine *engine, uint32_t lease);
void bh_host_return(struct bh_engine *engine, uint32_t lease);
void bh_host_leave(struct bh_engine *engine, uint32_t lease);

/* Whether node.cpu_used, memory_used, leases and lasting are what its leases take together, for all
 * nodes; false: `ret_node` (slot, or 0 for the sum of all) is wrong. */
bool bh_host_check(const struct bh_engine *engine, uint32_t *ret_node);

#endif
