#include "checkpoint/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/proc.h"
#include "checkpoint/filter.h"

#define ROOT "/tmp" /* covered by the room while it is built; every machine has it */

enum { PATH_SIZE = 512, NOBODY = 65534, IDS = 65536, FIRST_OF_OTHERS = 3 };

/* ---- its root ---- */

static bh_rc
checkpoint_sandbox_show(const char *source, const char *target, unsigned long flags, struct bh_err *err)
{
    if (mount(source, target, NULL, MS_BIND, NULL) != 0
        || mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV | flags, NULL) != 0)
        return bh_err_errno(err, "show %s to the helper", source);
    return BH_OK;
}

/* The folders of a path below the room, and the last one. */
static bh_rc
sandbox_make_mount_point(const char *path, char ret_path[PATH_SIZE], struct bh_err *err)
{
    int length = snprintf(ret_path, PATH_SIZE, ROOT "%s", path);

    if (length < 0 || length >= PATH_SIZE || path[0] != '/' || strstr(path, "/.."))
        return bh_err_set(err, BH_INVALID, "%.100s is no path for a mount", path);
    for (char *slash = strchr(ret_path + strlen(ROOT) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(ret_path, 0755) != 0 && errno != EEXIST)
            return bh_err_errno(err, "make folder %s", ret_path);
        *slash = '/';
    }
    return mkdir(ret_path, 0755) == 0 || errno == EEXIST ? BH_OK
                                                         : bh_err_errno(err, "make folder %s", ret_path);
}

static bh_rc
sandbox_show_at(const char *source, const char *path, unsigned long flags, struct bh_err *err)
{
    char mount_point[PATH_SIZE];
    bh_rc rc = sandbox_make_mount_point(path, mount_point, err);

    return rc == BH_OK ? checkpoint_sandbox_show(source, mount_point, flags, err) : rc;
}

/* Programs and libraries, as this machine has them: folders, or links into /usr. */
static bh_rc
sandbox_show_libraries(struct bh_err *err)
{
    static const char *const names[] = { "/usr", "/lib", "/lib64" };
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(names) && rc == BH_OK; i++) {
        char mount_point[PATH_SIZE], link[256];
        ssize_t n = readlink(names[i], link, sizeof link - 1);
        struct stat st;

        snprintf(mount_point, sizeof mount_point, ROOT "%s", names[i]);
        if (n > 0) {
            link[n] = '\0';
            if (symlink(link, mount_point) != 0)
                rc = bh_err_errno(err, "make link %s", mount_point);
        } else if (stat(names[i], &st) == 0) {
            rc = sandbox_show_at(names[i], names[i], MS_RDONLY, err);
        }
    }
    return rc;
}

static bh_rc
sandbox_make_device(const struct bh_checkpoint_device *device, struct bh_err *err)
{
    const char *slash = strrchr(device->path, '/');
    char folder[PATH_SIZE], mount_point[PATH_SIZE], path[PATH_SIZE];
    bh_rc rc;

    if (!slash || strncmp(device->path, "/dev/", 5) != 0)
        return bh_err_set(err, BH_INVALID, "%s is no path of a device", device->path);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - device->path), device->path);
    rc = sandbox_make_mount_point(folder, mount_point, err);
    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, ROOT "%s", device->path);
    if ((mknod(path, S_IFCHR | 0666, makedev(device->major, device->minor)) != 0 && errno != EEXIST)
        || chmod(path, 0666) != 0)
        return bh_err_errno(err, "make %s", device->path);
    return BH_OK;
}

static bh_rc
sandbox_make_devices(const struct bh_checkpoint_request *request, struct bh_err *err)
{
    static const struct bh_checkpoint_device standard[] = {
        { "/dev/null", 1, 3 },
        { "/dev/zero", 1, 5 },
        { "/dev/urandom", 1, 9 },
    };
    const struct bh_checkpoint_device *devices = request->devices.items;
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(standard) && rc == BH_OK; i++)
        rc = sandbox_make_device(&standard[i], err);
    for (uint32_t i = 0; i < request->devices.count && rc == BH_OK; i++)
        rc = sandbox_make_device(&devices[i], err);
    return rc;
}

/* Folders of this machine, opened before the room covers what may be above them. */
struct sources {
    int library, mount[BH_CHECKPOINT_MOUNTS_MAX];
};

