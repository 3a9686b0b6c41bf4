#ifndef BH_ENGINE_PART_H
#define BH_ENGINE_PART_H

#include "engine/work_internal.h"

/* The pieces that GPUs are carved into: slots of TABLE_PART, chained on their GPU.
 * Each change here keeps the GPU's occupancy, its ledger split and its tenant's
 * rates in step. */

/* Between tries to destroy what would not go. */
#define BH_PART_RETRY_NS UINT64_C(30000000000)

/* A new piece to be carved for a lease; idle pieces in its way are destroyed first.
 * Orders the effects. */
uint32_t bh_part_carve(struct work *work, const struct bh_piece *piece, uint32_t lease);

/* The carving came out well: the piece is its lease's, or idle when that is gone. */
void bh_part_ready(struct work *work, uint32_t part);

/* An idle piece goes to a lease of the tenant that held it last. */
void bh_part_lend(struct work *work, uint32_t part, uint32_t lease);

/* A lease lets go of a piece: idle, or left to finish its carving. */
void bh_part_return(struct work *work, uint32_t part);

/* An idle piece is destroyed for a tenant (id), or for nobody yet (0). */
void bh_part_clear(struct work *work, uint32_t part, uint32_t tenant);

/* What shares of the GPU may have follows from what the site says, and from what they were sold
 * by while there are any. */
void bh_part_limit_shares(struct gpu *gpu);

/* The GPU's node went or came back: what its leases cost is kept aside, or charged to whose they
 * are.  ADR 0064. */
void bh_part_node_turned(struct work *work, uint32_t gpu);

/* The parts that a piece of this profile is charged with on the GPU: of a share on one that is
 * oversubscribed, the compute that it has left when all want theirs, rounded down. */
struct bh_parts bh_part_charge(const struct gpu *gpu, uint32_t profile);

/* The piece is no more. */
void bh_part_drop(struct work *work, uint32_t part);

/* The carving failed, or a leased piece was found missing: dropped when its lease
 * lets go. */
void bh_part_lose(struct work *work, uint32_t part);

/* Destroying it failed: nothing may stand there until it is gone.  It is tried again after
 * a while, and when its node or GPU comes back. */
void bh_part_stick(struct work *work, uint32_t part);

/* Its scrub failed: what the last tenant left may still be there.  Nobody gets the place; the
 * piece is tried again with growing pauses, BH_UNCLEAN_TRIES times, and then not before
 * somebody asks for it (bh_part_absolve). */
enum { BH_UNCLEAN_TRIES = 6 };
void bh_part_mark_unclean(struct work *work, uint32_t part);

/* A carved piece that is unclean and has no lease any more is kept, as one that could not be
 * destroyed. */
void bh_part_quarantine(struct work *work, uint32_t part);

/* The unclean pieces of a GPU are tried again like any other that is stuck.  An operator asks
 * for it; today by taking a GPU's cordon off. */
void bh_part_absolve(struct work *work, uint32_t gpu);

/* Whether a stuck piece is left alone until somebody asks for it. */
bool bh_part_is_given_up(const struct bh_engine *engine, uint32_t part);

/* When a tick should try the GPU's stuck pieces again, or UINT64_MAX. */
uint64_t bh_gpu_retry_ns(const struct bh_engine *engine, uint32_t gpu);

#endif
