#include "node/sandbox/partition_users.h"

#include <string.h>

#include "node/placement/placement.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/process.h"

static bh_rc
users_find(const struct bh_node *node, uint64_t lease, uint32_t pid, bool *ret_inside)
{
    struct bh_err ignored;
    char id[32];

    bh_node_job_id(lease, id);
    return node->runtime.ops->has(node->runtime.self, id, (pid_t)pid, ret_inside, &ignored);
}

static bool
users_is_of_share(const struct bh_node *node, const struct bh_node_record *record, const char *gpu,
                  uint32_t pid)
{
    bool shares = false, inside = false;

    for (uint32_t k = 0; k < record->lent_count; k++)
        shares |= bh_placement_is_share(&record->lent[k]) && strcmp(record->lent[k].gpu, gpu) == 0;
    return shares && users_find(node, record->lease, pid, &inside) == BH_OK && inside;
}

/* Whether the process is in another job that shares the GPU, or in a helper sandbox that scrubs a share. */
static bool
users_is_neighbor(const struct bh_node *node, const struct bh_node_partition *partition, uint32_t pid)
{
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (users_is_of_share(node, &node->state.jobs[i].record, partition->gpu, pid))
            return true;
    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        const struct bh_node_record *record = bh_helper_sandbox_record(node, i);

        if (record && users_is_of_share(node, record, partition->gpu, pid))
            return true;
    }
    return false;
}

bool
bh_partition_user_is_foreign(const struct bh_node *node, const struct bh_job *job,
                             const struct bh_node_partition *partition,
                             const struct bh_device_process *process)
{
    bool inside = false;

    if (bh_placement_is_instance(partition) && partition->gi != process->gi)
        return false;
    if (bh_placement_is_share(partition) && users_is_neighbor(node, partition, process->pid))
        return false;
    return users_find(node, job->record.lease, process->pid, &inside) == BH_OK && !inside
           && !bh_process_is_ending((pid_t)process->pid);
}
