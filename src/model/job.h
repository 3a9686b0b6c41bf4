#ifndef BH_MODEL_JOB_H
#define BH_MODEL_JOB_H

#include <stdint.h>

/* What is fixed about jobs and leases: kinds, states, priority classes, contracts.
 * The names are what the API, the CLI and the site file say. */

enum bh_job_kind { BH_JOB_BATCH, BH_JOB_SERVICE, BH_JOB_INTERACTIVE, BH_JOB_KINDS };

enum bh_job_state {
    BH_JOB_PENDING,
    BH_JOB_STARTING, /* placed; partitions are being carved or the sandbox started */
    BH_JOB_RUNNING,
    BH_JOB_SUSPENDING,
    BH_JOB_SUSPENDED,
    BH_JOB_RESUMING,
    BH_JOB_STOPPING,
    BH_JOB_COMPLETED, /* exit status 0 */
    BH_JOB_FAILED,    /* any other end; the cause says which */
    BH_JOB_CANCELLED,
    BH_JOB_STATES
};

/* Higher runs first; only a strictly higher class preempts. */
enum bh_priority {
    BH_PRIORITY_LOW = 1,
    BH_PRIORITY_NORMAL,
    BH_PRIORITY_HIGH,
    BH_PRIORITY_URGENT,
    BH_PRIORITIES
};

/* What may be done to a running job so that a higher one can run. */
enum bh_contract {
    BH_CONTRACT_REQUEUE, /* signal, grace, kill; start again from the beginning */
    BH_CONTRACT_SUSPEND, /* freeze; if it keeps the GPU, as requeue */
    BH_CONTRACT_NEVER,
    BH_CONTRACT_CHECKPOINT, /* a signal of its choice, grace to write a checkpoint, kill; start
                               again */
    BH_CONTRACTS
};

/* Why a lease or a job ended. */
enum bh_end_cause {
    BH_END_NONE,
    BH_END_EXITED, /* by itself, with an exit status */
    BH_END_SIGNALLED,
    BH_END_OUT_OF_MEMORY,
    BH_END_CANCELLED,
    BH_END_TIME_LIMIT,
    BH_END_PREEMPTED,
    BH_END_NODE_LOST,
    BH_END_GPU_LOST,
    BH_END_CARVE_FAILED,
    BH_END_START_FAILED,
    BH_END_KEEPER_LOST,
    BH_END_RESUME_FAILED,
    BH_END_TENANT_REMOVED,
    BH_END_DEADLINE,  /* it could not end by its deadline, or had not */
    BH_END_MOVED,     /* to start again on other GPUs, where room is kept for it */
    BH_END_DATASET,   /* it may not, or no longer, have a dataset that it mounts */
    BH_END_GPU_FAULT, /* its GPU, or the instance it had, had a fault */
    BH_END_DRAINED,   /* an operator empties its GPU or node now */
    BH_END_OVER_CAP,  /* it had more GPU memory than its share allows, and its SKU ends it for that */
    BH_END_OVER_TIME, /* it ran on a GPU out of its share's turns, likewise */
    BH_END_ISOLATION, /* what separates it from others was not there, or could not be shown to be */
    BH_END_CAUSES
};

extern const char *const bh_job_kind_names[BH_JOB_KINDS];
extern const char *const bh_job_state_names[BH_JOB_STATES];
/* The order of jobs that no guarantee covers, within a priority class. */
enum bh_queue_order {
    BH_ORDER_FAIR_TREE, /* by decayed usage over weight, level by level (Slurm's Fair Tree) */
    BH_ORDER_DRF,       /* by what is held just now over weight, level by level */
    BH_ORDER_FIFO,
    BH_ORDERS
};

/* What others may have of a guarantee while it is idle, beside what its tenant withholds. */
enum bh_lending {
    BH_LEND_ALL,
    BH_LEND_FORECAST, /* not what the tenant is expected to want soon */
    BH_LENDINGS
};

/* What the GPUs of a pool of nodes are kept for, where others have room: partitions of less than
 * half a GPU are small, those of more are large. */
enum bh_pool_layout {
    BH_POOL_LAYOUT_ON_DEMAND,   /* whatever is asked for */
    BH_POOL_LAYOUT_DEVELOPMENT, /* many small ones */
    BH_POOL_LAYOUT_PRODUCTION,  /* few large ones */
    BH_POOL_LAYOUT_BALANCED,    /* every second GPU for small ones, the others for large ones */
    BH_POOL_LAYOUTS
};

extern const char *const bh_pool_layout_names[BH_POOL_LAYOUTS];
/* Whether running jobs are moved so that others find room. */
enum bh_defrag_mode {
    BH_DEFRAG_OFF,
    BH_DEFRAG_SUGGEST, /* plans are shown; people carry them out */
    BH_DEFRAG_ON,      /* the site carries them out by itself */
    BH_DEFRAG_MODES
};

extern const char *const bh_defrag_mode_names[BH_DEFRAG_MODES];
extern const char *const bh_queue_order_names[BH_ORDERS];
extern const char *const bh_lending_names[BH_LENDINGS];
extern const char *const bh_priority_names[BH_PRIORITIES];
extern const char *const bh_contract_names[BH_CONTRACTS];
extern const char *const bh_end_cause_names[BH_END_CAUSES];

/* What a job with a checkpoint contract is asked for one with, unless it says another:
 * SIGUSR1 as Linux numbers it. */
enum { BH_CHECKPOINT_SIGNAL = 10, BH_SIGNAL_MAX = 64 };

/* The signals that a job may ask for, by name ("USR1" or "SIGUSR1") and by number, as Linux
 * has them: 0 and NULL when it may not. */
uint32_t bh_signal_find(const char *name);
const char *bh_signal_name(uint32_t number);

enum {
    BH_JOB_COUNT_MAX = 16,       /* partitions one member of a job may hold, all on one node */
    BH_JOB_GANG_MAX = 64,        /* members of a job */
    BH_JOB_PARTITIONS_MAX = 256, /* partitions of all its members together */
};

#endif
