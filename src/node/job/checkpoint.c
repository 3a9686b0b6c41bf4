#include "node/job/checkpoint.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/utf8.h"
#include "model/driver.h"
#include "model/job.h"
#include "node/common/path.h"
#include "node/core/state_check.h"
#include "node/job/checkpoint_run.h"
#include "node/job/job.h"
#include "node/job/scrub.h"
#include "node/job/unpack.h"
#include "node/placement/placement.h"
#include "node/sandbox/occupancy.h"
#include "node/share/share_lease.h"
#include "runtime/readback.h"

enum { OPERATIONS_MAX = 16, LEAST_BRANCH = 570, WHY_MAX = 300 };
#define PROBE_POLL_INTERVAL (2 * BH_NS_PER_MS)

static const char helper_stuck[] = "a helper hangs in the driver";

/* A job on its way out or back. */
struct operation {
    enum { FREE, SAVING, SAVED, RESTORING, OVER, STUCK } step; /* STUCK: over, but its helper is not */
    uint64_t lease, order;                                     /* order 0: none, after a start of the node */
    struct bh_checkpoint_run run;
    bh_ns check_at;    /* monotonic */
    bool damaged;      /* over: its processes are not as they were */
    bool is_undo;      /* it comes back because it could not go */
    char why[WHY_MAX]; /* over: why it did not go, or could not come back */
};

struct bh_checkpoint_runs {
    struct operation operation[OPERATIONS_MAX];
    char missing[100]; /* why the calls are not there; "": they are */
    bool adopts;       /* jobs of before wait for a place in the table */
};

static void
checkpoint_assert(const struct operation *operation)
{
    BH_ASSERT(operation->step <= STUCK && operation->run.pid >= 0);
    BH_ASSERT(operation->step != SAVING || (operation->order != 0 && !operation->is_undo));
    BH_ASSERT(operation->step != FREE || (operation->run.pid == 0 && !operation->damaged));
    BH_ASSERT((operation->step != SAVING && operation->step != RESTORING) || operation->run.until);
    BH_STATE_ASSERT_TEXT(operation->why);
}

struct bh_checkpoint_runs *
bh_checkpoints_new(void)
{
    struct bh_checkpoint_runs *checkpoints = calloc(1, sizeof *checkpoints);

    BH_ASSERT(checkpoints);
    snprintf(checkpoints->missing, sizeof checkpoints->missing, "not checked yet");
    return checkpoints;
}

void
bh_checkpoints_free(struct bh_checkpoint_runs *checkpoints)
{
    for (uint32_t i = 0; checkpoints && i < OPERATIONS_MAX; i++)
        if (checkpoints->operation[i].run.pid)
            kill(checkpoints->operation[i].run.pid, SIGKILL);
    free(checkpoints);
}

/* ---- can it be done here? ---- */

void
bh_checkpoint_probe(struct bh_node *node)
{
    char *missing = node->checkpoints->missing;
    struct bh_checkpoint_report report;
    struct bh_checkpoint_run run;
    struct bh_err err;
    bh_ns next;
    bh_rc rc = bh_checkpoint_run_begin(node, NULL, BH_CHECKPOINT_PROBE, &run, &err);

    while (rc == BH_OK && !bh_checkpoint_run_advance(&run, bh_time_monotonic(), &next, &report, &err))
        bh_time_sleep(PROBE_POLL_INTERVAL);
    if (rc == BH_OK)
        rc = err.rc;
    snprintf(missing, sizeof node->checkpoints->missing, "%.99s",
             rc != BH_OK                        ? err.msg
             : report.end == BH_CHECKPOINT_DONE ? ""
                                                : report.why);
    bh_utf8_scrub(missing);
}

static bool
checkpoint_has_calls(const struct bh_node *node, char *ret_why, size_t size)
{
    const char *driver = node->inventory.driver;
    struct bh_driver_version version;
    struct bh_err ignored;

    if (!node->conf.checkpoint)
        snprintf(ret_why, size, "checkpoint = 0 in node.conf");
    else if (bh_driver_parse(driver, &version, &ignored) != BH_OK)
        snprintf(ret_why, size, "the driver's version is unknown");
    else if (version.branch < LEAST_BRANCH)
        snprintf(ret_why, size, "driver %.40s is older than %d", driver, LEAST_BRANCH);
    else if (*node->checkpoints->missing)
        snprintf(ret_why, size, "%s", node->checkpoints->missing);
    else
        return true;
    return false;
}

void
bh_checkpoint_describe(const struct bh_node *node, char *ret_text, size_t size)
{
    char why[WHY_MAX];

    if (checkpoint_has_calls(node, why, sizeof why))
        snprintf(ret_text, size, "yes");
    else
        snprintf(ret_text, size, "no: %.140s", why);
}