static bh_rc
sandbox_open_source(const char *path, int *ret_fd, struct bh_err *err)
{
    *ret_fd = open(path ? path : "", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd < 0 ? bh_err_errno(err, "open %s", path ? path : "a mount") : BH_OK;
}

/* They are closed with all others, when the room is entered. */
static bh_rc
sandbox_open_sources(const struct bh_checkpoint_request *request, struct sources *sources, struct bh_err *err)
{
    const struct bh_checkpoint_mount *mounts = request->mounts.items;
    bh_rc rc = BH_OK;

    sources->library = -1;
    if (request->library && *request->library)
        rc = sandbox_open_source(request->library, &sources->library, err);
    for (uint32_t i = 0; i < request->mounts.count && rc == BH_OK; i++)
        rc = sandbox_open_source(mounts[i].source, &sources->mount[i], err);
    return rc;
}

static bh_rc
sandbox_show_source(int fd, const char *path, unsigned long flags, struct bh_err *err)
{
    char source[BH_PROC_PATH_MAX];

    bh_proc_fd_path(fd, source);
    return sandbox_show_at(source, path, flags, err);
}

static bh_rc
sandbox_fill_root(const struct bh_checkpoint_request *request, const struct sources *sources,
                  struct bh_err *err)
{
    const struct bh_checkpoint_mount *mounts = request->mounts.items;
    char mount_point[PATH_SIZE];
    bh_rc rc = sandbox_show_libraries(err);

    if (rc != BH_OK)
        return rc;
    if (sources->library >= 0)
        rc = sandbox_show_source(sources->library, BH_CHECKPOINT_SANDBOX_LIBRARY, MS_RDONLY, err);
    if (rc != BH_OK)
        return rc;
    rc = sandbox_make_devices(request, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < request->mounts.count; i++) {
        const char *target = mounts[i].target ? mounts[i].target : "";

        rc = sandbox_show_source(sources->mount[i], target, mounts[i].write ? 0 : MS_RDONLY, err);
        if (rc != BH_OK)
            return rc;
    }
    rc = sandbox_show_at("/proc", "/proc", 0, err);
    if (rc != BH_OK)
        return rc;
    return sandbox_make_mount_point("/old", mount_point, err);
}

/* Its devices can be opened and its files not written, but for those of mounts that may be. */
static bh_rc
sandbox_enter_root(const struct bh_checkpoint_request *request, struct bh_err *err)
{
    struct sources sources;
    bh_rc rc;

    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0
        || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return bh_err_errno(err, "make namespaces");
    rc = sandbox_open_sources(request, &sources, err);
    if (rc != BH_OK)
        return rc;
    if (mount("bulkhead-checkpoint", ROOT, "tmpfs", MS_NOSUID, "mode=755,size=65536") != 0)
        return bh_err_errno(err, "mount the helper's root");
    rc = sandbox_fill_root(request, &sources, err);
    if (rc != BH_OK)
        return rc;
    if (syscall(SYS_pivot_root, ROOT, ROOT "/old") != 0 || chdir("/") != 0 || umount2("/old", MNT_DETACH) != 0
        || mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) != 0)
        return bh_err_errno(err, "enter the helper's root");
    return BH_OK;
}

/* ---- its rights ---- */

/* The first line of the map says whose namespace it is. */
static bool
sandbox_has_base(uint32_t pid, uint32_t base)
{
    uint32_t inside, outside, count;
    struct bh_err ignored;
    char text[512];

    return bh_proc_read((pid_t)pid, "uid_map", text, sizeof text, &ignored) == BH_OK
           && sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 && outside == base
           && count == IDS;
}

/* That of the first process that is still there. */
static bh_rc
sandbox_open_namespace(const struct bh_checkpoint_request *request, int *ret_fd, struct bh_err *err)
{
    for (uint32_t i = 0; i < request->pid_count; i++) {
        uint32_t pid = request->pids[i].pid;
        char path[BH_PROC_PATH_MAX];

        bh_proc_path((pid_t)pid, "ns/user", path);
        *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*ret_fd < 0)
            continue;
        return sandbox_has_base(pid, request->id_base)
                   ? BH_OK
                   : bh_err_set(err, BH_DENIED, "process %u is not of this job", pid);
    }
    return bh_err_set(err, BH_NOT_FOUND, "its processes have ended");
}

/* Reading and writing another process and its files. */
static const int kept[] = { CAP_SYS_PTRACE, CAP_DAC_OVERRIDE, CAP_KILL };

/* Become the user nobody.  No process depends on this one, so losing all rights costs nothing. */
static bh_rc
sandbox_become_nobody(struct bh_err *err)
{
    bh_rc rc = bh_capability_bound(NULL, 0, err);

    if (rc != BH_OK)
        return rc;
    if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
        rc = bh_err_errno(err, "become nobody");
    if (rc != BH_OK)
        return rc;
    return bh_capability_keep(NULL, 0, err);
}

/* From here on it is root of the job's namespace, which is one of the job's own ids here. */
static bh_rc
sandbox_become_the_jobs(int namespace, struct bh_err *err)
{
    bh_rc rc;

    if (setns(namespace, CLONE_NEWUSER) != 0)
        return bh_err_errno(err, "enter the job's user namespace");
    if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
        return bh_err_errno(err, "become root of the job's user namespace");
    rc = bh_capability_bound(kept, BH_COUNT(kept), err);
    return rc == BH_OK ? bh_capability_keep(kept, BH_COUNT(kept), err) : rc;
}

bh_rc
bh_checkpoint_sandbox_enter(const struct bh_checkpoint_request *request, struct bh_err *err)
{
    static const struct rlimit none = { 0, 0 };
    BH_AUTO(bh_fd_close) int namespace = -1;
    pid_t parent = getppid();
    bh_rc rc = BH_OK;

    if (request->id_base != 0)
        rc = sandbox_open_namespace(request, &namespace, err);
    if (rc != BH_OK)
        return rc;
    rc = sandbox_enter_root(request, err);
    if (rc != BH_OK)
        return rc;
    if (setgroups(0, NULL) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
        return bh_err_errno(err, "give up groups");
    rc = request->id_base != 0 ? sandbox_become_the_jobs(namespace, err) : sandbox_become_nobody(err);
    if (rc != BH_OK)
        return rc;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || getppid() != parent)
        return bh_err_errno(err, "give up rights");
    close_range(FIRST_OF_OTHERS, ~0u, 0);
    namespace = -1;
    return bh_checkpoint_filter_load(err);
}
