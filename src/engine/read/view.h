#ifndef BH_ENGINE_READ_VIEW_H
#define BH_ENGINE_READ_VIEW_H

#include "engine/state/caps.h"
#include "engine/state/event.h"
#include "engine/state/outcome.h"
#include "engine/state/states.h"
#include "model/quantity.h"

/* Reading the engine: values copied out, never references.  Only the owner thread calls these. */

struct bh_job_view {
    bh_job_id job;
    bh_tenant_id tenant;
    bh_principal_id principal;
    bh_sku_id sku;
    bh_lease_id lease;              /* 0 while pending; of its first member, or of the one asked for */
    bh_node_id node;                /* of that member, as its grade and partitions */
    uint32_t count, gang;           /* partitions of each member; members */
    uint32_t member;                /* whose lease that is */
    uint32_t cpu_milli, memory_mib; /* of each member; 0: none */
    enum bh_job_kind kind;
    enum bh_priority priority;
    enum bh_contract contract;
    enum bh_job_state state;
    enum bh_grade grade; /* of the lease */
    uint32_t restarts, suspensions;
    uint64_t submitted_ns, started_ns, time_limit_ns;
    uint64_t deadline_ns; /* 0: none */
    uint64_t reserved_ns; /* from when on room is kept for it; 0: none is */
    uint8_t spec[32];
    struct bh_partition partitions[BH_JOB_COUNT_MAX];
    uint32_t partition_count;
    enum bh_end_cause cause; /* an ended job is seen until the next event */
    int32_t exit_status;
    uint64_t ended_ns;
};

/* A member of a job that has leases. */
struct bh_member_view {
    bh_lease_id lease;
    uint32_t member; /* 0 .. gang - 1 */
    bh_node_id node;
    bool done;               /* it ended; others of the gang have not */
    enum bh_job_state state; /* as that of a job with this lease alone */
    struct bh_partition partitions[BH_JOB_COUNT_MAX];
    uint32_t partition_count; /* 0 once it is done */
};

/* What a node has for jobs beside its GPUs, and what they hold of it. */
struct bh_host_view {
    bool up;
    uint32_t cpu_milli, memory_mib; /* 0: not limited */
    uint64_t cpu_used, memory_used; /* milli, MiB */
    enum bh_held held;
    uint32_t reboots;    /* of its GPUs, those that need one */
    bool unchecked;      /* jobs failed to start there: it gets no work until checked */
    bh_job_id failed[2]; /* which, the last one first; 0: a check failed, or none */
};

/* Room that is kept for a job that waits: a claim, which is being made now, or a reservation. */
struct bh_reservation_view {
    bh_job_id job;
    uint64_t at_ns;                                        /* of a reservation: from when on; 0: a claim */
    uint32_t partition_count;                              /* of all members, one after another */
    struct bh_partition partitions[BH_JOB_PARTITIONS_MAX]; /* GPU, profile and start */
};

extern const char *const bh_unusable_names[BH_UNUSABLES];

struct bh_gpu_view {
    bh_gpu_id gpu;
    bh_node_id node;
    uint32_t model;
    bool managed, cordoned, fenced, keeps, mig; /* keeps: as in bh_ev_gpu */
    uint32_t link, numa;                        /* as in bh_ev_gpu */
    enum bh_pool_layout layout;
    bool mig_capable, lone_carve;
    bool shared;          /* it has shares now, or had them last */
    uint32_t share_limit; /* as in bh_ev_gpu */
    enum bh_held held, node_held;
    enum bh_gpu_health health;
    uint32_t xid, sign;                   /* of the fault that brought it to that health */
    uint64_t since_ns, until_ns;          /* of it; until_ns 0: not by time */
    bool reset_due;                       /* when it is idle */
    uint32_t resets;                      /* the last ones, at most 2 are remembered */
    struct bh_parts used, idle, unusable; /* sum to BH_GPU_PARTS in each dimension */
    struct bh_parts dedicated;            /* of used: in no lease, kept from others by dedication */
    struct bh_parts causes[BH_UNUSABLES]; /* of unusable */
};