/* ---- can it be done with this job? ---- */

/* The vendor's calls know no MIG; and the instance may be carved anew meanwhile, as another. */
static bool
checkpoint_has_instance(const struct bh_job *job)
{
    for (uint32_t i = 0; i < job->record.lent_count; i++)
        if (bh_placement_is_instance(&job->record.lent[i]))
            return true;
    return false;
}

/* In MiB: what is left of its memory limit, without files that the kernel can drop, and on the machine. */
static bh_rc
checkpoint_read_memory(const struct bh_node *node, uint64_t lease, uint64_t *ret_headroom,
                       uint64_t *ret_available, struct bh_err *err)
{
    char id[32], path[BH_NODE_PATH_MAX];
    struct bh_sandbox_usage usage = { 0 };
    struct bh_limits limits = { 0 };
    struct bh_cgroup_host groups;
    uint64_t bytes;
    bh_rc rc = bh_cgroup_probe(node->conf.cgroup_mount, &groups, err);

    if (rc != BH_OK)
        return rc;
    bh_node_job_id(lease, id);
    bh_path_format(path, sizeof path, "%s/%s", node->conf.cgroup_parent, id);
    rc = bh_readback_limits(&groups, path, &limits, err);
    if (rc != BH_OK)
        return rc;
    rc = node->runtime.ops->usage(node->runtime.self, id, &usage, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_proc_available_bytes(&bytes, err);
    if (rc != BH_OK)
        return rc;
    usage.bytes -= usage.file_bytes < usage.bytes ? usage.file_bytes : usage.bytes;
    *ret_headroom = limits.memory_bytes < usage.bytes ? 0 : (limits.memory_bytes - usage.bytes) >> 20;
    *ret_available = bytes >> 20;
    return BH_OK;
}

/* The driver keeps what it takes off the GPU in memory of the job's own processes. */
static bool
checkpoint_has_headroom(const struct bh_node *node, uint64_t lease, uint64_t mib, char *ret_why, size_t size)
{
    uint64_t headroom, available;
    struct bh_err err;

    if (checkpoint_read_memory(node, lease, &headroom, &available, &err) != BH_OK) {
        snprintf(ret_why, size, "%.200s", err.msg);
        return false;
    }
    if (headroom < mib)
        snprintf(ret_why, size,
                 "%" PRIu64 " MiB on the GPU do not fit into the %" PRIu64
                 " MiB left of the job's memory limit",
                 mib, headroom);
    else if (available < mib)
        snprintf(ret_why, size,
                 "%" PRIu64 " MiB on the GPU do not fit into the %" PRIu64
                 " MiB left of this machine's main memory",
                 mib, available);
    return headroom >= mib && available >= mib;
}

static bool
checkpoint_can_go(const struct bh_node *node, const struct bh_job *job, const struct bh_job_on_gpu *on_gpu,
                  char *ret_why, size_t size)
{
    if (!checkpoint_has_calls(node, ret_why, size))
        return false;
    if (checkpoint_has_instance(job))
        snprintf(ret_why, size, "the driver's checkpoint calls do not support MIG instances");
    else if (on_gpu->count > BH_COUNT(on_gpu->pids))
        snprintf(ret_why, size, "%u of its processes use the GPU: more than %d", on_gpu->count,
                 BH_CHECKPOINT_PIDS_MAX);
    else
        return checkpoint_has_headroom(node, job->record.lease, on_gpu->memory_mib, ret_why, size);
    return false;
}

/* ---- the table ---- */

static struct operation *
checkpoint_find(const struct bh_node *node, uint64_t lease)
{
    for (uint32_t i = 0; i < OPERATIONS_MAX; i++) {
        struct operation *operation = &node->checkpoints->operation[i];

        checkpoint_assert(operation);
        if (operation->step != FREE && operation->lease == lease)
            return operation;
    }
    return NULL;
}

static struct operation *
checkpoint_find_slot(const struct bh_node *node)
{
    for (uint32_t i = 0; i < OPERATIONS_MAX; i++)
        if (node->checkpoints->operation[i].step == FREE)
            return &node->checkpoints->operation[i];
    return NULL;
}

static bool
checkpoint_is_under_way(const struct operation *operation)
{
    return operation->step == SAVING || operation->step == RESTORING;
}

bool
bh_checkpoint_runs(const struct bh_node *node, uint64_t order)
{
    for (uint32_t i = 0; i < OPERATIONS_MAX; i++) {
        const struct operation *operation = &node->checkpoints->operation[i];

        checkpoint_assert(operation);
        if (checkpoint_is_under_way(operation) && operation->order == order)
            return true;
    }
    return false;
}

/* Its helper may still sit in the driver: then no other helper is sent to that job. */
static void
checkpoint_release(struct operation *operation)
{
    if (bh_checkpoint_run_is_stuck(&operation->run))
        operation->step = STUCK;
    else
        *operation = (struct operation){ .step = FREE };
}

/* ---- notes ---- */

static bh_rc
checkpoint_record_checkpointed(struct bh_node *node, const struct bh_job *job,
                               const struct bh_job_on_gpu *on_gpu, struct bh_err *err)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_CHECKPOINTED,
                                     .lease = job->record.lease,
                                     .pid_count = on_gpu->count };
    bh_rc rc;

    memcpy(record.pids, on_gpu->pids, sizeof record.pids);
    rc = bh_state_record(&node->state, &record, err);
    return rc == BH_OK ? bh_state_sync(&node->state, err) : rc;
}

