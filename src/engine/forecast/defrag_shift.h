#ifndef BH_ENGINE_FORECAST_DEFRAG_SHIFT_H
#define BH_ENGINE_FORECAST_DEFRAG_SHIFT_H

#include "engine/preempt/move.h"

/* Jobs that are imagined moved together, and where to; without changing anything. */
struct bh_shift {
    const struct bh_engine *engine;
    uint32_t for_job;                  /* slot: the job that all moves are for, or 0 */
    uint32_t past;                     /* claims that are not minded: what is reserved for it */
    uint32_t avoid_gpu, excluded_node; /* GPU (id) and node (slot) that no job moves onto; 0 */
    uint32_t jobs[BH_MOVES_MAX];       /* slots */
    uint32_t job_count, partitions;    /* and partitions of all, with those of for_job */
    uint32_t most_jobs;                /* what the budget allows */
    uint64_t lost_gpu_ms;
    bh_part_ns cost;
    struct bh_taking taking[BH_MOVE_PLACEMENTS_MAX]; /* of for_job, then of the jobs in order */
    uint32_t taking_count;
};

/* No job moves yet, within what is left of the budget. */
void bh_shift_init(struct bh_shift *shift, const struct bh_engine *engine);

/* The job (slot) moves, too: true, also when it does already.  False: it must not, or it
 * would be too many or too dear. */
bool bh_shift_add(struct bh_shift *shift, uint32_t job);

/* The same of all jobs on a GPU (slot). */
bool bh_shift_empty(struct bh_shift *shift, uint32_t gpu);

/* It stays (by its number in `jobs`). */
void bh_shift_drop(struct bh_shift *shift, uint32_t at);

/* What a search sees when the jobs are gone, and those with new placements have taken them. */
void bh_shift_imagine(const struct bh_shift *shift, struct bh_search *search);

/* A place is taken. */
void bh_shift_take(struct bh_shift *shift, uint32_t job, const struct placement *placement);

/* Find a new placement for each of them, of the same size on the same GPU model, the largest first.  False:
 * one of them finds none. */
bool bh_shift_place(struct bh_shift *shift);

/* As an event, with what is gained; false when the engine would not take it. */
bool bh_shift_write(const struct bh_shift *shift, bh_part_ns gain, struct bh_ev_move *ret_move);

#endif
