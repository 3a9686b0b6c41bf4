#ifndef BH_ENGINE_STATE_EVENT_H
#define BH_ENGINE_STATE_EVENT_H

#include <stdint.h>

#include "base/fields.h"
#include "engine/state/advice.h"
#include "engine/state/config.h"
#include "engine/state/fault.h"
#include "model/job.h"

/* What goes into the engine and what comes out, as plain values.
 *
 * Events are facts and commands; decisions are what the engine chose because of
 * them; effects are what the owner must now have done.  An event and its decisions
 * are one journal record: replay applies them without choosing again.  They hold
 * ids, integers and enums only, never text. */

/* ---- reports of nodes ---- */

struct bh_ev_node {
    bh_node_id node;
    bool up;
    uint32_t cpu_milli, memory_mib; /* for jobs together; 0: not known, so not limited.  Of a
                                       node that goes down: ignored, what was said before stays */
};

/* A GPU as discovered; sent again whenever one of these facts changes. */
struct bh_ev_gpu {
    bh_gpu_id gpu;
    bh_node_id node;
    uint32_t model; /* enum bh_gpu_model */
    bool managed;   /* the site file gave it to Bulkhead */
    bool cordoned;  /* no new work */
    bool fenced;    /* no new work; lost or faulty: its leases end */
    bool keeps;     /* of one that is fenced: it answers, and its leases run on */
    bool mig_capable;
    uint32_t link;              /* NVLink domain on its node; 0: none, or unknown */
    uint32_t numa;              /* number of its NUMA node + 1; 0: unknown */
    enum bh_pool_layout layout; /* of the pool of its node */
    bool lone_carve;            /* no carving beside another tenant's lease (CVE-2026-24197) */
    uint32_t share_limit;       /* compute parts that shares of it may have together: BH_GPU_PARTS, or
                                  more where the site oversubscribes it; 0: it must not be shared.
                                  While it has shares, what it was when the first came bounds it */
};

/* A partition was carved (or destroyed), or could not be. */
struct bh_ev_partition {
    bh_partition_id partition;
    enum bh_outcome_kind outcome;
    uint32_t rc; /* bh_rc of the node when it failed */
};

/* A lease's start, suspend or resume came out. */
struct bh_ev_lease {
    bh_lease_id lease;
    enum bh_outcome_kind outcome;
    uint32_t rc;
    uint64_t at_ns;        /* engine time, STARTED: when it began; 0: now */
    bool elsewhere;        /* STARTED that failed: it is tried again, elsewhere if possible */
    bool refused, scratch; /* for what it asks for: other nodes only; for scratch: it waits (avoid.h) */
};

/* A lease's process tree is gone for good. */
struct bh_ev_ended {
    bh_lease_id lease;
    enum bh_end_cause cause;
    int32_t exit_status; /* EXITED: 0..255; SIGNALLED: 128 + the signal */
    uint64_t ended_ns;   /* the node's wall clock */
    uint64_t at_ns;      /* engine time of the end, where the answer came late; 0: now */
    bool unasked;        /* no stop had reached it: what ended it outranks why it was to end */
    bool completed;      /* its command was done (status 0) before any stop reached it: that is its
                            end, whatever it was to be stopped for */
    bool elsewhere;      /* START_FAILED: as in bh_ev_lease; KEEPER_LOST: it begins again, if it may */
};

/* ---- commands ---- */

struct bh_ev_submit {
    bh_job_id job;
    bh_tenant_id tenant;
    bh_principal_id principal;
    bh_sku_id sku;
    uint32_t count;                 /* partitions of each member, 1 .. BH_JOB_COUNT_MAX */
    uint32_t gang;                  /* members, at most BH_JOB_GANG_MAX; 0 is 1.  All together
                                       at most BH_JOB_PARTITIONS_MAX partitions */
    uint32_t cpu_milli, memory_mib; /* of the node of each member, which needs to have them;
                                       0: none */
    enum bh_job_kind kind;
    enum bh_priority priority;
    enum bh_contract contract;
    uint64_t time_limit_ns;     /* 0: none */
    uint64_t deadline_ns;       /* it must have ended by then; 0: none */
    uint64_t grace_ns;          /* between SIGTERM and SIGKILL */
    uint32_t checkpoint_signal; /* for BH_CONTRACT_CHECKPOINT; 0: BH_CHECKPOINT_SIGNAL */
    bool hold;                  /* never started while set (tests, benches, people) */
    uint8_t spec[32];           /* SHA-256 of the job's full specification */
};

struct bh_ev_job {
    bh_job_id job;
    enum bh_end_cause cause; /* CANCEL: CANCELLED, which NONE stands for, or DATASET */
    bool at_once;            /* CANCEL: without its grace, also where it stops already */
};

enum bh_event_kind {
    BH_EV_TICK, /* time passed */
    BH_EV_TENANT,
    BH_EV_TENANT_REMOVE, /* u.tenant.tenant; its pending jobs end, running ones stop */
    BH_EV_SKU,
    BH_EV_SKU_REMOVE, /* u.sku.sku; BH_CONFLICT while a job wants it */
    BH_EV_NODE,
    BH_EV_GPU,
    BH_EV_CARVED,
    BH_EV_DESTROYED,      /* u.partition */
    BH_EV_PARTITION_GONE, /* u.partition: found missing on the node */
    BH_EV_STARTED,        /* u.lease */
    BH_EV_SUSPENDED,      /* u.lease; CONTEXT_HELD: it keeps the GPU */
    BH_EV_RESUMED,        /* u.lease */
    BH_EV_ENDED,          /* u.ended */
    BH_EV_SUBMIT,
    BH_EV_CANCEL,  /* u.job */
    BH_EV_RELEASE, /* u.job: a held job may run */
    BH_EV_SETTINGS,
    BH_EV_ADVICE,
    BH_EV_MOVE,   /* u.move */
    BH_EV_LAYOUT, /* u.standing */
    BH_EV_HEALTH,
    BH_EV_SERVICED,
    BH_EV_CORDON,
    BH_EV_CHECKED,
    BH_EVENT_KINDS
};

