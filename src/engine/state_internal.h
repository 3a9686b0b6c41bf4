#ifndef BH_ENGINE_STATE_INTERNAL_H
#define BH_ENGINE_STATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/view.h"
#include "model/geometry.h"
#include "model/quantity.h"

/* The layout of the engine's block: one header, then slot tables, then their
 * indexes.  Slots are numbered from 1; slot 0 is nobody, so a zeroed link points
 * nowhere.  Every slot begins with its id; a free slot is all zero but for the link
 * of the free list.  No pointers, no padding that is not zero. */

enum table_kind {
    TABLE_TENANT,
    TABLE_SKU,
    TABLE_NODE,
    TABLE_GPU,
    TABLE_JOB,
    TABLE_LEASE,
    TABLE_PART,
    TABLE_CLASS,
    TABLES
};

struct table {
    uint64_t offset, index_offset; /* bytes from the start of the block */
    uint32_t capacity, index_mask;
    uint32_t slot_size, high;      /* slots ever used are 1 .. high */
    uint32_t live, free_head;
};

struct slot {
    uint64_t id;
    uint32_t next_free;
};

struct tenant {
    uint64_t id;
    uint32_t next_free;
    uint32_t parent; /* slot */
    uint64_t limit, guarantee;
    uint64_t min_runtime_ns;
    uint64_t used; /* GPU-equivalents in parts, with the subtree */
    uint64_t rate_compute, rate_memory, since_ns;
    bh_part_ns compute_ns, memory_ns; /* own, up to since_ns */
    uint32_t sku_ids[BH_TENANT_SKUS_MAX], sku_limits[BH_TENANT_SKUS_MAX];
    uint32_t sku_used[BH_TENANT_SKUS_MAX];
    uint32_t sku_count, children;
    uint32_t jobs;             /* own jobs that hold this slot */
    uint32_t running, pending; /* with the subtree */
    uint8_t kind, boundary_set, boundary, dedicated;
    uint8_t removed, unused[7];
};

struct sku {
    uint64_t id;
    uint32_t next_free;
    uint32_t grade;
    uint32_t models[BH_SKU_MODELS_MAX], profiles[BH_SKU_MODELS_MAX];
    uint32_t model_count, jobs;
};

struct node {
    uint64_t id;
    uint32_t next_free;
    uint32_t first_gpu; /* slots, linked by gpu.next_on_node in order of ids */
    uint32_t gpu_count, leases;
    uint8_t up, unused[7];
};

struct gpu {
    uint64_t id;
    uint32_t next_free;
    uint32_t node, next_on_node;
    uint32_t model;
    uint32_t first_part; /* slots, linked by part.next_on_gpu, latest first */
    uint32_t idle, leased, stuck; /* pieces in those states */
    uint64_t retry_ns; /* when to try again to destroy the stuck ones; 0: none waits */
    struct bh_occupancy occupancy; /* of the pieces that are carving or leased */
    uint8_t managed, cordoned, fenced, mig_capable;
    uint8_t mig; /* was carved last */
    uint8_t unused[3];
    uint32_t leased_compute, leased_memory, unusable_compute, unusable_memory;
};

struct place {
    uint32_t gpu; /* id: a slot may be gone by the time the place is wanted again */
    uint16_t profile, start;
};

struct job {
    uint64_t id;
    uint32_t next_free;
    uint32_t tenant, principal, sku, lease, class;
    uint32_t next, prev; /* in its class, or in the list of ended jobs */
    uint64_t sequence;   /* order of submission */
    uint64_t submitted_ns, started_ns, ended_ns;
    uint64_t time_limit_ns, grace_ns, deadline_ns;
    uint64_t preempt_after_ns; /* it may not preempt again before */
    uint64_t claims_window;    /* core.window when it claimed room last */
    uint8_t spec[32];
    uint32_t restarts, suspensions;
    int32_t exit_status;
    uint8_t count, kind, priority, contract;
    uint8_t state, hold, cause, carve_failures;
    uint8_t signal, claims, unused[6]; /* of a checkpoint; how often in that window */
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
    LEASE_STATES
};

struct lease {
    uint64_t id;
    uint32_t next_free;
    uint32_t job, tenant, node;
    uint64_t order;    /* of the effect that is not yet answered */
    uint64_t for_job;  /* id: who the room is for */
    uint64_t since_ns; /* when it last began to run; before that, when it was placed */
    uint64_t ran_ns;   /* before that */
    struct place places[BH_JOB_COUNT_MAX];
    uint32_t parts[BH_JOB_COUNT_MAX]; /* slots; 0 while suspended */
    uint32_t next_leaving, prev_leaving;  /* slots; of those that are suspended or stopped */
    uint8_t count, state, grade, waiting; /* waiting: an effect kind + 1, or 0 */
    uint8_t stop_cause, unused[3];
};

