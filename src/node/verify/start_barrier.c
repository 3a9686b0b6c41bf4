#include "node/verify/start_barrier.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "model/job.h"
#include "node/core/state_check.h"
#include "node/job/order_answer.h"
#include "node/sandbox/isolation_checks.h"
#include "node/sandbox/process.h"
#include "node/verify/verify.h"
#include "node/verify/verify_fence.h"

#define POLL_INTERVAL (20 * BH_NS_PER_MS) /* where no call comes: for jobs that an earlier node started */
#define RECHECK_INTERVAL (200 * BH_NS_PER_MS)

void
bh_start_barrier_notified(struct bh_node *node)
{
    uint64_t calls;

    (void)!read(node->barrier_fd, &calls, sizeof calls);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        if (job->barrier_at && job->barrier_checks == 0) /* one that is inspected again has its pause */
            job->barrier_at = bh_time_monotonic();
    }
}

/* What is not shown to be isolated does not begin. */
static void
start_barrier_refuse(struct bh_node *node, struct bh_job *job, const char *why)
{
    struct bh_err err;
    char id[32];

    BH_ASSERT(!job->ended && job->barrier_until);
    snprintf(job->failed_check, sizeof job->failed_check, "isolation: %.160s", why);
    bh_node_job_id(job->record.lease, id);
    job->barrier_at = 0;
    job->kill_at = bh_time_monotonic(); /* and again until it is gone */
    if (node->runtime.ops->signal(node->runtime.self, id, SIGKILL, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
}

static void
start_barrier_judge(struct bh_node *node, struct bh_job *job, const struct bh_report *report)
{
    const struct bh_evidence_remedy *remedy = bh_report_remedy(report, BH_EVIDENCE_START);

    if (bh_report_is_trespass(report) && bh_time_monotonic() < job->barrier_until) {
        job->barrier_checks = 1; /* what it has is a pause, and not a call of a keeper */
        job->barrier_at = bh_time_monotonic() + RECHECK_INTERVAL;
        return;
    }
    if (remedy->closes_gpu)
        bh_verify_close_gpu(node, job, report->why);
    if (!remedy->ends && job->barrier_checks++ < BH_EVIDENCE_RECHECKS) {
        job->barrier_at = bh_time_monotonic() + RECHECK_INTERVAL;
        return;
    }
    bh_log(LEASE_ISOLATION, BH_U64("lease", job->record.lease), BH_U64("job", job->record.job),
           BH_STR("result", bh_check_result_names[bh_report_result(report)]), BH_STR("why", report->why));
    start_barrier_refuse(node, job, report->why);
}

/* Process 1 waits. */
static void
inspect(struct bh_node *node, struct bh_job *job, int fd, pid_t init)
{
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    struct bh_report report;

    bh_isolation_checks_of_job(node, job, init, &report);
    if (bh_report_result(&report) != BH_CHECK_PASS) {
        if (bh_process_is_ending(init) || poll(&ended, 1, 0) > 0)
            job->barrier_at = 0; /* it was ended before its command began: its end answers */
        else
            start_barrier_judge(node, job, &report);
        return;
    }
    job->barrier_at = 0;
    if (syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0) != 0) {
        if (errno != ESRCH) /* else it was ended while it was inspected, and its end answers */
            bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_STR("what", "let it start"));
        return;
    }
    job->unbuilt = false;
    bh_order_answer_start(node, job);
    bh_verify_started(node);
}

void
bh_start_barrier_tick(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    pid_t init = 0;
    BH_AUTO(bh_fd_close) int fd = bh_process_first(node, job->record.lease, &init);
    enum bh_first_state state = fd < 0 ? BH_FIRST_SETUP : bh_process_first_state(init);

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(job->barrier_at && job->barrier_until && !job->ended);
    BH_ASSERT(job->barrier_checks <= BH_EVIDENCE_RECHECKS + 1);
    if (state == BH_FIRST_WAITS) {
        inspect(node, job, fd, init);
    } else if (state == BH_FIRST_BEGAN) {
        job->barrier_at = 0;
        job->unbuilt = false;
        bh_order_answer_start(node, job);
    } else if (now >= job->barrier_until) {
        start_barrier_refuse(node, job, "the sandbox was not ready in 30 s");
    } else {
        job->barrier_at = now + POLL_INTERVAL;
    }
}
