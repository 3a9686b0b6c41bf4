#include "node/partition/reset.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process.h"
#include "base/utf8.h"
#include "device/holders.h"
#include "model/geometry.h"
#include "node/common/path.h"
#include "node/job/job.h"
#include "node/partition/health.h"
#include "node/partition/health_rules.h"
#include "node/partition/partition.h"
#include "node/placement/health_state.h"
#include "node/placement/inventory.h"
#include "node/placement/placement.h"
#include "node/placement/reset_hold.h"
#include "node/placement/trespass.h"
#include "node/sandbox/helper_sandbox.h"

enum { HOLDERS_NAMED = 3, GPUS_MAX = BH_GPU_HIDDEN_MAX };
#define CHECK_INTERVAL (20 * BH_NS_PER_MS)
#define STUCK_INTERVAL (500 * BH_NS_PER_MS)
#define KILL_TIMEOUT BH_NS_PER_S

struct bh_reset *
bh_reset_new(void)
{
    struct bh_reset *reset = calloc(1, sizeof *reset);

    BH_ASSERT(reset);
    reset->pidfd = -1;
    return reset;
}

void
bh_reset_free(struct bh_reset *reset)
{
    if (reset)
        bh_fd_close(reset->pidfd);
    free(reset);
}

int
bh_reset_fd(const struct bh_node *node)
{
    bh_reset_hold_assert(node->reset);
    return node->reset->pidfd;
}

bool
bh_reset_runs(const struct bh_node *node, uint64_t order)
{
    bh_reset_hold_assert(node->reset);
    return node->reset->state == BH_RESET_RUNS && node->reset->order.order == order;
}

/* ---- what is in the way ---- */

static bh_rc
reset_check_jobs(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    struct bh_node_partition whole = { .gi = BH_WHOLE_GPU };
    const struct bh_job *holder;

    snprintf(whole.gpu, sizeof whole.gpu, "%s", gpu);
    snprintf(whole.profile, sizeof whole.profile, "whole");
    holder = bh_placement_holder(node, &whole, 0);
    if (bh_helper_sandbox_holds(node, &whole))
        return bh_err_set(err, BH_CONFLICT, "a partition of GPU %s is being scrubbed", gpu);
    return holder ? bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " holds a partition of GPU %s",
                               holder->record.lease, gpu)
                  : BH_OK;
}

/* Processes that the driver lists; of a GPU that does not answer, none. */
static bh_rc
reset_check_processes(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_device_process *processes;
    struct bh_err ignored;
    struct bh_node_partition whole = { .gi = BH_WHOLE_GPU, .profile = "whole" };
    uint32_t count = 0;

    snprintf(whole.gpu, sizeof whole.gpu, "%s", gpu);
    if (node->device.ops->processes(node->device.self, gpu, arena, &processes, &count, &ignored) != BH_OK)
        return BH_OK;
    for (uint32_t i = 0; i < count; i++)
        (void)bh_trespass_charge(node, &whole, processes[i].pid, 0);
    if (count > 0)
        return bh_err_set(err, BH_CONFLICT, "process %u uses GPU %s", processes[0].pid, gpu);
    return BH_OK;
}

/* And those that have its node open, monitoring programs say. */
static bh_rc
reset_check_holders(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    const struct bh_device_gpu *known = bh_node_inventory_gpu(node, gpu);
    char name[32], memory[120];
    struct bh_buf who;

    if (!known)
        return BH_OK;
    snprintf(name, sizeof name, "/dev/nvidia%u", known->minor);
    bh_buf_init_fixed(&who, memory, sizeof memory);
    if (bh_holders_put(&who, "/proc", known->minor, HOLDERS_NAMED) == 0)
        return BH_OK;
    bh_err_set(err, BH_CONFLICT, "%s is open in %s", name, who.overflow ? "processes" : memory);
    return bh_err_hint(err, "stop them: fuser -v %s", name);
}

static bh_rc
reset_check_free(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_rc rc = reset_check_jobs(node, gpu, err);

    if (rc != BH_OK)
        return rc;
    if (bh_node_partition_has_foreign(node, gpu))
        return bh_err_set(err, BH_CONFLICT, "GPU %s has foreign instances", gpu);
    return reset_check_processes(node, gpu, err);
}

static bool
reset_has_partition(const struct bh_node *node, const char *gpu)
{
    for (uint32_t i = 0; i < node->state.partition_count; i++)
        if (strcmp(node->state.partitions[i].gpu, gpu) == 0)
            return true;
    return false;
}

/* GPUs behind NVSwitches on Ampere are reset all together. */
static bool
resets_together(const struct bh_node *node, const char *gpu)
{
    const struct bh_device_gpu *known = bh_node_inventory_gpu(node, gpu);
    enum bh_gpu_model model = known ? bh_model_by_product(known->product) : BH_GPU_MODEL_NONE;
    char path[BH_NODE_PATH_MAX];
    struct stat st;

    bh_path_format(path, sizeof path, "%s/driver/nvidia-nvswitch", node->conf.proc_root);
    return model != BH_GPU_MODEL_NONE && bh_model_facts(model)->arch == MIG_ARCH_AMPERE
           && stat(path, &st) == 0;
}

