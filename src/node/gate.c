#include "node/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "model/job.h"
#include "node/inspect.h"
#include "node/order.h"
#include "node/path.h"
#include "node/verify.h"

#define FIRST_GLANCE (2 * BH_NS_PER_MS)
#define PATIENCE (30 * BH_NS_PER_S)
enum { GLANCED_AT_MAX = 8 };

/* Whether the process is bulkhead-init, and whether it waits for the signal. */
static bool
read_init(pid_t pid, bool *ret_waits)
{
    char path[64], text[2048];
    BH_AUTO(bh_fd_close) int fd = -1;
    const char *caught;
    ssize_t n;

    bh_path_format(path, sizeof path, "/proc/%d/status", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (strncmp(text, "Name:\tinit\n", 11) != 0)
        return false;
    caught = strstr(text, "\nSigCgt:\t");
    *ret_waits = caught && strtoull(caught + 9, NULL, 16) >> (SIGUSR1 - 1) & 1;
    return true;
}

pid_t
bh_gate_waiting(const struct bh_node *node, const char *id, bool *ret_passed)
{
    pid_t pids[GLANCED_AT_MAX];
    uint32_t count = 0;
    struct bh_err ignored;

    *ret_passed = false;
    if (node->runtime.ops->processes(node->runtime.self, id, pids, GLANCED_AT_MAX, &count,
                                     &ignored)
        != BH_OK)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        bool waits = false;

        if (!read_init(pids[i], &waits))
            continue;
        if (waits)
            return pids[i];
        *ret_passed = count > 1; /* its command stands beside it */
    }
    *ret_passed = *ret_passed || count == GLANCED_AT_MAX;
    return 0;
}

pid_t
bh_gate_init(const struct bh_node *node, const char *id)
{
    pid_t pids[GLANCED_AT_MAX];
    uint32_t count = 0;
    struct bh_err ignored;
    bool waits;

    if (node->runtime.ops->processes(node->runtime.self, id, pids, GLANCED_AT_MAX, &count,
                                     &ignored)
        != BH_OK)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (read_init(pids[i], &waits))
            return pids[i];
    return 0;
}

void
bh_gate_shut(struct bh_job *job)
{
    job->gate_at = bh_time_monotonic() + FIRST_GLANCE;
    job->gate_until = job->gate_at + PATIENCE;
}

static void
answer_start(struct bh_node *node, struct bh_job *job)
{
    uint64_t order = job->start_order;

    job->start_order = 0;
    if (order)
        bh_orders_answer_start(node, order, job->broken);
}

/* What runs behind a wall that was not seen to stand is ended, and its GPUs are lent to nobody. */
static void
refuse(struct bh_node *node, struct bh_job *job, enum bh_walls walls, const char *why)
{
    struct bh_err err;
    char id[32];

    snprintf(job->broken, sizeof job->broken, "isolation: %.160s", why);
    bh_node_job_id(job->note.lease, id);
    bh_verify_fence_lease(node, job, walls, why);
    job->kill_at = bh_time_monotonic(); /* and again until it is gone */
    if (node->runtime.ops->signal(node->runtime.self, id, SIGKILL, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->note.lease), BH_ERRLOG(&err));
}

bool
bh_gate_is_gone(pid_t pid)
{
    char path[64], text[512];
    BH_AUTO(bh_fd_close) int fd = -1;
    const char *name_end;
    ssize_t n;

    bh_path_format(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    name_end = strrchr(text, ')');
    return !name_end || strncmp(name_end, ") Z", 3) == 0 || strncmp(name_end, ") X", 3) == 0;
}

static void
look(struct bh_node *node, struct bh_job *job, pid_t init)
{
    struct bh_report report;

    bh_inspect(node, job, init, &report);
    job->gate_at = 0;
    if (!bh_report_held(&report) && bh_gate_is_gone(init))
        return; /* it was ended before its command began: no wall is broken, its end answers */
    if (!bh_report_held(&report)) {
        refuse(node, job, bh_report_walls(&report), report.why);
        return;
    }
    if (kill(init, SIGUSR1) != 0) {
        if (errno != ESRCH) /* else it was ended while it was looked at, and its end answers */
            bh_log(EFFECT_FAILED, BH_U64("lease", job->note.lease),
                   BH_STR("what", "let it begin"));
        return;
    }
    answer_start(node, job);
    bh_verify_started(node);
}

void
bh_gate_tick(struct bh_node *node, struct bh_job *job, bh_ns now)
{
    bool passed;
    char id[32];
    pid_t init;

    bh_node_job_id(job->note.lease, id);
    init = bh_gate_waiting(node, id, &passed);
    if (init > 0) {
        look(node, job, init);
    } else if (passed) {
        job->gate_at = 0;
        answer_start(node, job);
    } else if (now >= job->gate_until) {
        job->gate_at = 0;
        refuse(node, job, BH_WALLS_UNFINISHED, "the sandbox was not ready in 30 s");
    } else {
        job->gate_at = now + FIRST_GLANCE;
    }
}

bool
bh_gate_ended(struct bh_node *node, struct bh_job *job)
{
    job->gate_at = 0;
    answer_start(node, job);
    if (!*job->broken)
        return false;
    job->end.cause = BH_END_START_FAILED;
    snprintf(job->end.why, sizeof job->end.why, "%s", job->broken);
    return true;
}
