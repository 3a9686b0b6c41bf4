#include "node/reset.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/utf8.h"
#include "device/holders.h"
#include "model/geometry.h"
#include "node/health.h"
#include "node/job.h"
#include "node/path.h"
#include "node/piece.h"
#include "node/signs.h"

enum { HOLDERS_NAMED = 3 };
#define LOOK_AGAIN (20 * BH_NS_PER_MS)

/* ---- who is in the way ---- */

static bh_rc
check_jobs(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    struct bh_note_piece whole = { .gi = BH_WHOLE_GPU };
    const struct bh_job *holder;

    snprintf(whole.gpu, sizeof whole.gpu, "%s", gpu);
    snprintf(whole.profile, sizeof whole.profile, "whole");
    holder = bh_job_at(node, &whole, 0);
    return holder ? bh_err_set(err, BH_CONFLICT, "lease %" PRIu64 " holds a piece of GPU %s",
                               holder->note.lease, gpu)
                  : BH_OK;
}

/* Processes that the driver lists; one that does not answer lists nobody. */
static bh_rc
check_processes(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct bh_device_process *processes;
    struct bh_err ignored;
    uint32_t count = 0;

    if (node->device.ops->processes(node->device.self, gpu, arena, &processes, &count, &ignored)
            == BH_OK
        && count > 0)
        return bh_err_set(err, BH_CONFLICT, "process %u uses GPU %s", processes[0].pid, gpu);
    return BH_OK;
}

/* And those that have its node open, monitoring programs say. */
static bh_rc
check_holders(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    const struct bh_device_gpu *known = bh_piece_gpu(node, gpu);
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
check_free(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_rc rc = check_jobs(node, gpu, err);

    if (rc == BH_OK && bh_piece_has_foreign(node, gpu))
        rc = bh_err_set(err, BH_CONFLICT, "GPU %s has instances that are not Bulkhead's", gpu);
    return rc == BH_OK ? check_processes(node, gpu, err) : rc;
}

static bool
has_piece(const struct bh_node *node, const char *gpu)
{
    for (uint32_t i = 0; i < node->state.piece_count; i++)
        if (strcmp(node->state.pieces[i].gpu, gpu) == 0)
            return true;
    return false;
}

/* GPUs behind NVSwitches on Ampere are reset all together. */
static bool
resets_together(const struct bh_node *node, const char *gpu)
{
    const struct bh_device_gpu *known = bh_piece_gpu(node, gpu);
    enum bh_gpu_model model = known ? bh_model_by_product(known->product) : BH_GPU_MODEL_NONE;
    char path[BH_NODE_PATH_MAX];
    struct stat st;

    bh_path_format(path, sizeof path, "%s/driver/nvidia-nvswitch", node->conf.proc_root);
    return model != BH_GPU_MODEL_NONE && bh_model_facts(model)->arch == MIG_ARCH_AMPERE
           && stat(path, &st) == 0;
}

static bh_rc
check_others(const struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < node->inventory.gpu_count && rc == BH_OK; i++) {
        const char *other = node->inventory.gpus[i].uuid;

        if (strcmp(other, gpu) == 0)
            continue;
        rc = bh_piece_allowed(node, other, err);
        if (rc == BH_OK && has_piece(node, other))
            rc = bh_err_set(err, BH_CONFLICT, "GPU %s has pieces", other);
        if (rc == BH_OK)
            rc = check_free(node, other, err);
        if (rc == BH_OK)
            rc = check_holders(node, other, err);
    }
    if (rc == BH_OK)
        return BH_OK;
    bh_err_wrap(err, "GPUs behind NVSwitches are reset together");
    err->rc = BH_CONFLICT;
    return bh_err_hint(err, "drain the node first: bulkhead drain NODE");
}

/* ---- the program ---- */

/* Only standard error reaches it, and the driver's environment. */
static bh_rc
start(const struct bh_node *node, const char *pci, pid_t *ret_pid, struct bh_err *err)
{
    const char *program = node->conf.gpu_reset;
    char *const argv[] = { (char *)(uintptr_t)program, (char *)"--gpu-reset",
                           pci ? (char *)"-i" : NULL, (char *)(uintptr_t)pci, NULL };
    const char *env[BH_PARAM_LIST_MAX + 1] = { 0 };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    int error;

    for (uint32_t i = 0; i < node->conf.driver_env.count; i++)
        env[i] = node->conf.driver_env.items[i];
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", 0, 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    posix_spawn_file_actions_addclosefrom_np(&files, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    error = posix_spawn(ret_pid, program, &files, &attributes, argv,
                        (char *const *)(uintptr_t)env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error ? bh_err_sys(err, BH_UNAVAILABLE, BH_SYS_ERRNO, error, "cannot start %s: %s",
                              program, strerror(error))
                 : BH_OK;
}

