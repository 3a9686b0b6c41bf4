#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe/probe.h"

/* ---- another tenant's files ---- */

BH_TRY(secret_file, bh_probe_open(targets->file, O_RDONLY))

int
bh_try_secret_by_link(const struct bh_targets *targets)
{
    char link[64], path[700];
    int answer;

    snprintf(link, sizeof link, "/tmp/bulkhead-probe-link-%d", (int)getpid());
    if (symlink("/proc/self/root/../../../..", link) != 0)
        return errno;
    snprintf(path, sizeof path, "%s%s", link, targets->file);
    answer = bh_probe_open(path, O_RDONLY);
    unlink(link);
    return answer;
}

int
bh_try_secret_by_cwd(const struct bh_targets *targets)
{
    char path[800];

    snprintf(path, sizeof path, "/proc/self/cwd/../../../../../../../..%s", targets->file);
    return bh_probe_open(path, O_RDONLY);
}

int
bh_try_secret_in_tmp(const struct bh_targets *targets)
{
    char paths[2][200];
    const char *const list[] = { paths[0], paths[1], NULL };

    snprintf(paths[0], sizeof paths[0], "/tmp/%s", targets->tmp);
    snprintf(paths[1], sizeof paths[1], "/dev/shm/%s", targets->tmp);
    return bh_probe_open_any(list, O_RDONLY);
}

/* ---- what was left open: anything but pipes, terminals and null ---- */

static int
files_is_harmless(int fd)
{
    struct stat st;

    return fstat(fd, &st) != 0 || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)
           || (S_ISCHR(st.st_mode) && (st.st_rdev >> 8 == 1 || st.st_rdev >> 8 == 136))
           || (S_ISREG(st.st_mode) && fd <= STDERR_FILENO);
}

int
bh_try_leaked_descriptor(const struct bh_targets *targets)
{
    int own = (int)strtol(getenv("BULKHEAD_PROBE_PIPE") ? getenv("BULKHEAD_PROBE_PIPE") : "-1", NULL, 10);

    for (int fd = 0; fd < 1024; fd++) {
        if (fd != own && fcntl(fd, F_GETFD) >= 0 && (fd > STDERR_FILENO || !files_is_harmless(fd)))
            return 0;
    }
    return EBADF;
}

/* ---- writing where nothing may be written ---- */

static int
files_try_create(const char *path)
{
    int fault = bh_probe_open(path, O_WRONLY | O_CREAT | O_EXCL);

    if (fault == 0)
        unlink(path);
    return fault;
}

BH_TRY(write_root, files_try_create("/bulkhead-probe"))
BH_TRY(write_usr, files_try_create("/usr/bulkhead-probe"))
BH_TRY(write_etc, files_try_create("/etc/bulkhead-probe"))
BH_TRY(write_dev, files_try_create("/dev/bulkhead-probe"))
BH_TRY(write_init, bh_probe_open("/proc/1/exe", O_WRONLY))
BH_TRY(write_own_program, bh_probe_open("/proc/self/exe", O_WRONLY))
BH_TRY(core_pattern, bh_probe_open("/proc/sys/kernel/core_pattern", O_WRONLY))
BH_TRY(sysctl, bh_probe_open("/proc/sys/vm/overcommit_memory", O_WRONLY))
BH_TRY(sysrq, bh_probe_open("/proc/sysrq-trigger", O_WRONLY))
BH_TRY_OPEN_ANY(sys_write, O_WRONLY, "/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run",
                "/sys/power/state", "/sys/bus/pci/rescan", "/sys/class/net/lo/mtu")

/* ---- reading what no job may read ---- */

BH_TRY(read_shadow, bh_probe_open("/etc/shadow", O_RDONLY))

/* 0 when the folder has an entry, ENOENT when it is empty. */
static int
files_find_entry(const char *path)
{
    DIR *dir = opendir(path);
    int answer = ENOENT;

    if (!dir)
        return errno == EACCES ? ENOENT : errno;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            answer = 0;
    closedir(dir);
    return answer;
}

int
bh_try_read_homes(const struct bh_targets *targets)
{
    int root = files_find_entry("/root"), home = files_find_entry("/home");

    return root == 0 || home == 0 ? 0 : root;
}

int
bh_try_kernel_memory(const struct bh_targets *targets)
{
    char bytes[16];
    int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno;
    return read(fd, bytes, sizeof bytes) > 0 ? 0 : EACCES; /* masked: an empty file */
}

/* Text that reveals something; ENODATA when there is none. */
static int
probe_files_read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

    if (n < 0)
        return errno;
    text[n] = '\0';
    return n > 0 ? 0 : ENODATA;
}

