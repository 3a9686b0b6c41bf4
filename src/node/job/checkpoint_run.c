#include "node/job/checkpoint_run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/process.h"
#include "node/common/path.h"
#include "node/placement/devices.h"
#include "runtime/oci.h"

enum { REQUEST_MAX = 64 << 10, OUTPUT_MAX = 4096, DEVICES_OF_PARTITION = 5, PROBE_MS = 5000 };
#define POLL_INTERVAL (10 * BH_NS_PER_MS)
#define KILL_TIMEOUT (2 * BH_NS_PER_S)

/* ---- what it is asked ---- */

static bh_rc
run_put_mount(struct bh_arena *arena, const char *text, const struct bh_node_partition *partition,
              struct bh_checkpoint_mount *ret_mount, struct bh_err *err)
{
    const char *colon = strchr(text, ':');
    char *source = colon ? bh_devices_fill(arena, text, (size_t)(colon - text), partition) : NULL;
    char *target = colon ? bh_devices_fill(arena, colon + 1, strlen(colon + 1), partition) : NULL;
    char *options = target ? strchr(target, ':') : NULL;

    if (!source || !target || (options && strcmp(options, ":rw") != 0))
        return bh_err_set(err, BH_INVALID, "job_driver_mount %s: expected SOURCE:TARGET[:rw]", text);
    if (options)
        *options = '\0';
    *ret_mount = (struct bh_checkpoint_mount){ source, target, options != NULL };
    return BH_OK;
}

/* What the driver of a job's first partition needs besides: a job has one place for it, too. */
static bh_rc
run_put_mounts(const struct bh_node *node, const struct bh_job *job, struct bh_arena *arena,
               struct bh_list *ret_mounts, struct bh_err *err)
{
    const struct bh_param_list *templates = &node->conf.job_driver_mount;
    struct bh_checkpoint_mount *mounts =
        bh_arena_alloc(arena, (BH_CHECKPOINT_MOUNTS_MAX + 1) * sizeof *mounts);
    bh_rc rc = BH_OK;

    if (!mounts || templates->count > BH_CHECKPOINT_MOUNTS_MAX)
        return bh_err_set(err, BH_FULL, "too many job_driver_mount");
    for (uint32_t i = 0; i < templates->count && rc == BH_OK; i++)
        rc = run_put_mount(arena, templates->items[i], &job->record.lent[0], &mounts[i], err);
    *ret_mounts = (struct bh_list){ mounts, templates->count };
    return rc;
}

static bh_rc
run_put_devices(const struct bh_node *node, const struct bh_job *job, struct bh_arena *arena,
                struct bh_list *ret_devices, struct bh_err *err)
{
    struct bh_sandbox_device known[BH_WIRE_PARTITIONS_MAX * DEVICES_OF_PARTITION + 1];
    uint32_t count = bh_devices_of(node, &job->record, known);
    struct bh_checkpoint_device *devices = bh_arena_alloc(arena, (count + 1) * sizeof *devices);

    if (!devices || count > BH_CHECKPOINT_DEVICES_MAX)
        return bh_err_set(err, BH_FULL, "too many devices");
    for (uint32_t i = 0; i < count; i++) {
        devices[i] = (struct bh_checkpoint_device){ .major = known[i].major, .minor = known[i].minor };
        snprintf(devices[i].path, sizeof devices[i].path, "%.63s", known[i].path);
    }
    *ret_devices = (struct bh_list){ devices, count };
    return BH_OK;
}

static bh_rc
checkpoint_run_put_job(const struct bh_node *node, const struct bh_job *job, struct bh_arena *arena,
                       struct bh_checkpoint_request *request, struct bh_err *err)
{
    bh_rc rc = run_put_mounts(node, job, arena, &request->mounts, err);

    if (rc == BH_OK)
        rc = run_put_devices(node, job, arena, &request->devices, err);
    request->id_base = node->conf.uid_base + BH_OCI_ID_RANGE * job->record.slot;
    request->lock_ms = node->conf.checkpoint_lock_ms;
    request->pid_count = job->checkpointed_count;
    memcpy(request->pids, job->checkpointed_pids, sizeof request->pids);
    return rc;
}

