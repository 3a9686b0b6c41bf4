#include "node/sandbox/helper_sandbox.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "node/common/uid_ranges.h"
#include "node/core/state_check.h"
#include "node/placement/placement.h"
#include "node/sandbox/launch.h"
#include "node/sandbox/process.h"

#define CHECK_FIRST_INTERVAL (10 * BH_NS_PER_MS) /* what was killed is mostly gone by then */
#define CHECK_INTERVAL (500 * BH_NS_PER_MS)
#define LAST_TIMEOUT (2 * BH_NS_PER_S)
#define LAST_POLL_INTERVAL (5 * BH_NS_PER_MS)

struct bh_helper_sandbox {
    bool used;
    bool stuck; /* over for its user, and does not go */
    bool alone;
    struct bh_job job; /* what its sandbox is built for and held against; not in the state */
    int init_fd;       /* its process 1 (pidfd), once it was inspected; else -1 */
    int output_fd;
    bh_ns retry_at; /* monotonic; when to look whether it has gone, when stuck */
    bh_ns pause;    /* until then; doubles */
};

struct bh_helper_sandboxes {
    struct bh_helper_sandbox helper[BH_HELPER_SANDBOXES_MAX];
};

struct bh_helper_sandboxes *
bh_helper_sandboxes_new(void)
{
    struct bh_helper_sandboxes *helpers = calloc(1, sizeof *helpers);

    BH_ASSERT(helpers);
    return helpers;
}

static void
helper_sandbox_assert(const struct bh_helper_sandbox *helper)
{
    BH_ASSERT(helper->used || (!helper->stuck && !helper->alone && helper->job.record.lease == 0));
    BH_ASSERT(!helper->used || helper->job.record.lease >= BH_SCRUB_LEASES);
    BH_ASSERT(!helper->used || (helper->init_fd >= -1 && helper->job.pidfd >= -1 && !helper->job.ended));
    BH_ASSERT(helper->stuck == (helper->pause > 0) && helper->pause <= CHECK_INTERVAL);
    BH_ASSERT(!helper->stuck || helper->retry_at);
    if (helper->used)
        bh_state_assert_lease(&helper->job.record);
}

/* ---- the helpers ---- */

static struct bh_helper_sandbox *
helper_sandbox_find(const struct bh_node *node, uint64_t number)
{
    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        struct bh_helper_sandbox *helper = &node->helpers->helper[i];

        helper_sandbox_assert(helper);
        if (helper->used && helper->job.record.lease == number)
            return helper;
    }
    return NULL;
}

static struct bh_helper_sandbox *
helper_sandbox_find_slot(const struct bh_node *node)
{
    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++)
        if (!node->helpers->helper[i].used)
            return &node->helpers->helper[i];
    return NULL;
}

bool
bh_helper_sandbox_holds(const struct bh_node *node, const struct bh_node_partition *placement)
{
    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        const struct bh_helper_sandbox *helper = &node->helpers->helper[i];

        helper_sandbox_assert(helper);
        if (helper->used && helper->alone && bh_placement_overlaps(&helper->job.record, placement))
            return true;
    }
    return false;
}

const struct bh_node_record *
bh_helper_sandbox_record(const struct bh_node *node, uint32_t at)
{
    BH_ASSERT(at < BH_HELPER_SANDBOXES_MAX);
    return node->helpers->helper[at].used ? &node->helpers->helper[at].job.record : NULL;
}

uint32_t
bh_helper_sandbox_free_slot(const struct bh_node *node)
{
    struct bh_slots taken = { .count = 0 };

    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        const struct bh_helper_sandbox *helper = &node->helpers->helper[i];

        helper_sandbox_assert(helper);
        if (helper->used)
            taken.slot[taken.count++] = helper->job.record.slot;
    }
    return bh_state_free_slot(&node->state, node->conf.uid_ranges, &taken);
}

uint32_t
bh_helper_sandboxes_fds(const struct bh_node *node, int ret_fds[BH_HELPER_SANDBOXES_MAX])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        const struct bh_helper_sandbox *helper = &node->helpers->helper[i];

        if (helper->used && !helper->stuck && helper->job.pidfd >= 0)
            ret_fds[count++] = helper->job.pidfd;
    }
    return count;
}

