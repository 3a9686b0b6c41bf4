#ifndef BH_LAB_LOAD_COURSE_H
#define BH_LAB_LOAD_COURSE_H

#include "engine/step/engine.h"
#include "lab/load/meter.h"

/* A load driven through the real engine in simulated time, fast.
 *
 * The engine is the daemon's archive, its events the daemon's events.  What the engine
 * orders is answered after constant delays; a job ends by itself when its work is done.  A
 * suspended job keeps its progress, a requeued one begins anew.  Where bh_world checks
 * everything after every step and models failures, a course counts and measures: it is for
 * loads of any length.
 *
 * The same plan gives the same course, but for the fields named wall. */

/* So many nodes alike.  Their ids, and those of their GPUs, are given in order from 1. */
struct bh_course_rack {
    uint32_t nodes, gpus_each;
    uint32_t model; /* enum bh_gpu_model */
    bool mig_capable;
};

struct bh_course_site {
    const struct bh_course_rack *racks;
    const struct bh_ev_sku *skus;
    const struct bh_ev_tenant *tenants; /* parents before children */
    uint32_t rack_count, sku_count, tenant_count;
};

/* Job number i of a plan has the id i + 1. */
struct bh_course_job {
    uint64_t submit_ns;
    uint64_t work_ns;       /* how long it runs, undisturbed */
    uint64_t time_limit_ns; /* 0: none */
    bh_tenant_id tenant;
    bh_sku_id sku;
    uint32_t count; /* partitions on one node */
    uint32_t gang;  /* such members; 0 and 1 are a single one */
    enum bh_priority priority;
    enum bh_contract contract;
};

struct bh_course_plan {
    struct bh_course_site site;
    const struct bh_course_job *jobs; /* by submit_ns */
    uint32_t job_count;
    struct bh_ev_settings settings;               /* a half-life of 0 takes the engine's default */
    uint64_t delays_ns[BH_EFFECT_KINDS];          /* from an order to its answer */
    uint64_t slot_ns;                             /* of the forecasts that the engine is told; 0: none */
    uint64_t window_ns;                           /* of the meter; 0 takes an hour */
    uint32_t check_every;                         /* steps between bh_engine_check; 0: never */
    bool encode;                                  /* write each step's journal record */
    const struct bh_engine_caps *caps;            /* of the first block; NULL: the default */
    void (*progress)(void *self, uint32_t ended); /* may be NULL; about 100 times */
    void *self;
};

/* What became of a job. */
struct bh_course_end {
    uint64_t first_start_ns, last_start_ns; /* UINT64_MAX: never */
    uint64_t end_ns;                        /* UINT64_MAX: it did not end */
    bh_part_ns lost;                        /* work done and thrown away */
    uint32_t preemptions, suspensions;
    enum bh_end_cause cause;
};

/* How long steps took: bucket b counts those of about 2^(b / 4) ns. */
enum { BH_COURSE_BUCKETS = 160 };

struct bh_course {
    struct bh_course_end *ends; /* job_count of them */
    struct bh_meter *meter;     /* tenants in the plan's order; closed */
    uint64_t makespan_ns;       /* when the last job ended */
    uint64_t steps, decisions, preemptions;
    uint64_t late;           /* answers that fitted no more, and were dropped */
    uint64_t record_bytes;   /* when encoding */
    uint32_t ended, refused; /* jobs; refused at submission */
    uint32_t grown;          /* how often the block was replaced by a bigger one */
    size_t block_bytes;      /* in the end */
    uint64_t wall_step_ns, wall_encode_ns, wall_slowest_ns, wall_total_ns;
    uint64_t wall_cpu_ns; /* of the process meanwhile: tells a busy machine from a slow engine */
    uint64_t wall_steps[BH_COURSE_BUCKETS];
};

/* Parts of a GPU that the job holds while it runs, by the first model of its SKU. */
uint64_t bh_course_job_parts(const struct bh_course_site *site, const struct bh_course_job *job);

/* Run the plan to its end: until nothing is to come.  Release with bh_course_fini on every
 * outcome.
 *   BH_INVALID  the engine refuses a part of the site; the plan's jobs are not in order
 *   BH_BUG      an invariant is broken, or the engine orders what makes no sense */
BH_MUST_USE bh_rc bh_course_run(const struct bh_course_plan *plan, struct bh_course *ret_course,
                                struct bh_err *err);
void bh_course_fini(struct bh_course *course);

/* Nanoseconds that at least `permille` of 1000 steps did not exceed, to within a quarter of
 * a power of two. */
uint64_t bh_course_step_quantile_ns(const struct bh_course *course, uint32_t permille);

#endif
