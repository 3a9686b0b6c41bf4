#include "node/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

#include "base/fd.h"
#include "node/path.h"
#include "runtime/seccomp.h"

#define ROOM "/tmp" /* covered by the cell while it is built; every machine has it */

enum { EXIT_NOT_CONFINED = 125, FIRST_OF_OTHERS = BH_CELL_FD + 1 };

static int machine_proc = -1; /* /proc as it was: the cell has none */

/* ---- the mounts ---- */

static bh_rc
put_tree(const char *source, const char *target, unsigned long flags, struct bh_err *err)
{
    if (mount(source, target, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | flags,
              NULL) != 0)
        return bh_err_errno(err, "show %s in the cell", source);
    return BH_OK;
}

/* Programs and libraries, as this machine has them: folders, or links into /usr. */
static bh_rc
put_programs(struct bh_err *err)
{
    static const char *const names[] = { "/usr", "/bin", "/lib", "/lib64" };
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(names) && rc == BH_OK; i++) {
        char place[64], link[256];
        ssize_t n = readlink(names[i], link, sizeof link - 1);
        struct stat st;

        bh_path_format(place, sizeof place, ROOM "%s", names[i]);
        if (n > 0) {
            link[n] = '\0';
            if (symlink(link, place) != 0)
                rc = bh_err_errno(err, "make link %s", place);
        } else if (stat(names[i], &st) == 0) {
            rc = mkdir(place, 0755) == 0 ? put_tree(names[i], place, MS_RDONLY, err)
                                         : bh_err_errno(err, "make folder %s", place);
        }
    }
    return rc;
}

static bh_rc
put_parts(int folder, int tool, struct bh_err *err)
{
    char from[64];
    int made = open(ROOM BH_CELL_TOOL, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    bh_rc rc = BH_OK;

    if (made < 0 || mkdir(ROOM BH_CELL_STAGE, 0755) != 0 || mkdir(ROOM "/old", 0700) != 0)
        rc = bh_err_errno(err, "make the cell's folders");
    bh_fd_close(made);
    bh_path_format(from, sizeof from, "/proc/self/fd/%d", folder);
    if (rc == BH_OK)
        rc = put_tree(from, ROOM BH_CELL_STAGE, 0, err);
    bh_path_format(from, sizeof from, "/proc/self/fd/%d", tool);
    if (rc == BH_OK)
        rc = put_tree(from, ROOM BH_CELL_TOOL, MS_RDONLY, err);
    return rc == BH_OK ? put_programs(err) : rc;
}

bh_rc
bh_cell_enter(const char *folder, const char *tool, struct bh_err *err)
{
    BH_AUTO(bh_fd_close)
    int folder_fd = -1;
    BH_AUTO(bh_fd_close)
    int tool_fd = -1;
    bh_rc rc;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return bh_err_errno(err, "make namespaces");
    folder_fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    tool_fd = open(tool, O_PATH | O_CLOEXEC);
    machine_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0 || tool_fd < 0 || machine_proc < 0)
        return bh_err_errno(err, "open %s", tool_fd < 0 ? tool : folder);
    if (mount("bulkhead-cell", ROOM, "tmpfs", MS_NOSUID | MS_NODEV,
              "mode=755,size=65536") != 0)
        return bh_err_errno(err, "mount the cell");
    rc = put_parts(folder_fd, tool_fd, err);
    if (rc != BH_OK)
        return rc;
    if (syscall(SYS_pivot_root, ROOM, ROOM "/old") != 0 || chdir("/") != 0 ||
        umount2("/old", MNT_DETACH) != 0 ||
        mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
              NULL) != 0)
        return bh_err_errno(err, "enter the cell");
    return BH_OK;
}

/* ---- children ---- */

/* Of root's powers over its own namespace: those that unpacking needs. */
static bool
drop_capabilities(void)
{
    static const int kept[] = { CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER,
                                CAP_FSETID, CAP_SETUID,       CAP_SETGID };
    bool good = true;

    for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
        bool keep = false;

        for (size_t i = 0; i < BH_COUNT(kept); i++)
            keep = keep || kept[i] == cap;
        if (!keep && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
            good = good && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0;
    }
    return good;
}

static bool
load_filter(void)
{
    static struct sock_filter program[BH_SECCOMP_PROGRAM_MAX];
    struct sock_fprog filter = { .filter = program };

    filter.len = (unsigned short)bh_seccomp_program(BH_SECCOMP_STRICT, program);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

static int
be_child(const struct bh_cell_child *child, int gate)
{
    char byte;

    bool told = read(gate, &byte, 1) == 1;

    close_range(0, 2, 0); /* the parent's report is not the child's to write */
    close_range(FIRST_OF_OTHERS, ~0u, 0);
    if (!told || setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 ||
        setresuid(0, 0, 0) != 0 || !drop_capabilities() ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || !load_filter())
        return EXIT_NOT_CONFINED;
    return child->run(child->self);
}

static bh_rc
write_map(pid_t pid, const char *file, uint32_t base, uint32_t guest, struct bh_err *err)
{
    char path[64], text[128];
    BH_AUTO(bh_fd_close)
    int fd = -1;
    int length = snprintf(text, sizeof text, "0 %u %d\n", base, BH_CELL_IDS);

    if (guest != UINT32_MAX)
        length += snprintf(text + length, sizeof text - (size_t)length, "%d %u 1\n",
                           BH_CELL_GUEST, guest);
    bh_path_format(path, sizeof path, "%d/%s", (int)pid, file);
    fd = openat(machine_proc, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        return bh_err_errno(err, "write %s of the cell", file);
    return BH_OK;
}

bh_rc
bh_cell_run(const struct bh_cell_child *child, int *ret_status, struct bh_err *err)
{
    int gate[2];
    pid_t pid;
    bh_rc rc;

    if (pipe2(gate, O_CLOEXEC) != 0)
        return bh_err_errno(err, "pipe");
    pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, NULL, NULL,
                         NULL, NULL);
    if (pid == 0) {
        close(gate[1]);
        _exit(be_child(child, gate[0]));
    }
    close(gate[0]);
    rc = pid < 0 ? bh_err_errno(err, "make a user namespace")
                 : write_map(pid, "uid_map", child->base, child->guest_uid, err);
    if (rc == BH_OK)
        rc = write_map(pid, "gid_map", child->base, child->guest_gid, err);
    if (rc == BH_OK && write(gate[1], "", 1) != 1)
        rc = bh_err_errno(err, "start the cell's child");
    close(gate[1]);
    while (pid > 0 && waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    if (rc == BH_OK && WIFEXITED(*ret_status) &&
        WEXITSTATUS(*ret_status) == EXIT_NOT_CONFINED)
        return bh_err_set(err, BH_IO, "the cell's child could not be confined");
    return rc;
}
