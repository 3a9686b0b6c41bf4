#ifndef BH_LAB_LOAD_SIMULATION_PLAN_H
#define BH_LAB_LOAD_SIMULATION_PLAN_H

#include "engine/step/engine.h"
#include "model/quantity.h"

/* What a simulation run plays: a site and the jobs that come to it. */

/* So many nodes alike.  Their ids, and those of their GPUs, are given in order from 1. */
struct bh_simulation_rack {
    uint32_t nodes, gpus_each;
    uint32_t model; /* enum bh_gpu_model */
    bool mig_capable;
};

struct bh_simulation_site {
    const struct bh_simulation_rack *racks;
    const struct bh_ev_sku *skus;
    const struct bh_ev_tenant *tenants; /* parents before children */
    uint32_t rack_count, sku_count, tenant_count;
};

/* Job number i of a plan has the id i + 1. */
struct bh_simulation_job {
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

struct bh_simulation_plan {
    struct bh_simulation_site site;
    const struct bh_simulation_job *jobs; /* by submit_ns */
    uint32_t job_count;
    struct bh_ev_settings settings;               /* a half-life of 0 takes the engine's default */
    uint64_t delays_ns[BH_EFFECT_KINDS];          /* from an order to its answer */
    uint64_t slot_ns;                             /* of the forecasts that the engine gets; 0: none */
    uint64_t window_ns;                           /* of the meter; 0 takes an hour */
    uint32_t check_every;                         /* steps between bh_engine_check; 0: never */
    bool encode;                                  /* write each step's journal record */
    const struct bh_engine_caps *caps;            /* of the first block; NULL: the default */
    void (*progress)(void *self, uint32_t ended); /* may be NULL; about 100 times */
    void *self;
};

/* BH_INVALID: jobs that are not in order, of an unknown tenant, or too large. */
BH_MUST_USE bh_rc bh_simulation_plan_check(const struct bh_simulation_plan *plan, struct bh_err *err);

/* The highest id of a tenant, which sizes a table by it; how many GPUs there are. */
uint32_t bh_simulation_site_last_tenant(const struct bh_simulation_site *site);
uint32_t bh_simulation_site_gpus(const struct bh_simulation_site *site);

/* How far the events of a site are read; all zero: from the first on. */
struct bh_simulation_cursor {
    uint32_t sku, tenant, rack; /* those before are done */
    uint32_t node, gpu;         /* the last ids */
    uint32_t in_rack, in_node;  /* nodes of the rack, and events of the node, that are done */
};

/* The next event that makes the site: SKUs, tenants, then each node with its GPUs.  False: that
 * was all. */
bool bh_simulation_site_next(const struct bh_simulation_site *site, struct bh_simulation_cursor *cursor,
                             struct bh_event *ret_event);

uint32_t bh_simulation_job_members(const struct bh_simulation_job *job);

/* Parts of a GPU that the job holds while it runs, by the first model of its SKU. */
uint64_t bh_simulation_job_parts(const struct bh_simulation_site *site, const struct bh_simulation_job *job);

#endif