struct bh_event {
    enum bh_event_kind kind;
    uint64_t now_ns; /* never less than the last event's */
    uint64_t seq;    /* number of the record this event will be; effects carry it */
    union {
        struct bh_ev_tenant tenant;
        struct bh_ev_sku sku;
        struct bh_ev_node node;
        struct bh_ev_gpu gpu;
        struct bh_ev_partition partition;
        struct bh_ev_lease lease;
        struct bh_ev_ended ended;
        struct bh_ev_submit submit;
        struct bh_ev_job job;
        struct bh_ev_settings settings;
        struct bh_ev_advice advice;
        struct bh_ev_move move;
        struct bh_ev_layout gpu_layout;
        struct bh_ev_health health;
        struct bh_ev_serviced serviced;
        struct bh_ev_cordon cordon;
        struct bh_ev_checked checked;
    } u;
};

/* ---- decisions ---- */

enum bh_decision_kind {
    BH_DO_PLACE,     /* a member of a pending job gets a lease on partitions */
    BH_DO_RESUME,    /* a suspended lease gets its old partitions back */
    BH_DO_SUSPEND,   /* a lease makes way, and with it all of its job */
    BH_DO_STOP,      /* a lease ends, and with it all of its job: preempted, over its time
                        limit; without a lease, a pending job ends */
    BH_DO_CLAIM,     /* room (partitions) is kept for a job while others leave; the SUSPEND and
                        STOP decisions with its number as for_job follow */
    BH_DO_UNCLAIM,   /* that room will not come free after all */
    BH_DO_RESERVE,   /* capacity (partitions) is kept from at_ns on for a job that must wait; anew or not */
    BH_DO_UNRESERVE, /* that capacity is no longer reserved */
    BH_DO_WARM,      /* a partition is carved for the job that comes first: no job, no lease */
    BH_DO_CLEAR,     /* an idle partition goes, because another layout was declared */
    BH_DECISION_KINDS
};

struct bh_partition {
    bh_partition_id partition; /* new number when it must be carved, else the idle one */
    bh_gpu_id gpu;
    uint32_t profile, start;
    bool carve; /* idle partitions in its way are destroyed first */
};

/* The PLACE, RESUME and CLAIM decisions for a gang stand together in one record, one for
 * each member, in their order. */
struct bh_decision {
    enum bh_decision_kind kind;
    bh_job_id job;
    bh_lease_id lease;
    uint32_t member;         /* PLACE, RESUME: 0 .. gang - 1; CLAIM: counted from 0 */
    bh_job_id for_job;       /* SUSPEND, STOP by preemption: the job that needs the capacity */
    enum bh_end_cause cause; /* STOP */
    struct bh_partition partitions[BH_JOB_COUNT_MAX]; /* PLACE, RESUME, SHAPE, CLEAR; else gpu,
                                                 profile, start */
    uint32_t partition_count;
    uint64_t at_ns; /* RESERVE */
};

/* ---- effects ---- */

enum bh_effect_kind {
    BH_FX_CARVE, /* partition on gpu; switches the GPU's mode where needed */
    BH_FX_DESTROY,
    BH_FX_START, /* lease; its partitions are ready, and those of its whole gang */
    BH_FX_SUSPEND,
    BH_FX_RESUME,
    BH_FX_STOP,
    BH_FX_RESET, /* the GPU, partition.gpu; it is empty */
    BH_FX_TEST,  /* whether its faults are gone; likewise */
    BH_FX_JOB,   /* not for the node: this job's public state changed */
    BH_EFFECT_KINDS
};

enum { BH_ORDER_BITS = 12 };

/* `order` names the effect for ever: (record number << BH_ORDER_BITS) + position.  The node
 * journals it and answers a repeat with the old outcome.  Effects of one node are
 * carried out in order: a CARVE relies on the DESTROYs before it.  Each is answered by
 * one event (CARVED, DESTROYED, STARTED, SUSPENDED, RESUMED, SERVICED, ENDED for STOP); a
 * STOP takes the place of a START, SUSPEND or RESUME that is not yet answered, and is
 * answered ENDED even when nothing runs. */
struct bh_effect {
    enum bh_effect_kind kind;
    uint64_t order;
    bh_node_id node;
    bh_lease_id lease;
    bh_job_id job;
    struct bh_partition
        partition; /* CARVE, DESTROY; and for which tenant: 0 is none yet; its GPU alone: RESET, TEST */
    bh_tenant_id tenant;
    uint64_t grace_ns; /* STOP */
    uint32_t signal;   /* STOP: what it is asked to end with; 0: SIGTERM */
    /* JOB: the state it is in now.  An ended job has left the engine's tables, so
     * how it ended is said here: cause and exit status as in bh_ev_ended, with the
     * lease and node that its first member had. */
    enum bh_job_state state;
    enum bh_end_cause cause;
    int32_t exit_status;
};

extern const char *const bh_event_names[BH_EVENT_KINDS];
extern const char *const bh_decision_names[BH_DECISION_KINDS];

/* How an event's payload and a decision are written in the journal; NULL for TICK,
 * which has none. */
const struct bh_fields *bh_event_fields(enum bh_event_kind kind);
extern const struct bh_fields bh_decision_fields;

#endif
