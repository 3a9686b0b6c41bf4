#ifndef BH_ENGINE_STATE_ROWS_INTERNAL_H
#define BH_ENGINE_STATE_ROWS_INTERNAL_H

#include "engine/state/event.h"
#include "engine/state/states.h"

/* The rows of the engine's slot tables.  Slots are numbered from 1; slot 0 is none, so a
 * zeroed link points nowhere.  Every row begins with its id; that of a free slot is all zero
 * but for the link of the free list. */

struct slot {
    uint64_t id;
    uint32_t next_free;
};

struct quota {
    uint64_t limit, guarantee, withhold, used; /* partitions, or parts */
    uint32_t scope, of;
};

struct tenant {
    uint64_t id;
    uint32_t next_free;
    uint32_t parent; /* slot */
    uint64_t limit, guarantee, withhold, user_limit, min_runtime_ns;
    uint64_t expected; /* of the guarantee: bh_ev_advice */
    uint64_t used;     /* GPU-equivalents in parts, with the subtree */
    uint64_t used_own; /* of that, its own jobs */
    uint64_t cost;     /* micro-units an hour of what is used, with the subtree */
    /* What its nodes keep from others beside what is used: engine/gpu/dedication.h */
    uint64_t dedicated_parts;     /* GPU-equivalents, with the subtree */
    uint64_t dedicated_parts_own; /* of that, by its own dedication */
    /* What was used up to usage_ns: decayed (parts * ms * 2^16, engine/account/usage.h), and in the
     * budget's period (parts * ns, micro-units * ns / h). */
    uint64_t usage_ns, period_end_ns;
    unsigned __int128 fair, fair_own, spent_gpu, spent_money;
    uint64_t budget_gpu_s, budget_money;
    uint32_t period, weight;
    struct quota quotas[BH_TENANT_QUOTAS_MAX];
    uint32_t quota_count, children;
    uint32_t jobs;             /* own jobs that hold this slot */
    uint32_t running, pending; /* with the subtree */
    uint32_t metered;          /* slot of its row of the ledger */
    uint8_t kind, boundary_set, boundary, dedicated;
    uint8_t removed, unused[3];
};

/* A row of the ledger: a tenant's own use, in parts * ns.  It outlives the tenant, and a tenant that is
 * declared again continues with it. */
struct metered {
    uint64_t id; /* the tenant's */
    uint32_t next_free, unused;
    uint64_t rate_compute, rate_memory, since_ns;
    uint64_t rate_dedicated_compute, rate_dedicated_memory; /* of those rates */
    uint64_t unused_too;
    bh_part_ns compute_ns, memory_ns;                     /* up to since_ns */
    bh_part_ns dedicated_compute_ns, dedicated_memory_ns; /* of those */
};

struct sku {
    uint64_t id;
    uint32_t next_free;
    uint32_t grade;
    uint32_t models[BH_SKU_MODELS_MAX], profiles[BH_SKU_MODELS_MAX];
    uint32_t model_count, jobs;
    uint32_t equivalents[BH_SKU_MODELS_MAX]; /* of one partition: parts, by row */
    uint32_t forms;                          /* that its rows have: bits of enum bh_gpu_form */
    uint32_t unused;
    uint64_t price;
};

struct node {
    uint64_t id;
    uint32_t next_free;
    uint32_t first_gpu; /* slots, linked by gpu.next_on_node in order of ids */
    uint32_t gpu_count, leases;
    uint32_t empty, open;           /* GPUs that get new work: nothing in use; something free */
    uint32_t models;                /* bit m: a GPU of that model stands on it */
    uint8_t up, hot, held, unused;  /* held: enum bh_held */
    uint32_t cpu_milli, memory_mib; /* for jobs; 0: not limited */
    uint64_t cpu_used, memory_used; /* by leases: engine/gpu/host.h */
    uint32_t lasting;               /* of the leases, those of services and interactive jobs */
    uint32_t reboots;               /* of its GPUs, those that need one */
    uint32_t dedicated_to;          /* tenant (slot) whose leases keep others off it, or 0 */
    uint32_t dedicating;            /* those leases: engine/gpu/dedication.h */
    /* engine/gpu/unchecked.h: ids of the last job whose start failed, with none that came well since,
     * of its tenant, and of the job before; when the last check passed. */
    uint64_t failed_job, failed_before, passed_ns;
    uint32_t failed_tenant;
    uint8_t unchecked;
    uint8_t scratch_short; /* a start found none, and no lease has ended since */
    uint8_t spare[2];
};

