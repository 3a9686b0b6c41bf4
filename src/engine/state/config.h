#ifndef BH_ENGINE_STATE_CONFIG_H
#define BH_ENGINE_STATE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "model/boundary.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/partition.h"
#include "model/period.h"
#include "model/quantity.h"

/* What administrators declare, as the engine takes it: how the site schedules, the tree of
 * tenants with their quotas, the SKUs.  Plain values, payloads of events (engine/state/event.h). */

enum { BH_SKU_MODELS_MAX = 16, BH_TENANT_QUOTAS_MAX = 8 };

#define BH_UNLIMITED UINT64_MAX
#define BH_HALF_LIFE_DEFAULT_NS (UINT64_C(7) * 86400 * 1000000000) /* Slurm's */
#define BH_ASSUMED_RUN_DEFAULT_NS (UINT64_C(24) * 3600 * 1000000000)
#define BH_SPAN_MAX_NS (UINT64_C(1) << 60) /* of an assumed or a least run time: 36 years */

/* The most that a guarantee, a limit of a user or a price may be. */
#define BH_AMOUNT_MAX (UINT64_C(1) << 48)

/* Whether jobs are moved so that others find room (engine/forecast/defrag.h), and the terms of it: 0
 * takes the default. */
struct bh_defrag {
    enum bh_defrag_mode mode;
    uint32_t moves;        /* jobs moved in an hour at most */
    uint32_t gain_percent; /* what is gained is at least so much of what is lost */
    uint64_t lost_gpu_s;   /* work lost in an hour at most, GPU-equivalents times seconds */
    uint64_t rest_ns;      /* a job that was moved is left alone for so long */
};
enum {
    BH_DEFRAG_MOVES_DEFAULT = 10,
    BH_DEFRAG_GAIN_DEFAULT = 200,
    BH_DEFRAG_LOST_DEFAULT_GPU_S = 4 * 3600,
    BH_DEFRAG_PERCENT_MAX = 1000000,
};
#define BH_DEFRAG_REST_DEFAULT_NS (UINT64_C(6) * 3600 * 1000000000)
#define BH_BURN_IN_DEFAULT_NS (UINT64_C(60) * 1000000000)
#define BH_DEFRAG_LOST_MAX_GPU_S (UINT64_C(1) << 40)

/* How the site schedules; holds from then on.  Until the first such event: fair_tree, the
 * defaults above, backfill, no least run time, no use of forecasts, and no job is moved. */
struct bh_ev_settings {
    enum bh_queue_order order;
    bool backfill;           /* others may use what the first one waits for meanwhile */
    uint64_t half_life_ns;   /* usage counts half after it; a minute to 366 days, or
                                BH_UNLIMITED: it counts for ever */
    uint64_t assumed_run_ns; /* of leases without a time limit; 0 takes the default */
    uint64_t min_runtime_ns; /* as a tenant's, where no tenant says one; 0 is none */
    enum bh_lending lending;
    uint64_t burn_in_ns; /* a GPU that was reset gets no work for so long; 0: none */
    bool hotspots;       /* new work goes to hot nodes last */
    bool preshape;       /* partitions that will be asked for are carved before */
    bool spread_kinds;   /* batch jobs on other nodes than services and interactive
                            ones, where both have room */
    struct bh_defrag defrag;
};

/* What a quota counts, beside GPU-equivalents of all kinds. */
enum bh_quota_scope {
    BH_QUOTA_SKU,   /* partitions of one SKU */
    BH_QUOTA_MODEL, /* GPU-equivalents in parts on GPUs of one model */
    BH_QUOTA_SCOPES
};

struct bh_tenant_quota {
    enum bh_quota_scope scope;
    uint32_t of;        /* the SKU's id, or an enum bh_gpu_model */
    uint64_t limit;     /* at once; BH_UNLIMITED */
    uint64_t guarantee; /* 0: none */
    uint64_t withhold;  /* of the guarantee, what is not lent while it is idle */
};

/* What a tenant may spend in each period; nothing more starts when it is spent. */
struct bh_budget {
    enum bh_period period; /* NONE: no budget */
    uint64_t gpu_s;        /* GPU-equivalents times seconds; BH_UNLIMITED */
    uint64_t money;        /* micro-units of the site's currency; BH_UNLIMITED */
};

/* Create a tenant or change it.  Parents come before children; a tenant may move,
 * not below itself. */
struct bh_ev_tenant {
    bh_tenant_id tenant, parent; /* parent 0: a root */
    enum bh_tenant_kind kind;
    enum bh_boundary boundary; /* UNSET takes the kind's default */
    bool dedicated_nodes;
    uint64_t limit;          /* GPU-equivalents in parts; BH_UNLIMITED */
    uint64_t guarantee;      /* same unit; 0 is none */
    uint64_t withhold;       /* of the guarantee, what is not lent while it is idle */
    uint64_t min_runtime_ns; /* its leases make way for no other before; 0: not said */
    uint64_t user_limit;     /* GPU-equivalents in parts of one principal; 0 is none */
    uint32_t weight;         /* its share beside its siblings, of what is not guaranteed;
                                0 takes BH_WEIGHT_DEFAULT, at most BH_WEIGHT_MAX */
    struct bh_budget budget;
    struct bh_tenant_quota quotas[BH_TENANT_QUOTAS_MAX];
    uint32_t quota_count;
};

struct bh_sku_model {
    uint32_t model;   /* enum bh_gpu_model */
    uint32_t profile; /* bh_profile_id; BH_PROFILE_WHOLE for the whole GPU */
};

/* Create a SKU or change it; jobs that run keep what they have. */
struct bh_ev_sku {
    bh_sku_id sku;
    enum bh_grade grade; /* the least it promises */
    struct bh_sku_model models[BH_SKU_MODELS_MAX];
    uint32_t model_count;
    uint64_t price; /* micro-units of money for one partition and hour */
};

/* What shall stand on a GPU (engine/gpu/layout.h). */
enum { BH_LAYOUT_MAX = 7 };

enum bh_layout_mode {
    BH_LAYOUT_UNDECLARED, /* nothing is declared; existing instances are left alone */
    BH_LAYOUT_DECLARED,   /* it is made, and made again whenever its room is free */
    BH_LAYOUT_ONCE,       /* it is made once, and then nothing is declared */
    BH_LAYOUT_MODES
};

struct bh_ev_layout_partition {
    uint32_t profile, start;
};

struct bh_ev_layout {
    bh_gpu_id gpu;
    enum bh_layout_mode mode;
    uint32_t apply; /* the change that this is part of: 1 more than the last, or the
                       last again; what fails takes the rest of it back */
    struct bh_ev_layout_partition partitions[BH_LAYOUT_MAX];
    uint32_t partition_count;
};

#endif
