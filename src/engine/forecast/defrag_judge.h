#ifndef BH_ENGINE_FORECAST_DEFRAG_JUDGE_H
#define BH_ENGINE_FORECAST_DEFRAG_JUDGE_H

#include "engine/forecast/defrag.h"
#include "engine/forecast/whatif.h"

/* What a plan brings about in a simulation: two futures of one present, without and with it.
 *
 * Saved is the waiting time that jobs pending at the beginning save, each times its GPU-equivalents; a job
 * that waits longer counts against it.  A job that does not start within the simulated time is taken to start
 * at its end. */
struct bh_defrag_verdict {
    int64_t saved_gpu_ms;
    uint64_t joined_gpu_ms; /* of a plan for no job: what the room that it joins is worth */
    uint32_t sooner, later; /* jobs */
    bool sound;             /* worth what it costs, by what was saved and joined */
};

/* `engine` is one from which the futures began, or a copy. */
void bh_defrag_judge(const struct bh_engine *engine, const struct bh_ev_move *move,
                     const struct bh_job_forecasts *before, const struct bh_job_forecasts *after,
                     struct bh_defrag_verdict *ret_verdict);

#endif
