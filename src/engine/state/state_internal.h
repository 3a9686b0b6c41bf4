#ifndef BH_ENGINE_STATE_STATE_INTERNAL_H
#define BH_ENGINE_STATE_STATE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/state/caps.h"
#include "engine/state/mig.h"
#include "engine/state/reason.h"
#include "engine/state/rows_internal.h"

/* The layout of the engine's block: one header, then slot tables (rows_internal.h), then
 * their indexes.  No pointers, no padding that is not zero. */

enum { MODELS_MAX = 32 };
_Static_assert((int)BH_GPU_MODELS <= (int)MODELS_MAX, "a model more than there is room for");

enum table_kind {
    TABLE_TENANT,
    TABLE_SKU,
    TABLE_NODE,
    TABLE_GPU,
    TABLE_JOB,
    TABLE_LEASE,
    TABLE_PARTITION,
    TABLE_CLASS,
    TABLE_GPU_GROUP, /* as many as there may be GPUs */
    TABLE_METERED,
    TABLES
};

struct table {
    uint64_t offset, index_offset; /* bytes from the start of the block */
    uint32_t capacity, index_mask;
    uint32_t slot_size, high; /* slots ever used are 1 .. high */
    uint32_t live, free_head;
};

/* Room for a job that waits: a claim, being made now, or a reservation, free by time. */
struct claim {
    uint32_t job; /* slot; 0: free */
    uint32_t count;
    uint64_t at_ns;      /* of a reservation: from when on; 0: a claim */
    uint64_t equivalent; /* in parts, of all its partitions */
    struct placement placements[BH_JOB_PARTITIONS_MAX];
};

enum { CLAIMS_MAX = 32 }; /* a set of them is a number of 32 bits */

/* The GPUs of one model that can be carved: engine/gpu/pool.h. */
enum { POOLS_MAX = 4 };
struct pool {
    struct bh_mig_pool capacity;
    uint32_t asked[BH_MIG_SHAPES_MAX], asked_sum; /* partitions, lately */
    uint32_t unused;
};

/* What was asked for of whole GPUs, by members: engine/gpu/node_index.h. */
enum { WANTS_MAX = 32 };
struct demand_row {
    uint64_t models; /* bits */
    uint32_t cpu_milli, memory_mib, gpus;
    uint32_t weight; /* how often */
};

struct demand {
    uint64_t version;  /* of what is expected: 1 and up */
    uint32_t sum;      /* of weights asked for */
    uint32_t renew_at; /* expected anew at that sum */
    uint32_t count, expected_count;
    struct demand_row asked[WANTS_MAX], expected[WANTS_MAX];
};

/* Partitions that no tenant has held since they were carved, by profile: how many there should be
 * and are, carved or being carved (engine/placement/warm.h). */
enum { PROFILES_MAX = 128 };
struct shapes {
    uint64_t retry_ns; /* a carve failed: none before the tick then; 0: none did */
    uint32_t wanted;   /* profiles with ready > 0 */
    uint32_t unused;
    uint16_t ready[PROFILES_MAX], unheld[PROFILES_MAX];
};

/* Fleet-wide sums, brought up to `now_ns` at the start of each step. */
struct totals {
    bh_part_ns physical;
    bh_part_ns leased_compute, leased_memory, unusable_compute, unusable_memory;
    uint64_t rate_physical;
    uint64_t rate_leased_compute, rate_leased_memory;
    uint64_t rate_unusable_compute, rate_unusable_memory;
    uint64_t rate_causes_compute[BH_UNUSABLES], rate_causes_memory[BH_UNUSABLES];
    uint64_t unused;
    bh_part_ns causes_compute[BH_UNUSABLES], causes_memory[BH_UNUSABLES]; /* of unusable */
};

