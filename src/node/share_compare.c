#include "node/share_lease_internal.h"

#include <string.h>

#include "node/share_slot.h"

/* A lease's share of a GPU: which of its devices that is. */
static bool
device_on(const struct bh_job *job, const char *gpu, uint32_t *ret_device)
{
    uint32_t device = 0;

    for (uint32_t k = 0; k < job->note.lent_count; k++) {
        const struct bh_note_piece *lent = &job->note.lent[k];

        if (!bh_share_slot_is(lent))
            continue;
        if (strcmp(lent->gpu, gpu) == 0) {
            *ret_device = device;
            return true;
        }
        device++;
    }
    return false;
}

static uint64_t
bytes_of(const struct bh_node *node, uint64_t lease, const struct bh_device_process *processes,
         uint32_t count)
{
    uint64_t bytes = 0;
    struct bh_err ignored;
    bool inside;
    char id[32];

    bh_node_job_id(lease, id);
    for (uint32_t p = 0; p < count; p++) {
        inside = false;
        if (node->runtime.ops->has(node->runtime.self, id, (pid_t)processes[p].pid, &inside,
                                   &ignored) == BH_OK && inside)
            bytes += processes[p].memory_mib << 20;
    }
    return bytes;
}

static bool
is_compared(struct bh_node *node, const struct bh_job *job)
{
    return !job->ended && job->running
           && bh_share_leases_find(node->share_leases, job->note.lease) != NULL;
}

static void
compare_gpu(struct bh_node *node, const char *gpu)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_device_process *processes;
    struct bh_err ignored;
    uint32_t count = 0;

    if (node->device.ops->processes(node->device.self, gpu, arena, &processes, &count, &ignored)
        != BH_OK)
        return;
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];
        struct bh_share_overhead said = { .lease = job->note.lease };

        if (!is_compared(node, job) || !device_on(job, gpu, &said.device))
            continue;
        said.bytes = bytes_of(node, said.lease, processes, count);
        bh_share_host_overhead(node->share_leases->host, &said);
    }
}

static bool
has_shares(struct bh_node *node, const char *gpu)
{
    uint32_t ignored;

    for (uint32_t i = 0; i < node->state.job_count; i++) {
        if (is_compared(node, &node->state.jobs[i])
            && device_on(&node->state.jobs[i], gpu, &ignored))
            return true;
    }
    return false;
}

void
bh_share_leases_compare(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    bh_ns now = bh_time_monotonic();

    if (leases->count == 0 || now < leases->compare_at)
        return;
    leases->compare_at = now + BH_NS_PER_S;
    for (uint32_t g = 0; g < node->inventory.gpu_count; g++) {
        const char *gpu = node->inventory.gpus[g].uuid;

        if (has_shares(node, gpu))
            compare_gpu(node, gpu);
    }
}