/* ---- its life ---- */

static bh_rc
open_helper(struct bh_node *node, const struct bh_helper_sandbox_request *request,
            struct bh_helper_sandbox *helper, struct bh_err *err)
{
    struct bh_node_record *record = &helper->job.record;

    *helper =
        (struct bh_helper_sandbox){ .used = true, .alone = request->alone, .init_fd = -1, .job.pidfd = -1 };
    record->kind = BH_NODE_RECORD_LEASE;
    record->lease = request->start->lease;
    record->slot = BH_NO_SLOT; /* its own does not count when one is looked for */
    record->slot = request->apart ? bh_uid_range_of_probe(&node->conf) : bh_helper_sandbox_free_slot(node);
    if (request->lent)
        record->lent[record->lent_count++] = *request->lent;
    helper->output_fd = memfd_create("bulkhead-guest", MFD_CLOEXEC);
    if (helper->output_fd < 0)
        return bh_err_errno(err, "make a file for its output");
    if (!request->apart && record->slot == node->conf.uid_ranges)
        return bh_err_set(err, BH_FULL, "all %u ranges of user ids are in use", node->conf.uid_ranges);
    return BH_OK;
}

static bh_rc
helper_sandbox_launch(struct bh_node *node, const struct bh_helper_sandbox_request *request,
                      struct bh_helper_sandbox *helper, struct bh_err *err)
{
    struct bh_launch what = { .start = request->start,
                              .job = &helper->job,
                              .log_cap_bytes = BH_HELPER_SANDBOX_OUTPUT_MAX - 1 };
    char folder[BH_NODE_PATH_MAX];
    bh_rc rc = open_helper(node, request, helper, err);

    if (rc != BH_OK)
        return rc;
    what.log_fd = helper->output_fd;
    rc = bh_launch_folder(node, request->start->lease, folder, err);
    return rc == BH_OK ? bh_launch(node, &what, err) : rc;
}

bh_rc
bh_helper_sandbox_start(struct bh_node *node, const struct bh_helper_sandbox_request *request,
                        struct bh_helper_sandbox **ret_helper, struct bh_err *err)
{
    struct bh_helper_sandbox *helper = helper_sandbox_find_slot(node);
    bh_rc rc;

    BH_ASSERT(request->start->lease >= BH_SCRUB_LEASES);
    bh_node_assert(node);
    if (helper_sandbox_find(node, request->start->lease))
        return bh_err_set(err, BH_CONFLICT, "the last one has not ended");
    if (!helper)
        return bh_err_set(err, BH_FULL, "%d sandboxes of the node's own run", BH_HELPER_SANDBOXES_MAX);
    rc = helper_sandbox_launch(node, request, helper, err);
    if (rc == BH_OK)
        *ret_helper = helper;
    else
        bh_helper_sandbox_remove(node, helper);
    return rc;
}

const struct bh_job *
bh_helper_sandbox_await(const struct bh_node *node, struct bh_helper_sandbox *helper, pid_t *ret_init)
{
    BH_AUTO(bh_fd_close) int fd = bh_process_first(node, helper->job.record.lease, ret_init);

    BH_ASSERT(helper->used && !helper->stuck);
    if (fd < 0 || bh_process_first_state(*ret_init) != BH_FIRST_WAITS)
        return NULL;
    bh_fd_close(helper->init_fd);
    helper->init_fd = bh_fd_steal(&fd);
    return &helper->job;
}

bh_rc
bh_helper_sandbox_release(struct bh_helper_sandbox *helper, struct bh_err *err)
{
    BH_ASSERT(helper->init_fd >= 0);
    return syscall(SYS_pidfd_send_signal, helper->init_fd, SIGUSR1, NULL, 0) != 0
               ? bh_err_errno(err, "let it start")
               : BH_OK;
}

/* A helper whose keeper cannot be watched counts as ended at once: its end would never be noticed. */
bool
bh_helper_sandbox_has_ended(const struct bh_helper_sandbox *helper)
{
    struct pollfd ended = { .fd = helper->job.pidfd, .events = POLLIN };

    BH_ASSERT(helper->used);
    return helper->job.pidfd < 0 || poll(&ended, 1, 0) > 0;
}