/* State beside the tables that the digest covers. */
struct core {
    uint64_t now_ns;
    uint64_t next_lease, next_partition, next_sequence;
    uint64_t generation; /* moves when something freed up that could help a job */
    uint32_t ended_head, ended_count;
    uint32_t pending; /* jobs */
    uint32_t pending_members;
    uint32_t dedicated;           /* tenants that say dedicated_nodes */
    uint32_t withholders;         /* tenants that do not lend all they are guaranteed, or have expected use */
    uint32_t common[MODELS_MAX];  /* tenants (slots), or 0: engine/gpu/gpu_form.h */
    uint32_t offered[MODELS_MAX]; /* GPUs that get new work, by model */
    uint32_t empty[MODELS_MAX], open[MODELS_MAX]; /* of them: enum gpu_counted */
    uint64_t used, used_models[MODELS_MAX];       /* GPU-equivalents of all tenants */
    struct bh_ev_settings settings;
    uint64_t half_life_began_ns; /* usage is weighed from 1 to 2 since */
    uint64_t turned_ns;          /* the order of tenants is as of then: when generation moved last */
    uint64_t window;             /* moves with what happens from outside, and with each end */
    uint32_t preemptible_jobs[BH_PRIORITIES + 1]; /* jobs that may make way, by priority */
    uint32_t claim_count, reserved;               /* all claims; those that are reservations */
    uint64_t moves_began_ns;                      /* of the hour that moves are counted in; 0: none was yet */
    uint64_t moves_lost_gpu_ms;                   /* by them, as engine/preempt/move.h reckons */
    uint32_t moves, moves_unused;
    uint32_t suspended;                  /* leases */
    uint32_t unchecked;                  /* nodes */
    uint32_t leaving;                    /* leases: the first of the list */
    uint32_t declared, applied;          /* GPUs with something wanted; number of the last change */
    uint64_t health_moves;               /* how often some GPU's health changed */
    uint32_t to_service, unused_service; /* GPUs that wait to be emptied, reset or tested */
    uint8_t pool_of[MODELS_MAX];         /* 1 and up; 0: none */
    uint32_t pool_count;
    struct pool pools[POOLS_MAX];
    struct demand demand;
    struct claim claims[CLAIMS_MAX];
    struct shapes shapes;
    struct totals totals;
};

/* What the last scheduling pass found, so that it need not look again.  Never
 * decides anything: forgetting it costs time only.  Not in the digest. */
struct hints {
    uint64_t class_offset, lease_offset;        /* arrays of struct hint, one per slot */
    uint64_t tenant_offset, preemptible_offset; /* of struct tenant_hint; of struct way, by lease */
    uint64_t node_offset;                       /* of struct node_hint */
    uint64_t queue_offset;                      /* of struct bh_queue_entry: a heap, the first on top */
    uint64_t figures_offset;                    /* of the pools' figures */
    uint64_t node_index_offset;                 /* of the index of whole GPUs, with what is touched */
    uint64_t node_index_version;                /* of the demand that it was made for, + 1; 0: none */
    uint32_t node_index_changed;                /* the first node that it does not know as it is */
    bool node_index_mixed;                      /* some node has GPUs of several models */
    uint64_t changes, all_changes;              /* counts; as of when everything may be different */
    uint32_t queue_count;
    bool queued;                /* the heap holds all that may be looked at */
    uint64_t wake_ns;           /* the earliest hint.until_ns; 0: none */
    bool wake_stale;            /* hint.until_ns may be earlier than it: to be looked for again */
    uint64_t reserved_until_ns; /* bh_reserve_until_ns when it settled; 0: unknown */
    uint64_t hopeless_ns;       /* no pending job misses its deadline before; 0: unknown */
    bool settled;               /* nothing to look at since */
    bool swept;                 /* no lease has lost its ground */
    bool cut;                   /* the last step had more to decide */
    bool due_known;             /* due_ns holds */
    uint64_t due_ns;            /* the first time limit, or GPU to be tried again */
};

struct hint {
    uint64_t generation; /* + 1: could not be placed then */
    uint64_t until_ns;   /* look again from then on; 0: no need */
    uint64_t blocked_at; /* hints.changes + 1: a limit holds it back, and no job's leaving would help */
    uint32_t within;     /* tenant (slot): nothing else changes that, but what happens below it */
    uint32_t unused;
};

struct tenant_hint {
    uint64_t changes;     /* hints.changes at the last event that could help a job below */
    uint32_t first, last; /* jobs (slots) that may make way: engine/queue/preemptible.h */
};

struct node_hint {
    uint64_t end_ns; /* when the first of its leases ends; 0: one is leaving, or not known */
};

struct preemptible {
    uint32_t next, prev; /* jobs (slots) of the same tenant */
    uint64_t since_ns;
};

struct bh_engine {
    uint64_t magic, length;
    uint32_t layout, unused;
    struct bh_engine_caps caps, wanted;
    struct table tables[TABLES];
    struct hints hints;
    struct core core;
};

#endif
