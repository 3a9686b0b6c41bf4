#ifndef BH_ENGINE_GPU_CANDIDATES_H
#define BH_ENGINE_GPU_CANDIDATES_H

#include "engine/state/mig.h"
#include "engine/state/state_internal.h"

/* Where on a GPU a partition goes: the starts that cost jobs to come least, by what stands there.
 *
 * GPUs with the same occupancy have the same best starts, and most GPUs of a fleet look
 * alike: the last few answers are remembered. */

struct bh_candidate_starts {
    struct bh_occupancy occupancy;
    uint32_t starts; /* bits; 0: no room */
    int64_t growth;  /* what they cost */
};

enum { BH_CANDIDATES_CACHE = 16 };

/* Contents are for candidates.c. */
struct bh_candidates {
    enum bh_gpu_model model;
    uint32_t profile;
    const struct bh_mig *figures; /* and prices; NULL: by fragmentation */
    struct bh_mig_prices prices;
    struct bh_candidate_starts memos[BH_CANDIDATES_CACHE];
};

/* For a profile on GPUs of a model: MIG profiles by how much the free part is broken up, shares
 * (which have all free slots) by how much is left. */
void bh_candidates_init(struct bh_candidates *starts, uint32_t model, uint32_t profile);

/* By what room is worth (engine/gpu/pool.h), where the model has prices. */
void bh_candidates_price(struct bh_candidates *starts, const struct bh_engine *engine, uint32_t model);

/* The best ones on a GPU that stands so; good until the next call. */
const struct bh_candidate_starts *bh_candidates_find(struct bh_candidates *starts,
                                                     const struct bh_occupancy *occupancy);

#endif
