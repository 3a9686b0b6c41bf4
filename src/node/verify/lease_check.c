#include "node/verify/lease_check.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "model/job.h"
#include "node/core/state_check.h"
#include "node/job/job.h"
#include "node/job/node_stop.h"
#include "node/sandbox/process.h"
#include "node/verify/verify_fence.h"

#define TRESPASS_AGAIN (100 * BH_NS_PER_MS) /* a trespassing job is killed, and soon gone */

/* ---- telling ---- */

static const enum bh_job_notice notices[BH_LEASE_NOTICES] = {
    [BH_LEASE_UNVERIFIED] = BH_JOB_NOTICE_UNVERIFIED,
    [BH_LEASE_VERIFIED] = BH_JOB_NOTICE_VERIFIED,
    [BH_LEASE_STOPPED] = BH_JOB_NOTICE_ISOLATION,
};

static void
lease_check_notify(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    for (uint32_t i = 0; i < BH_LEASE_NOTICES; i++) {
        struct bh_msg_notice notice = { .lease = job->record.lease,
                                        .at_ns = bh_time_now(),
                                        .kind = notices[i] };
        bool log;

        notice.count =
            bh_pending_notice_due(&job->isolation.pending_notices[i], now, node->hello_received, &log);
        if (log)
            bh_log(LEASE_ISOLATION, BH_U64("lease", notice.lease), BH_U64("count", notice.count),
                   BH_STR("what", bh_job_notice_sentences[notices[i]]), BH_STR("why", job->isolation.why));
        if (notice.count > 0 && node->hello_received)
            bh_node_send(node, BH_MSG_NOTICE, &notice);
    }
}

/* ---- what follows ---- */

static void
lease_check_passed(struct bh_node *node, struct bh_job *job)
{
    if (job->isolation.unverified || job->isolation.unknown)
        bh_pending_notice_add(&job->isolation.pending_notices[BH_LEASE_VERIFIED]);
    job->isolation.unverified = job->isolation.unknown = false;
    job->isolation.at = 0;
    lease_check_notify(node, job, bh_time_monotonic());
    job->isolation.why[0] = '\0';
}

static void
lease_check_stop(struct bh_node *node, struct bh_job *job, bh_ns grace_ns)
{
    char why[200];

    BH_ASSERT(!job->ended);
    snprintf(why, sizeof why, "isolation: %.180s", job->isolation.why);
    job->isolation.at = 0;
    bh_pending_notice_add(&job->isolation.pending_notices[BH_LEASE_STOPPED]);
    lease_check_notify(node, job, bh_time_monotonic());
    if (!*job->stop_why)
        bh_node_stop_begin(node, job, &(struct bh_node_stop){ BH_END_ISOLATION, grace_ns, why });
}

static void
lease_check_again(struct bh_node *node, struct bh_job *job)
{
    bool needed = bh_evidence_is_needed(job->record.boundary);

    switch (bh_evidence_next(job->isolation.rechecks, needed)) {
    case BH_EVIDENCE_RECHECK:
        if (!job->isolation.at)
            job->isolation.at = bh_time_monotonic() + node->conf.verify_retry_ms * BH_NS_PER_MS;
        break;
    case BH_EVIDENCE_STOP:
        lease_check_stop(node, job, BH_NODE_STOP_GRACE);
        break;
    case BH_EVIDENCE_LEAVE:
        job->isolation.at = 0;
        break;
    }
}

static void
lease_check_judge(struct bh_node *node, struct bh_job *job, const struct bh_report *report)
{
    const struct bh_evidence_remedy *remedy = bh_report_remedy(report, BH_EVIDENCE_LEASE);

    bh_state_assert_job(&node->state, job);
    BH_ASSERT(job->running && !job->ended);
    if (bh_report_is_trespass(report)) {
        job->isolation.at = bh_time_monotonic() + TRESPASS_AGAIN;
        return;
    }
    if (!remedy->unverified) {
        lease_check_passed(node, job);
        return;
    }
    snprintf(job->isolation.why, sizeof job->isolation.why, "%s", report->why);
    if (!job->isolation.unverified) {
        job->isolation.unverified = true;
        job->isolation.rechecks = 0;
        bh_pending_notice_add(&job->isolation.pending_notices[BH_LEASE_UNVERIFIED]);
        lease_check_notify(node, job, bh_time_monotonic());
    }
    if (remedy->closes_gpu)
        bh_verify_close_gpu(node, job, report->why);
    if (remedy->ends)
        lease_check_stop(node, job, 0);
    else if (remedy->retry)
        lease_check_again(node, job);
}

/* ---- checking ---- */

bool
bh_lease_check(struct bh_node *node, struct bh_job *job, struct bh_report *ret_report)
{
    pid_t init = 0;
    BH_AUTO(bh_fd_close)
    int fd = job->running && !job->ended && !job->barrier_at
                 ? bh_process_first(node, job->record.lease, &init)
                 : -1;
    struct pollfd ended = { .fd = fd, .events = POLLIN };

    memset(ret_report, 0, sizeof *ret_report);
    if (fd < 0)
        return false;
    bh_isolation_checks_of_job(node, job, init, ret_report);
    if (bh_report_result(ret_report) != BH_CHECK_PASS
        && (bh_process_is_ending(init) || poll(&ended, 1, 0) > 0))
        return false; /* what was read of it is of its end */
    lease_check_judge(node, job, ret_report);
    return true;
}

void
bh_lease_check_adopt(struct bh_job *job)
{
    BH_ASSERT(!job->ended && !job->unpack);
    job->isolation.unknown = true;
    bh_job_recheck_soon(job);
}

void
bh_lease_check_charged(struct bh_node *node)
{
    for (uint32_t i = node->state.job_count; i-- > 0;) {
        struct bh_job *job = &node->state.jobs[i];

        bh_state_assert_job(&node->state, job);
        if (!*job->isolation.charge || job->ended)
            continue;
        memcpy(job->isolation.why, job->isolation.charge, sizeof job->isolation.why);
        job->isolation.charge[0] = '\0';
        lease_check_stop(node, job, 0);
    }
}

void
bh_lease_check_tick(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    struct bh_report report;

    bh_state_assert_job(&node->state, job);
    lease_check_notify(node, job, now);
    if (!job->isolation.at || job->isolation.at > now)
        return;
    job->isolation.at = job->barrier_at; /* not before its command may begin */
    if (job->barrier_at || job->ended)
        return;
    job->isolation.rechecks += job->isolation.unverified;
    if (!bh_lease_check(node, job, &report) && job->isolation.unverified)
        job->isolation.at = now + node->conf.verify_retry_ms * BH_NS_PER_MS;
}

bh_ns
bh_lease_check_due(const struct bh_job *job)
{
    if (job->ended)
        return 0;
    return *job->isolation.charge ? 1 : job->isolation.at; /* at once */
}
