#ifndef BH_LAB_LOAD_LOAD_H
#define BH_LAB_LOAD_LOAD_H

#include "model/ids.h"
#include "lab/load/simulation_run.h"

/* A site and the jobs that come to it, put together partition by partition: what the modes that
 * play a simulation run make, from a file or by themselves. */
struct bh_load {
    struct bh_simulation_rack rack;
    struct bh_ev_sku *skus;
    struct bh_ev_tenant *tenants;
    char (*names)[BH_NAME_MAX + 1]; /* of the tenants */
    struct bh_simulation_job *jobs;
    uint32_t *workloads; /* by job: which one of the workloads it is a part of */
    uint32_t sku_count, tenant_count, job_count, workload_count;
    uint32_t tenant_capacity, name_capacity, job_capacity, workload_capacity;
};

/* Release what a load owns; it may be all zero. */
void bh_load_fini(struct bh_load *load);

/* A rack of whole GPUs of one model, and the SKU 1 that is one of them. */
void bh_load_set_rack(struct bh_load *load, uint32_t nodes, uint32_t gpus_each);
uint32_t bh_load_gpus(const struct bh_load *load);

/* Its GPUs can be divided: SKUs 2 to 5 are instances of 1, 2, 3 and 7 slices. */
void bh_load_divide_rack(struct bh_load *load);

/* One more tenant, with the next id; without limit and guarantee.  The pointer holds until
 * the next call.  Longer names are cut. */
struct bh_ev_tenant *bh_load_add_tenant(struct bh_load *load, const char *name, bh_tenant_id parent);

/* The tenant of that name, or 0. */
bh_tenant_id bh_load_find_tenant(const struct bh_load *load, const char *name);

/* One more workload.  Where the engine of this build has no gangs, a gang becomes as many
 * jobs of their own, which share the workload's number. */
void bh_load_add(struct bh_load *load, const struct bh_simulation_job *job);

/* Put the jobs in order of submission; those of one instant stay as they were added. */
void bh_load_sort(struct bh_load *load);

/* GPU-nanoseconds of work that tenant number `tenant` brings, and all together. */
bh_part_ns bh_load_demand(const struct bh_load *load, uint32_t tenant);
bh_part_ns bh_load_total_demand(const struct bh_load *load);

/* Stretch or compress the times of submission so that the work offered, over all GPUs and
 * the time from 0 to the last submission, is `permille` of 1000.  BH_INVALID: everything
 * is submitted at once. */
BH_MUST_USE bh_rc bh_load_scale(struct bh_load *load, uint32_t permille, struct bh_err *err);

/* Guarantee each tenant that brings work its share of it, of `permille` of 1000 of all GPUs,
 * in whole parts; and make that share its weight. */
void bh_load_guarantee(struct bh_load *load, uint32_t permille);

/* The load as a plan; it borrows from the load. */
struct bh_simulation_plan bh_load_plan(const struct bh_load *load);

#endif
