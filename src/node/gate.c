#include "node/gate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "model/job.h"
#include "node/inspect.h"
#include "node/order.h"
#include "node/process.h"
#include "node/verify.h"

#define GLANCE (20 * BH_NS_PER_MS) /* where nobody calls: what an earlier node has started */
#define CHECK_AGAIN (200 * BH_NS_PER_MS)
#define PATIENCE (30 * BH_NS_PER_S)

void
bh_gate_called(struct bh_node *node)
{
    uint64_t calls;

    (void)!read(node->gate_fd, &calls, sizeof calls);
    for (uint32_t i = 0; i < node->state.job_count; i++) {
        struct bh_job *job = &node->state.jobs[i];

        if (job->gate_at && job->gate_tries == 0) /* one that is inspected again has its pause */
            job->gate_at = bh_time_monotonic();
    }
}

void
bh_gate_shut(struct bh_job *job)
{
    job->gate_at = bh_time_monotonic() + GLANCE;
    job->gate_until = job->gate_at + PATIENCE;
    job->gate_tries = 0;
}

static void
answer_start(struct bh_node *node, struct bh_job *job)
{
    uint64_t order = job->start_order;

    job->start_order = 0;
    if (order)
        bh_orders_answer_start(node, order, job->broken);
}

/* What is not shown to be isolated does not begin. */
static void
refuse(struct bh_node *node, struct bh_job *job, const char *why)
{
    struct bh_err err;
    char id[32];

    snprintf(job->broken, sizeof job->broken, "isolation: %.160s", why);
    bh_node_job_id(job->note.lease, id);
    job->gate_at = 0;
    job->kill_at = bh_time_monotonic(); /* and again until it is gone */
    if (node->runtime.ops->signal(node->runtime.self, id, SIGKILL, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->note.lease), BH_ERRLOG(&err));
}

static void
judge(struct bh_node *node, struct bh_job *job, const struct bh_report *report)
{
    const struct bh_evidence_remedy *remedy = bh_report_remedy(report, BH_EVIDENCE_START);

    if (bh_report_is_trespass(report) && bh_time_monotonic() < job->gate_until) {
        job->gate_tries = 1; /* what it has is a pause, and not a call of a keeper */
        job->gate_at = bh_time_monotonic() + CHECK_AGAIN;
        return;
    }
    if (remedy->closes_gpu)
        bh_verify_close_gpu(node, job, report->why);
    if (!remedy->ends && job->gate_tries++ < BH_EVIDENCE_RECHECKS) {
        job->gate_at = bh_time_monotonic() + CHECK_AGAIN;
        return;
    }
    bh_log(LEASE_ISOLATION, BH_U64("lease", job->note.lease), BH_U64("job", job->note.job),
           BH_STR("result", bh_check_result_names[bh_report_result(report)]),
           BH_STR("why", report->why));
    refuse(node, job, report->why);
}

/* Process 1 waits. */
static void
inspect(struct bh_node *node, struct bh_job *job, int fd, pid_t init)
{
    struct pollfd ended = { .fd = fd, .events = POLLIN };
    struct bh_report report;

    bh_inspect(node, job, init, &report);
    if (bh_report_result(&report) != BH_CHECK_PASS) {
        if (bh_process_is_ending(init) || poll(&ended, 1, 0) > 0)
            job->gate_at = 0; /* it was ended before its command began: its end answers */
        else
            judge(node, job, &report);
        return;
    }
    job->gate_at = 0;
    if (syscall(SYS_pidfd_send_signal, fd, SIGUSR1, NULL, 0) != 0) {
        if (errno != ESRCH) /* else it was ended while it was inspected, and its end answers */
            bh_log(EFFECT_FAILED, BH_U64("lease", job->note.lease),
                   BH_STR("what", "let it begin"));
        return;
    }
    job->unbuilt = false;
    answer_start(node, job);
    bh_verify_started(node);
}

void
bh_gate_tick(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    pid_t init = 0;
    BH_AUTO(bh_fd_close) int fd = bh_process_first(node, job->note.lease, &init);
    enum bh_first_state state = fd < 0 ? BH_FIRST_SETUP : bh_process_first_state(init);

    if (state == BH_FIRST_WAITS) {
        inspect(node, job, fd, init);
    } else if (state == BH_FIRST_BEGAN) {
        job->gate_at = 0;
        job->unbuilt = false;
        answer_start(node, job);
    } else if (now >= job->gate_until) {
        refuse(node, job, "the sandbox was not ready in 30 s");
    } else {
        job->gate_at = now + GLANCE;
    }
}

/* The runtime's status and not the job's: the command never began.  One that was asked to end did. */
static bool
never_came_up(const struct bh_job *job)
{
    return job->unbuilt && job->start_order && !*job->broken && !job->asked
           && job->end.cause == BH_END_EXITED && job->end.exit_status != 0;
}

bool
bh_gate_ended(struct bh_node *node, struct bh_job *job)
{
    job->gate_at = 0;
    if (never_came_up(job))
        snprintf(job->broken, sizeof job->broken,
                 "its sandbox did not come up: the runtime ended with status %d",
                 job->end.exit_status);
    answer_start(node, job);
    if (!*job->broken)
        return false;
    job->end.cause = BH_END_START_FAILED;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->broken);
    return true;
}