extern const char *const bh_layout_state_names[BH_LAYOUT_STATES];

struct bh_layout_list {
    enum bh_layout_mode mode;
    struct bh_ev_layout_partition partitions[BH_LAYOUT_MAX];
    uint32_t count;
};

struct bh_layout_view {
    enum bh_layout_state state;
    uint32_t apply; /* number of the change */
    uint32_t rc;    /* bh_rc: why it was undone, 0 when another GPU was why */
    struct bh_layout_list wanted, before;
};

extern const char *const bh_partition_state_names[BH_PARTITION_STATES];

struct bh_partition_view {
    struct bh_partition partition;
    enum bh_partition_state state;
    bh_lease_id lease;
    bh_job_id job;
    bh_tenant_id tenant; /* of its holder, or its last one */
};

struct bh_tenant_view {
    struct bh_ev_tenant settings;
    uint64_t used;                             /* GPU-equivalents in parts, with the subtree */
    uint64_t expected;                         /* of the guarantee, what it may want soon: as was said last */
    uint64_t quota_used[BH_TENANT_QUOTAS_MAX]; /* beside settings.quotas */
    uint64_t fair;                             /* decayed usage in GPU-seconds, with the subtree */
    bh_part_ns spent_gpu;                      /* in the budget's period: parts times nanoseconds */
    uint64_t spent_money;                      /* micro-units */
    uint32_t running, pending;                 /* jobs, with the subtree */
    bh_part_ns compute_ns, memory_ns;          /* the tenant's own usage up to now */
    bh_part_ns dedicated_compute_ns, dedicated_memory_ns; /* of that: in no lease, kept from
                                    others by nodes that are dedicated to it */
};

/* A row of the ledger: what a tenant used by itself. Rows outlive their tenants, and all of
 * them together are `tenants` of bh_ledger_view. */
struct bh_metered_view {
    bh_tenant_id tenant;
    bh_part_ns compute_ns, memory_ns;
    bh_part_ns dedicated_compute_ns, dedicated_memory_ns; /* of that: kept from others */
};

/* Part-nanoseconds of all GPUs by what became of them; the sum of `tenants`, `idle`
 * and `unusable` is physical time. */
struct bh_ledger_view {
    bh_part_ns physical, tenants_compute, tenants_memory;
    bh_part_ns idle_compute, idle_memory, unusable_compute, unusable_memory;
    bh_part_ns causes_compute[BH_UNUSABLES], causes_memory[BH_UNUSABLES]; /* of unusable */
};

/* How often some GPU's health changed: whether it is worth looking. */
uint64_t bh_view_health_moves(const struct bh_engine *engine);

/* Each finds by id; false when there is none. */
bool bh_view_job(const struct bh_engine *engine, bh_job_id job, struct bh_job_view *ret_view);
bool bh_view_lease(const struct bh_engine *engine, bh_lease_id lease, struct bh_job_view *ret_view);
bool bh_view_host(const struct bh_engine *engine, bh_node_id node, struct bh_host_view *ret_view);
/* Nodes that are up and get no work until they are checked; how many there are room for. */
uint32_t bh_view_unchecked(const struct bh_engine *engine, bh_node_id *ret_nodes, uint32_t most);
bool bh_view_gpu(const struct bh_engine *engine, bh_gpu_id gpu, struct bh_gpu_view *ret_view);
/* What the engine knows of a GPU, as a report that changes nothing. */
struct bh_ev_gpu bh_view_gpu_report(const struct bh_gpu_view *view);
bool bh_view_layout(const struct bh_engine *engine, bh_gpu_id gpu, struct bh_layout_view *ret_view);
/* The number of the last change of what shall stand anywhere; 0: there was none. */
uint32_t bh_view_applied(const struct bh_engine *engine);
bool bh_view_tenant(const struct bh_engine *engine, bh_tenant_id tenant, uint64_t now_ns,
                    struct bh_tenant_view *ret_view);