/* A GPU's health: engine/gpu/health.h. */
enum { HEALTH_RESETS = 2, HEALTH_STRIKES = 2 };
struct gpu_health {
    uint64_t since_ns, until_ns;       /* of the state; until_ns 0: as long as it takes */
    uint64_t order;                    /* of RESET or TEST, not yet answered */
    uint64_t resets_ns[HEALTH_RESETS]; /* the last ones, latest first; 0: none */
    uint64_t strikes_ns[HEALTH_STRIKES], strikes_job[HEALTH_STRIKES]; /* faults of jobs (ids) */
    uint32_t xid, sign;        /* the last fault that changed the state */
    uint8_t state, waiting;    /* waiting: an effect kind + 1, or 0 */
    uint8_t reset_due;         /* when it is idle */
    uint8_t attempts;          /* resets that failed in a row */
    uint8_t served, unused[3]; /* counted in core.to_service */
};

/* What shall stand on a GPU, by declaration: engine/gpu/layout.h. */
struct gpu_layout {
    uint8_t profiles[BH_LAYOUT_MAX], starts[BH_LAYOUT_MAX];
    uint8_t count, mode; /* enum bh_layout_mode */
};

enum gpu_fence { FENCE_NONE, FENCE_ENDS, FENCE_KEEPS }; /* KEEPS: its leases run on */

struct gpu {
    uint64_t id;
    uint32_t next_free;
    uint32_t node, next_on_node;
    uint32_t model;
    uint32_t first_partition;      /* slots, linked by partition.next_on_gpu, latest first */
    uint32_t idle, leased, stuck;  /* partitions in those states */
    uint64_t retry_ns;             /* when to try again to destroy the stuck ones; 0: none waits */
    struct bh_occupancy occupancy; /* of the partitions that are carving or leased */
    uint8_t managed, cordoned, fenced, mig_capable; /* fenced: enum gpu_fence */
    uint8_t mig;                                    /* was carved into instances last */
    uint8_t counted; /* enum gpu_counted bits: how it stands in the counts of its node */
    uint8_t link, numa;
    uint8_t layout, lone_carve, held; /* held: enum bh_held */
    uint8_t pooled;                   /* its pool counts it, with this occupancy */
    struct bh_occupancy pooled_as;
    uint32_t gpu_group, next_in_group, prev_in_group; /* its group, or 0; slots of GPUs in it */
    uint32_t claimed;                                 /* places of claims and reservations on it */
    uint32_t leased_compute, leased_memory, unusable_compute, unusable_memory;
    uint32_t dedicated_to; /* tenant (slot) that is charged for these, or 0 */
    uint32_t dedicated_compute, dedicated_memory, dedicated_equivalent;
    struct gpu_layout wanted, before; /* what is wanted; what a failure goes back to */
    uint64_t layout_retry_ns;         /* a carve failed: none before the tick then; 0: none did */
    uint32_t apply;                   /* number of the change that wanted it */
    uint8_t gpu_layout, layout_rc;    /* enum bh_layout_state; why it failed: bh_rc */
    uint8_t shared;                   /* had shares last */
    uint8_t spare[1];
    uint32_t share_limit; /* compute parts that its shares may have, as the site says */
    uint32_t share_scale; /* the same when the first of them came; 0: it has none */
    uint32_t causes_compute[BH_UNUSABLES], causes_memory[BH_UNUSABLES]; /* of unusable */
    struct gpu_health health;
};

/* GPUs of a model that stand alike.  The id is a hash of that; where two meet, the later takes
 * the next number. */
struct gpu_group {
    uint64_t id;
    uint32_t next_free;
    uint32_t model, gpus, first; /* gpu slot */
    struct bh_occupancy occupancy;
};

/* What is counted of GPUs, by node and by model, so that searches pass over what is full.
 * It follows gpu.occupancy, and knows nothing of claims and stuck partitions. */
enum gpu_counted {
    GPU_OFFERED = 1, /* gets new work */
    GPU_EMPTY = 2,   /* and nothing of it is in use */
    GPU_OPEN = 4     /* and something of it is free */
};

struct placement {
    uint32_t gpu; /* id: a slot may be gone by the time the place is wanted again */
    uint32_t profile, start;
};