struct part {
    uint64_t id;
    uint32_t next_free;
    uint32_t gpu, next_on_gpu;
    uint32_t lease;  /* slot; of LEASED, or CARVING for it */
    uint32_t tenant; /* id: who holds it, or held it last */
    uint16_t profile, start;
    uint64_t order;  /* of CARVE or DESTROY, not yet answered */
    uint8_t state, waiting, gone, stuck;
    uint8_t unused[4];
};

/* Pending jobs with the same needs and of about the same length, first come first served.  The id is the
 * packed needs. */
struct class {
    uint64_t id;
    uint32_t next_free;
    uint32_t head, tail, jobs;
    uint32_t tenant, sku;
    uint8_t count, priority, hold, unused;
    uint32_t avoid_gpu;      /* id; where a carve failed */
    uint64_t avoid_until_ns;
    uint64_t avoid_generation;
};

/* Room for a job that waits: a claim, being made now, or a reservation, free by time. */
struct claim {
    uint32_t job; /* slot; 0: free */
    uint32_t count;
    uint64_t at_ns;      /* of a reservation: from when on; 0: a claim */
    uint64_t equivalent; /* in parts, of all its pieces */
    struct place places[BH_JOB_COUNT_MAX];
};

enum { CLAIMS_MAX = 32 }; /* a set of them is a number of 32 bits */

struct settings {
    uint64_t assumed_run_ns, min_runtime_ns;
    uint8_t backfill, unused[7];
};

/* Fleet-wide sums, brought up to `now_ns` at the start of each step. */
struct totals {
    bh_part_ns physical;
    bh_part_ns leased_compute, leased_memory, unusable_compute, unusable_memory;
    bh_part_ns retired_compute, retired_memory; /* of tenants that are gone */
    uint64_t rate_physical;
    uint64_t rate_leased_compute, rate_leased_memory;
    uint64_t rate_unusable_compute, rate_unusable_memory;
    uint64_t unused;
};

/* State beside the tables that the digest covers. */
struct core {
    uint64_t now_ns;
    uint64_t next_lease, next_partition, next_sequence;
    uint64_t generation; /* moves when something freed up that could help a job */
    uint32_t ended_head, ended_count;
    uint32_t pending;    /* jobs */
    uint32_t dedicated;  /* tenants that say dedicated_nodes */
    uint32_t preemptable[BH_PRIORITIES + 1]; /* leases that may make way, by priority */
    uint32_t claim_count, reserved; /* all claims; those that are reservations */
    uint32_t suspended;  /* leases */
    uint32_t leaving;    /* leases: the first of the list */
    uint64_t window;      /* moves with what happens from outside, and with each end */
    struct settings settings;
    struct claim claims[CLAIMS_MAX];
    struct totals totals;
};

/* What the last scheduling pass found, so that it need not look again.  Never
 * decides anything: forgetting it costs time only.  Not in the digest. */
struct hints {
    uint64_t class_offset, lease_offset; /* arrays of struct hint, one per slot */
    uint64_t wake_ns;                    /* the earliest hint.until_ns or claim.at_ns */
    uint64_t hopeless_ns;                /* no pending job misses its deadline before; 0: unknown */
    bool settled;                        /* nothing to look at since */
    bool swept;                          /* no lease has lost its ground */
    bool cut;                            /* the last step had more to decide */
    bool borrowed;                       /* it placed beyond a guarantee */
};

struct hint {
    uint64_t generation; /* + 1: could not be placed then */
    uint64_t until_ns;   /* look again from then on; 0: no need */
};

struct bh_engine {
    uint64_t magic, length;
    uint32_t layout, unused;
    struct bh_engine_caps caps, wanted;
    struct table tables[TABLES];
    struct hints hints;
    struct core core;
};

/* One step under way. */
struct work {
    struct bh_engine *engine;
    struct bh_step *step;
    uint64_t now_ns, seq;
    /* leases (slots) that are to make way for the job (id) that claimed room last */
    uint64_t victims_for;
    uint32_t victim_count;
    uint32_t victims[32];
    uint64_t of_age_ns; /* when the next lease may make way that was too young */
};

#endif
