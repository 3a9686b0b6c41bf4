#include "node/share/share_lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/common/path.h"
#include "node/core/driver.h"
#include "node/core/state_check.h"
#include "node/placement/placement.h"
#include "node/placement/share_slot.h"
#include "node/share/share_lease_internal.h"

bool
bh_node_share_is(const struct bh_job *job)
{
    bool own = job->record.lease >= BH_SCRUB_LEASES; /* the node's: it works with the driver itself */

    for (uint32_t k = 0; k < job->record.lent_count && !own; k++)
        if (bh_placement_is_share(&job->record.lent[k]))
            return true;
    return false;
}

static void
lease_folder(const struct bh_node *node, uint64_t lease, const char *below, char ret_path[BH_NODE_PATH_MAX])
{
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%.300s/shares/%" PRIu64 "%s", node->conf.run_dir, lease,
                   below);
}

void
bh_node_share_socket_dir(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX])
{
    lease_folder(node, lease, "/door", ret_path);
}

/* ---- bulkhead-share ---- */

static void
share_lease_notice(void *self, const struct bh_share_notice *notice)
{
    static const enum bh_job_notice kinds[BH_SHARE_NOTICES] = {
        [BH_SHARE_NOTICE_FORGED] = BH_JOB_NOTICE_FORGED,
        [BH_SHARE_NOTICE_FULL] = BH_JOB_NOTICE_FULL,
        [BH_SHARE_NOTICE_STRANGER] = BH_JOB_NOTICE_STRANGER,
        [BH_SHARE_NOTICE_STUCK] = BH_JOB_NOTICE_STUCK,
        [BH_SHARE_NOTICE_MORE] = BH_JOB_NOTICE_MORE,
        [BH_SHARE_NOTICE_BYPASS] = BH_JOB_NOTICE_BYPASS,
        [BH_SHARE_NOTICE_OUTDATED] = BH_JOB_NOTICE_OUTDATED,
        [BH_SHARE_NOTICE_STATIC] = BH_JOB_NOTICE_STATIC,
        [BH_SHARE_NOTICE_UNCOUNTED] = BH_JOB_NOTICE_UNCOUNTED,
    };
    struct bh_node *node = self;
    struct bh_share_lease_row *row = bh_share_leases_find(node->share_leases, notice->lease);

    if (row && notice->kind < BH_SHARE_NOTICES)
        bh_share_leases_notice(node, row, kinds[notice->kind]);
}

static struct bh_share_leases *
leases_of(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    char program[BH_NODE_PATH_MAX];

    if (leases)
        return leases;
    leases = calloc(1, sizeof *leases);
    BH_ASSERT(leases);
    bh_path_format(program, sizeof program, "%.480s/bulkhead-share", node->libexec);
    leases->host = bh_share_host_new(
        &(struct bh_share_host_options){ .program = program, .notice = share_lease_notice, .self = node });
    node->share_leases = leases;
    return leases;
}

/* ---- opening ---- */

static bh_rc
lease_check_libraries(const struct bh_node *node, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];

    bh_path_format(path, sizeof path, "%.480s/libcuda.so.1", bh_driver_shim(node));
    if (access(path, R_OK) != 0)
        return bh_err_set(
            err, BH_UNAVAILABLE,
            "a share of a GPU cannot be enforced here: there is no %s; shim_dir in node.conf sets the "
            "folder of the shim",
            path);
    if (node->conf.driver_lib_dir[0] == '\0')
        return bh_err_set(
            err, BH_UNAVAILABLE,
            "a share of a GPU cannot be enforced here: "
            "the driver's libraries were not found; driver_search in node.conf lists where to look");
    return BH_OK;
}

/* The folders; `driver` is where the driver's own libraries are bound, below the door. */
static bh_rc
share_lease_make_folders(const struct bh_node *node, uint64_t lease, struct bh_err *err)
{
    static const struct {
        const char *below;
        mode_t mode;
    } rows[] = { { "", 0700 }, { "/door", 0755 }, { "/door/driver", 0755 } };
    char path[BH_NODE_PATH_MAX];
    bh_rc rc;

    bh_path_format(path, sizeof path, "%.480s/shares", node->conf.run_dir);
    rc = bh_dir_make(path, 0700, err);
    for (size_t i = 0; i < BH_COUNT(rows) && rc == BH_OK; i++) {
        lease_folder(node, lease, rows[i].below, path);
        if (mkdir(path, rows[i].mode) != 0 && errno != EEXIST)
            rc = bh_err_errno(err, "make folder %s", path);
    }
    return rc;
}

