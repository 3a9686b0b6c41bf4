#ifndef BH_ENGINE_GPU_CAPACITY_H
#define BH_ENGINE_GPU_CAPACITY_H

#include "engine/state/state_internal.h"

/* Room on GPUs as one job would find it: without the jobs that are imagined gone,
 * and without the room that is being made for others. */

enum { BH_VICTIMS_MAX = 32 };

/* A place that is imagined taken. */
struct bh_taking {
    uint32_t job; /* slot: of the holder */
    struct placement placement;
};

struct bh_search {
    const struct bh_engine *engine;
    uint32_t tenant;        /* slot: the one that wants the capacity */
    uint32_t job;           /* slot: its own claim does not stand in its way; may be 0 */
    bool past_leaving;      /* imagine leases gone that are being suspended or stopped */
    bool past_claims;       /* imagine that no capacity is kept for other jobs */
    uint32_t past;          /* bit i: claim i does not stand in its way */
    bool past_hosts;        /* imagine that nodes have all the cores and memory one wants */
    uint64_t closed;        /* bit m: it must not go onto GPUs of model m */
    uint64_t by_ns;         /* imagine leases gone that leave or end by then; 0: none */
    uint32_t excluded_node; /* node (slot) that it must not go onto; 0: none */
    uint32_t taking_count;
    const struct bh_taking *taking; /* the caller's, or NULL */
    uint32_t gone_count;
    uint32_t gone[BH_VICTIMS_MAX]; /* jobs (slots) that are imagined gone, with all leases */
};

/* The claim of another job that is in the way, or NULL. */
const struct claim *bh_capacity_claim(const struct bh_search *search, uint32_t index);

/* Whether every claim stands in the way of the search: a GPU with one is not free whole. */
bool bh_capacity_claims_bind(const struct bh_search *search);

/* Whether the GPU's health lets it have new work. */
bool bh_capacity_is_healthy(const struct gpu *gpu);

/* Whether the GPU gets new work at all. */
bool bh_capacity_offered(const struct bh_engine *engine, const struct gpu *gpu);

/* Whether it is being suspended or stopped. */
bool bh_capacity_is_leaving(const struct bh_engine *engine, uint32_t lease);

/* Whether the lease is imagined gone. */
bool bh_capacity_is_gone(const struct bh_search *search, uint32_t lease);

/* Whether no job need be preempted from the GPU: it is reset once no job uses it, before it can hold another
 * job. */
bool bh_capacity_is_futile(const struct bh_engine *engine, uint32_t gpu);

/* Whether one of these places is on such a GPU, and those imagined gone and that job (slot; 0:
 * no other) are all that holds it: it would be reset when they have left. */
bool bh_capacity_empties(const struct bh_search *search, const struct placement *placements, uint32_t count,
                         uint32_t job);

/* What stands on the GPU.  Taken room may overlap where claims do. */
void bh_capacity_occupancy(const struct bh_search *search, uint32_t gpu, struct bh_occupancy *ret_occupancy);

/* Count a place as taken, whatever stands there. */
void bh_capacity_block(struct bh_occupancy *occupancy, enum bh_gpu_model model, uint32_t profile,
                       uint32_t start);

/* Where a partition of the profile would be tried on the GPU beside places that are taken: each
 * start of a MIG profile; for a share, which fits as well in any slot, one that is free. */
uint32_t bh_capacity_starts(const struct bh_search *search, uint32_t gpu, uint32_t profile,
                            const struct placement *taken, uint32_t count);

/* Of these slots for shares (bits, not none) the lowest that no lease comes back to: neither an
 * idle partition stands there, nor did a suspended lease; else the lowest. */
uint32_t bh_capacity_slot(const struct bh_engine *engine, uint32_t gpu, uint32_t slots);

/* Whether the GPU is one that the profile may stand on: one that can be carved, or may be
 * shared.  One with a declared layout is not shared. */
bool bh_capacity_accepts(const struct gpu *gpu, uint32_t profile);

/* Whether a partition stands where another is to stand on its GPU. */
bool bh_capacity_overlaps(const struct partition *partition, uint32_t profile, uint32_t start);

/* Whether a job of the tenant may hold a partition of this profile beside those on the
 * GPU.  False: `ret_neighbor` is the job (slot) it must not stand beside. */
bool bh_capacity_beside(const struct bh_search *search, uint32_t gpu, uint32_t profile,
                        uint32_t *ret_neighbor);

/* Whether it may run on the node at all, beside jobs that want no neighbor. */
bool bh_capacity_on_node(const struct bh_search *search, uint32_t node, uint32_t *ret_neighbor);

/* Whether a lease stands far enough from all others. */
bool bh_capacity_lease_apart(const struct bh_engine *engine, uint32_t lease, struct bh_reason *ret_why);

/* What separates a job on such a partition from others: whole GPUs B, MIG C, shares F, and A for
 * tenants with nodes of their own, but for shares. */
enum bh_grade bh_capacity_grade(const struct bh_engine *engine, uint32_t tenant, uint32_t profile);

#endif
