#include "node/verify/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "model/boundary.h"
#include "node/common/path.h"
#include "node/job/job.h"
#include "node/placement/devices.h"
#include "node/placement/fence.h"
#include "node/placement/health_state.h"
#include "node/placement/placement.h"
#include "node/placement/reset_hold.h"
#include "node/sandbox/helper_sandbox.h"
#include "node/sandbox/isolation_checks.h"
#include "node/verify/lease_check.h"
#include "node/verify/verify_internal.h"
#include "node/verify/verify_retry.h"

enum { ARGS_MAX = 12, PROBE_PIDS = 64, POLL_MS = 2 };
#define PROBE_MEMORY (UINT64_C(64) << 20)
#define KILL_TIMEOUT (5 * BH_NS_PER_S)
#define KILL_INTERVAL (50 * BH_NS_PER_MS)
#define POLL_INTERVAL (2 * BH_NS_PER_MS)
#define TRESPASS_PATIENCE (10 * BH_NS_PER_S)
#define TRESPASS_AGAIN (50 * BH_NS_PER_MS)

struct bh_verify *
bh_verify_new(void)
{
    struct bh_verify *verify = calloc(1, sizeof *verify);

    BH_ASSERT(verify);
    verify->canary = -1;
    return verify;
}

void
bh_verify_free(struct bh_verify *verify)
{
    if (!verify)
        return;
    bh_fd_close(verify->canary);
    free(verify);
}

/* ---- the probe's sandbox ---- */

/* A partition that no lease has: the probe is lent it, as a job would be.  NULL: there is none. */
static const struct bh_node_partition *
verify_find_idle_partition(const struct bh_node *node)
{
    for (uint32_t i = 0; i < node->state.partition_count; i++) {
        const struct bh_node_partition *partition = &node->state.partitions[i];

        if (!bh_placement_holder(node, partition, 0) && !bh_helper_sandbox_holds(node, partition)
            && !bh_reset_hold_has(node, partition->gpu))
            return partition;
    }
    return NULL;
}

/* The machine's objects that the probe tries to reach: a file that every user may read, the node itself, its
 * socket, and a socket without a path. */
static void
verify_make_canaries(struct bh_node *node)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    BH_AUTO(bh_fd_close) int file = -1;
    char path[BH_NODE_PATH_MAX];
    struct bh_err err;

    bh_path_format(path, sizeof path, "%s/canary", node->conf.run_dir);
    if (bh_file_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0644, &file, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "canary"), BH_ERRLOG(&err));
    if (node->verify->canary >= 0)
        return;
    node->verify->canary = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "bulkhead-canary-%d", (int)getpid());
    if (bind(node->verify->canary, (struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name.sun_path + 1)))
            != 0
        || listen(node->verify->canary, 1) != 0)
        bh_log(EFFECT_FAILED, BH_STR("what", "canary"));
}

static const char *
verify_list_lent(const struct bh_node *node, const struct bh_node_partition *lent, struct bh_arena *arena)
{
    struct bh_node_record lease = { .lent_count = lent ? 1 : 0 };
    struct bh_sandbox_device devices[5];
    const char *list = "--lent=";
    uint32_t count;

    if (lent)
        lease.lent[0] = *lent;
    count = bh_devices_of(node, &lease, devices);
    for (uint32_t i = 0; i < count && list; i++)
        list = bh_arena_printf(arena, "%s%s%s", list, i ? "," : "", devices[i].path);
    return list;
}