int
bh_try_kernel_symbols(const struct bh_targets *targets)
{
    char text[4096];
    int fault = probe_files_read_text("/proc/kallsyms", text, sizeof text);

    return fault == 0 && strspn(text, "0") >= 16 ? ENODATA : fault;
}

int
bh_try_kernel_keys(const struct bh_targets *targets)
{
    char text[64];

    return probe_files_read_text("/proc/keys", text, sizeof text);
}

int
bh_try_timers(const struct bh_targets *targets)
{
    char text[64];

    return probe_files_read_text("/proc/timer_list", text, sizeof text);
}

BH_TRY_OPEN_ANY(debugfs, O_RDONLY, "/sys/kernel/debug/sched", "/sys/kernel/tracing/trace",
                "/sys/kernel/debug/tracing/trace", "/sys/kernel/vmcoreinfo", "/sys/kernel/mm/ksm/run")
BH_TRY_OPEN_ANY(firmware, O_RDONLY, "/sys/firmware/efi/efivars", "/sys/firmware/acpi/tables",
                "/sys/firmware/dmi/tables/DMI", "/sys/firmware/memmap")
BH_TRY_OPEN_ANY(control_groups, O_WRONLY, "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs",
                "/sys/fs/cgroup/devices/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs")
BH_TRY_OPEN_ANY(release_agent, O_WRONLY, "/sys/fs/cgroup/memory/release_agent",
                "/sys/fs/cgroup/devices/release_agent", "/sys/fs/cgroup/systemd/release_agent")

/* ---- the machine's sockets and mounts ---- */

BH_TRY_OPEN_ANY(host_sockets, O_PATH, "/run/docker.sock", "/var/run/docker.sock",
                "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock",
                "/run/dbus/system_bus_socket", "/run/systemd/private")

int
bh_try_node_socket(const struct bh_targets *targets)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(name.sun_path, sizeof name.sun_path, "%s", targets->socket);
    return bh_probe_result(connect(fd, (struct sockaddr *)&name, sizeof name));
}