/* Also of a tenant that was removed; false when it never used anything. */
bool bh_view_metered(const struct bh_engine *engine, bh_tenant_id tenant, uint64_t now_ns,
                     struct bh_metered_view *ret_view);
bool bh_view_sku(const struct bh_engine *engine, bh_sku_id sku, struct bh_ev_sku *ret_sku);
void bh_view_settings(const struct bh_engine *engine, struct bh_ev_settings *ret_settings);
/* What is left of this hour's budget for moves. */
struct bh_move_left_view {
    uint32_t moves;
    uint64_t lost_gpu_ms;
    uint64_t ends_ns; /* when the hour ends; 0: nothing was moved in it yet */
};
void bh_view_moves_left(const struct bh_engine *engine, uint64_t now_ns, struct bh_move_left_view *ret_left);

/* The numbers that the next lease and the next partition get. */
void bh_view_next_numbers(const struct bh_engine *engine, uint64_t *ret_lease, uint64_t *ret_partition);

void bh_view_ledger(const struct bh_engine *engine, uint64_t now_ns, struct bh_ledger_view *ret_view);

/* A job's member by number; false when it has none now. */
bool bh_view_member(const struct bh_engine *engine, bh_job_id job, uint32_t member,
                    struct bh_member_view *ret_view);

bool bh_view_demand(const struct bh_engine *engine, uint32_t model, struct bh_demand_view *ret_view);

/* Walks in order of slots: start with *cursor = 0; false at the end. */
bool bh_view_next_job(const struct bh_engine *engine, uint32_t *cursor, struct bh_job_view *ret_view);
bool bh_view_next_gpu(const struct bh_engine *engine, uint32_t *cursor, struct bh_gpu_view *ret_view);
bool bh_view_next_partition(const struct bh_engine *engine, uint32_t *cursor,
                            struct bh_partition_view *ret_view);
bool bh_view_next_tenant(const struct bh_engine *engine, uint32_t *cursor, uint64_t now_ns,
                         struct bh_tenant_view *ret_view);
bool bh_view_next_metered(const struct bh_engine *engine, uint32_t *cursor, uint64_t now_ns,
                          struct bh_metered_view *ret_view);

/* At most BH_RESERVATIONS_MAX. */
enum { BH_RESERVATIONS_MAX = 32 };
bool bh_view_next_reservation(const struct bh_engine *engine, uint32_t *cursor,
                              struct bh_reservation_view *ret_view);

/* Whether the nodes that have GPUs of the SKU's models, up or not, would have the cores and the memory
 * for all members if nothing ran there; true while no node is known to have such a GPU.  False:
 * `ret_why` says what the largest has (NEVER_CORES, NEVER_MEMORY). */
bool bh_engine_hosts_ever(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                          struct bh_reason *ret_why);

/* Whether the managed GPUs of the nodes, up or not, could hold all members if nothing ran there; true
 * while they could not hold even one partition of the SKU.  False: `ret_why` says how many one node could
 * (NEVER_SHAPE). */
bool bh_engine_shapes_ever(const struct bh_engine *engine, const struct bh_ev_submit *submit,
                           struct bh_reason *ret_why);

/* Why the job is not running, or what it has: never fails. */
void bh_engine_why(const struct bh_engine *engine, bh_job_id job, uint64_t now_ns,
                   struct bh_reason *ret_reason);

/* Whether `ancestor` is `tenant` or stands above it. */
bool bh_view_within(const struct bh_engine *engine, bh_tenant_id ancestor, bh_tenant_id tenant);

/* The strongest boundary that the tenant or one above it asks for; fortress when it is unknown. */
enum bh_boundary bh_view_strongest(const struct bh_engine *engine, bh_tenant_id id);

/* What must stand between two tenants; fortress when one is unknown. */
enum bh_boundary bh_view_boundary(const struct bh_engine *engine, bh_tenant_id a, bh_tenant_id b);

#endif