void
bh_helper_sandbox_read(const struct bh_helper_sandbox *helper, char ret_text[BH_HELPER_SANDBOX_OUTPUT_MAX])
{
    ssize_t length = pread(helper->output_fd, ret_text, BH_HELPER_SANDBOX_OUTPUT_MAX - 1, 0);

    BH_ASSERT(helper->used && helper->output_fd >= 0);
    ret_text[length > 0 ? length : 0] = '\0';
}

void
bh_helper_sandbox_kill(struct bh_node *node, const struct bh_helper_sandbox *helper)
{
    struct bh_err ignored;
    char id[32];

    BH_ASSERT(helper->used);
    bh_node_job_id(helper->job.record.lease, id);
    (void)!node->runtime.ops->signal(node->runtime.self, id, SIGKILL, &ignored);
}

static void
helper_sandbox_reap(struct bh_helper_sandbox *helper)
{
    siginfo_t reaped;

    if (helper->job.pidfd >= 0)
        waitid(P_PIDFD, (id_t)helper->job.pidfd, &reaped, WEXITED | WNOHANG);
    bh_fd_close(helper->job.pidfd);
    bh_fd_close(helper->output_fd);
    bh_fd_close(helper->init_fd);
    *helper = (struct bh_helper_sandbox){ .used = false };
}

/* Whether nothing of it runs; kill what does. */
static bool
sandbox_has_gone(struct bh_node *node, const struct bh_helper_sandbox *helper)
{
    struct bh_err ignored;
    uint32_t left = 0;
    char id[32];
    pid_t pid;

    bh_helper_sandbox_kill(node, helper);
    bh_node_job_id(helper->job.record.lease, id);
    return bh_helper_sandbox_has_ended(helper)
           && node->runtime.ops->processes(node->runtime.self, id, &pid, 1, &left, &ignored) == BH_OK
           && left == 0;
}

static void
sandbox_hold_back(struct bh_helper_sandbox *helper)
{
    bool slow = helper->pause == CHECK_INTERVAL;

    helper->pause = !helper->stuck                       ? CHECK_FIRST_INTERVAL
                    : helper->pause > CHECK_INTERVAL / 2 ? CHECK_INTERVAL
                                                         : 2 * helper->pause;
    if (!slow && helper->pause == CHECK_INTERVAL)
        bh_log(EFFECT_FAILED, BH_STR("what", "a process does not end"),
               BH_U64("lease", helper->job.record.lease));
    helper->stuck = true;
    helper->retry_at = bh_time_monotonic() + helper->pause;
}

void
bh_helper_sandbox_remove(struct bh_node *node, struct bh_helper_sandbox *helper)
{
    BH_ASSERT(helper->used);
    if (sandbox_has_gone(node, helper) && bh_launch_clear(node, helper->job.record.lease))
        helper_sandbox_reap(helper);
    else
        sandbox_hold_back(helper);
}

bh_ns
bh_helper_sandboxes_tick(struct bh_node *node, bh_ns now)
{
    bh_ns next = 0;

    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        struct bh_helper_sandbox *helper = &node->helpers->helper[i];

        helper_sandbox_assert(helper);
        if (helper->used && helper->stuck && helper->retry_at <= now)
            bh_helper_sandbox_remove(node, helper);
        if (helper->used && helper->stuck)
            next = bh_node_sooner(next, helper->retry_at);
    }
    return next;
}

static uint32_t
sandbox_remove_all(struct bh_node *node)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < BH_HELPER_SANDBOXES_MAX; i++) {
        struct bh_helper_sandbox *helper = &node->helpers->helper[i];

        if (helper->used && sandbox_has_gone(node, helper) && bh_launch_clear(node, helper->job.record.lease))
            helper_sandbox_reap(helper);
        left += helper->used;
    }
    return left;
}

/* One that is just being made is killed once it is in its group. */
void
bh_helper_sandboxes_free(struct bh_node *node)
{
    bh_ns until = bh_time_monotonic() + LAST_TIMEOUT;

    while (node->helpers && sandbox_remove_all(node) > 0 && bh_time_monotonic() < until)
        bh_time_sleep(LAST_POLL_INTERVAL);
    free(node->helpers);
    node->helpers = NULL;
}
