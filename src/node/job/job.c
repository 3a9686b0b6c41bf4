#include "node/job/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "model/job.h"
#include "node/common/exit_record.h"
#include "node/common/path.h"
#include "node/common/tenant_logs.h"
#include "node/core/state_check.h"
#include "node/job/job_end.h"
#include "node/job/job_log.h"
#include "node/job/scrub.h"
#include "node/placement/cdi.h"
#include "node/placement/handover.h"
#include "node/placement/placement.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/keeper.h"
#include "node/sandbox/launch.h"
#include "node/sandbox/network.h"
#include "node/sandbox/occupancy.h"
#include "node/sandbox/process.h"
#include "node/sandbox/sandbox_spec.h"
#include "node/share/share_lease.h"
#include "runtime/cgroup.h"

#define CHECK_INTERVAL (50 * BH_NS_PER_MS)
#define BARRIER_INTERVAL (20 * BH_NS_PER_MS) /* between looks whether process 1 waits */
#define BARRIER_TIMEOUT (30 * BH_NS_PER_S)
#define END_INTERVAL (500 * BH_NS_PER_MS)

/* ---- the end ---- */

/* By the machine's uptime, where it is still the same one: the wall clock may have stepped. */
static uint64_t
job_time_since_end(const struct bh_node *node, const struct bh_job *job)
{
    bool same_boot = strcmp(job->record.boot, node->boot) == 0;
    bh_ns now = same_boot && job->end.boot_ns ? bh_time_boot() : bh_time_now();
    bh_ns then = same_boot && job->end.boot_ns ? job->end.boot_ns : job->end.ended_ns;

    return now > then ? now - then : 0;
}

void
bh_job_report_end(struct bh_node *node, const struct bh_job *job)
{
    struct bh_msg_ended end = job->end;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(job->ended);
    end.late_ns = job_time_since_end(node, job);
    bh_node_send(node, BH_MSG_ENDED, &end);
}

static void
job_report_end(struct bh_node *node, struct bh_job *job)
{
    bh_log(JOB_ENDED, BH_U64("lease", job->record.lease), BH_STR("cause", bh_end_cause_names[job->end.cause]),
           BH_U64("status", (uint64_t)job->end.exit_status));
    bh_job_report_end(node, job);
}

/* No keeper and no exit record: whatever runs on is ended, and that is written down.  A job of
 * before the machine's last boot had ended by then. */