/* What is the machine's own, and must be another in a sandbox. */
static const char *
verify_name_inode(struct bh_arena *arena)
{
    struct stat st = { 0 };

    (void)stat("/usr/bin", &st);
    return bh_arena_printf(arena, "--inode=%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev, (uint64_t)st.st_ino);
}

static const char *
verify_name_device(struct bh_arena *arena)
{
    struct stat st = { 0 };

    (void)stat("/dev/null", &st);
    return bh_arena_printf(arena, "--device=%" PRIu64, (uint64_t)st.st_dev);
}

/* The order that a job's START would be, of a tenant that trusts no other. */
static bh_rc
verify_make_start(struct bh_node *node, const struct bh_node_partition *lent, struct bh_arena *arena,
                  struct bh_msg_start *ret_start, struct bh_err *err)
{
    const struct bh_conf *conf = &node->conf;
    const char **args = bh_arena_alloc(arena, ARGS_MAX * sizeof *args);
    uint32_t pids = conf->pids_max < PROBE_PIDS ? conf->pids_max : PROBE_PIDS, count = 0;

    if (!args)
        return bh_err_set(err, BH_FULL, "the probe's order is too large");
    args[count++] = BH_ROOTFS_LIBEXEC "/probe";
    args[count++] = bh_arena_printf(arena, "--memory=%" PRIu64, PROBE_MEMORY);
    args[count++] = bh_arena_printf(arena, "--pids=%u", pids);
    args[count++] = bh_arena_printf(arena, "--patience=%u", conf->verify_timeout_ms / 4);
    args[count++] = bh_arena_printf(arena, "--pid=%d", (int)getpid());
    args[count++] = bh_arena_printf(arena, "--file=%s/canary", conf->run_dir);
    args[count++] = bh_arena_printf(arena, "--socket=%s", conf->socket);
    args[count++] = bh_arena_printf(arena, "--abstract=bulkhead-canary-%d", (int)getpid());
    args[count++] = verify_name_inode(arena);
    args[count++] = verify_name_device(arena);
    args[count++] = verify_list_lent(node, lent, arena);
    *ret_start = (struct bh_msg_start){ .lease = BH_PROBE_LEASES + ++node->verify->tries,
                                        .args = { args, count },
                                        .image = "host",
                                        .cwd = "",
                                        .submitter_uid = UINT32_MAX,
                                        .submitter_gid = UINT32_MAX,
                                        .pids = pids,
                                        .memory_bytes = PROBE_MEMORY,
                                        .boundary = BH_BOUNDARY_FORTRESS,
                                        .tenant = "bulkhead",
                                        .user = "verify",
                                        .sku = "verify" };
    for (uint32_t i = 0; i < count; i++)
        if (!args[i])
            return bh_err_set(err, BH_FULL, "the probe's order is too large");
    return BH_OK;
}

static bh_rc
verify_begin_probe(struct bh_node *node, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_verify *verify = node->verify;
    struct bh_msg_start start;
    struct bh_helper_sandbox_request request = { .start = &start,
                                                 .lent = verify_find_idle_partition(node),
                                                 .apart = true };
    bh_rc rc = verify_make_start(node, request.lent, arena, &start, err);

    verify_make_canaries(node);
    if (rc == BH_OK)
        rc = bh_helper_sandbox_start(node, &request, &verify->probe, err);
    verify->started = verify->killed = false;
    verify->until = bh_time_monotonic() + node->conf.verify_timeout_ms * BH_NS_PER_MS;
    return rc;
}

/* ---- what came of it ---- */

static const char *const attempts[] = {
#define BH_ESCAPE(name, category, verify_answers, passed, needs, bare, sentence) #name,
#include "tables/escapes.tbl"
#undef BH_ESCAPE
};

/* "name verdict answer".  No answer of a probe that was killed, and "hung", are for want of time;
 * one that went by itself was brought down by what it tried. */
static void
verify_judge(struct bh_report *report, const char *output, const char *name, bool killed)
{
    struct bh_msg_check check = { .answer = "no answer" };
    size_t length = strlen(name);
    char verdict[16] = "", answer[48] = "";

    snprintf(check.name, sizeof check.name, "%s", name);
    for (const char *at = output; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        if (strncmp(at, name, length) == 0 && at[length] == ' ')
            (void)!sscanf(at + length, " %15s %47s", verdict, answer);
    }
    bool held = strcmp(verdict, "held") == 0;
    bool timed_out = *verdict ? strcmp(answer, "hung") == 0 : killed;

    if (strcmp(verdict, "skipped") == 0) {
        report->skipped++;
        return;
    }
    if (*verdict)
        snprintf(check.answer, sizeof check.answer, "%s%s%s", held ? "" : verdict, held ? "" : " ", answer);
    check.result = held ? BH_CHECK_PASS : timed_out ? BH_CHECK_INCONCLUSIVE : BH_CHECK_FAIL;
    bh_report_put(report, &check, BH_EVIDENCE_BY_HOST);
}

static void
verify_read_output(struct bh_node *node)
{
    char output[BH_HELPER_SANDBOX_OUTPUT_MAX];

    bh_helper_sandbox_read(node->verify->probe, output);
    for (size_t i = 0; i < BH_COUNT(attempts); i++)
        verify_judge(&node->verify->own, output, attempts[i], node->verify->killed);
}

static void
verify_send_verdict(struct bh_node *node, const struct bh_msg_verdict *verdict)
{
    struct bh_verify *verify = node->verify;

    verify->has_unsent = !node->hello_received;
    if (node->hello_received)
        bh_node_send(node, BH_MSG_VERDICT, verdict);
    else
        verify->unsent = *verdict;
}

void
bh_verify_connected(struct bh_node *node)
{
    if (node->verify->has_unsent)
        bh_node_send(node, BH_MSG_VERDICT, &node->verify->unsent);
    node->verify->has_unsent = false;
}

/* A try of this driver's sandbox passed: one that is inconclusive afterwards, on a machine without
 * CPU time, say, does not change that.  It is made again. */
static bool
verify_has_passed(const struct bh_verify *verify)
{
    return verify->isolation == BH_ISOLATION_PASSED && strcmp(verify->driver, verify->passed_driver) == 0;
}

/* What follows from a try of the node.  What failed is lifted by one that was asked for, and of
 * the whole node: a tenant may ask about a lease of its own. */
static void
verify_conclude(struct bh_node *node, const struct bh_verify_asked *asked)
{
    struct bh_verify *verify = node->verify;
    const struct bh_report *own = &verify->own;
    enum bh_check_result result = bh_report_result(own);
    const struct bh_evidence_remedy *remedy = bh_report_remedy(own, BH_EVIDENCE_PROBE);
    bool may_lift = asked->request && !asked->lease;

    if (result == BH_CHECK_FAIL)
        bh_log(CHECK_FAILED, BH_STR("node", node->name), BH_STR("why", own->why));
    if (result == BH_CHECK_PASS)
        bh_log(CHECKS_PASSED, BH_STR("cause", asked->cause), BH_U64("tried", own->count));
    if (remedy->closes_node) {
        if (!remedy->retry || !verify_has_passed(verify))
            bh_verify_fence_close_all(node, remedy->retry ? BH_ISOLATION_INCONCLUSIVE : BH_ISOLATION_FAILED,
                                      own->why);
        bh_verify_fence_plan(node, !remedy->retry, own->why);
    } else if (may_lift || !verify->failed_node) {
        bh_verify_fence_lift(node, may_lift);
    }
}

/* What is answered: the checks of the lease that was asked about, and of the probe; its own
 * sandbox's only where they say something. */
static void
verify_merge_reports(struct bh_verify *verify, bool lease)
{
    static const struct bh_msg_check gone = { .name = "lease",
                                              .answer = "does not run here",
                                              .outside = true };

    if (verify->lease_gone)
        bh_report_put(&verify->report, &gone, BH_EVIDENCE_BY_JOB);
    for (uint32_t i = 0; i < verify->own.count; i++) {
        const struct bh_msg_check *check = &verify->own.checks[i];

        if (!lease || !check->outside || check->result != BH_CHECK_PASS)
            bh_report_put(&verify->report, check, BH_EVIDENCE_BY_HOST);
    }
    verify->report.skipped += verify->own.skipped;
}

/* Judge the first that was asked for, and act on it.  That a lease is gone says nothing of the
 * node: only the asker gets it. */
static void
verify_finish_requests(struct bh_node *node)
{
    struct bh_verify *verify = node->verify;
    struct bh_verify_asked asked = verify->asked[0];
    struct bh_report *report = &verify->report;
    struct bh_msg_verdict verdict = { .request = asked.request,
                                      .lease = asked.lease,
                                      .at_ns = bh_time_now() };

    BH_ASSERT(verify->asked_count > 0 && !verify->probe);
    memmove(verify->asked, verify->asked + 1, --verify->asked_count * sizeof verify->asked[0]);
    verify_conclude(node, &asked);
    verify_merge_reports(verify, asked.lease != 0);
    verdict.result = bh_report_result(report);
    verdict.retry_ns = bh_verify_fence_retry_ns(verify);
    verdict.tried = report->count;
    verdict.skipped = report->skipped;
    verdict.checks = (struct bh_list){ report->checks, report->count };
    snprintf(verdict.cause, sizeof verdict.cause, "%s", asked.cause);
    snprintf(verdict.why, sizeof verdict.why, "%s", report->why);
    verify_send_verdict(node, &verdict);
}

/* ---- the course of a try ---- */

/* A lease that was asked about: its own checks, and what follows from them.  One that ends
 * meanwhile has none. */
static void
verify_check_lease(struct bh_node *node, uint64_t lease)
{
    struct bh_verify *verify = node->verify;
    struct bh_job *job = bh_state_job(&node->state, lease);

    verify->lease_gone = !job || !bh_lease_check(node, job, &verify->report);
    if (verify->lease_gone)
        memset(&verify->report, 0, sizeof verify->report);
}

/* Another lease is where it may not be: it is ended, and what it disturbed is looked at again. */
static bool
verify_waits_for_trespass(struct bh_verify *verify, const struct bh_report *report, bh_ns until)
{
    bh_ns now = bh_time_monotonic();
    bool waits = bh_report_is_trespass(report) && now < until;

    verify->check_at = waits ? now + TRESPASS_AGAIN : 0;
    return waits;
}

static void
verify_begin(struct bh_node *node)
{
    struct bh_verify *verify = node->verify;
    struct bh_msg_check failed = { .name = "probe", .outside = true };
    struct bh_err err;

    BH_ASSERT(verify->asked_count > 0 && !verify->probe);
    memset(&verify->report, 0, sizeof verify->report);
    memset(&verify->own, 0, sizeof verify->own);
    verify->lease_gone = false;
    snprintf(verify->driver, sizeof verify->driver, "%s", node->inventory.driver);
    if (verify->asked[0].lease)
        verify_check_lease(node, verify->asked[0].lease);
    if (verify_waits_for_trespass(verify, &verify->report, verify->asked[0].until))
        return;
    if (verify_begin_probe(node, &err) == BH_OK)
        return;
    snprintf(failed.answer, sizeof failed.answer, "%.60s", err.msg);
    bh_report_put(&verify->own, &failed, BH_EVIDENCE_BY_HOST);
    bh_log(EFFECT_FAILED, BH_STR("what", "probe"), BH_ERRLOG(&err));
    verify_finish_requests(node);
}

/* It is inspected like a job before it begins. */
static void
verify_poll(struct bh_node *node)
{
    struct bh_verify *verify = node->verify;
    struct bh_err err;

    BH_ASSERT(verify->probe && !verify->started);
    if (!bh_isolation_checks_of_helper(node, verify->probe, &verify->own)
        || verify_waits_for_trespass(verify, &verify->own, verify->until))
        return;
    verify->started = true;
    if (bh_helper_sandbox_release(verify->probe, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "probe"), BH_ERRLOG(&err));
}

static void
verify_end(struct bh_node *node)
{
    BH_ASSERT(node->verify->probe);
    verify_read_output(node);
    bh_helper_sandbox_remove(node, node->verify->probe);
    node->verify->probe = NULL;
    verify_finish_requests(node);
}

/* One that takes too long is killed, and its attempts have no answer. */
static void
verify_advance(struct bh_node *node, bh_ns now)
{
    struct bh_verify *verify = node->verify;
    bool late = now >= verify->until;

    if (bh_helper_sandbox_has_ended(verify->probe) || (late && verify->killed)) {
        verify_end(node);
        return;
    }
    if (late) {
        verify->killed = true;
        verify->until = now + KILL_TIMEOUT;
    }
    if (verify->killed)
        bh_helper_sandbox_kill(node, verify->probe);
    else if (!verify->started && now >= verify->check_at)
        verify_poll(node);
}

static void
verify_ask(struct bh_node *node, uint64_t request, uint64_t lease, const char *cause)
{
    struct bh_verify *verify = node->verify;
    struct bh_verify_asked *asked = &verify->asked[verify->asked_count];

    bh_verify_assert(verify);
    if (verify->asked_count == BH_VERIFY_ASKED_MAX)
        return; /* the caller gets no answer and may ask again */
    verify->asked_count++;
    *asked = (struct bh_verify_asked){ .request = request,
                                       .lease = lease,
                                       .until = bh_time_monotonic() + TRESPASS_PATIENCE };
    snprintf(asked->cause, sizeof asked->cause, "%s", cause);
}

/* Behind its start barrier: whether it runs is not known yet.  After a start of the node that is
 * every lease, until its process 1 was found again. */
static bool
verify_is_inconclusive(const struct bh_node *node, uint64_t lease)
{
    const struct bh_job *job = lease ? bh_state_job(&node->state, lease) : NULL;

    return job && job->barrier_at && !job->frozen && !job->ended;
}

/* The first that can be answered now comes to the front.  False: there is none; a barrier that
 * opens is a turn of the loop. */
static bool
verify_bring_forward(struct bh_node *node)
{
    struct bh_verify *verify = node->verify;

    for (uint32_t i = 0; i < verify->asked_count; i++) {
        struct bh_verify_asked asked = verify->asked[i];

        if (verify_is_inconclusive(node, asked.lease))
            continue;
        memmove(verify->asked + 1, verify->asked, i * sizeof asked);
        verify->asked[0] = asked;
        return true;
    }
    return false;
}

bh_ns
bh_verify_tick(struct bh_node *node, bh_ns now)
{
    struct bh_verify *verify = node->verify;
    bool found;

    bh_verify_assert(verify);
    if (!verify->probe && verify->check_at > now)
        return verify->check_at;
    found = !verify->probe && verify_bring_forward(node);
    if (!verify->probe && !found && verify->asked_count < BH_VERIFY_ASKED_MAX
        && bh_verify_retry_is_due(&verify->retry, now)) {
        verify_ask(node, 0, 0, "again");
        found = verify_bring_forward(node);
    }
    if (verify->probe)
        verify_advance(node, now);
    else if (found)
        verify_begin(node);
    else
        return verify->retry.at > now ? verify->retry.at : 0;
    if (!verify->probe && verify->check_at > now)
        return verify->check_at;
    if (!verify->probe)
        return verify->asked_count > 0 ? now : verify->retry.at;
    if (verify->killed)
        return now + KILL_INTERVAL;
    if (verify->started)
        return verify->until;
    return verify->check_at > now ? verify->check_at : now + POLL_INTERVAL;
}

void
bh_verify_request(struct bh_node *node, const struct bh_msg_verify *asked)
{
    verify_ask(node, asked->request, asked->lease, "asked");
}

void
bh_verify_started(struct bh_node *node)
{
    uint32_t sample = node->conf.verify_sample;

    if (!sample || ++node->verify->starts < sample)
        return;
    node->verify->starts = 0;
    verify_ask(node, 0, 0, "sample");
}

void
bh_verify_scanned(struct bh_node *node)
{
    struct bh_verify *verify = node->verify;

    if (!node->conf.verify_at_start || verify->probe || verify->asked_count > 0
        || strcmp(verify->driver, node->inventory.driver) == 0)
        return;
    verify_ask(node, 0, 0, "driver");
}

void
bh_verify_begin(struct bh_node *node)
{
    struct bh_verify *verify = node->verify;

    if (!node->conf.verify_at_start)
        return;
    verify_ask(node, 0, 0, "start");
    do {
        struct pollfd polled = { .fd = -1, .events = POLLIN };
        int fds[BH_HELPER_SANDBOXES_MAX];

        bh_verify_tick(node, bh_time_monotonic());
        bh_lease_check_charged(node); /* the loop does not turn yet */
        if (bh_helper_sandboxes_fds(node, fds) > 0)
            polled.fd = fds[0];
        if (verify->probe)
            poll(&polled, 1, verify->started ? 100 : POLL_MS);
    } while (verify->probe);
}
