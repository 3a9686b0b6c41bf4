#include "model/job.h"

#include <string.h>

#include "base/attr.h"

const char *const bh_job_kind_names[BH_JOB_KINDS] = {
    [BH_JOB_BATCH] = "batch",
    [BH_JOB_SERVICE] = "service",
    [BH_JOB_INTERACTIVE] = "interactive",
};

const char *const bh_job_state_names[BH_JOB_STATES] = {
    [BH_JOB_PENDING] = "pending",       [BH_JOB_STARTING] = "starting",   [BH_JOB_RUNNING] = "running",
    [BH_JOB_SUSPENDING] = "suspending", [BH_JOB_SUSPENDED] = "suspended", [BH_JOB_RESUMING] = "resuming",
    [BH_JOB_STOPPING] = "stopping",     [BH_JOB_COMPLETED] = "completed", [BH_JOB_FAILED] = "failed",
    [BH_JOB_CANCELLED] = "cancelled",
};

/* 0 is no priority class, so that an event without one is refused. */
const char *const bh_defrag_mode_names[BH_DEFRAG_MODES] = {
    [BH_DEFRAG_OFF] = "off",
    [BH_DEFRAG_SUGGEST] = "suggest",
    [BH_DEFRAG_ON] = "on",
};

const char *const bh_queue_order_names[BH_ORDERS] = {
    [BH_ORDER_FAIR_TREE] = "fair_tree",
    [BH_ORDER_DRF] = "drf",
    [BH_ORDER_FIFO] = "fifo",
};

const char *const bh_pool_layout_names[BH_POOL_LAYOUTS] = {
    [BH_POOL_LAYOUT_ON_DEMAND] = "on-demand",
    [BH_POOL_LAYOUT_DEVELOPMENT] = "development",
    [BH_POOL_LAYOUT_PRODUCTION] = "production",
    [BH_POOL_LAYOUT_BALANCED] = "balanced",
};

const char *const bh_lending_names[BH_LENDINGS] = {
    [BH_LEND_ALL] = "all",
    [BH_LEND_FORECAST] = "forecast",
};

const char *const bh_priority_names[BH_PRIORITIES] = {
    [BH_PRIORITY_LOW] = "low",
    [BH_PRIORITY_NORMAL] = "normal",
    [BH_PRIORITY_HIGH] = "high",
    [BH_PRIORITY_URGENT] = "urgent",
};

const char *const bh_contract_names[BH_CONTRACTS] = {
    [BH_CONTRACT_REQUEUE] = "requeue",
    [BH_CONTRACT_SUSPEND] = "suspend",
    [BH_CONTRACT_NEVER] = "never",
    [BH_CONTRACT_CHECKPOINT] = "checkpoint",
};

const char *const bh_end_cause_names[BH_END_CAUSES] = {
    [BH_END_NONE] = "none",
    [BH_END_EXITED] = "exited",
    [BH_END_SIGNALLED] = "signalled",
    [BH_END_OUT_OF_MEMORY] = "out_of_memory",
    [BH_END_CANCELLED] = "cancelled",
    [BH_END_TIME_LIMIT] = "time_limit",
    [BH_END_PREEMPTED] = "preempted",
    [BH_END_MOVED] = "moved",
    [BH_END_NODE_LOST] = "node_lost",
    [BH_END_GPU_LOST] = "gpu_lost",
    [BH_END_CARVE_FAILED] = "carve_failed",
    [BH_END_START_FAILED] = "start_failed",
    [BH_END_KEEPER_LOST] = "keeper_lost",
    [BH_END_RESUME_FAILED] = "resume_failed",
    [BH_END_TENANT_REMOVED] = "tenant_removed",
    [BH_END_DEADLINE] = "deadline",
    [BH_END_DATASET] = "dataset",
    [BH_END_GPU_FAULT] = "gpu_fault",
    [BH_END_DRAINED] = "drained",
    [BH_END_OVER_CAP] = "over_cap",
    [BH_END_OVER_TIME] = "over_time",
    [BH_END_ISOLATION] = "isolation",
};

/* The signals that may ask a job for a checkpoint. */
static const struct {
    const char *name;
    uint32_t number;
} signals[] = { { "HUP", 1 }, { "INT", 2 }, { "QUIT", 3 }, { "USR1", 10 }, { "USR2", 12 }, { "TERM", 15 } };

uint32_t
bh_signal_find(const char *name)
{
    const char *bare = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;

    for (size_t i = 0; i < BH_COUNT(signals); i++)
        if (strcmp(signals[i].name, bare) == 0)
            return signals[i].number;
    return 0;
}

const char *
bh_signal_name(uint32_t number)
{
    for (size_t i = 0; i < BH_COUNT(signals); i++)
        if (signals[i].number == number)
            return signals[i].name;
    return NULL;
}
