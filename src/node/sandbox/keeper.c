#include "node/sandbox/keeper.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "node/common/exit_record.h"
#include "node/common/path.h"

enum { PATH_SIZE = 600, ARGS_MAX = 32 };

static const char lock_name[] = "keeper", disowned_name[] = "keeper.disowned";

static bh_rc
keeper_open_file(const char *folder, const char *name, int flags, int *ret_fd, struct bh_err *err)
{
    char path[PATH_SIZE];

    bh_path_format(path, sizeof path, "%s/%s", folder, name);
    return bh_file_open(path, flags | O_RDWR | O_NOFOLLOW, 0600, ret_fd, err);
}

/* "PID START_NS\n" */
static void
keeper_read_lock(int fd, pid_t *ret_pid, bh_ns *ret_started)
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

struct keeper_words {
    char lease[40], folder[PATH_SIZE], mount[PATH_SIZE], group[PATH_SIZE], cap[40], log[PATH_SIZE], stdio[40],
        program[PATH_SIZE], log_dir[PATH_SIZE], tenant[40], party[100], bound[40];
    char *argv[ARGS_MAX];
};

static void
keeper_write_words(struct keeper_words *words, const struct bh_keeper_request *request)
{
    char *fixed[] = { words->program,
                      words->lease,
                      words->folder,
                      words->mount,
                      words->group,
                      words->cap,
                      words->log,
                      words->stdio,
                      words->log_dir,
                      words->tenant,
                      words->party,
                      words->bound,
                      (char *)(uintptr_t) "--" };
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

static bh_rc
keeper_spawn(struct keeper_words *words, int lock_fd, const struct bh_keeper_request *request, int *ret_pidfd,
             struct bh_err *err)
{
    static const char *const env[] = { "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                       NULL };
    struct bh_process_options options = {
        .program = words->program,
        .argv = (const char *const *)words->argv,
        .envp = env,
        .fds = { { STDERR_FILENO, request->log_fd },
                 { BH_KEEPER_LOCK_FD, lock_fd },
                 { BH_KEEPER_LOG_FD, request->log_fd },
                 { BH_KEEPER_RUNTIME_FD, request->runtime_fd },
                 { BH_KEEPER_BARRIER_FD, request->barrier_fd } },
        .fd_count = 5,
        .new_session = true,
    };
    pid_t pid;

    return bh_process_start(&options, &pid, ret_pidfd, err);
}

bh_rc
bh_keeper_start(const struct bh_keeper_request *request, int *ret_pidfd, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int lock_fd = -1;
    struct keeper_words words;
    bh_rc rc = keeper_open_file(request->folder, lock_name, O_CREAT, &lock_fd, err);

    if (rc != BH_OK)
        return rc;
    if (flock(lock_fd, LOCK_EX | LOCK_NB) != 0)
        return bh_err_set(err, BH_CONFLICT, "a keeper holds %s", request->folder);
    keeper_write_words(&words, request);
    return keeper_spawn(&words, lock_fd, request, ret_pidfd, err);
}

/* ---- finding again ---- */

bool
bh_keeper_alive(const char *folder, pid_t *ret_pid)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_err ignored;
    bh_ns started;

    *ret_pid = 0;
    if (keeper_open_file(folder, lock_name, 0, &fd, &ignored) != BH_OK || flock(fd, LOCK_SH | LOCK_NB) == 0)
        return false;
    keeper_read_lock(fd, ret_pid, &started);
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
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_err ignored;
    bh_ns started = 0;
    pid_t pid;

    if (keeper_open_file(folder, lock_name, 0, &fd, &ignored) == BH_OK
        || keeper_open_file(folder, disowned_name, 0, &fd, &ignored) == BH_OK)
        keeper_read_lock(fd, &pid, &started);
    return started;
}

void
bh_keeper_disown(const char *folder)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char from[PATH_SIZE], to[PATH_SIZE];
    struct bh_err ignored;

    bh_path_format(from, sizeof from, "%s/%s", folder, lock_name);
    bh_path_format(to, sizeof to, "%s/%s", folder, disowned_name);
    if (rename(from, to) != 0) /* a rename takes no room on a full disk */
        (void)!keeper_open_file(folder, disowned_name, O_CREAT, &fd, &ignored);
}