static void
job_write_off(struct bh_node *node, struct bh_job *job, const char *folder)
{
    bool rebooted = strcmp(job->record.boot, node->boot) != 0;
    struct bh_err err;

    job->end = (struct bh_msg_ended){
        .lease = job->record.lease,
        .cause = rebooted ? BH_END_NODE_LOST : BH_END_KEEPER_LOST,
        .exit_status = 128 + SIGKILL,
        .ended_ns = bh_time_now() - (rebooted ? bh_time_boot() : 0),
        .boot_ns = rebooted ? 0 : bh_time_boot(),
    };
    snprintf(job->end.why, sizeof job->end.why, "%s",
             rebooted ? "the machine went down while the job ran" : "the job's keeper was killed");
    job->end.started_ns = bh_keeper_started(folder);
    bh_log(KEEPER_LOST, BH_U64("lease", job->record.lease));
    if (bh_exit_record_write(folder, &job->end, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
}

static void
job_close_watch(struct bh_job *job)
{
    bh_fd_close(job->pidfd);
    job->pidfd = -1;
    job->check_at = job->kill_at = job->term_at = 0;
    job->running = job->frozen = false;
}

/* Kill what is left.  The node waits for it only the first time: a process that stays then sits in the
 * kernel, and the node has other things to do. */
static bool
job_end_all(struct bh_node *node, struct bh_job *job, const char *id)
{
    const struct bh_runtime *runtime = &node->runtime;
    struct bh_err err;
    uint32_t left;
    pid_t pid;

    BH_ASSERT(!job->ended && job->pidfd < 0);
    if (job->dying
        && (runtime->ops->signal(runtime->self, id, SIGKILL, &err) != BH_OK
            || runtime->ops->processes(runtime->self, id, &pid, 1, &left, &err) != BH_OK || left > 0))
        return false;
    if (runtime->ops->destroy(runtime->self, id, &err) == BH_OK)
        return true;
    bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
    job->dying = true;
    return false;
}

/* A job has not ended, and nothing is written down, as long as a process of it lives. */
static void
job_finish(struct bh_node *node, struct bh_job *job)
{
    char folder[BH_NODE_PATH_MAX], id[32];
    struct bh_err err;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(!job->ended && !job->unpack);
    bh_node_job_folder(node, job->record.lease, folder);
    bh_node_job_id(job->record.lease, id);
    job_close_watch(job);
    bh_keeper_disown(folder);
    if (!job_end_all(node, job, id)) {
        job->check_at = bh_time_monotonic() + END_INTERVAL;
        return;
    }
    if (bh_exit_record_read(folder, &job->end, &err) == BH_OK)
        job->end.unasked = !job->asked && job->end.cause != BH_END_START_FAILED;
    else
        job_write_off(node, job, folder);
    job->end.lease = job->record.lease;
    if (job->end.cause >= BH_END_CAUSES)
        job->end.cause = BH_END_KEEPER_LOST;
    job->ended = true;
    job->barrier_at = 0;
    bh_state_assert_job(&node->state, job);
    bh_handover_left(node, job);
    bh_networks_record(node, job);
    bh_networks_detach(node, job->record.lease);
    bh_sandbox_spec_remove(node, job->record.lease);
    bh_cdi_remove(node, job->record.lease);
    if (bh_job_end_explain(node, job) && bh_exit_record_write(folder, &job->end, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
    job_report_end(node, job);
    if (job->unwanted)
        bh_job_forget(node, job->record.lease);
}

void
bh_job_check(struct bh_node *node, struct bh_job *job)
{
    char folder[BH_NODE_PATH_MAX];
    siginfo_t reaped;
    pid_t pid;

    bh_state_assert_job(&node->state, job);
    if (job->ended || job->unpack)
        return;
    bh_node_job_folder(node, job->record.lease, folder);
    if (job->pidfd >= 0)
        waitid(P_PIDFD, (id_t)job->pidfd, &reaped, WEXITED | WNOHANG); /* a child of the node or of init */
    if (!bh_keeper_alive(folder, &pid)) {
        job_finish(node, job);
        return;
    }
    job->running = true;
    if (job->pidfd < 0 && pid > 0)
        job->pidfd = bh_keeper_watch(folder, pid);
    job->check_at = job->pidfd < 0 ? bh_time_monotonic() + CHECK_INTERVAL : 0;
}

void
bh_job_check_gpu(struct bh_node *node, const char *gpu)
{
    struct bh_node_partition whole = { .gi = BH_WHOLE_GPU };

    snprintf(whole.gpu, sizeof whole.gpu, "%s", gpu);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        if (!job->ended && !job->unwanted && !job->unpack && bh_placement_overlaps(&job->record, &whole))
            bh_job_check(node, job);
    }
}

/* ---- starting ---- */

/* Its sandbox, with its log, under a keeper. */
static bh_rc
job_launch(struct bh_node *node, struct bh_job *job, const struct bh_msg_start *start, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int log_fd = -1;
    struct bh_launch what = { .start = start, .job = job };
    bh_rc rc = bh_job_log_open(node, start, &log_fd, err);

    if (rc == BH_OK && !bh_tenant_logs_hold(log_fd)) { /* it was removed just now */
        bh_fd_close(bh_fd_steal(&log_fd));
        rc = bh_job_log_open(node, start, &log_fd, err);
        if (rc == BH_OK)
            (void)!bh_tenant_logs_hold(log_fd);
    }
    if (rc != BH_OK)
        return rc;
    what.log_fd = log_fd;
    what.log_bound_bytes = bh_job_log_bound(node, log_fd);
    what.log_cap_bytes = bh_job_log_free_bytes(node, log_fd);
    return bh_launch(node, &what, err);
}

static bh_rc
job_make(struct bh_node *node, struct bh_job *job, const struct bh_msg_start *start, struct bh_err *err)
{
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc = bh_launch_folder(node, start->lease, folder, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_node_share_open(node, job, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_exit_record_reserve(folder, err);
    return rc == BH_OK ? job_launch(node, job, start, err) : rc;
}

void
bh_job_set_barrier(struct bh_job *job)
{
    BH_ASSERT(!job->ended && !job->unpack);
    job->barrier_at = bh_time_monotonic() + BARRIER_INTERVAL;
    job->barrier_until = job->barrier_at + BARRIER_TIMEOUT;
    job->barrier_checks = 0;
}

bh_rc
bh_job_start(struct bh_node *node, const struct bh_msg_start *start, struct bh_err *err)
{
    struct bh_job *job = bh_state_job(&node->state, start->lease);
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc;

    BH_ASSERT(job && !job->unpack && !job->running);
    bh_node_assert(node);
    bh_node_job_folder(node, start->lease, folder);
    job->sealed = start->mounts.count == 0;
    if (job->ended)
        return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " was stopped before", start->lease);
    if (bh_keeper_alive(folder, &(pid_t){ 0 }))
        return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " is running already", start->lease);
    rc = job_make(node, job, start, err);
    if (rc == BH_FULL && err->sys == ENOSPC)
        rc = bh_err_hint(err,
                         "make room on the disks of node %.60s, or submit it again when "
                         "there is",
                         node->name);
    if (rc != BH_OK) {
        (void)bh_launch_clear(node, start->lease);
        return rc;
    }
    job->running = true;
    job->check_at = job->pidfd < 0 ? bh_time_monotonic() + CHECK_INTERVAL : 0;
    if (bh_cdi_write(node, &job->record, err) != BH_OK)
        bh_job_log_write(node, start, "the job has no CDI file: %.230s", err->msg);
    bh_job_set_barrier(job);
    bh_log(JOB_STARTED, BH_U64("lease", start->lease), BH_U64("job", start->job));
    return BH_OK;
}

/* A job that could not be started holds nothing, and its output says why. */
void
bh_job_give_up(struct bh_node *node, const struct bh_msg_start *start, const struct bh_err *why)
{
    struct bh_node_record forget = { .kind = BH_NODE_RECORD_FORGET_LEASE, .lease = start->lease };
    struct bh_err ignored;
    struct bh_job *job;

    BH_ASSERT(why->rc != BH_OK);
    bh_job_log_write(node, start, "cannot start: %.230s%s%.150s", why->msg, *why->hint ? "; " : "",
                     why->hint);
    if (bh_state_record(&node->state, &forget, &ignored) == BH_OK)
        return;
    job = bh_state_job(&node->state, start->lease);
    if (job && !job->ended)
        job->check_at = bh_time_monotonic(); /* ends it */
}

void
bh_job_recheck_soon(struct bh_job *job)
{
    if (job->running && !job->ended)
        job->isolation.at = bh_time_monotonic();
}

/* ---- suspending ---- */

static bool
job_holds(const struct bh_job *job, const char *gpu, uint32_t gi)
{
    for (uint32_t i = 0; i < job->record.lent_count; i++) {
        const struct bh_node_partition *partition = &job->record.lent[i];

        if (strcmp(partition->gpu, gpu) == 0 && (!bh_placement_is_instance(partition) || partition->gi == gi))
            return true;
    }
    return false;
}

/* GPUs of the job, each once. */
static bool
job_first_of_gpu(const struct bh_job *job, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(job->record.lent[i].gpu, job->record.lent[at].gpu) == 0)
            return false;
    }
    return true;
}

/* Each process once, although it may be on several GPUs. */
static void
job_add_process(struct bh_job_on_gpu *on_gpu, const struct bh_device_process *process)
{
    on_gpu->memory_mib += process->memory_mib;
    for (uint32_t i = 0; i < on_gpu->count && i < BH_COUNT(on_gpu->pids); i++)
        if (on_gpu->pids[i].pid == process->pid)
            return;
    if (on_gpu->count < BH_COUNT(on_gpu->pids))
        on_gpu->pids[on_gpu->count].pid = process->pid;
    on_gpu->count++;
}

bh_rc
bh_job_gpu_use(struct bh_node *node, const struct bh_job *job, bool *ret_used, uint64_t *ret_mib,
               struct bh_err *err)
{
    struct bh_job_on_gpu on_gpu;
    bh_rc rc = bh_job_gpu_list(node, job, &on_gpu, err);

    *ret_used = on_gpu.count > 0;
    *ret_mib = on_gpu.memory_mib;
    return rc;
}

bh_rc
bh_job_gpu_list(struct bh_node *node, const struct bh_job *job, struct bh_job_on_gpu *ret_on_gpu,
                struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    char id[32];
    bh_rc rc = BH_OK;

    bh_state_assert_job(&node->state, job);
    *ret_on_gpu = (struct bh_job_on_gpu){ .count = 0 };
    bh_node_job_id(job->record.lease, id);
    for (uint32_t i = 0; i < job->record.lent_count && rc == BH_OK; i++) {
        const char *gpu = job->record.lent[i].gpu;
        struct bh_device_process *processes;
        uint32_t process_count;

        if (!job_first_of_gpu(job, i))
            continue;
        rc = node->device.ops->processes(node->device.self, gpu, arena, &processes, &process_count, err);
        for (uint32_t p = 0; p < process_count && rc == BH_OK; p++) {
            bool inside;

            if (!job_holds(job, gpu, processes[p].gi))
                continue;
            rc = node->runtime.ops->has(node->runtime.self, id, (pid_t)processes[p].pid, &inside, err);
            if (rc == BH_OK && inside)
                job_add_process(ret_on_gpu, &processes[p]);
        }
    }
    return rc;
}

static bh_rc
job_find_running(struct bh_node *node, uint64_t lease, struct bh_job **ret_job, struct bh_err *err)
{
    struct bh_job *job = bh_state_job(&node->state, lease);

    if (!job)
        return bh_err_set(err, BH_NOT_FOUND, "no lease %" PRIu64 " on this node", lease);
    if (job->ended || !job->running)
        return bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " has ended", lease);
    *ret_job = job;
    return BH_OK;
}

