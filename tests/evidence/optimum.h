#ifndef BH_EVIDENCE_OPTIMUM_H
#define BH_EVIDENCE_OPTIMUM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/state/mig.h"
#include "model/boundary.h"
#include "model/geometry.h"
#include "model/job.h"

/* What a scheduler could do for one job on a small site, found by trying everything.
 *
 * Written from the contracts alone, with the tables of src/model and, of the engine, only what a GPU's room
 * is worth (engine/state/mig.h, engine/stock.h): what fits together on a GPU, which jobs may be neighbors,
 * what limits allow, which jobs may be preempted, and what that costs.  Things are numbered from 0 here. */

enum {
    BH_OPT_GPUS = 9,
    BH_OPT_TENANTS = 8,
    BH_OPT_RUNNERS = 40,
    BH_OPT_PIECES = 72,
    BH_OPT_ROWS = 2,
    BH_OPT_NODES = 3,
    BH_OPT_NOBODY = UINT32_MAX
};

struct bh_opt_gpu {
    uint32_t id, node;
    enum bh_gpu_model model;
    bool open, mig; /* gets new work; can be divided */
};

struct bh_opt_tenant {
    uint32_t id, parent;       /* parent: BH_OPT_NOBODY for a root */
    enum bh_boundary boundary; /* as it holds: never UNSET */
    bool dedicated;
    uint64_t limit, user_limit; /* parts; UINT64_MAX: none */
    uint32_t quota_sku;         /* id; 0: none */
    uint64_t quota_pieces;
    enum bh_gpu_model quota_model; /* NONE: none */
    uint64_t quota_parts;
};

/* A job that runs. */
struct bh_opt_runner {
    uint64_t job;
    uint32_t tenant, principal, sku, partitions, priority; /* partitions: of all members */
    enum bh_gpu_model model;
    uint64_t equivalent;
    uint64_t loses_ns; /* of its work when it is made to leave */
    bool suspends;     /* and nothing, where it may stay on its node meanwhile */
    bool stays;        /* must not be made to leave */
};

struct bh_opt_piece {
    uint32_t gpu, profile, start;
    uint32_t runner, tenant; /* runner BH_OPT_NOBODY: idle, kept for the tenant */
};

struct bh_opt_site {
    uint32_t gpu_count, tenant_count, runner_count, partition_count;
    struct bh_opt_gpu gpus[BH_OPT_GPUS];
    struct bh_opt_tenant tenants[BH_OPT_TENANTS];
    struct bh_opt_runner runners[BH_OPT_RUNNERS];
    struct bh_opt_piece partitions[BH_OPT_PIECES];
    const struct bh_mig *figures[BH_GPU_MODELS]; /* NULL: judged by fragmentation */
    struct bh_mig_prices prices[BH_GPU_MODELS];
    /* What so many members take of a node's whole GPUs of a model costs jobs to come. */
    int64_t whole_costs[BH_GPU_MODELS][BH_OPT_NODES][BH_OPT_GPUS + 1];
};

/* What stands on a GPU and is in use. */
struct bh_occupancy bh_optimum_occupancy(const struct bh_opt_site *site, uint32_t gpu);

/* The job that wants room. */
struct bh_opt_want {
    uint32_t tenant, principal, sku, count, gang, priority; /* count: of each member */
    enum bh_grade grade;
    uint32_t row_count;
    struct {
        enum bh_gpu_model model;
        uint32_t profile;
    } rows[BH_OPT_ROWS];
};

/* Where it goes: all its partitions, member by member. */
struct bh_opt_plan {
    uint32_t count;
    struct bh_opt_piece partitions[BH_JOB_COUNT_MAX];
};

/* How good a plan is, by engine/place.h: few nodes; then, what it takes of the room's worth,
 * or, without prices, how much more the free part is broken up; then, of whole GPUs, the
 * first node; then, as few partitions as can be that must be carved.  The least way to keep the SKU
 * comes before what it takes.  Less is better. */
struct bh_opt_score {
    uint32_t nodes, parts;
    int64_t growth;
    uint32_t node;
    uint32_t carve;
};
struct bh_opt_score bh_optimum_score(const struct bh_opt_site *site, const struct bh_opt_want *want,
                                     const struct bh_opt_plan *plan);
bool bh_optimum_better(const struct bh_opt_score *a, const struct bh_opt_score *b);

/* What it costs that these leave (bits: runners) for the job, by engine/preempt/victim.h: the highest
 * class among them, then their parts times the work that they lose, then how many. */
struct bh_opt_cost {
    uint32_t priority, victims;
    bh_part_ns lost;
};
struct bh_opt_cost bh_optimum_cost(const struct bh_opt_site *site, const struct bh_opt_want *want,
                                   uint64_t gone);
bool bh_optimum_cheaper(const struct bh_opt_cost *a, const struct bh_opt_cost *b);

/* Whether the plan may be carried out when these have left; NULL, or what is wrong. */
const char *bh_optimum_illegal(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t gone,
                               const struct bh_opt_plan *plan);

/* Whether there is any legal plan when these have left; the best, where asked for. */
bool bh_optimum_find(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t gone,
                     struct bh_opt_plan *ret_best);

/* Those who may be made to leave for the job (bits). */
uint64_t bh_optimum_lower(const struct bh_opt_site *site, const struct bh_opt_want *want);

/* The cheapest set of those that makes a legal plan possible.  False: none does. */
bool bh_optimum_victims(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t *ret_gone);

#endif