static bh_rc
await(const struct bh_node *node, pid_t pid, struct bh_err *err)
{
    bh_ns deadline = bh_time_monotonic() + node->conf.gpu_reset_timeout_ms * BH_NS_PER_MS;
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 && bh_time_monotonic() < deadline)
        bh_time_sleep(LOOK_AGAIN);
    if (ended == 0) {
        kill(-pid, SIGKILL);
        for (int turn = 0; turn < 50 && waitpid(pid, &status, WNOHANG) == 0; turn++)
            bh_time_sleep(LOOK_AGAIN);
        return bh_err_set(err, BH_TIMEOUT, "%s did not end within %u ms", node->conf.gpu_reset,
                          node->conf.gpu_reset_timeout_ms);
    }
    if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return BH_OK;
    return bh_err_set(err, BH_IO, "%s failed with status %d", node->conf.gpu_reset,
                      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* What stood on it is gone. */
static bh_rc
note_gone(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = node->state.piece_count; i-- > 0 && rc == BH_OK;) {
        struct bh_note note = { .kind = BH_NOTE_GONE,
                                .piece.partition = node->state.pieces[i].partition };

        if (strcmp(node->state.pieces[i].gpu, gpu) == 0)
            rc = bh_state_note(&node->state, &note, err);
    }
    return rc;
}

static bh_rc
carry_out(struct bh_node *node, const char *gpu, bool together, struct bh_err *err)
{
    bh_ns most = node->conf.gpu_reset_timeout_ms * BH_NS_PER_MS;
    bh_rc rc;
    pid_t pid;

    bh_gpu_client_let_go(node->gpus, bh_time_monotonic() + most);
    rc = check_holders(node, gpu, err);
    if (rc == BH_OK)
        rc = start(node, together ? NULL : bh_health_pci(node, gpu), &pid, err);
    if (rc == BH_OK)
        rc = await(node, pid, err);
    node->inventory_known = false;
    bh_gpu_client_let_go(node->gpus, 0);
    return rc;
}

bh_rc
bh_reset_run(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    struct bh_err unseen;
    bool together;
    bh_rc rc = bh_piece_allowed(node, gpu, err);

    if (rc != BH_OK)
        return rc;
    if (!*node->conf.gpu_reset) {
        bh_err_set(err, BH_UNAVAILABLE, "cannot reset here: node.conf names no gpu_reset program");
        return bh_err_hint(err, "reset it by hand, or set gpu_reset = /usr/bin/nvidia-smi");
    }
    if (bh_piece_scan(node, &unseen) != BH_OK) /* a driver that hangs is what a reset is for */
        bh_log(EFFECT_FAILED, BH_STR("what", "scan before a reset"), BH_ERRLOG(&unseen));
    if (!*bh_health_pci(node, gpu))
        return bh_err_set(err, BH_NOT_FOUND, "no GPU %s on this node", gpu);
    rc = check_free(node, gpu, err);
    together = resets_together(node, gpu);
    if (rc == BH_OK && together)
        rc = check_others(node, gpu, err);
    if (rc == BH_OK)
        rc = carry_out(node, gpu, together, err);
    if (rc != BH_OK)
        return rc;
    bh_log(GPU_RESET, BH_STR("gpu", gpu));
    bh_health_forget(node, gpu);
    return note_gone(node, gpu, err);
}

bh_rc
bh_reset_test(struct bh_node *node, const char *gpu, struct bh_err *err)
{
    struct bh_device_health health;
    const struct bh_device_gpu *known;
    const char *uncured;
    bh_rc rc = bh_health_look(node, gpu, &health, err);

    if (rc == BH_OK)
        rc = bh_piece_scan(node, err);
    if (rc != BH_OK)
        return rc;
    known = bh_piece_gpu(node, gpu);
    if (!known || known->lost)
        return bh_err_set(err, BH_IO, "GPU %s is not there", gpu);
    uncured = bh_signs_uncured(&health);
    return uncured ? bh_err_set(err, BH_IO, "GPU %s still says: %s", gpu, uncured) : BH_OK;
}
