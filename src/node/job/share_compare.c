#include "node/job/share_compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "model/job.h"
#include "node/job/node_stop.h"
#include "node/job/share_busy.h"
#include "node/placement/placement.h"
#include "node/placement/share_slot.h"
#include "node/share/share_lease_internal.h"

/* ---- what the driver says ---- */

/* Several shares of one GPU are one device. */
static bool
compare_is_another_device(const struct bh_job *job, uint32_t at)
{
    for (uint32_t k = 0; k < at; k++) {
        if (strcmp(job->record.lent[k].gpu, job->record.lent[at].gpu) == 0)
            return false;
    }
    return bh_placement_is_share(&job->record.lent[at]);
}

/* Bytes that a lease may have of a GPU, and which of its devices that is; 0: none of it. */
static uint64_t
compare_allowed_on(const struct bh_job *job, const char *gpu, uint32_t *ret_device)
{
    uint64_t bytes = 0;
    uint32_t devices = 0;

    for (uint32_t k = 0; k < job->record.lent_count; k++) {
        const struct bh_node_partition *lent = &job->record.lent[k];

        if (compare_is_another_device(job, k))
            devices++;
        if (!bh_placement_is_share(lent) || strcmp(lent->gpu, gpu) != 0)
            continue;
        if (bytes == 0)
            *ret_device = devices - 1;
        bytes += lent->cap_bytes + lent->context_bytes;
    }
    return bytes;
}

/* The processes on a GPU, as the driver says. */
struct users {
    struct bh_device_process *items;
    uint32_t count;
    struct bh_share_busy busy;
};

/* What its processes have; which they are is sent to bulkhead-share. */
static void
compare_add_up(struct bh_node *node, const struct users *users, struct bh_share_use *use)
{
    const struct bh_device_process *processes = users->items;
    uint64_t lease = use->row->lease;
    struct bh_err ignored;
    bool inside;
    char id[32];

    bh_node_job_id(lease, id);
    for (uint32_t p = 0; p < users->count; p++) {
        const struct bh_share_holder holder = { lease, processes[p].pid };

        inside = false;
        if (node->runtime.ops->has(node->runtime.self, id, (pid_t)processes[p].pid, &inside, &ignored)
                != BH_OK
            || !inside)
            continue;
        use->bytes += processes[p].memory_mib << 20;
        use->busy_percent += bh_share_busy_percent(&users->busy, processes[p].pid);
        bh_share_host_holder(node->share_leases->host, &holder);
    }
}

/* Where it is furthest beyond what it may. */
static void
compare_record_observed(struct bh_share_observed *observed, const char *gpu, uint64_t bytes,
                        uint64_t allowed_bytes)
{
    if (observed->seen && bytes + observed->allowed_bytes <= observed->bytes + allowed_bytes)
        return;
    *observed = (struct bh_share_observed){ .seen = true, .bytes = bytes, .allowed_bytes = allowed_bytes };
    snprintf(observed->gpu, sizeof observed->gpu, "%s", gpu);
}

static struct bh_share_lease_row *
share_compare_row_of(struct bh_node *node, const struct bh_job *job)
{
    return job->ended || !job->running ? NULL : bh_share_leases_find(node->share_leases, job->record.lease);
}

static void
compare_gpu(struct bh_node *node, const char *gpu)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_share_use uses[BH_SHARE_LEASES_MAX];
    struct users users = { 0 };
    struct bh_err ignored;
    uint32_t count = 0;

    if (node->device.ops->processes(node->device.self, gpu, arena, &users.items, &users.count, &ignored)
        != BH_OK)
        return;
    bh_share_busy_read(node, gpu, arena, &users.busy);
    for (uint32_t i = 0; i < node->state.job_count && count < BH_SHARE_LEASES_MAX; i++) {
        const struct bh_job *job = &node->state.jobs[i];
        struct bh_share_use *use = &uses[count];
        uint64_t allowed_bytes;

        *use = (struct bh_share_use){ .row = share_compare_row_of(node, job) };
        allowed_bytes = use->row ? compare_allowed_on(job, gpu, &use->device) : 0;
        if (allowed_bytes == 0)
            continue;
        compare_add_up(node, &users, use);
        compare_record_observed(&use->row->observed, gpu, use->bytes, allowed_bytes);
        bh_share_host_overhead(node->share_leases->host,
                               &(struct bh_share_overhead){ use->row->lease, use->device, use->bytes });
        count++;
    }
    if (users.busy.known)
        bh_share_busy_judge(node, uses, count);
}

