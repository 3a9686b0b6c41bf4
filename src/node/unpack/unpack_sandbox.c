#include "node/unpack/unpack_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/fd.h"
#include "base/proc.h"
#include "node/common/path.h"
#include "runtime/seccomp.h"

#define ROOT "/tmp" /* covered by the cell while it is built; every machine has it */

enum { EXIT_NOT_CONFINED = 125, FIRST_OF_OTHERS = BH_UNPACK_SANDBOX_FD + 1, WATCH_MS = 1000 };

static int machine_proc = -1; /* /proc as it was: the cell has none */

/* ---- the mounts ---- */

static bh_rc
sandbox_put_tree(const char *source, const char *target, unsigned long flags, struct bh_err *err)
{
    if (mount(source, target, NULL, MS_BIND, NULL) != 0
        || mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | flags, NULL) != 0)
        return bh_err_errno(err, "mount %s in the sandbox", source);
    return BH_OK;
}

/* Programs and libraries, as this machine has them: folders, or links into /usr. */
static bh_rc
sandbox_put_programs(struct bh_err *err)
{
    static const char *const names[] = { "/usr", "/bin", "/lib", "/lib64" };
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(names) && rc == BH_OK; i++) {
        char place[64], link[256];
        ssize_t n = readlink(names[i], link, sizeof link - 1);
        struct stat st;

        bh_path_format(place, sizeof place, ROOT "%s", names[i]);
        if (n > 0) {
            link[n] = '\0';
            if (symlink(link, place) != 0)
                rc = bh_err_errno(err, "make link %s", place);
        } else if (stat(names[i], &st) == 0) {
            rc = mkdir(place, 0755) == 0 ? sandbox_put_tree(names[i], place, MS_RDONLY, err)
                                         : bh_err_errno(err, "make folder %s", place);
        }
    }
    return rc;
}

/* A program of the machine, by descriptor; -1: none. */
static bh_rc
sandbox_put_program(int fd, const char *place, struct bh_err *err)
{
    char from[BH_PROC_PATH_MAX];
    BH_AUTO(bh_fd_close)
    int made = fd < 0 ? -1 : open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

    if (fd < 0)
        return BH_OK;
    if (made < 0)
        return bh_err_errno(err, "make %s of the sandbox", place);
    bh_proc_fd_path(fd, from);
    return sandbox_put_tree(from, place, MS_RDONLY, err);
}

struct parts {
    int folder, tool, fetcher;
};

static bh_rc
unpack_sandbox_put_parts(const struct parts *parts, struct bh_err *err)
{
    char from[BH_PROC_PATH_MAX];
    bh_rc rc = BH_OK;

    if (mkdir(ROOT BH_UNPACK_SANDBOX_STAGE, 0755) != 0 || mkdir(ROOT BH_UNPACK_SANDBOX_ETC, 0755) != 0
        || mkdir(ROOT "/old", 0700) != 0)
        rc = bh_err_errno(err, "make the sandbox's folders");
    bh_proc_fd_path(parts->folder, from);
    if (rc != BH_OK)
        return rc;
    rc = sandbox_put_tree(from, ROOT BH_UNPACK_SANDBOX_STAGE, 0, err);
    if (rc != BH_OK)
        return rc;
    rc = sandbox_put_program(parts->tool, ROOT BH_UNPACK_SANDBOX_TOOL, err);
    if (rc != BH_OK)
        return rc;
    rc = sandbox_put_program(parts->fetcher, ROOT BH_UNPACK_SANDBOX_FETCHER, err);
    if (rc != BH_OK)
        return rc;
    return sandbox_put_programs(err);
}

