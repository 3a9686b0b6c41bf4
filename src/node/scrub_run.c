#include "node/scrub_run.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "node/box.h"
#include "node/gate.h"
#include "node/inspect.h"
#include "node/keeper.h"
#include "node/path.h"

enum { OUTPUT_MAX = 64 << 10, PIDS = 256, GLANCE_MS = 2 };
#define KILL_PATIENCE_MS 5000

/* ---- is there anything to run? ---- */

bool
bh_scrub_has_helper(const struct bh_node *node, char *ret_why, size_t size)
{
    const char *const folders[] = { node->conf.driver_lib_dir, "/usr/lib/x86_64-linux-gnu",
                                    "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                    "/usr/lib" };
    char path[BH_NODE_PATH_MAX];

    bh_path_format(path, sizeof path, "%s/bulkhead-scrub", node->libexec);
    if (access(path, X_OK) != 0) {
        snprintf(ret_why, size, "there is no %.150s", path);
        return false;
    }
    for (size_t i = 0; i < BH_COUNT(folders); i++) {
        bh_path_format(path, sizeof path, "%s/libcuda.so.1", folders[i]);
        if (*folders[i] && access(path, R_OK) == 0)
            return true;
    }
    snprintf(ret_why, size, "there is no libcuda.so.1");
    return false;
}

/* ---- one run ---- */

struct run {
    struct bh_node *node;
    const struct bh_note_piece *piece;
    struct bh_arena *arena;
    struct bh_job job; /* what the sandbox is built for; not in the state */
    char id[32], folder[BH_NODE_PATH_MAX];
    int pidfd, output_fd;
};

static bh_rc
begin(struct run *run, struct bh_err *err)
{
    struct bh_node *node = run->node;
    struct bh_note *note = &run->job.note;

    note->lease = BH_SCRUB_LEASES + run->piece->partition;
    note->lent[0] = *run->piece;
    note->lent_count = 1;
    note->slot = bh_state_free_slot(&node->state, node->conf.uid_ranges);
    if (note->slot == node->conf.uid_ranges)
        return bh_err_set(err, BH_FULL, "all %u ranges of user ids are in use",
                          node->conf.uid_ranges);
    bh_node_job_id(note->lease, run->id);
    bh_node_job_folder(node, note->lease, run->folder);
    run->output_fd = memfd_create("bulkhead-scrub", MFD_CLOEXEC);
    if (run->output_fd < 0)
        return bh_err_errno(err, "make a file for the helper's output");
    if (mkdir(run->folder, 0700) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make folder %s", run->folder);
    return BH_OK;
}

static bh_rc
build(struct run *run, struct bh_sandbox *ret_sandbox, struct bh_err *err)
{
    uint64_t seed = bh_time_monotonic();
    const char *args[] = { BH_ROOTFS_LIBEXEC "/scrub", "--uuid", run->piece->uuid, "--seed",
                           bh_arena_printf(run->arena, "%" PRIu64, seed) };
    const char *env[] = { bh_arena_printf(run->arena, "CUDA_VISIBLE_DEVICES=%s",
                                          run->piece->uuid) };
    struct bh_msg_start start = {
        .lease = run->job.note.lease,
        .job = run->job.note.lease,
        .cwd = "",
        .pids = PIDS < run->node->conf.pids_max ? PIDS : run->node->conf.pids_max,
        .submitter_uid = BH_PATH_NOBODY,
        .submitter_gid = BH_PATH_NOBODY,
        .args = { args, BH_COUNT(args) },
        .env = { env, BH_COUNT(env) },
    };
    struct bh_box_request request = { run->node, &start, &run->job, run->arena };
    char note[200];

    BH_ASSERT(args[4] && env[0]);
    return bh_box_build(&request, ret_sandbox, note, err);
}

static bh_rc
start(struct run *run, struct bh_err *err)
{
    const struct bh_runtime *runtime = &run->node->runtime;
    struct bh_sandbox sandbox;
    struct bh_keeper_request request = { .program = run->node->libexec,
                                         .folder = run->folder,
                                         .lease = run->job.note.lease,
                                         .cgroup_mount = run->node->conf.cgroup_mount,
                                         .sandbox = &sandbox,
                                         .log_fd = run->output_fd,
                                         .log_cap_bytes = OUTPUT_MAX };
    bh_rc rc = build(run, &sandbox, err);

    if (rc == BH_OK)
        rc = runtime->ops->prepare(runtime->self, &sandbox, err);
    if (rc == BH_OK)
        rc = runtime->ops->command(runtime->self, &sandbox, request.command, err);
    return rc == BH_OK ? bh_keeper_start(&request, &run->pidfd, err) : rc;
}

static bool
has_ended(int pidfd, int patience_ms)
{
    struct pollfd ready = { .fd = pidfd, .events = POLLIN };
    int n;

    do
        n = poll(&ready, 1, patience_ms);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Its walls are looked at like a job's before it begins (node/gate.h).  BH_UNAVAILABLE: one does
 * not stand. */
static bh_rc
let_go(struct run *run, struct bh_err *err)
{
    bh_ns until = bh_time_monotonic() + run->node->conf.scrub_timeout_ms * BH_NS_PER_MS;
    struct bh_report report;
    bool passed = false;
    pid_t init = 0;

    while (init == 0 && !passed && bh_time_monotonic() < until && !has_ended(run->pidfd, GLANCE_MS))
        init = bh_gate_waiting(run->node, run->id, &passed);
    if (init == 0)
        return BH_OK; /* it ended, or will be ended: its answer is missed */
    bh_inspect(run->node, &run->job, init, &report);
    if (!bh_report_held(&report))
        return bh_err_set(err, BH_UNAVAILABLE, "the helper's sandbox: %.160s", report.why);
    if (kill(init, SIGUSR1) != 0)
        return bh_err_errno(err, "let the helper begin");
    return BH_OK;
}

/* A helper that hangs in the driver does not go even then; its keeper, and with it the
 * sandbox, stays behind until it does, and the piece is not clean. */
static bh_rc
await(struct run *run, struct bh_err *err)
{
    const struct bh_runtime *runtime = &run->node->runtime;
    uint32_t patience = run->node->conf.scrub_timeout_ms;
    siginfo_t reaped;
    struct bh_err ignored;
    bool ended;
    bh_rc rc;

    if (run->pidfd < 0)
        return bh_err_set(err, BH_IO, "the helper's keeper cannot be watched");
    rc = let_go(run, err);
    ended = has_ended(run->pidfd, rc == BH_OK ? (int)patience : 0);
    if (!ended) {
        (void)!runtime->ops->destroy(runtime->self, run->id, &ignored);
        (void)!has_ended(run->pidfd, KILL_PATIENCE_MS);
    }
    waitid(P_PIDFD, (id_t)run->pidfd, &reaped, WEXITED | WNOHANG);
    if (rc != BH_OK)
        return rc;
    return ended ? BH_OK
                 : bh_err_set(err, BH_TIMEOUT, "the helper did not end within %u ms",
                              patience);
}

/* The last line that begins with the word, and nothing else in it. */
static bh_rc
read_report(struct run *run, struct bh_scrub_report *ret_report, struct bh_err *err)
{
    char text[OUTPUT_MAX];
    ssize_t length = pread(run->output_fd, text, sizeof text - 1, 0);
    const char *line = NULL;
    bh_rc rc;

    text[length > 0 ? length : 0] = '\0';
    for (const char *at = text; (at = strstr(at, BH_SCRUB_WORD)); at++)
        line = at + strlen(BH_SCRUB_WORD);
    if (!line || !strchr(line, '\n'))
        return bh_err_set(err, BH_IO, "the helper died: %.150s", text);
    rc = bh_json_decode(line, strcspn(line, "\n"), &bh_scrub_report_fields, ret_report,
                        run->arena, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "the helper's answer");
}

static void
clear(struct run *run)
{
    const struct bh_runtime *runtime = &run->node->runtime;
    struct bh_err ignored;

    (void)!runtime->ops->destroy(runtime->self, run->id, &ignored);
    bh_box_remove(run->node, run->job.note.lease);
    bh_path_remove_tree(run->folder);
    bh_fd_close(run->pidfd);
    bh_fd_close(run->output_fd);
}

bh_rc
bh_scrub_run(struct bh_node *node, const struct bh_note_piece *piece,
             struct bh_scrub_report *ret_report, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(8 << 20);
    struct run run = {
        .node = node, .piece = piece, .arena = arena, .pidfd = -1, .output_fd = -1
    };
    bh_rc rc = begin(&run, err);

    if (rc == BH_OK)
        rc = start(&run, err);
    if (rc == BH_OK)
        rc = await(&run, err);
    if (rc == BH_OK)
        rc = read_report(&run, ret_report, err);
    clear(&run);
    return rc;
}