static bool
has_shares(struct bh_node *node, const char *gpu)
{
    uint32_t ignored;

    for (uint32_t i = 0; i < node->state.job_count; i++) {
        if (share_compare_row_of(node, &node->state.jobs[i])
            && compare_allowed_on(&node->state.jobs[i], gpu, &ignored) > 0)
            return true;
    }
    return false;
}

/* ---- what is done about it ---- */

static enum bh_over_cap
compare_policy_of(const struct bh_job *job)
{
    uint32_t flags = 0;

    for (uint32_t k = 0; k < job->record.lent_count; k++)
        flags |= job->record.lent[k].share_flags;
    return flags & BH_SHARE_IS_STOPPED     ? BH_OVER_CAP_STOP
           : flags & BH_SHARE_IS_THROTTLED ? BH_OVER_CAP_THROTTLE
                                           : BH_OVER_CAP_WARN;
}

static void
compare_throttle(struct bh_node *node, struct bh_share_lease_row *row, bool throttled)
{
    row->throttled = throttled;
    bh_share_leases_allow(node, row);
    bh_share_leases_notice(node, row, throttled ? BH_JOB_NOTICE_THROTTLED : BH_JOB_NOTICE_RELEASED);
}

static void
share_compare_end(struct bh_node *node, struct bh_share_lease_row *row, struct bh_job *job)
{
    char why[200];

    snprintf(why, sizeof why, "it had %" PRIu64 " MiB of memory of %.47s, and its share allows %" PRIu64,
             row->observed.bytes >> 20, row->observed.gpu, row->observed.allowed_bytes >> 20);
    bh_share_leases_notice(node, row, BH_JOB_NOTICE_STOPPED);
    bh_node_stop_begin(node, job, &(struct bh_node_stop){ BH_END_OVER_CAP, BH_NODE_STOP_GRACE, why });
}

static void
share_compare_judge(struct bh_node *node, struct bh_share_lease_row *row, struct bh_job *job, bh_ns now)
{
    const struct bh_share_observed *observed = &row->observed;
    bool over = observed->bytes > observed->allowed_bytes + BH_SHARE_OVER_BYTES;
    enum bh_share_action action = bh_share_over_check(&row->over, compare_policy_of(job), over, now);

    if (action == BH_SHARE_LEAVE)
        return;
    bh_log(SHARE_OVER_CAP, BH_U64("lease", row->lease), BH_STR("gpu", observed->gpu),
           BH_U64("mib", observed->bytes >> 20), BH_U64("allowed_mib", observed->allowed_bytes >> 20));
    if (action != BH_SHARE_RELEASE)
        bh_share_leases_notice(node, row, BH_JOB_NOTICE_OVER_CAP);
    if (action == BH_SHARE_THROTTLE || action == BH_SHARE_RELEASE)
        compare_throttle(node, row, action == BH_SHARE_THROTTLE);
    else if (action == BH_SHARE_STOP)
        share_compare_end(node, row, job); /* the job may be forgotten by then: last */
}

/* Each second: ask the driver, once for each GPU with open shares, what processes hold on it, and send
 * bulkhead-share what each lease has and which it is.  Then do what is due. */
static void
share_compare_all(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    bh_ns now = bh_time_monotonic();

    if (leases->count == 0 || now < leases->compare_at)
        return;
    leases->compare_at = now + BH_NS_PER_S;
    for (uint32_t i = 0; i < leases->count; i++)
        leases->rows[i].observed.seen = false;
    bh_share_busy_begin(node);
    for (uint32_t g = 0; g < node->inventory.gpu_count; g++) {
        const char *gpu = node->inventory.gpus[g].uuid;

        if (has_shares(node, gpu))
            compare_gpu(node, gpu);
    }
    for (uint32_t i = leases->count; i-- > 0;) {
        struct bh_job *job = bh_state_job(&node->state, leases->rows[i].lease);

        if (job && !job->ended && leases->rows[i].observed.seen)
            share_compare_judge(node, &leases->rows[i], job, now);
        job = bh_state_job(&node->state, leases->rows[i].lease);
        if (job && !job->ended && leases->rows[i].out_of_slice)
            bh_share_busy_act(node, &leases->rows[i], job);
    }
    leases->compared_at = now;
}

void
bh_node_shares_dispatch(struct bh_node *node)
{
    bh_share_leases_open_adopted(node);
    if (!node->share_leases)
        return;
    bh_share_leases_close_ended(node);
    share_compare_all(node);
    bh_share_host_dispatch(node->share_leases->host);
    bh_share_leases_notify(node);
}