static bh_rc
job_set_frozen(struct bh_node *node, struct bh_job *job, bool frozen, struct bh_err *err)
{
    char id[32];
    bh_rc rc;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(!job->ended && !job->unpack);
    bh_node_job_id(job->record.lease, id);
    if (frozen) /* before it can say nothing any more */
        bh_node_share_pause(node, job->record.lease);
    rc = node->runtime.ops->freeze(node->runtime.self, id, frozen, err);
    if (rc == BH_OK)
        job->frozen = frozen;
    if (!job->frozen && !job->checkpointed) /* else when its GPU memory is back */
        bh_node_share_resume(node, job->record.lease);
    return rc;
}

static bh_rc
job_record_suspended(struct bh_node *node, const struct bh_job *job, bool suspended, struct bh_err *err)
{
    struct bh_node_record record = { .kind = suspended ? BH_NODE_RECORD_SUSPENDED : BH_NODE_RECORD_RESUMED,
                                     .lease = job->record.lease };
    struct bh_err logged;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(!suspended || job->frozen);
    if (suspended)
        bh_handover_left(node, job);
    if (suspended)
        bh_cdi_remove(node, job->record.lease);
    else
        (void)bh_cdi_write(node, &job->record, &logged);
    return job->suspended == suspended ? BH_OK : bh_state_record(&node->state, &record, err);
}