/* Of a GPU's time, what the lease has of the one of which it has most: it takes turns on all of them
 * at once. */
static uint32_t
lease_weight_of(const struct bh_job *job)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < job->record.lent_count; k++) {
        uint32_t weight = 0;

        for (uint32_t i = 0; i < job->record.lent_count; i++) {
            if (strcmp(job->record.lent[i].gpu, job->record.lent[k].gpu) == 0)
                weight += job->record.lent[i].share_weight;
        }
        most = weight > most ? weight : most;
    }
    return most < BH_GPU_PARTS ? most : BH_GPU_PARTS; /* more where it is oversubscribed */
}

/* Several shares of one GPU are one device to the job.  Which of the node's GPUs it is, by its minor: the
 * same for all leases. */
static void
share_lease_put_gpu(const struct bh_node *node, const struct bh_node_partition *lent,
                    struct bh_share_open *open)
{
    uint64_t context_bytes = lent->context_bytes / BH_SHARE_UNIT_BYTES * BH_SHARE_UNIT_BYTES;
    struct bh_share_gpu *gpu = open->gpus;

    while (gpu < open->gpus + open->gpu_count && strcmp(gpu->uuid, lent->gpu) != 0)
        gpu++;
    open->gpu_count += gpu == open->gpus + open->gpu_count;
    gpu->gpu = lent->minor % 32;
    memcpy(gpu->uuid, lent->gpu, sizeof gpu->uuid);
    gpu->cap_bytes += lent->cap_bytes + context_bytes; /* the first is beside it */
    gpu->context_bytes = context_bytes;
    gpu->memory_bytes += lent->cap_bytes;
    open->hard = (lent->share_flags & BH_SHARE_IS_HARD) != 0;
    open->latency = (lent->share_flags & BH_SHARE_IS_LATENCY) != 0;
    open->managed = lent->share_flags & BH_SHARE_HAS_MANAGED_FREE ? BH_SHARE_MANAGED_FREE
                    : lent->share_flags & BH_SHARE_HAS_NO_MANAGED ? BH_SHARE_MANAGED_NONE
                                                                  : BH_SHARE_MANAGED_CHARGED;
    if (lent->share_flags & BH_SHARE_IS_MULTIPLEXED)
        open->quantum_ns = node->conf.share_quantum_ms * (uint64_t)BH_NS_PER_MS;
}

static void
share_lease_assert(const struct bh_share_lease_row *row)
{
    BH_STATE_ASSERT_TEXT(row->observed.gpu);
    BH_ASSERT(row->granted.bp <= 10000 && row->out_of_slice >> BH_SHARE_DEVICES_MAX == 0);
    for (uint32_t d = 0; d < BH_SHARE_DEVICES_MAX; d++)
        BH_ASSERT(row->time[d].beyond_ns >= 0);
}

struct bh_share_lease_row *
bh_share_leases_find(struct bh_share_leases *leases, uint64_t lease)
{
    BH_ASSERT(leases->host && leases->count <= BH_COUNT(leases->rows));
    for (uint32_t i = 0; i < leases->count; i++) {
        share_lease_assert(&leases->rows[i]);
        if (leases->rows[i].lease == lease)
            return &leases->rows[i];
    }
    return NULL;
}

static bh_rc
share_lease_add(struct bh_share_leases *leases, const struct bh_share_open *open, struct bh_err *err)
{
    bh_rc rc;

    if (leases->count == BH_COUNT(leases->rows))
        return bh_err_set(err, BH_FULL, "%d leases share GPUs on this node", BH_SHARE_LEASES_MAX);
    /* Before it is opened: what bulkhead-share finds then, as a forged page, it says at once. */
    leases->rows[leases->count++] =
        (struct bh_share_lease_row){ .lease = open->lease, .paused = open->paused };
    rc = bh_share_host_open(leases->host, open, err);
    if (rc != BH_OK) {
        leases->count--;
        return rc;
    }
    for (uint32_t d = 0; d < open->gpu_count; d++)
        bh_log(SHARE_OPENED, BH_STR("gpu", open->gpus[d].uuid), BH_U64("lease", open->lease),
               BH_U64("cap_bytes", open->gpus[d].cap_bytes), BH_U64("weight", open->weight));
    return BH_OK;
}