static bh_rc
reset_check_others(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < node->inventory.gpu_count && rc == BH_OK; i++) {
        const char *other = node->inventory.gpus[i].uuid;

        if (strcmp(other, gpu) == 0)
            continue;
        rc = bh_node_partition_check_allowed(node, other, err);
        if (rc == BH_OK && reset_has_partition(node, other))
            rc = bh_err_set(err, BH_CONFLICT, "GPU %s has partitions", other);
        if (rc == BH_OK)
            rc = reset_check_free(node, other, err);
        if (rc == BH_OK)
            rc = reset_check_holders(node, other, err);
    }
    if (rc == BH_OK)
        return BH_OK;
    bh_err_wrap(err, "GPUs behind NVSwitches can only be reset together");
    err->rc = BH_CONFLICT;
    return bh_err_hint(err, "drain the node first: bulkhead drain NODE");
}

/* ---- the program ---- */

/* Only standard error reaches it, and the driver's environment. */
static bh_rc
reset_start(struct bh_node *node, const char *pci, struct bh_err *err)
{
    const char *program = node->conf.gpu_reset;
    const char *const argv[] = { program, "--gpu-reset", pci ? "-i" : NULL, pci, NULL };
    const char *env[BH_PARAM_LIST_MAX + 1] = { 0 };
    struct bh_process_options options = {
        .argv = argv,
        .envp = env,
        .fds = { { STDOUT_FILENO, STDERR_FILENO }, { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 2,
        .new_group = true,
    };

    for (uint32_t i = 0; i < node->conf.driver_env.count; i++)
        env[i] = node->conf.driver_env.items[i];
    if (bh_process_start(&options, &node->reset->pid, &node->reset->pidfd, err) != BH_OK)
        return err->rc = BH_UNAVAILABLE;
    return BH_OK;
}

/* The GPU's partitions are gone. */
static bh_rc
reset_record_gone(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = node->state.partition_count; i-- > 0 && rc == BH_OK;) {
        struct bh_node_record record = { .kind = BH_NODE_RECORD_GONE,
                                         .partition.partition = node->state.partitions[i].partition };

        if (strcmp(node->state.partitions[i].gpu, gpu) == 0)
            rc = bh_state_record(&node->state, &record, err);
    }
    return rc;
}

/* ---- its course ---- */

/* From here on the node's own children do not open the GPU that is reset; the inventory keeps it. */
static void
reset_hide(struct bh_node *node)
{
    struct bh_reset *reset = node->reset;
    uint32_t minors[GPUS_MAX], hidden = 0;

    BH_ASSERT(reset->before_count == 0);
    for (uint32_t i = 0; i < node->inventory.gpu_count && reset->before_count < GPUS_MAX; i++) {
        const struct bh_device_gpu *gpu = &node->inventory.gpus[i];

        reset->before[reset->before_count++] = *gpu;
        if (reset->together || strcmp(gpu->uuid, reset->order.gpu) == 0)
            minors[hidden++] = gpu->minor;
    }
    bh_gpu_client_hide(node->gpus, minors, hidden);
}

static void
reset_show(struct bh_node *node)
{
    node->reset->before_count = 0;
    node->inventory_known = false;
    bh_gpu_client_hide(node->gpus, NULL, 0);
}

static bh_rc
reset_begin(struct bh_node *node, struct bh_err *err)
{
    struct bh_reset *reset = node->reset;
    const char *gpu = reset->order.gpu;
    bh_rc rc;

    BH_ASSERT(reset->state == BH_RESET_IDLE && reset->pid == 0);
    reset_hide(node);
    rc = reset_check_holders(node, gpu, err);
    if (rc == BH_OK)
        rc = reset_start(node, reset->together ? NULL : bh_health_pci(node, gpu), err);
    if (rc != BH_OK) {
        reset->pid = 0;
        reset_show(node);
        return rc;
    }
    reset->killed = false;
    reset->until = bh_time_monotonic() + node->conf.gpu_reset_timeout_ms * BH_NS_PER_MS;
    reset->state = BH_RESET_RUNS;
    return BH_OK;
}

static bh_rc
reset_check(struct bh_node *node, const char *gpu, bool *ret_together, struct bh_err *err)
{
    struct bh_err unseen;
    bh_rc rc = bh_node_partition_check_allowed(node, gpu, err);

    if (rc != BH_OK)
        return rc;
    if (!*node->conf.gpu_reset) {
        bh_err_set(err, BH_UNAVAILABLE, "cannot reset: node.conf names no gpu_reset program");
        return bh_err_hint(err, "reset it by hand, or set gpu_reset = /usr/bin/nvidia-smi");
    }
    if (bh_node_partition_scan(node, &unseen) != BH_OK) /* a driver that hangs is what a reset is for */
        bh_log(EFFECT_FAILED, BH_STR("what", "scan before a reset"), BH_ERRLOG(&unseen));
    if (!*bh_health_pci(node, gpu))
        return bh_err_set(err, BH_NOT_FOUND, "no GPU %s on this node", gpu);
    rc = reset_check_free(node, gpu, err);
    *ret_together = resets_together(node, gpu);
    return rc == BH_OK && *ret_together ? reset_check_others(node, gpu, err) : rc;
}

static bh_rc
reset_finish(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_log(GPU_RESET, BH_STR("gpu", gpu));
    bh_health_forget(node, gpu);
    return reset_record_gone(node, gpu, err);
}

bh_rc
bh_reset_run(struct bh_node *node, const struct bh_msg_gpu_order *order, bool *ret_waits, struct bh_err *err)
{
    struct bh_reset *reset = node->reset;
    bool together;
    bh_rc rc;

    bh_node_assert(node);
    bh_reset_hold_assert(reset);
    BH_ASSERT(order->order != 0);
    *ret_waits = false;
    if (reset->state == BH_RESET_OVER && reset->order.order == order->order) {
        reset->state = BH_RESET_IDLE;
        *err = reset->err;
        return err->rc == BH_OK ? reset_finish(node, order->gpu, err) : err->rc;
    }
    *ret_waits = reset->state != BH_RESET_IDLE;
    if (*ret_waits)
        return BH_OK;
    if (reset->pid)
        return bh_err_set(err, BH_UNAVAILABLE, "process %d, which was to reset GPU %s, does not end",
                          (int)reset->pid, reset->order.gpu);
    rc = reset_check(node, order->gpu, &together, err);
    if (rc != BH_OK)
        return rc;
    reset->order = *order;
    reset->together = together;
    rc = reset_begin(node, err);
    *ret_waits = rc == BH_OK;
    return rc;
}

static bool
reset_has_gone(struct bh_reset *reset, int *ret_status)
{
    pid_t ended = waitpid(reset->pid, ret_status, WNOHANG);

    if (ended == 0)
        return false;
    if (ended < 0)
        *ret_status = SIGKILL; /* how it ended is unknown */
    bh_fd_close(reset->pidfd);
    reset->pidfd = -1;
    reset->pid = 0;
    return true;
}

static void
reset_read_status(const struct bh_node *node, int status)
{
    struct bh_reset *reset = node->reset;

    if (reset->killed)
        bh_err_set(&reset->err, BH_TIMEOUT, "%s did not end within %u ms", node->conf.gpu_reset,
                   node->conf.gpu_reset_timeout_ms);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        reset->err = (struct bh_err){ .rc = BH_OK };
    else
        bh_err_set(&reset->err, BH_IO, "%s failed with status %d", node->conf.gpu_reset,
                   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    reset->state = BH_RESET_OVER;
}

/* A reset program that was killed and does not end sits in the driver: its order is answered, and the GPU
 * stays hidden from the node's own children, which would hang there, too. */
bh_ns
bh_reset_tick(struct bh_node *node, bh_ns now)
{
    struct bh_reset *reset = node->reset;
    int status = 0;

    bh_reset_hold_assert(reset);
    if (!reset->pid)
        return 0;
    if (reset_has_gone(reset, &status)) {
        reset_show(node);
        if (reset->state == BH_RESET_RUNS)
            reset_read_status(node, status);
        return 0;
    }
    if (reset->state == BH_RESET_RUNS && now >= reset->until && !reset->killed) {
        kill(-reset->pid, SIGKILL);
        reset->killed = true;
        reset->until = now + KILL_TIMEOUT;
    } else if (reset->state == BH_RESET_RUNS && now >= reset->until) {
        reset_read_status(node, status);
    }
    if (reset->state == BH_RESET_RUNS && !reset->killed && reset->pidfd >= 0)
        return reset->until;
    return now + (reset->state == BH_RESET_RUNS ? CHECK_INTERVAL : STUCK_INTERVAL);
}

bh_rc
bh_reset_test(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    struct bh_device_health health;
    const struct bh_device_gpu *known;
    const char *uncured;
    bh_rc rc = bh_health_read(node, gpu, &health, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_node_partition_scan(node, err);
    if (rc != BH_OK)
        return rc;
    known = bh_node_inventory_gpu(node, gpu);
    if (!known || known->lost)
        return bh_err_set(err, BH_IO, "GPU %s is not there", gpu);
    uncured = bh_health_rules_uncured(&health);
    return uncured ? bh_err_set(err, BH_IO, "GPU %s still reports: %s", gpu, uncured) : BH_OK;
}