/* Whether the runtime has handed over to the job's own process 1.  A half-built sandbox is not suspended: its
 * devices could be others when it is resumed. */
static bool
job_has_begun(const struct bh_node *node, const struct bh_job *job)
{
    pid_t init = 0;
    BH_AUTO(bh_fd_close) int fd = bh_process_first(node, job->record.lease, &init);

    return fd >= 0 && bh_process_first_state(init) != BH_FIRST_SETUP;
}

/* A frozen job may still have contexts, and after a crash the node does not know whether it checked them:
 * only what the journal says counts. */
static bh_rc
job_freeze_without_context(struct bh_node *node, struct bh_job *job, bool *ret_held, struct bh_err *err)
{
    uint64_t mib;
    bh_rc rc = job_record_suspended(node, job, false, err);

    if (rc == BH_OK)
        rc = job_set_frozen(node, job, true, err);
    if (rc == BH_OK)
        rc = bh_job_gpu_use(node, job, ret_held, &mib, err);
    *ret_held = *ret_held || !job_has_begun(node, job);
    return rc == BH_OK && !*ret_held ? job_record_suspended(node, job, true, err) : rc;
}

/* Freeze first: a process that runs could change its contexts after the list was read. */
bh_rc
bh_job_suspend(struct bh_node *node, uint64_t lease, bool *ret_held, struct bh_err *err)
{
    struct bh_job *job;
    struct bh_err ignored;
    bh_rc rc = job_find_running(node, lease, &job, err);

    *ret_held = false;
    if (rc != BH_OK || bh_placement_is_suspended(job))
        return rc;
    rc = job_freeze_without_context(node, job, ret_held, err);
    if (rc != BH_OK || *ret_held) {
        (void)!job_set_frozen(node, job, false, &ignored);
        return rc;
    }
    bh_log(JOB_FROZEN, BH_U64("lease", lease));
    return BH_OK;
}