static bh_rc
sandbox_open_parts(const struct bh_unpack_sandbox *sandbox, struct parts *parts, struct bh_err *err)
{
    parts->folder = open(sandbox->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (parts->folder < 0)
        return bh_err_errno(err, "open %s", sandbox->folder);
    parts->tool = open(sandbox->tool, O_PATH | O_CLOEXEC);
    if (parts->tool < 0)
        return bh_err_errno(err, "open %s", sandbox->tool);
    if (sandbox->fetcher)
        parts->fetcher = open(sandbox->fetcher, O_PATH | O_CLOEXEC);
    if (sandbox->fetcher && parts->fetcher < 0)
        return bh_err_errno(err, "open %s", sandbox->fetcher);
    machine_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return machine_proc < 0 ? bh_err_errno(err, "open /proc") : BH_OK;
}

static bh_rc
unpack_sandbox_build(const struct bh_unpack_sandbox *sandbox, struct parts *parts, struct bh_err *err)
{
    bh_rc rc;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0
        || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return bh_err_errno(err, "make namespaces");
    rc = sandbox_open_parts(sandbox, parts, err);
    if (rc != BH_OK)
        return rc;
    if (mount("bulkhead-cell", ROOT, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=65536") != 0)
        rc = bh_err_errno(err, "mount the sandbox");
    if (rc != BH_OK)
        return rc;
    return unpack_sandbox_put_parts(parts, err);
}

bh_rc
bh_unpack_sandbox_enter(const struct bh_unpack_sandbox *sandbox, struct bh_err *err)
{
    struct parts parts = { -1, -1, -1 };
    bh_rc rc = unpack_sandbox_build(sandbox, &parts, err);

    bh_fd_close(parts.folder);
    bh_fd_close(parts.tool);
    bh_fd_close(parts.fetcher);
    if (rc != BH_OK)
        return rc;
    if (syscall(SYS_pivot_root, ROOT, ROOT "/old") != 0 || chdir("/") != 0 || umount2("/old", MNT_DETACH) != 0
        || mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) != 0)
        return bh_err_errno(err, "enter the sandbox");
    return BH_OK;
}

/* ---- children ---- */

/* Of root's powers over its own namespace: those that unpacking needs. */
static bool
sandbox_drop_capabilities(void)
{
    static const int kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID };
    struct bh_err ignored;

    return bh_capability_bound(kept, BH_COUNT(kept), &ignored) == BH_OK;
}

static bool
sandbox_load_filter(void)
{
    static struct sock_filter program[BH_SECCOMP_PROGRAM_MAX];
    struct sock_fprog filter = { .filter = program };

    filter.len = (unsigned short)bh_seccomp_program(BH_SECCOMP_STRICT, program);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
           && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

static int
sandbox_be_child(const struct bh_unpack_sandbox_child *child, int barrier)
{
    char byte;

    bool started = read(barrier, &byte, 1) == 1;

    close_range(0, 2, 0); /* the parent's report is not the child's to write */
    close_range(FIRST_OF_OTHERS, ~0u, 0);
    if (!started || setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0
        || !sandbox_drop_capabilities() || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0
        || !sandbox_load_filter())
        return EXIT_NOT_CONFINED;
    return child->run(child->self);
}

static bh_rc
sandbox_write_map(pid_t pid, const char *file, uint32_t base, uint32_t submitter, struct bh_err *err)
{
    char path[64], text[128];
    BH_AUTO(bh_fd_close)
    int fd = -1;
    int length = snprintf(text, sizeof text, "0 %u %d\n", base, BH_UNPACK_SANDBOX_IDS);

    if (submitter != UINT32_MAX)
        length += snprintf(text + length, sizeof text - (size_t)length, "%d %u 1\n",
                           BH_UNPACK_SANDBOX_SUBMITTER, submitter);
    bh_path_format(path, sizeof path, "%d/%s", (int)pid, file);
    fd = openat(machine_proc, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        return bh_err_errno(err, "write %s of the sandbox", file);
    return BH_OK;
}

/* Wait for its end; meanwhile call its watcher. */
static void
unpack_sandbox_await(const struct bh_unpack_sandbox_child *child, pid_t pid, int *ret_status)
{
    BH_AUTO(bh_fd_close)
    int fd = child->watch ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    struct pollfd end = { .fd = fd, .events = POLLIN };

    while (fd >= 0 && poll(&end, 1, WATCH_MS) == 0)
        if (!child->watch(child->watch_self)) {
            kill(pid, SIGKILL);
            break;
        }
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
}

bh_rc
bh_unpack_sandbox_run(const struct bh_unpack_sandbox_child *child, int *ret_status, struct bh_err *err)
{
    int barrier[2];
    pid_t pid;
    bh_rc rc;

    if (pipe2(barrier, O_CLOEXEC) != 0)
        return bh_err_errno(err, "pipe");
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        close(barrier[1]);
        _exit(sandbox_be_child(child, barrier[0]));
    }
    close(barrier[0]);
    rc = pid < 0 ? bh_err_errno(err, "make a user namespace")
                 : sandbox_write_map(pid, "uid_map", child->base, child->submitter_uid, err);
    if (rc == BH_OK)
        rc = sandbox_write_map(pid, "gid_map", child->base, child->submitter_gid, err);
    if (rc == BH_OK && write(barrier[1], "", 1) != 1)
        rc = bh_err_errno(err, "start the sandbox's child");
    close(barrier[1]);
    if (pid > 0)
        unpack_sandbox_await(child, pid, ret_status);
    if (rc != BH_OK)
        return rc;
    if (WIFEXITED(*ret_status) && WEXITSTATUS(*ret_status) == EXIT_NOT_CONFINED)
        return bh_err_set(err, BH_IO, "the sandbox's child could not be confined");
    return BH_OK;
}