struct job {
    uint64_t id;
    uint32_t next_free;
    uint32_t tenant, principal, sku, class;
    uint32_t lease;      /* of its first member; the others follow by lease.next_member */
    uint32_t next, prev; /* in its class, or in the list of ended jobs */
    uint64_t sequence;   /* order of submission */
    uint64_t submitted_ns, started_ns, ended_ns;
    uint64_t time_limit_ns, grace_ns, deadline_ns;
    uint64_t preempt_after_ns;      /* it may not preempt again before */
    uint64_t claims_window;         /* core.window when it claimed room last */
    uint64_t preempted_for;         /* id of the job that it was last stopped for, or 0 */
    uint32_t cpu_milli, memory_mib; /* of each member */
    uint8_t spec[32];
    uint32_t restarts, suspensions;
    int32_t exit_status;
    uint8_t count, kind, priority, contract;
    uint8_t state;
    uint8_t hold : 1, moved : 1;    /* moved: it was last stopped for that */
    uint8_t again : 1, retried : 1; /* its start failed and is tried again; was tried again */
    uint8_t scratch : 1;            /* its last start found none: engine/queue/avoid.h */
    uint8_t cause, carve_failures;
    uint8_t gang;    /* members */
    uint8_t verdict; /* why it will end or be requeued: its first member that failed */
    uint8_t signal;  /* of a checkpoint */
    uint8_t claims;  /* how often it claimed room in that window */
    int32_t verdict_status;
    uint32_t moved_s; /* when it was last ordered to move, rounded up; 0: never */
};

enum lease_state {
    LEASE_NONE,
    LEASE_CARVING,
    LEASE_STARTING,
    LEASE_RUNNING,
    LEASE_SUSPENDING,
    LEASE_SUSPENDED,
    LEASE_RECARVING, /* its old places are being carved again */
    LEASE_RESUMING,
    LEASE_STOPPING,
    LEASE_DONE, /* it ended, and holds nothing; others of its gang have not */
    LEASE_STATES
};

struct lease {
    uint64_t id;
    uint32_t next_free;
    uint32_t job, tenant, node;
    uint64_t order;    /* of the effect that is not yet answered */
    uint64_t for_job;  /* id: the job that the capacity is for */
    uint64_t since_ns; /* when it last began to run; before that, when it was placed */
    uint64_t ran_ns;   /* before that */
    uint64_t kill_ns;  /* STOPPING: when its grace is over, by the order */
    struct placement placements[BH_JOB_COUNT_MAX];
    uint32_t parts[BH_JOB_COUNT_MAX];     /* slots; 0 while suspended, and once done */
    uint8_t count, state, grade, waiting; /* waiting: an effect kind + 1, or 0 */
    uint8_t stop_cause, member, unused[2];
    uint32_t next_member;                /* slot */
    uint32_t next_leaving, prev_leaving; /* slots; of those that are suspended or stopped */
};

struct partition {
    uint64_t id;
    uint32_t next_free;
    uint32_t gpu, next_on_gpu;
    uint32_t lease;  /* slot; of LEASED, or CARVING for it */
    uint32_t tenant; /* id: of its holder or its last one; 0: none since it was carved */
    uint32_t profile;
    uint64_t order; /* of CARVE or DESTROY, not yet answered */
    uint8_t state, waiting, gone, stuck;
    uint32_t cleared_for; /* tenant id: for which it is destroyed; 0: none yet */
    uint8_t unclean;      /* scrubs of it that failed, counted no further than is of use */
    uint8_t evict;        /* why its lease must end (enum bh_end_cause), or 0 */
    uint16_t start;
    uint8_t unheard; /* LEASED, and its node is down: no tenant is charged yet (ADR 0064) */
    uint8_t unused[3];
    uint64_t unheard_ns; /* since when */
};

/* Pending jobs with the same needs and of about the same length, first come first served.  The id is a hash
 * of the needs; where two meet, the later takes the next number. */
struct class
{
    uint64_t id;
    uint32_t next_free;
    uint32_t head, tail, jobs;
    uint32_t tenant, sku, principal;
    uint32_t cpu_milli, memory_mib;
    uint8_t count, priority, hold, gang;
    uint8_t length;             /* its time limit's power of two + 1; 0: none */
    uint8_t scratch, unused[2]; /* they wait for that: engine/queue/avoid.h */
    uint32_t avoid_gpu;         /* id; where a carve failed */
    uint32_t avoid_node;        /* id; where a start failed; BH_AVOID_ALL */
    uint64_t avoid_until_ns;
    uint64_t avoid_generation;
};

#endif