/* A lost note does no harm: to give memory back twice is to give it back once. */
static void
checkpoint_record_restored(struct bh_node *node, uint64_t lease)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_RESTORED, .lease = lease };
    struct bh_err err;

    if (bh_state_job(&node->state, lease) && bh_state_record(&node->state, &record, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", lease), BH_ERRLOG(&err));
}

/* ---- its steps ---- */

static void
checkpoint_add_why(struct operation *operation, const char *why)
{
    size_t used = strlen(operation->why);

    snprintf(operation->why + used, sizeof operation->why - used, "%s%.*s", used ? "; then: " : "",
             WHY_MAX / 2, why);
    bh_utf8_scrub(operation->why);
}

static bh_rc
checkpoint_begin(struct bh_node *node, struct operation *operation, enum bh_checkpoint_action action,
                 struct bh_err *err)
{
    const struct bh_job *job = bh_state_job(&node->state, operation->lease);
    bh_rc rc = job && !job->ended ? bh_checkpoint_run_begin(node, job, action, &operation->run, err)
                                  : bh_err_set(err, BH_CONFLICT, "the job has ended");

    operation->check_at = bh_time_monotonic();
    if (rc != BH_OK)
        return rc;
    bh_node_share_pause(node, operation->lease); /* locked, it could not answer to a turn */
    operation->step = action == BH_CHECKPOINT_SAVE ? SAVING : RESTORING;
    return BH_OK;
}

static void
checkpoint_fail(struct operation *operation, const char *why)
{
    checkpoint_add_why(operation, why);
    operation->damaged = true;
    operation->step = OVER;
}

/* What was done, or may have been, is undone. */
static void
checkpoint_undo_save(struct bh_node *node, struct operation *operation, const char *why)
{
    struct bh_err err;

    checkpoint_add_why(operation, why);
    operation->is_undo = true;
    if (bh_checkpoint_run_is_stuck(&operation->run))
        checkpoint_fail(operation, helper_stuck);
    else if (checkpoint_begin(node, operation, BH_CHECKPOINT_RESTORE, &err) != BH_OK)
        checkpoint_fail(operation, err.msg);
}

static void
checkpoint_end_save(struct bh_node *node, struct operation *operation,
                    const struct bh_checkpoint_report *report, const struct bh_err *err)
{
    if (err->rc != BH_OK || report->end == BH_CHECKPOINT_FAILED) {
        checkpoint_undo_save(node, operation, err->rc != BH_OK ? err->msg : report->why);
        return;
    }
    if (report->end == BH_CHECKPOINT_DONE) {
        bh_log(MEMORY_ASIDE, BH_U64("lease", operation->lease), BH_U64("processes", report->processes));
        operation->step = SAVED;
        return;
    }
    checkpoint_add_why(operation, report->why);
    checkpoint_record_restored(node, operation->lease);
    bh_node_share_resume(node, operation->lease);
    operation->step = OVER;
}

static void
checkpoint_end_restore(struct bh_node *node, struct operation *operation,
                       const struct bh_checkpoint_report *report, const struct bh_err *err)
{
    if (err->rc != BH_OK || report->end != BH_CHECKPOINT_DONE) {
        checkpoint_fail(operation, err->rc != BH_OK ? err->msg : report->why);
        return;
    }
    bh_log(MEMORY_BACK, BH_U64("lease", operation->lease), BH_U64("processes", report->processes));
    checkpoint_record_restored(node, operation->lease);
    bh_node_share_resume(node, operation->lease);
    operation->step = OVER;
}

/* A job whose processes cannot continue ends, and says why. */
static void
checkpoint_end_job(struct bh_node *node, const struct operation *operation)
{
    struct bh_job *job = bh_state_job(&node->state, operation->lease);
    struct bh_msg_stop stop = { .lease = operation->lease };
    struct bh_err err;

    bh_log(MEMORY_LOST, BH_U64("lease", operation->lease), BH_STR("why", operation->why));
    if (!job || job->ended)
        return;
    snprintf(job->unrestored, sizeof job->unrestored, "its GPU memory could not be restored: %.150s",
             operation->why);
    bh_utf8_scrub(job->unrestored);
    if (bh_unpack_stop(node, &stop, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", operation->lease), BH_ERRLOG(&err));
}

static void
checkpoint_check(struct bh_node *node, struct operation *operation, bh_ns now)
{
    struct bh_checkpoint_report report = { 0 };
    struct bh_err err = { 0 };

    if (!bh_checkpoint_run_advance(&operation->run, now, &operation->check_at, &report, &err))
        return;
    if (operation->step == SAVING)
        checkpoint_end_save(node, operation, &report, &err);
    else
        checkpoint_end_restore(node, operation, &report, &err);
}

static struct operation *
checkpoint_open_operation(struct bh_node *node, uint64_t lease, uint64_t order)
{
    struct operation *operation = checkpoint_find_slot(node);

    if (operation)
        *operation = (struct operation){ .lease = lease, .order = order, .run.output_fd = -1 };
    return operation;
}

void
bh_checkpoint_adopt(struct bh_node *node, struct bh_job *job)
{
    struct operation *operation;
    struct bh_err err;
    bh_rc rc;

    bh_state_assert_job(&node->state, job);
    if (!job->checkpointed || job->ended || job->asked || bh_placement_is_suspended(job)
        || checkpoint_find(node, job->record.lease))
        return;
    operation = checkpoint_open_operation(node, job->record.lease, 0);
    node->checkpoints->adopts = node->checkpoints->adopts || !operation;
    if (!operation)
        return;
    rc = bh_occupancy_check_lease(node, &job->record, &err); /* it must not come back beside another */
    if (rc == BH_OK)
        rc = bh_scrub_check(node, &job->record, &err);
    if (rc == BH_OK)
        rc = checkpoint_begin(node, operation, BH_CHECKPOINT_RESTORE, &err);
    if (rc != BH_OK)
        checkpoint_fail(operation, err.msg);
}

static void
checkpoint_adopt_waiting(struct bh_node *node)
{
    if (!node->checkpoints->adopts || !checkpoint_find_slot(node))
        return;
    node->checkpoints->adopts = false;
    for (uint32_t i = 0; i < node->state.job_count; i++)
        bh_checkpoint_adopt(node, &node->state.jobs[i]);
}

bh_ns
bh_checkpoints_tick(struct bh_node *node, bh_ns now)
{
    bh_ns next = 0;

    checkpoint_adopt_waiting(node);
    for (uint32_t i = 0; i < OPERATIONS_MAX; i++) {
        struct operation *operation = &node->checkpoints->operation[i];

        checkpoint_assert(operation);
        if (checkpoint_is_under_way(operation) && operation->check_at <= now)
            checkpoint_check(node, operation, now);
        if (operation->step == STUCK || (operation->step == OVER && operation->order == 0)) {
            if (operation->step == OVER && operation->damaged)
                checkpoint_end_job(node, operation);
            checkpoint_release(operation);
        }
        if (checkpoint_is_under_way(operation))
            next = bh_node_sooner(next, operation->check_at);
    }
    return next;
}

/* ---- asking ---- */

/* Put it aside when it holds something.  NULL, and `ret_waits`: there is no place for it yet; or
 * without: there is nothing to put aside, or `ret_why` it cannot be. */
static struct operation *
checkpoint_begin_save(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
                      char ret_why[WHY_MAX])
{
    struct bh_job *job = bh_state_job(&node->state, order->lease);
    struct bh_job_on_gpu on_gpu;
    struct operation *operation;
    struct bh_err err;

    if (!job || job->ended || !job->running || bh_placement_is_suspended(job)
        || bh_job_gpu_list(node, job, &on_gpu, &err) != BH_OK || on_gpu.count == 0
        || !checkpoint_can_go(node, job, &on_gpu, ret_why, WHY_MAX))
        return NULL;
    operation = checkpoint_open_operation(node, order->lease, order->order);
    *ret_waits = operation == NULL;
    if (!operation)
        return NULL;
    if (checkpoint_record_checkpointed(node, job, &on_gpu, &err) == BH_OK) {
        if (checkpoint_begin(node, operation, BH_CHECKPOINT_SAVE, &err) == BH_OK)
            return operation;
        checkpoint_record_restored(node, order->lease);
    }
    snprintf(ret_why, WHY_MAX, "%.200s", err.msg);
    checkpoint_release(operation);
    return NULL;
}

/* It keeps the GPU. */
static bh_rc
checkpoint_hold(uint64_t lease, const char *why, bool *ret_held, struct bh_err *err)
{
    *ret_held = true;
    bh_log(MEMORY_KEPT, BH_U64("lease", lease), BH_STR("why", why));
    snprintf(err->msg, sizeof err->msg, "%.230s", why);
    return BH_OK;
}

/* Freeze a job that has nothing on the GPU; if it still holds the GPU, undo the save. */
static bh_rc
checkpoint_freeze(struct bh_node *node, struct operation *operation, bool *ret_held, struct bh_err *err)
{
    uint64_t lease = operation->lease;
    bh_rc rc = bh_job_suspend(node, lease, ret_held, err);

    if (rc == BH_OK && !*ret_held) {
        checkpoint_release(operation);
        return rc;
    }
    checkpoint_undo_save(node, operation,
                         rc == BH_OK ? "it holds the GPU even though its memory was saved" : err->msg);
    *ret_held = false;
    return BH_OK;
}

/* What was begun for another order, or after a start of the node, must end first. */
static bool
checkpoint_blocks_save(const struct operation *operation, uint64_t order)
{
    return operation && (operation->order != order || operation->step == STUCK);
}

static bh_rc
checkpoint_suspend_now(struct bh_node *node, uint64_t lease, const char *why, bool *ret_held,
                       struct bh_err *err)
{
    bh_rc rc = bh_job_suspend(node, lease, ret_held, err);

    return rc == BH_OK && *ret_held ? checkpoint_hold(lease, why, ret_held, err) : rc;
}

bh_rc
bh_checkpoint_suspend(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_held, bool *ret_waits,
                      struct bh_err *err)
{
    struct operation *operation = checkpoint_find(node, order->lease);
    char why[WHY_MAX] = "it has a context on the GPU, or has just started";
    bh_rc rc = BH_OK;

    bh_node_assert(node);
    BH_ASSERT(order->order != 0);
    *ret_held = *ret_waits = false;
    if (checkpoint_blocks_save(operation, order->order)) {
        *ret_waits = operation->step != STUCK;
        return *ret_waits ? BH_OK : checkpoint_hold(order->lease, helper_stuck, ret_held, err);
    }
    if (!operation)
        operation = checkpoint_begin_save(node, order, ret_waits, why);
    if (!operation)
        return *ret_waits ? BH_OK : checkpoint_suspend_now(node, order->lease, why, ret_held, err);
    if (operation->step == SAVED)
        rc = checkpoint_freeze(node, operation, ret_held, err);
    *ret_waits = checkpoint_is_under_way(operation);
    if (operation->step == OVER) {
        rc = checkpoint_hold(order->lease, operation->why, ret_held, err);
        checkpoint_release(operation);
    }
    return rc;
}

/* It is thawed, and its memory is away. */
static bh_rc
checkpoint_begin_restore(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
                         struct bh_err *err)
{
    struct operation *operation = checkpoint_open_operation(node, order->lease, order->order);

    *ret_waits = true;
    if (operation && checkpoint_begin(node, operation, BH_CHECKPOINT_RESTORE, err) != BH_OK)
        checkpoint_fail(operation, err->msg);
    return BH_OK;
}

bh_rc
bh_checkpoint_resume(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits,
                     struct bh_err *err)
{
    struct operation *operation = checkpoint_find(node, order->lease);
    const struct bh_job *job;
    bh_rc rc;

    bh_node_assert(node);
    BH_ASSERT(order->order != 0);
    if (operation && operation->step == STUCK)
        return bh_err_set(err, BH_UNAVAILABLE, "%s", helper_stuck);
    *ret_waits = operation && (checkpoint_blocks_save(operation, order->order) || operation->step != OVER);
    if (*ret_waits)
        return BH_OK;
    if (!operation) {
        rc = bh_job_resume(node, order, ret_waits, err);
        job = bh_state_job(&node->state, order->lease);
        return rc == BH_OK && !*ret_waits && job->checkpointed
                   ? checkpoint_begin_restore(node, order, ret_waits, err)
                   : rc;
    }
    rc = BH_OK;
    if (operation->damaged) {
        checkpoint_end_job(node, operation);
        rc = bh_err_set(err, BH_IO, "its GPU memory could not be restored: %.170s", operation->why);
    }
    checkpoint_release(operation);
    return rc;
}