/* A file that holds the request, to be read from its beginning. */
static bh_rc
run_write_request(const struct bh_checkpoint_request *request, int *ret_fd, struct bh_err *err)
{
    static char memory[REQUEST_MAX];
    BH_AUTO(bh_fd_close) int fd = memfd_create("bulkhead-checkpoint", MFD_CLOEXEC);
    struct bh_buf text;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_json_encode(&text, &bh_checkpoint_request_fields, request);
    if (text.overflow)
        return bh_err_set(err, BH_FULL, "the helper's request is too long");
    if (fd < 0 || write(fd, text.bytes, text.length) != (ssize_t)text.length || lseek(fd, 0, SEEK_SET) != 0)
        return bh_err_errno(err, "write the helper's request");
    *ret_fd = fd;
    fd = -1;
    return BH_OK;
}

/* ---- its life ---- */

static bh_rc
checkpoint_run_start(const struct bh_node *node, int input, struct bh_checkpoint_run *run, struct bh_err *err)
{
    static const char *const env[] = { "LD_LIBRARY_PATH=/driver", NULL }; /* where its root has it */
    char path[BH_NODE_PATH_MAX];
    const char *const argv[] = { path, NULL };
    struct bh_process_options options = {
        .argv = argv,
        .envp = env,
        .fds = { { STDIN_FILENO, input },
                 { STDOUT_FILENO, run->output_fd },
                 { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 3,
    };

    bh_path_format(path, sizeof path, "%.480s/bulkhead-checkpoint", node->libexec);
    return bh_process_start(&options, &run->pid, NULL, err);
}

bh_rc
bh_checkpoint_run_begin(const struct bh_node *node, const struct bh_job *job,
                        enum bh_checkpoint_action action, struct bh_checkpoint_run *run, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_checkpoint_request request = { .action = action, .library = node->conf.driver_lib_dir };
    BH_AUTO(bh_fd_close) int input = -1;
    bh_rc rc = job ? checkpoint_run_put_job(node, job, arena, &request, err) : BH_OK;

    *run = (struct bh_checkpoint_run){ .output_fd = -1 };
    if (rc != BH_OK)
        return rc;
    rc = run_write_request(&request, &input, err);
    if (rc != BH_OK)
        return rc;
    run->output_fd = memfd_create("bulkhead-checkpoint", MFD_CLOEXEC);
    if (run->output_fd < 0)
        return bh_err_errno(err, "make a file for its output");
    run->allowed_ms = job ? node->conf.checkpoint_timeout_ms : PROBE_MS;
    run->until = bh_time_monotonic() + run->allowed_ms * BH_NS_PER_MS;
    rc = checkpoint_run_start(node, input, run, err);
    if (rc != BH_OK) {
        bh_fd_close(run->output_fd);
        run->output_fd = -1;
    }
    return rc;
}

/* The last line that begins with the word and has only the report. */
static bh_rc
run_read_report(const struct bh_checkpoint_run *run, struct bh_checkpoint_report *ret_report,
                struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    char text[OUTPUT_MAX];
    ssize_t length = pread(run->output_fd, text, sizeof text - 1, 0);
    const char *line = NULL;
    bh_rc rc;

    text[length > 0 ? length : 0] = '\0';
    for (const char *at = text; (at = strstr(at, BH_CHECKPOINT_PREFIX)); at++)
        line = at + strlen(BH_CHECKPOINT_PREFIX);
    if (!line || !strchr(line, '\n'))
        return bh_err_set(err, BH_IO, "the helper died%s%.150s", *text ? ": " : " without a message", text);
    rc = bh_json_decode(line, strcspn(line, "\n"), &bh_checkpoint_report_fields, ret_report, arena, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "the helper's answer");
}

bool
bh_checkpoint_run_is_stuck(struct bh_checkpoint_run *run)
{
    BH_ASSERT(run->pid >= 0);
    if (run->pid && waitpid(run->pid, NULL, WNOHANG) != 0)
        run->pid = 0;
    return run->pid != 0;
}

bool
bh_checkpoint_run_advance(struct bh_checkpoint_run *run, bh_ns now, bh_ns *ret_next,
                          struct bh_checkpoint_report *ret_report, struct bh_err *ret_err)
{
    bool gone = !bh_checkpoint_run_is_stuck(run);

    BH_ASSERT(run->output_fd >= 0 && run->until);
    *ret_next = now + POLL_INTERVAL;
    if (!gone && now < run->until)
        return false;
    if (!gone && !run->killed) {
        kill(run->pid, SIGKILL);
        run->killed = true;
        run->until = now + KILL_TIMEOUT;
        return false;
    }
    ret_err->rc = BH_OK;
    if (run->killed)
        bh_err_set(ret_err, BH_TIMEOUT, "the driver did not answer within %u ms", run->allowed_ms);
    else
        ret_err->rc = run_read_report(run, ret_report, ret_err);
    bh_fd_close(run->output_fd);
    run->output_fd = -1;
    return true;
}
