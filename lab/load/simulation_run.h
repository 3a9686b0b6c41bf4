#ifndef BH_LAB_LOAD_SIMULATION_RUN_H
#define BH_LAB_LOAD_SIMULATION_RUN_H

#include "lab/load/meter.h"
#include "lab/load/simulation_plan.h"

/* A load driven through the real engine in simulated time, fast.
 *
 * The engine is the daemon's archive, its events the daemon's events.  What the engine
 * orders is answered after constant delays; a job ends by itself when its work is done.  A
 * suspended job keeps its progress, a requeued one begins anew.  Where bh_world checks
 * everything after every step and models failures, a simulation run counts and measures: it is for
 * loads of any length.
 *
 * The same plan gives the same run, but for the fields named wall. */

/* What became of a job. */
struct bh_simulation_end {
    uint64_t first_start_ns, last_start_ns; /* UINT64_MAX: never */
    uint64_t end_ns;                        /* UINT64_MAX: it did not end */
    bh_part_ns lost;                        /* work done and thrown away */
    uint32_t preemptions, suspensions;
    enum bh_end_cause cause;
};

/* How long steps took: bucket b counts those of about 2^(b / 4) ns. */
enum { BH_SIMULATION_BUCKETS = 160 };

struct bh_simulation_run {
    struct bh_simulation_end *ends; /* job_count of them */
    struct bh_meter *meter;         /* tenants in the plan's order; closed */
    uint64_t makespan_ns;           /* when the last job ended */
    uint64_t steps, decisions, preemptions;
    uint64_t late;           /* answers that fitted no more, and were dropped */
    uint64_t record_bytes;   /* when encoding */
    uint32_t ended, refused; /* jobs; refused at submission */
    uint32_t grown;          /* how often the block was replaced by a bigger one */
    size_t block_bytes;      /* in the end */
    uint64_t wall_step_ns, wall_encode_ns, wall_slowest_ns, wall_total_ns;
    uint64_t wall_cpu_ns; /* of the process meanwhile: distinguishes a busy machine from a slow engine */
    uint64_t wall_steps[BH_SIMULATION_BUCKETS];
};

/* Run the plan to its end: until nothing is to come.  Release with bh_simulation_run_fini on every
 * outcome.
 *   BH_INVALID  the engine refuses a part of the site; the plan's jobs are not in order
 *   BH_BUG      an invariant is broken, or the engine orders what makes no sense */
BH_MUST_USE bh_rc bh_simulation_run_play(const struct bh_simulation_plan *plan,
                                         struct bh_simulation_run *ret_run, struct bh_err *err);
void bh_simulation_run_fini(struct bh_simulation_run *run);

/* Nanoseconds that at least `permille` of 1000 steps did not exceed, to within a quarter of
 * a power of two. */
uint64_t bh_simulation_run_step_quantile_ns(const struct bh_simulation_run *run, uint32_t permille);

#endif
