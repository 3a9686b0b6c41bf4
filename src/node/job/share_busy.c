#include "node/job/share_busy.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "model/job.h"
#include "node/job/node_stop.h"
#include "node/placement/share_slot.h"
#include "node/share/share_lease_internal.h"

#define ALL_BP 10000
#define NS_PER_US UINT64_C(1000)

/* ---- what the driver says ---- */

/* If each sample counts for one process, their shares add up to at most all of the time, except for rounding.
 * Samples of a driver that counts otherwise are not used. */
static bool
is_one_whole(const struct bh_device_samples *samples)
{
    uint32_t percent = 0;

    for (uint32_t i = 0; i < samples->count; i++)
        percent += samples->items[i].percent;
    return percent <= 100 + samples->count;
}

static void
log_no_samples(struct bh_node *node, const char *gpu, const char *why)
{
    if (!node->share_leases->no_samples)
        bh_log(SHARE_UNSAMPLED, BH_STR("gpu", gpu), BH_STR("why", why));
    node->share_leases->no_samples = true;
}

void
bh_share_busy_read(struct bh_node *node, const char *gpu, struct bh_arena *arena,
                   struct bh_share_busy *ret_busy)
{
    bh_ns before = node->share_leases->compared_at, now = bh_time_monotonic();
    uint64_t past_us = (now - before) / NS_PER_US, now_us = bh_time_now() / NS_PER_US;
    struct bh_err err;
    bh_rc rc;

    *ret_busy = (struct bh_share_busy){ .known = false };
    if (before == 0)
        return; /* time before this node knew the leases is charged to none */
    ret_busy->samples.since_us = now_us > past_us ? now_us - past_us : 0;
    rc = node->device.ops->busy(node->device.self, gpu, arena, &ret_busy->samples, &err);
    ret_busy->known = rc == BH_OK && is_one_whole(&ret_busy->samples);
    if (rc == BH_UNAVAILABLE)
        log_no_samples(node, gpu, err.msg);
    else if (rc == BH_OK && !ret_busy->known)
        log_no_samples(node, gpu, "the fractions of its processes exceed the whole");
}

uint32_t
bh_share_busy_percent(const struct bh_share_busy *busy, uint32_t pid)
{
    for (uint32_t i = 0; busy->known && i < busy->samples.count; i++)
        if (busy->samples.items[i].pid == pid)
            return busy->samples.items[i].percent;
    return 0;
}

/* ---- what turns took ---- */

void
bh_share_busy_begin(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    bh_ns now = bh_time_monotonic();

    for (uint32_t i = 0; i < leases->count; i++)
        bh_share_granted_add(&leases->rows[i].granted,
                             bh_share_host_find(leases->host, leases->rows[i].lease), now);
}

/* ---- judging ---- */

static uint32_t
others_bp(const struct bh_share_use *uses, uint32_t count, uint32_t but)
{
    uint32_t bp = 0;

    for (uint32_t i = 0; i < count; i++)
        bp += i != but && uses[i].row->granted.known ? uses[i].row->granted.bp : 0;
    return bp < ALL_BP ? bp : ALL_BP;
}

void
bh_share_busy_judge(struct bh_node *node, const struct bh_share_use *uses, uint32_t count)
{
    bh_ns span = bh_time_monotonic() - node->share_leases->compared_at;

    for (uint32_t i = 0; i < count; i++) {
        struct bh_share_lease_row *row = uses[i].row;
        const struct bh_share_time_check check = {
            .span_ns = span,
            .busy_bp = uses[i].busy_percent * 100,
            .granted_bp = row->granted.bp,
            .others_bp = others_bp(uses, count, i),
        };

        if (row->granted.known && bh_share_time_check(&row->time[uses[i].device], &check))
            row->out_of_slice |= UINT32_C(1) << uses[i].device;
    }
}

/* ---- what is done about it ---- */

static bool
is_stopped(const struct bh_job *job)
{
    for (uint32_t k = 0; k < job->record.lent_count; k++)
        if (job->record.lent[k].share_flags & BH_SHARE_IS_STOPPED_OUT)
            return true;
    return false;
}

void
bh_share_busy_act(struct bh_node *node, struct bh_share_lease_row *row, struct bh_job *job)
{
    uint32_t device = (uint32_t)__builtin_ctz(row->out_of_slice);
    uint32_t busy = bh_share_time_busy(&row->time[device]),
             granted = bh_share_time_granted(&row->time[device]);
    char why[200];

    row->out_of_slice = 0;
    bh_log(SHARE_OUT_OF_TURN, BH_U64("lease", row->lease), BH_U64("device", device),
           BH_U64("busy_percent", busy), BH_U64("turns_percent", granted));
    bh_share_leases_notice(node, row, BH_JOB_NOTICE_OUT_OF_SLICE);
    if (!is_stopped(job))
        return;
    snprintf(why, sizeof why,
             "it used its GPU %" PRIu32
             " %% of the time in the time slices of others, and its own time slices were %" PRIu32 " %%",
             busy, granted);
    bh_share_leases_notice(node, row, BH_JOB_NOTICE_STOPPED_OUT);
    bh_node_stop_begin(node, job, &(struct bh_node_stop){ BH_END_OVER_TIME, BH_NODE_STOP_GRACE, why });
}
