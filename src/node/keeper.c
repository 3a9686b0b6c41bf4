#include "node/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "node/exit_record.h"
#include "node/path.h"

enum { PATH_SIZE = 600, ARGS_MAX = 32 };

static int
open_lock(const char *folder, int flags)
{
    char path[PATH_SIZE];

    bh_path_format(path, sizeof path, "%s/keeper", folder);
    return open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* "PID START_NS\n" */
static void
read_lock(int fd, pid_t *ret_pid, bh_ns *ret_started)
{
    char text[64] = "", *end;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    *ret_pid = 0;
    *ret_started = 0;
    if (n <= 0 || text[n - 1] != '\n')
        return;
    *ret_pid = (pid_t)strtol(text, &end, 10);
    *ret_started = strtoull(end, NULL, 10);
}

/* ---- starting ---- */

struct words {
    char lease[40], folder[PATH_SIZE], mount[PATH_SIZE], group[PATH_SIZE], cap[40],
        log[PATH_SIZE], stdio[40], program[PATH_SIZE], log_dir[PATH_SIZE], tenant[40], party[100], bound[40];
    char *argv[ARGS_MAX];
};

static void
write_words(struct words *words, const struct bh_keeper_request *request)
{
    char *fixed[] = { words->program, words->lease, words->folder, words->mount,
                      words->group,   words->cap,   words->log,    words->stdio,
                      words->log_dir, words->tenant, words->party, words->bound, (char *)(uintptr_t) "--" };
    size_t count = BH_COUNT(fixed);

    bh_path_format(words->program, PATH_SIZE, "%s/bulkhead-keeper", request->program);
    bh_path_format(words->lease, sizeof words->lease, "--lease=%" PRIu64, request->lease);
    bh_path_format(words->folder, PATH_SIZE, "--folder=%s", request->folder);
    bh_path_format(words->mount, PATH_SIZE, "--cgroup-mount=%s", request->cgroup_mount);
    bh_path_format(words->group, PATH_SIZE, "--cgroup=%s", request->sandbox->cgroup);
    bh_path_format(words->cap, sizeof words->cap, "--log-cap=%" PRIu64, request->log_cap_bytes);
    bh_path_format(words->log, PATH_SIZE, "--runtime-log=%s/runtime.log", request->sandbox->bundle);
    bh_path_format(words->stdio, sizeof words->stdio, "--stdio=%" PRIu32, request->stdio);
    bh_path_format(words->log_dir, PATH_SIZE, "--log-dir=%s", request->logs.folder);
    bh_path_format(words->tenant, sizeof words->tenant, "--log-tenant=%" PRIu32, request->logs.tenant);
    bh_path_format(words->party, sizeof words->party, "--log-party=%s", request->logs.party);
    bh_path_format(words->bound, sizeof words->bound, "--log-bound=%" PRIu64, request->logs.bound_bytes);
    memcpy(words->argv, fixed, sizeof fixed);
    for (size_t i = 0; i < BH_COUNT(request->command) && request->command[i]; i++)
        words->argv[count++] = (char *)(uintptr_t)request->command[i];
    words->argv[count] = NULL;
}

/* The keeper's descriptors 3 to 6 are made from copies above them, so that none is
 * overwritten before it was copied. */
static bh_rc
keeper_spawn(struct words *words, int lock_fd, const struct bh_keeper_request *request, pid_t *ret_pid,
      struct bh_err *err)
{
    char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    char *env[] = { path, NULL };
    BH_AUTO(bh_fd_close) int lock = fcntl(lock_fd, F_DUPFD_CLOEXEC, 10);
    BH_AUTO(bh_fd_close) int log = fcntl(request->log_fd, F_DUPFD_CLOEXEC, 10);
    BH_AUTO(bh_fd_close) int runtime = fcntl(request->runtime_fd, F_DUPFD_CLOEXEC, 10);
    BH_AUTO(bh_fd_close) int barrier = fcntl(request->barrier_fd, F_DUPFD_CLOEXEC, 10);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    int failed;

    sigemptyset(&none);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, lock, BH_KEEPER_LOCK_FD);
    posix_spawn_file_actions_adddup2(&actions, log, BH_KEEPER_LOG_FD);
    posix_spawn_file_actions_adddup2(&actions, runtime, BH_KEEPER_RUNTIME_FD);
    posix_spawn_file_actions_adddup2(&actions, barrier, BH_KEEPER_BARRIER_FD);
    failed = posix_spawn(ret_pid, words->program, &actions, &attr, words->argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    errno = failed;
    return failed ? bh_err_errno(err, "start %s", words->program) : BH_OK;
}

bh_rc
bh_keeper_start(const struct bh_keeper_request *request, int *ret_pidfd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int lock_fd = open_lock(request->folder, O_CREAT);
    struct words words;
    pid_t pid;
    bh_rc rc;

    if (lock_fd < 0)
        return bh_err_errno(err, "open the lock in %s", request->folder);
    if (flock(lock_fd, LOCK_EX | LOCK_NB) != 0)
        return bh_err_set(err, BH_CONFLICT, "a keeper holds %s", request->folder);
    write_words(&words, request);
    rc = keeper_spawn(&words, lock_fd, request, &pid, err);
    if (rc != BH_OK)
        return rc;
    *ret_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return BH_OK;
}

/* ---- finding again ---- */

bool
bh_keeper_alive(const char *folder, pid_t *ret_pid)
{
    BH_AUTO(bh_fd_close) int fd = open_lock(folder, 0);
    bh_ns started;

    *ret_pid = 0;
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0)
        return false;
    read_lock(fd, ret_pid, &started);
    return true;
}

/* The lock is looked at again after the descriptor was opened: the process that has the
 * number then is the keeper, not one that took it over. */
int
bh_keeper_watch(const char *folder, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    pid_t again;

    if (fd >= 0 && (!bh_keeper_alive(folder, &again) || again != pid)) {
        close(fd);
        return -1;
    }
    return fd;
}

bh_ns
bh_keeper_started(const char *folder)
{
    BH_AUTO(bh_fd_close) int fd = open_lock(folder, 0);
    bh_ns started = 0;
    pid_t pid;

    if (fd >= 0)
        read_lock(fd, &pid, &started);
    return started;
}