bh_rc
bh_job_resume(struct bh_node *node, const struct bh_msg_lease *order, bool *ret_waits, struct bh_err *err)
{
    uint64_t lease = order->lease;
    struct bh_job *job;
    bh_rc rc = job_find_running(node, lease, &job, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_scrub_prepare(node, &job->record, order->order, ret_waits, err);
    if (rc == BH_OK && *ret_waits)
        return rc;
    for (uint32_t i = 0; i < job->record.lent_count && rc == BH_OK; i++) {
        const struct bh_node_partition *lent = &job->record.lent[i];
        const struct bh_node_partition *now = bh_state_partition_at(&node->state, lent->gpu, lent->gi);

        if (!now || now->minor != lent->minor || now->gi_minor != lent->gi_minor
            || now->ci_minor != lent->ci_minor || strcmp(now->profile, lent->profile) != 0)
            return bh_err_set(err, BH_CONFLICT,
                              "partition %" PRIu64 " of lease %" PRIu64 " is not where it was",
                              lent->partition, lease);
    }
    if (rc != BH_OK)
        return rc;
    rc = bh_state_record_owner(&node->state, &job->record, err);
    if (rc != BH_OK)
        return rc;
    rc = job_record_suspended(node, job, false, err);
    if (rc != BH_OK)
        return rc;
    rc = job_set_frozen(node, job, false, err);
    if (rc != BH_OK)
        return rc;
    bh_log(JOB_THAWED, BH_U64("lease", lease));
    return BH_OK;
}

/* ---- stopping ---- */

/* Noted before the signal goes out: after a crash of the node, too, an end that was asked
 * for is not taken for the job's own.  A disk that is full does not keep a job alive. */
static void
job_record_stopping(struct bh_node *node, struct bh_job *job)
{
    struct bh_node_record asked = { .kind = BH_NODE_RECORD_STOPPING, .lease = job->record.lease };
    struct bh_err err;

    BH_ASSERT(!job->ended);
    if (job->asked)
        return;
    if (bh_state_record(&node->state, &asked, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
    job->asked = true;
}

static bh_rc
job_kill_inside(struct bh_node *node, struct bh_job *job, int number, struct bh_err *err)
{
    char id[32];
    bh_rc rc;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(!job->ended && number > 0);
    job_record_stopping(node, job);
    bh_node_job_id(job->record.lease, id);
    if (job->frozen
        && (bh_occupancy_check_lease(node, &job->record, err) != BH_OK
            || bh_scrub_check(node, &job->record, err) != BH_OK))
        number = SIGKILL; /* another has its GPU by now, or had: it must not run again */
    if (job->frozen && job_record_suspended(node, job, false, err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(err));
    rc = node->runtime.ops->signal(node->runtime.self, id, number, err);
    if (rc == BH_OK && job->frozen) /* a frozen process takes no signal */
        rc = job_set_frozen(node, job, false, err);
    return rc;
}

/* Process 1 ignores the signal to end: before the job's command runs beside it, the signal would be lost.  So
 * it is sent once the command runs. */
static bh_rc
job_ask_to_end(struct bh_node *node, struct bh_job *job, bh_ns now, struct bh_err *err)
{
    pid_t pids[2];
    uint32_t count = 0;
    char id[32];
    bh_rc rc;

    BH_ASSERT(job->kill_at && job->term_signal > 0);
    bh_node_job_id(job->record.lease, id);
    rc = node->runtime.ops->processes(node->runtime.self, id, pids, BH_COUNT(pids), &count, err);
    job->term_at = rc == BH_OK && count < BH_COUNT(pids) ? now + CHECK_INTERVAL : 0;
    return rc == BH_OK && !job->term_at ? job_kill_inside(node, job, job->term_signal, err) : rc;
}

/* Nothing of the lease is here, and the daemon waits for its end: it gets one that is as
 * durable as any other, with an exit record that a restarted node finds again. */
static bh_rc
job_end_unknown(struct bh_node *node, uint64_t lease, struct bh_err *err)
{
    struct bh_node_record record = { .kind = BH_NODE_RECORD_LEASE, .lease = lease, .slot = BH_NO_SLOT };
    struct bh_msg_ended end = { .lease = lease,
                                .cause = BH_END_START_FAILED,
                                .ended_ns = bh_time_now(),
                                .why = "the lease has no job on this node" };
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc;

    snprintf(record.boot, sizeof record.boot, "%s", node->boot);
    rc = bh_launch_folder(node, lease, folder, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_exit_record_write(folder, &end, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_state_record(&node->state, &record, err);
    if (rc != BH_OK)
        return rc;
    job_finish(node, bh_state_job(&node->state, lease));
    return BH_OK;
}

bh_rc
bh_job_stop(struct bh_node *node, const struct bh_msg_stop *stop, struct bh_err *err)
{
    struct bh_job *job = bh_state_job(&node->state, stop->lease);
    bh_ns now = bh_time_monotonic();

    if (stop->signal > BH_SIGNAL_MAX)
        return bh_err_set(err, BH_RANGE, "%" PRIu32 " is not a signal", stop->signal);
    BH_ASSERT(!job || !job->unpack);
    if (!job)
        return job_end_unknown(node, stop->lease, err);
    bh_job_check(node, job); /* it may have ended by itself just now, and be forgotten */
    job = bh_state_job(&node->state, stop->lease);
    if (!job || job->ended)
        return BH_OK;
    if (stop->grace_ns == 0) {
        job->kill_at = now + CHECK_INTERVAL; /* for what is being born just now */
        return job_kill_inside(node, job, SIGKILL, err);
    }
    job->kill_at = now + stop->grace_ns;
    job->term_signal = stop->signal ? (int)stop->signal : SIGTERM;
    return job_ask_to_end(node, job, now, err);
}

/* A job is asked to die again until it has: its runtime may just be making it. */
static void
job_kill_due(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    struct bh_err err;

    job->kill_at = now + CHECK_INTERVAL;
    if (job_kill_inside(node, job, SIGKILL, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
}

void
bh_job_stop_due(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    struct bh_err err;

    bh_state_assert_job(&node->state, job);
    if (job->kill_at && job->kill_at <= now)
        job_kill_due(node, job, now);
    else if (job->term_at && job->term_at <= now && job_ask_to_end(node, job, now, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
}

/* ---- after a start of the node ---- */

static void
job_read_frozen(struct bh_node *node, struct bh_job *job)
{
    struct bh_cgroup_host cgroups;
    char id[32], path[200];
    struct bh_err ignored;

    bh_node_job_id(job->record.lease, id);
    bh_path_format(path, sizeof path, "%s/%s", node->conf.cgroup_parent, id);
    if (bh_cgroup_probe(node->conf.cgroup_mount, &cgroups, &ignored) == BH_OK)
        (void)!bh_cgroup_frozen(&cgroups, path, &job->frozen, &ignored);
}

/* Frozen and not noted as suspended: the node died before it had looked for contexts, or
 * when it was about to thaw. */
void
bh_job_adopt_frozen(struct bh_node *node, struct bh_job *job)
{
    struct bh_err err;

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(!job->ended);
    job_read_frozen(node, job);
    if (!job->frozen || job->suspended)
        return;
    if (job_set_frozen(node, job, false, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
    else
        bh_log(JOB_THAWED, BH_U64("lease", job->record.lease));
}

void
bh_job_forget(struct bh_node *node, uint64_t lease)
{
    struct bh_job *job = bh_state_job(&node->state, lease);
    struct bh_node_record record = { .kind = BH_NODE_RECORD_FORGET_LEASE, .lease = lease };
    char folder[BH_NODE_PATH_MAX];
    struct bh_err err;

    if (!job || !job->ended)
        return;
    if (bh_state_record(&node->state, &record, &err) != BH_OK) {
        bh_log(EFFECT_FAILED, BH_U64("lease", lease), BH_ERRLOG(&err));
        return;
    }
    bh_node_job_folder(node, lease, folder);
    bh_path_remove_tree(folder);
}
