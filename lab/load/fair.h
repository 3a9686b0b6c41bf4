#ifndef BH_LAB_LOAD_FAIR_H
#define BH_LAB_LOAD_FAIR_H

#include "lab/load/load.h"

/* How well and how fairly a simulation run went.
 *
 * In each window a tenant is entitled to its weighted max-min share: capacity is filled up
 * in proportion to weights, no tenant getting more than it wants (runs and waits for), and
 * what one leaves goes to the others in the same proportion.  A window is contended when
 * more is wanted than there is.
 *
 *   Jain index   of used / entitled over the tenants that want something, (sum r)^2 /
 *                (n sum r^2), averaged over contended windows; 1 is even
 *   share error  |decayed used share - decayed entitled share| of a tenant, both with a
 *                half-life of 24 windows, over all windows
 *   waiting      from submission to the first start
 *   finish ratio (end - submission) / work */

/* Times and sizes of one group of jobs. */
struct bh_fair_waits {
    uint32_t gpus; /* of a job; 0: all */
    uint32_t jobs;
    uint64_t mean_ms, p50_ms, p95_ms;
};

enum { BH_FAIR_SIZES = 4 }; /* 1, 2, 4 and 8 GPUs */

struct bh_fair_tenant {
    uint32_t jobs;
    uint64_t guarantee_milli; /* thousandths of a GPU */
    uint64_t used_gpu_s, entitled_gpu_s;
    uint64_t wait_mean_ms, wait_p95_ms;
    uint32_t error_max_bp, error_p95_bp; /* share error, basis points */
    uint64_t finish_mean_permille;
};

struct bh_fair {
    struct bh_fair_waits all, sizes[BH_FAIR_SIZES];
    struct bh_fair_tenant *tenants; /* in the load's order */
    uint32_t tenant_count;
    uint32_t jain_bp; /* 10000 is even; 0 when nothing was contended */
    uint32_t windows, contended;
    uint32_t error_max_bp, error_p95_bp; /* over tenants and windows */
    uint64_t lost_gpu_s, makespan_s;
    uint32_t used_bp;       /* of all GPUs until the last submission */
    uint32_t used_whole_bp; /* until the last end */
    uint64_t finish_p50_permille, finish_p95_permille;
    uint32_t preemptions;
};

/* Judge a run of the load; release with bh_fair_fini. */
void bh_fair_judge(const struct bh_load *load, const struct bh_simulation_run *run, struct bh_fair *ret_fair);
void bh_fair_fini(struct bh_fair *fair);

/* Weighted max-min: fill `ret_shares` with what each of `count` gets of `capacity`, given
 * its demand and its weight.  Without a weight one gets what the others leave, evenly. */
void bh_fair_shares(const double *demands, const double *weights, uint32_t count, double capacity,
                    double *ret_shares);

#endif
