#ifndef BH_LAB_LOAD_KUEUE_H
#define BH_LAB_LOAD_KUEUE_H

#include "lab/load/load.h"

/* Kueue's baseline load for schedulers, as its test/performance/scheduler/configs/baseline/
 * generator.yaml describes it: 5 cohorts of 6 queues with a nominal quota of 20 units and a
 * borrowing limit of 100, and 500 workloads a queue.
 *
 * A unit is one whole GPU; the 600 units are 75 nodes of 8.  A cohort is an organization
 * limited to its 120 units, a queue a project guaranteed 20 and limited to 120.  Kueue's
 * units have no nodes, so here a workload of 5 is a gang of 5 members of 1 and one of 20 a
 * gang of 5 members of 4. */

enum { BH_KUEUE_SMALL, BH_KUEUE_MEDIUM, BH_KUEUE_LARGE, BH_KUEUE_CLASSES };

struct bh_kueue_class {
    const char *name;
    uint32_t units;
    uint32_t count;       /* in each queue */
    uint32_t interval_ms; /* between two; the first comes after one */
    uint32_t run_ms;
    uint32_t members, partitions; /* units = members * partitions */
    enum bh_priority priority;    /* Kueue's 50, 100 and 200 */
    uint32_t kueue_admission_ms;  /* what Kueue's CI takes on average until admission */
};
extern const struct bh_kueue_class bh_kueue_classes[BH_KUEUE_CLASSES];

enum {
    BH_KUEUE_COHORTS = 5,
    BH_KUEUE_WORKLOADS = 15000,
    BH_KUEUE_IDEAL_MS = 66000,
    BH_KUEUE_WALL_MS = 351116
};

struct bh_kueue {
    enum bh_contract contract; /* what may be done to a running workload for a higher one;
                                  Kueue evicts (REQUEUE) */
    bool together;             /* workloads of 5 units stand on one node: harder than Kueue's */
};

/* The load; bh_kueue_class_of gives a job's class. */
void bh_kueue_make(const struct bh_kueue *kueue, struct bh_load *load);

uint32_t bh_kueue_class_of(const struct bh_simulation_job *job);

#endif
