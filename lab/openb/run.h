#ifndef BH_LAB_OPENB_RUN_H
#define BH_LAB_OPENB_RUN_H

#include "lab/openb/load.h"
#include "lab/openb/order.h"

enum { BH_OPENB_POINTS = 131 }; /* load arrived: 0 .. 130 % of the cluster's GPUs */

/* Which of many. */
struct bh_openb_name {
    const char *variant;
    enum bh_pack_policy policy;
    uint64_t seed;
};

/* One filling of the cluster: pods come in order, each stays where it is placed, and one
 * that fits nowhere is gone. */
struct bh_openb_plan {
    const struct bh_openb_trace *trace;
    const struct bh_openb_load *load;
    const struct bh_openb_order *order;
    enum bh_pack_policy policy;
    uint32_t scale; /* the cluster so many times, and all arrivals, one round after another */
    bool latency;   /* take the time of each decision, which slows the whole */
};

struct bh_openb_result {
    /* Mean allocation over the arrivals of each percent of load, in percent of all GPUs,
     * each arrival's rounded to hundredths first; below 0 where none arrived. */
    double point[BH_OPENB_POINTS];
    uint64_t arrivals, placed;
    uint32_t nodes;
    uint64_t gpus;
    uint64_t span_ns;                 /* of building the index and all decisions */
    uint64_t cpu_ns;                  /* of this, on a processor: the rest the thread waited for one */
    uint64_t tables_ns;               /* of this, for making the index's tables */
    uint64_t fragmented;              /* in the end: parts of GPUs that an expected pod cannot use, in the
                                         mean over them; those of full GPUs not counted */
    uint64_t p50_ns, p99_ns, p999_ns; /* of a decision, with `latency` */
};

/* BH_RANGE: more kinds of pods, nodes or arrivals than the index takes. */
BH_MUST_USE bh_rc bh_openb_run(const struct bh_openb_plan *plan, struct bh_openb_result *ret_result,
                               struct bh_err *err);

#endif