bh_rc
bh_node_share_open(struct bh_node *node, const struct bh_job *job, struct bh_err *err)
{
    struct bh_share_open open = { .lease = job->record.lease, .paused = job->frozen || job->checkpointed };
    struct bh_share_leases *leases;
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc;

    for (uint32_t k = 0; k < job->record.lent_count && open.gpu_count < BH_SHARE_DEVICES_MAX; k++)
        if (bh_placement_is_share(&job->record.lent[k]))
            share_lease_put_gpu(node, &job->record.lent[k], &open);
    if (open.gpu_count == 0)
        return BH_OK;
    open.weight = lease_weight_of(job);
    rc = lease_check_libraries(node, err);
    if (rc != BH_OK)
        return rc;
    rc = share_lease_make_folders(node, open.lease, err);
    if (rc != BH_OK)
        return rc;
    lease_folder(node, open.lease, "", folder);
    bh_path_format(open.folder, sizeof open.folder, "%.190s", folder);
    leases = leases_of(node);
    return bh_share_leases_find(leases, open.lease) ? bh_share_host_open(leases->host, &open, err)
                                                    : share_lease_add(leases, &open, err);
}

/* ---- closing ---- */

static bool
share_lease_lives(const struct bh_node *node, uint64_t lease)
{
    for (uint32_t i = 0; i < node->state.job_count; i++)
        if (node->state.jobs[i].record.lease == lease)
            return !node->state.jobs[i].ended;
    return false;
}

void
bh_share_leases_close_ended(struct bh_node *node)
{
    struct bh_share_leases *leases = node->share_leases;
    char folder[BH_NODE_PATH_MAX];

    BH_ASSERT(leases->host && leases->count <= BH_COUNT(leases->rows));
    for (uint32_t i = leases->count; i-- > 0;) {
        uint64_t lease = leases->rows[i].lease;

        if (share_lease_lives(node, lease))
            continue;
        bh_share_host_close(leases->host, lease);
        lease_folder(node, lease, "", folder);
        bh_path_remove_tree(folder);
        leases->rows[i] = leases->rows[--leases->count];
        bh_log(SHARE_CLOSED, BH_U64("lease", lease));
    }
}

/* Jobs of before this node was started have theirs in the journal. */
void
bh_share_leases_open_adopted(struct bh_node *node)
{
    struct bh_err err;
    bh_ns now = bh_time_monotonic();

    if (node->share_leases && now < node->share_leases->tried_at + BH_NS_PER_S)
        return;
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        const struct bh_job *job = &node->state.jobs[i];

        if (job->ended || !job->running || !bh_node_share_is(job)
            || bh_share_leases_find(leases_of(node), job->record.lease))
            continue;
        if (bh_node_share_open(node, job, &err) != BH_OK)
            bh_log(EFFECT_FAILED, BH_STR("what", "share of a running job"), BH_ERRLOG(&err));
        node->share_leases->tried_at = now;
    }
}

/* ---- suspending ---- */

void
bh_share_leases_allow(struct bh_node *node, const struct bh_share_lease_row *row)
{
    const struct bh_share_allow said = { row->lease, row->paused, row->throttled };

    bh_share_host_allow(node->share_leases->host, &said);
}

static void
lease_set_paused(struct bh_node *node, uint64_t lease, bool paused)
{
    struct bh_share_lease_row *row =
        node->share_leases ? bh_share_leases_find(node->share_leases, lease) : NULL;

    if (!row)
        return;
    row->paused = paused;
    bh_share_leases_allow(node, row);
}

void
bh_node_share_pause(struct bh_node *node, uint64_t lease)
{
    lease_set_paused(node, lease, true);
}

void
bh_node_share_resume(struct bh_node *node, uint64_t lease)
{
    lease_set_paused(node, lease, false);
}

bh_ns
bh_node_shares_next(const struct bh_node *node)
{
    return node->share_leases && node->share_leases->count > 0 ? node->share_leases->compare_at : 0;
}

void
bh_node_shares_free(struct bh_node *node)
{
    if (node->share_leases)
        bh_share_host_free(node->share_leases->host);
    free(node->share_leases);
    node->share_leases = NULL;
}