/* Where the other tenant's file lies is nowhere mounted.  The kernel gives the list a page at a time. */
int
bh_try_mount_list(const struct bh_targets *targets)
{
    static char text[2 << 20];
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), fault;
    size_t length = 0;
    ssize_t n = -1;

    while (fd >= 0 && (n = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    fault = n < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (fault == 0 && length == sizeof text - 1) /* there is more */
        fault = EFBIG;
    text[length] = '\0';
    return fault ? fault : strstr(text, targets->file) ? 0 : ENODATA;
}

/* ---- what /proc reveals of others ---- */

#define READS(name, path)                                                                                    \
    int bh_try_##name(const struct bh_targets *targets)                                                      \
    {                                                                                                        \
        char text[256];                                                                                      \
                                                                                                             \
        return probe_files_read_text(path, text, sizeof text);                                               \
    }

READS(kernel_command, "/proc/cmdline")
READS(kernel_config, "/proc/config.gz")
READS(disk_activity, "/proc/diskstats")
READS(load_average, "/proc/loadavg")
READS(pressure, "/proc/pressure/cpu")
READS(memory_activity, "/proc/vmstat")
READS(interrupt_activity, "/proc/softirqs")
READS(terminal_count, "/proc/sys/kernel/pty/nr")
READS(file_count, "/proc/sys/fs/file-nr")
READS(interrupt_counts, "/proc/interrupts")
READS(zone_activity, "/proc/zoneinfo")
READS(free_pages, "/proc/buddyinfo")
READS(group_count, "/proc/cgroups")
READS(lock_list, "/proc/locks")
READS(swap_use, "/proc/swaps")
READS(disk_list, "/proc/partitions")
READS(inode_count, "/proc/sys/fs/inode-nr")

/* 0 when one of the files or folders that the pattern names has something in it, else ENODATA. */
static int
files_find_any(const char *pattern)
{
    glob_t found;
    int answer = ENODATA;
    char text[64];

    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return ENODATA;
    for (size_t i = 0; i < found.gl_pathc && answer != 0; i++)
        if (files_find_entry(found.gl_pathv[i]) == 0
            || probe_files_read_text(found.gl_pathv[i], text, sizeof text) == 0)
            answer = 0;
    globfree(&found);
    return answer;
}

/* Where disks of the usual kinds have their folders, whether or not anything leads there. */
int
bh_try_disk_statistics(const struct bh_targets *targets)
{
    static const char *const patterns[] = {
        "/sys/block/*/stat",
        "/sys/dev/block/*/stat",
        "/sys/devices/virtual/block/*/stat",
        "/sys/devices/pci*/*/virtio*/block/*/stat",
        "/sys/devices/pci*/*/*/virtio*/block/*/stat",
        "/sys/devices/pci*/*/nvme/nvme*/nvme*/stat",
        "/sys/devices/pci*/*/*/nvme/nvme*/nvme*/stat",
        "/sys/devices/pci*/*/*/host*/target*/*/block/*/stat",
    };
    int answer = ENODATA;

    for (size_t i = 0; i < sizeof patterns / sizeof *patterns && answer != 0; i++)
        answer = files_find_any(patterns[i]);
    return answer;
}

BH_TRY(volume_statistics, files_find_entry("/sys/fs") == 0 ? 0 : files_find_entry("/proc/fs"))

int
bh_try_masked_paths(const struct bh_targets *targets)
{
    static const char *const paths[] = {
#define BH_MASKED(path) path,
#include "tables/masked.tbl"
#undef BH_MASKED
    };
    int answer = ENODATA;

    for (size_t i = 0; i < sizeof paths / sizeof *paths && answer != 0; i++)
        answer = files_find_any(paths[i]);
    return answer;
}

/* ---- inodes and page cache that are shared ---- */

/* The machine's /usr/bin, as "DEVICE:INODE", if that is what stands there: a descriptor; else -1
 * and ENODATA. */
static int
files_open_shared(const struct bh_targets *targets)
{
    char own[64];
    struct stat st;
    int fd = open("/usr/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0)
        return -1;
    snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    if (strcmp(own, targets->inode) == 0)
        return fd;
    close(fd);
    errno = ENODATA;
    return -1;
}

int
bh_try_watch_shared(const struct bh_targets *targets)
{
    int fd = files_open_shared(targets), watches = inotify_init1(IN_CLOEXEC);

    return fd < 0 ? ENODATA : bh_probe_result(inotify_add_watch(watches, "/usr/bin", IN_OPEN));
}

int
bh_try_lock_shared(const struct bh_targets *targets)
{
    int fd = files_open_shared(targets);

    return fd < 0 ? ENODATA : bh_probe_result(flock(fd, LOCK_SH | LOCK_NB));
}

int
bh_try_sync_shared(const struct bh_targets *targets)
{
    int fd = files_open_shared(targets);

    return fd < 0 ? ENODATA : bh_probe_result(syncfs(fd));
}

/* A node or a masked file whose inode is of the machine's /dev; NULL: each is the sandbox's own. */
static const char *
files_find_machines_node(const struct bh_targets *targets)
{
    static const char *const paths[] = {
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
#define BH_MASKED(path) path,
#include "tables/masked.tbl"
#undef BH_MASKED
    };
    struct stat st;
    char own[32];

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (lstat(paths[i], &st) != 0)
            continue;
        snprintf(own, sizeof own, "%llu", (unsigned long long)st.st_dev);
        if (strcmp(own, targets->device) == 0)
            return paths[i];
    }
    return NULL;
}

int
bh_try_watch_device(const struct bh_targets *targets)
{
    const char *path = files_find_machines_node(targets);
    int watches = inotify_init1(IN_CLOEXEC);

    return path ? bh_probe_result(inotify_add_watch(watches, path, IN_OPEN)) : ENODATA;
}

int
bh_try_lock_device(const struct bh_targets *targets)
{
    const char *path = files_find_machines_node(targets);
    int fd = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;

    return path ? bh_probe_result(flock(fd, LOCK_SH | LOCK_NB)) : ENODATA;
}

/* A file that stands in the machine's root and in most images. */
static int
files_open_library(void)
{
    static const char *const paths[] = { "/usr/bin/sh", "/bin/sh", "/usr/bin/env" };
    int fd = -1;

    for (size_t i = 0; i < sizeof paths / sizeof *paths && fd < 0; i++)
        fd = open(paths[i], O_RDONLY | O_CLOEXEC);
    return fd;
}

int
bh_try_cache_probe(const struct bh_targets *targets)
{
    char page[64];
    struct iovec part = { page, sizeof page };
    int fd = files_open_library();

    return fd < 0 ? errno : bh_probe_result(preadv2(fd, &part, 1, 0, RWF_NOWAIT));
}

int
bh_try_cache_evict(const struct bh_targets *targets)
{
    int fd = files_open_library();

    return fd < 0 ? errno : posix_fadvise(fd, 0, 4096, POSIX_FADV_DONTNEED);
}
