#include "runtime/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/proc.h"
#include "base/time.h"
#include "runtime/device_filter.h"
#include "runtime/progress_timeout.h"

enum { PATH_SIZE = 512, CGROUP_LINES_MAX = 64 << 10 }; /* a path for each hierarchy */
#define KEEPERS "keepers"
#define POLL_INTERVAL (200 * UINT64_C(1000))

/* The hierarchies used of version 1, blkio where there is one; on version 2 the one tree has index 0.
 * They are entered in this order: by the first the processes of a group are found and signalled, also
 * one that stands still on its way in. */
enum hierarchy { FREEZER, MEMORY, CPU, CPUACCT, PIDS, DEVICES, BLKIO, HIERARCHIES };
static const char *const hierarchy_names[HIERARCHIES] = { "freezer", "memory",  "cpu",  "cpuacct",
                                                          "pids",    "devices", "blkio" };

static uint32_t
cgroup_hierarchy_count(const struct bh_cgroup_host *host)
{
    return host->unified ? 1 : host->blkio ? HIERARCHIES : BLKIO;
}

/* `file` "" names the folder itself. */
static void
cgroup_path_of(const struct bh_cgroup_host *host, enum hierarchy hierarchy, const char *path,
               const char *file, char ret_path[PATH_SIZE])
{
    snprintf(ret_path, PATH_SIZE, "%s%s%s%s%s%s", host->mount, host->unified ? "" : "/",
             host->unified ? "" : hierarchy_names[hierarchy], path, *file ? "/" : "", file);
}

static bh_rc
cgroup_write_file(const char *path, const char *text, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        return bh_err_errno(err, "write %s to %s", text, path);
    return BH_OK;
}

/* The text of a small file, or false. */
static bool
cgroup_read_file(const char *path, char *ret_text, size_t size)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

    if (n < 0)
        return false;
    ret_text[n] = '\0';
    return true;
}

static bool
cgroup_read_number(const char *path, uint64_t *ret_value)
{
    char text[64];

    if (!cgroup_read_file(path, text, sizeof text))
        return false;
    *ret_value = strtoull(text, NULL, 10);
    return true;
}

/* The number behind `key` in lines of "key number". */
static bool
cgroup_read_keyed(const char *path, const char *key, uint64_t *ret_value)
{
    char text[4096];
    size_t length = strlen(key);

    if (!cgroup_read_file(path, text, sizeof text))
        return false;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            *ret_value = strtoull(line + length + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

/* ---- the machine ---- */

/* What limits a sandbox on version 2. */
static const char *const controllers[] = { "memory", "cpu", "pids" };

/* Whether the word stands in a line of words with blanks between. */
static bool
cgroup_has_word(const char *line, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = line; *(at += strspn(at, " \n")); at += strcspn(at, " \n")) {
        if (strcspn(at, " \n") == length && memcmp(at, word, length) == 0)
            return true;
    }
    return false;
}

/* A kernel may be booted without one: cgroup_disable=memory. */
static bh_rc
cgroup_check_controllers(const struct bh_cgroup_host *host, struct bh_err *err)
{
    char path[PATH_SIZE], held[512];

    cgroup_path_of(host, MEMORY, "", "cgroup.controllers", path);
    if (!cgroup_read_file(path, held, sizeof held))
        return bh_err_errno(err, "read %s", path);
    for (size_t i = 0; i < BH_COUNT(controllers); i++) {
        if (!cgroup_has_word(held, controllers[i]))
            return bh_err_set(err, BH_UNAVAILABLE, "no %s controller in %s", controllers[i], path);
    }
    return BH_OK;
}

bh_rc
bh_cgroup_probe(const char *mount, struct bh_cgroup_host *ret_host, struct bh_err *err)
{
    struct bh_cgroup_host host = { 0 };
    struct statfs fs;
    char path[PATH_SIZE];

    if (strlen(mount) >= sizeof host.mount)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", mount);
    memcpy(host.mount, mount, strlen(mount) + 1);
    if (statfs(mount, &fs) != 0)
        return bh_err_errno(err, "look at %s", mount);
    host.unified = fs.f_type == 0x63677270; /* CGROUP2_SUPER_MAGIC */
    for (uint32_t i = 0; i < cgroup_hierarchy_count(&host); i++) {
        cgroup_path_of(&host, i, "", "cgroup.procs", path);
        if (access(path, F_OK) != 0)
            return bh_err_set(err, BH_UNAVAILABLE, "no control group hierarchy at %s", path);
    }
    if (host.unified) {
        bh_rc rc = cgroup_check_controllers(&host, err);

        if (rc != BH_OK)
            return rc;
    }
    cgroup_path_of(&host, BLKIO, "", "cgroup.procs", path);
    host.blkio = !host.unified && access(path, F_OK) == 0;
    *ret_host = host;
    return BH_OK;
}

/* ---- limits ---- */

/* A file that sets something, as each version calls it. */
struct knob {
    enum hierarchy hierarchy;
    const char *v1, *v2;
};

static const struct knob memory_limit = { MEMORY, "memory.limit_in_bytes", "memory.max" };
static const struct knob swap_limit = { MEMORY, "memory.memsw.limit_in_bytes", "memory.swap.max" };
static const struct knob pids_limit = { PIDS, "pids.max", "pids.max" };
static const struct knob cpu_limit = { CPU, "cpu.cfs_quota_us", "cpu.max" };
static const struct knob cpu_weight = { CPU, "cpu.shares", "cpu.weight" };
static const struct knob freezer = { FREEZER, "freezer.state", "cgroup.freeze" };

static bh_rc
cgroup_set(const struct bh_cgroup_host *host, const char *path, const struct knob *knob, const char *value,
           struct bh_err *err)
{
    char name[PATH_SIZE];

    cgroup_path_of(host, knob->hierarchy, path, host->unified ? knob->v2 : knob->v1, name);
    return cgroup_write_file(name, value, err);
}

/* Swap would carry a job past its memory limit; some machines cannot account it. */
static void
cgroup_forbid_swap(const struct bh_cgroup_host *host, const char *path, const char *memory)
{
    struct bh_err ignored;

    (void)!cgroup_set(host, path, &swap_limit, host->unified ? "0" : memory, &ignored);
}

/* Version 1 does not see what is written later from memory; version 2 does. */
static bh_rc
cgroup_limit_io(const struct bh_cgroup_host *host, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    static const struct knob reads = { BLKIO, "blkio.throttle.read_bps_device", "io.max" };
    static const struct knob writes = { BLKIO, "blkio.throttle.write_bps_device", "io.max" };
    char value[128];
    bh_rc rc;

    if (!host->unified && !host->blkio)
        return bh_err_set(err, BH_UNAVAILABLE, "no control group limits input and output here");
    if (host->unified) {
        snprintf(value, sizeof value, "%u:%u rbps=%" PRIu64 " wbps=%" PRIu64, sandbox->io_major,
                 sandbox->io_minor, sandbox->io_bytes, sandbox->io_bytes);
        return cgroup_set(host, sandbox->cgroup, &reads, value, err);
    }
    snprintf(value, sizeof value, "%u:%u %" PRIu64, sandbox->io_major, sandbox->io_minor, sandbox->io_bytes);
    rc = cgroup_set(host, sandbox->cgroup, &reads, value, err);
    return rc == BH_OK ? cgroup_set(host, sandbox->cgroup, &writes, value, err) : rc;
}

static bh_rc
cgroup_set_limits(const struct bh_cgroup_host *host, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    char value[64];
    bh_rc rc = BH_OK;

    if (sandbox->memory_bytes > 0) {
        snprintf(value, sizeof value, "%" PRIu64, sandbox->memory_bytes);
        rc = cgroup_set(host, sandbox->cgroup, &memory_limit, value, err);
        cgroup_forbid_swap(host, sandbox->cgroup, value);
    }
    if (rc != BH_OK)
        return rc;
    if (sandbox->pids > 0) {
        snprintf(value, sizeof value, "%u", sandbox->pids + 1); /* and the runtime itself */
        rc = cgroup_set(host, sandbox->cgroup, &pids_limit, value, err);
    }
    if (rc != BH_OK)
        return rc;
    if (sandbox->cpu_milli > 0) {
        snprintf(value, sizeof value, host->unified ? "%u 100000" : "%u", sandbox->cpu_milli * 100);
        rc = cgroup_set(host, sandbox->cgroup, &cpu_limit, value, err);
    }
    if (rc != BH_OK)
        return rc;
    if (sandbox->io_bytes > 0)
        return cgroup_limit_io(host, sandbox, err);
    return BH_OK;
}

/* All jobs together weigh half of what one program beside them does: programs that control jobs get the CPU
 * when all want it.  A machine without weights does without. */
static void
cgroup_weigh_jobs(const struct bh_cgroup_host *host, const char *path)
{
    char parent[PATH_SIZE];
    struct bh_err ignored;
    const char *name = strrchr(path, '/');

    if (!name || name == path)
        return;
    snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
    (void)!cgroup_set(host, parent, &cpu_weight, host->unified ? "50" : "512", &ignored);
}

/* ---- devices ---- */

/* clang-format off */
static const struct bh_sandbox_device standard_devices[] = {
    { "/dev/null", 1, 3, true },   { "/dev/zero", 1, 5, true },
    { "/dev/full", 1, 7, true },   { "/dev/random", 1, 8, true },
    { "/dev/urandom", 1, 9, true }, { "/dev/tty", 5, 0, true },
    { "/dev/ptmx", 5, 2, true },   { "/dev/pts", 136, BH_DEVICE_ANY_MINOR, true },
};
/* clang-format on */

const struct bh_sandbox_device *
bh_cgroup_standard_devices(uint32_t *ret_count)
{
    *ret_count = BH_COUNT(standard_devices);
    return standard_devices;
}

static bh_rc
cgroup_allow_device(const struct bh_cgroup_host *host, const char *path,
                    const struct bh_sandbox_device *device, struct bh_err *err)
{
    char rule[64], minor[16] = "*";

    if (device->minor != BH_DEVICE_ANY_MINOR)
        snprintf(minor, sizeof minor, "%u", device->minor);
    snprintf(rule, sizeof rule, "c %u:%s %s", device->major, minor, device->write ? "rw" : "r");
    return cgroup_set(host, path, &(struct knob){ DEVICES, "devices.allow", NULL }, rule, err);
}

static bh_rc
cgroup_fence_devices(const struct bh_cgroup_host *host, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    struct bh_sandbox_device all[BH_COUNT(standard_devices) + BH_DEVICE_RULES_MAX];
    uint32_t count = BH_COUNT(standard_devices);
    bh_rc rc;

    if (sandbox->device_count > BH_DEVICE_RULES_MAX)
        return bh_err_set(err, BH_FULL, "more than %d devices", BH_DEVICE_RULES_MAX);
    memcpy(all, standard_devices, sizeof standard_devices);
    for (uint32_t i = 0; i < sandbox->device_count; i++)
        all[count++] = sandbox->devices[i];
    if (host->unified) {
        char folder[PATH_SIZE];

        cgroup_path_of(host, DEVICES, sandbox->cgroup, "", folder);
        return bh_device_filter_attach(folder, all, count, err);
    }
    rc = cgroup_set(host, sandbox->cgroup, &(struct knob){ DEVICES, "devices.deny", NULL }, "a", err);
    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = cgroup_allow_device(host, sandbox->cgroup, &all[i], err);
    return rc;
}

/* ---- making and entering ---- */

/* On version 2 a controller must be handed down by each folder above.  Where another
 * manager has done so (systemd in its units' groups) nothing is written: it may hold
 * processes, which a change would be refused for. */
static bh_rc
cgroup_hand_down(const char *path, struct bh_err *err)
{
    char control[PATH_SIZE + 32], held[512], missing[64] = "";
    struct bh_err ignored;
    size_t used = 0;

    snprintf(control, sizeof control, "%s/cgroup.subtree_control", path);
    if (!cgroup_read_file(control, held, sizeof held))
        return bh_err_errno(err, "read %s", control);
    for (size_t i = 0; i < BH_COUNT(controllers); i++) {
        if (!cgroup_has_word(held, controllers[i]))
            used += (size_t)snprintf(missing + used, sizeof missing - used, "+%s ", controllers[i]);
    }
    if (used > 0 && cgroup_write_file(control, missing, err) != BH_OK)
        return err->rc;
    if (!cgroup_has_word(held, "io")) /* only cgroup_limit_io needs it, and says so */
        (void)!cgroup_write_file(control, "+io", &ignored);
    return BH_OK;
}

static bh_rc
cgroup_make_folder(const struct bh_cgroup_host *host, const char *path, bool leaf, struct bh_err *err)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make control group %s", path);
    return host->unified && !leaf ? cgroup_hand_down(path, err) : BH_OK;
}

static bh_rc
cgroup_make_folders(const struct bh_cgroup_host *host, enum hierarchy hierarchy, const char *path,
                    struct bh_err *err)
{
    char folder[PATH_SIZE];
    size_t at = strlen(host->mount) + (host->unified ? 0 : 1 + strlen(hierarchy_names[hierarchy]));
    bh_rc rc = BH_OK;

    cgroup_path_of(host, hierarchy, path, "", folder);
    if (!host->unified && mkdir(folder, 0755) == 0)
        return BH_OK;
    for (char *slash = folder + at; rc == BH_OK; slash++) {
        if (*slash && *slash != '/')
            continue;
        char kept = *slash;

        *slash = '\0';
        rc = cgroup_make_folder(host, folder, !kept, err);
        *slash = kept;
        if (!kept)
            break;
    }
    return rc;
}

bh_rc
bh_cgroup_make(const struct bh_cgroup_host *host, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < cgroup_hierarchy_count(host) && rc == BH_OK; i++)
        rc = cgroup_make_folders(host, i, sandbox->cgroup, err);
    cgroup_weigh_jobs(host, sandbox->cgroup);
    if (rc != BH_OK)
        return rc;
    rc = cgroup_set_limits(host, sandbox, err);
    if (rc != BH_OK)
        return rc;
    return cgroup_fence_devices(host, sandbox, err);
}

bh_rc
bh_cgroup_make_parent(const struct bh_cgroup_host *host, const char *path, char *ret_folder, size_t size,
                      struct bh_err *err)
{
    char folder[PATH_SIZE];
    bh_rc rc = cgroup_make_folders(host, MEMORY, path, err);

    cgroup_path_of(host, MEMORY, path, "", folder);
    if (rc != BH_OK)
        return rc;
    if (snprintf(ret_folder, size, "%s", folder) >= (int)size)
        return bh_err_set(err, BH_FULL, "the path of control group %.80s is too long", path);
    return BH_OK;
}

bh_rc
bh_cgroup_enter(const struct bh_cgroup_host *host, const char *path, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < cgroup_hierarchy_count(host) && rc == BH_OK; i++)
        rc = cgroup_set(host, path, &(struct knob){ i, "tasks", "cgroup.procs" }, "0", err);
    return rc;
}

/* Beside the job's own group: a leaf, because its parent hands controllers down. */
static void
cgroup_keepers_of(const struct bh_cgroup_host *host, const char *parent, size_t length,
                  char ret_path[PATH_SIZE])
{
    snprintf(ret_path, PATH_SIZE, "%s%.*s/" KEEPERS, host->mount, (int)length, parent);
}

bh_rc
bh_cgroup_step_aside(const struct bh_cgroup_host *host, const char *path, struct bh_err *err)
{
    const char *name = strrchr(path, '/');
    char folder[PATH_SIZE], procs[PATH_SIZE + 16];
    struct bh_err ignored;

    if (!host->unified || !name)
        return BH_OK;
    cgroup_keepers_of(host, path, (size_t)(name - path), folder);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return bh_err_errno(err, "make control group %s", folder);
    snprintf(procs, sizeof procs, "%s/cpu.weight", folder);
    (void)!cgroup_write_file(procs, "10000",
                             &ignored); /* above all the jobs' beside it; where there is one */
    snprintf(procs, sizeof procs, "%s/cgroup.procs", folder);
    return cgroup_write_file(procs, "0", err);
}

/* ---- processes ---- */

bh_rc
bh_cgroup_processes(const struct bh_cgroup_host *host, const char *path,
                    struct bh_cgroup_members *ret_members, struct bh_err *err)
{
    char name[PATH_SIZE], line[32];
    FILE *file;
    bh_rc rc;

    ret_members->count = 0;
    cgroup_path_of(host, FREEZER, path, "cgroup.procs", name);
    file = fopen(name, "re");
    if (!file && errno == ENOENT)
        return BH_OK;
    if (!file)
        return bh_err_errno(err, "open %s", name);
    while (ret_members->count < BH_CGROUP_MEMBERS_MAX && fgets(line, sizeof line, file))
        ret_members->pids[ret_members->count++] = (pid_t)strtol(line, NULL, 10);
    rc = ferror(file) && errno != ENODEV /* it was removed meanwhile */
             ? bh_err_errno(err, "read %s", name)
             : BH_OK;
    fclose(file);
    return rc;
}

/* Whether the process is below `path` in the hierarchy that freezes, by lines "6:freezer:/bulkhead/bh-1" or
 * "0::/bulkhead/bh-1".  The part before `path` is that of a container that the machine runs in; any line that
 * ends in `path` counts. */
static bool
cgroup_is_among_lines(const struct bh_cgroup_host *host, const char *lines, const char *path)
{
    const char *wanted = host->unified ? "0::" : ":freezer:";

    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n"), tail = strlen(path);
        const char *mark = strstr(line, wanted);

        if (mark && mark < line + length && length >= tail && strncmp(line + length - tail, path, tail) == 0)
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

bh_rc
bh_cgroup_has(const struct bh_cgroup_host *host, const char *path, pid_t pid, bool *ret_inside,
              struct bh_err *err)
{
    char text[CGROUP_LINES_MAX];
    bh_rc rc = bh_proc_read(pid, "cgroup", text, sizeof text, err);

    *ret_inside = false;
    if (rc != BH_OK)
        return rc == BH_NOT_FOUND ? BH_OK : rc;
    *ret_inside = cgroup_is_among_lines(host, text, path);
    return BH_OK;
}

bh_rc
bh_cgroup_signal(const struct bh_cgroup_host *host, const char *path, const struct bh_cgroup_call *call,
                 uint32_t *ret_count, struct bh_err *err)
{
    char name[PATH_SIZE], line[32];
    FILE *file;

    *ret_count = 0;
    cgroup_path_of(host, FREEZER, path, "cgroup.procs", name);
    file = fopen(name, "re");
    if (!file)
        return errno == ENOENT ? BH_OK : bh_err_errno(err, "open %s", name);
    while (fgets(line, sizeof line, file)) {
        pid_t pid = (pid_t)strtol(line, NULL, 10);

        if (pid > 0 && (!call->wanted || call->wanted(call->self, pid))) {
            kill(pid, call->number);
            ++*ret_count;
        }
    }
    fclose(file);
    return BH_OK;
}

/* ---- freezing ---- */

bh_rc
bh_cgroup_frozen(const struct bh_cgroup_host *host, const char *path, bool *ret_frozen, struct bh_err *err)
{
    char name[PATH_SIZE], text[32];
    uint64_t flag = 0;

    cgroup_path_of(host, FREEZER, path, host->unified ? "cgroup.events" : "freezer.state", name);
    if (host->unified ? !cgroup_read_keyed(name, "frozen", &flag)
                      : !cgroup_read_file(name, text, sizeof text))
        return bh_err_errno(err, "read %s", name);
    *ret_frozen = host->unified ? flag == 1 : strcmp(text, "FROZEN\n") == 0;
    return BH_OK;
}

/* CPU time of the group: it grows as long as processes are still on their way into the freezer. */
static uint64_t
cgroup_cpu_of(const struct bh_cgroup_host *host, const char *path)
{
    struct bh_sandbox_usage usage = { 0 };
    struct bh_err ignored;

    return bh_cgroup_usage(host, path, &usage, &ignored) == BH_OK ? usage.cpu_ns : 0;
}

/* Write again until it is so: version 1 overlooks a process that waits in vfork(2) at the first write, and
 * then says FREEZING for ever. */
bh_rc
bh_cgroup_freeze(const struct bh_cgroup_host *host, const char *path, bool frozen, struct bh_err *err)
{
    const char *words[2][2] = { { "THAWED", "FROZEN" }, { "0", "1" } };
    struct bh_progress_timeout timeout = bh_progress_timeout_begin(bh_time_monotonic());
    bool now = !frozen;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && now != frozen) {
        rc = cgroup_set(host, path, &freezer, words[host->unified][frozen], err);
        if (rc == BH_OK)
            rc = bh_cgroup_frozen(host, path, &now, err);
        if (rc == BH_OK && now != frozen
            && !bh_progress_timeout_is_left(&timeout, bh_time_monotonic(), cgroup_cpu_of(host, path)))
            rc = bh_err_set(err, BH_TIMEOUT, "%s does not %s", path, frozen ? "freeze" : "thaw");
        if (rc == BH_OK && now != frozen)
            bh_time_sleep(POLL_INTERVAL);
    }
    return rc;
}

/* ---- the end ---- */

/* Signal one process and wait for its end, by a handle that cannot mean another. */
static void
cgroup_kill_one(pid_t pid, bh_ns deadline)
{
    BH_AUTO(bh_fd_close) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    bh_ns now = bh_time_monotonic();

    if (fd < 0)
        return;
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    if (now < deadline)
        poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, (int)((deadline - now) / BH_NS_PER_MS) + 1);
}

/* SIGKILL to all before any is waited for: one may be the parent that forks. */
static bh_rc
cgroup_kill_all(const struct bh_cgroup_host *host, const char *path, bh_ns deadline, struct bh_err *err)
{
    const struct bh_cgroup_call call = { .number = SIGKILL };
    struct bh_cgroup_members members;
    uint32_t count;
    bh_rc rc;

    for (;;) {
        rc = bh_cgroup_signal(host, path, &call, &count, err);
        if (rc == BH_OK)
            rc = bh_cgroup_processes(host, path, &members, err);
        if (rc != BH_OK || members.count == 0)
            return rc;
        if (bh_time_monotonic() > deadline)
            return bh_err_set(err, BH_TIMEOUT, "%u processes of %s do not end", members.count, path);
        (void)!bh_cgroup_freeze(host, path, false, err); /* a frozen one does not die */
        for (uint32_t i = 0; i < members.count; i++)
            cgroup_kill_one(members.pids[i], deadline);
    }
}

/* A group is busy for a moment after its last process has gone. */
static bh_rc
cgroup_remove_folder(const char *folder, bh_ns deadline, struct bh_err *err)
{
    while (rmdir(folder) != 0) {
        if (errno == ENOENT)
            return BH_OK;
        if (errno != EBUSY || bh_time_monotonic() > deadline)
            return bh_err_errno(err, "remove control group %s", folder);
        bh_time_sleep(POLL_INTERVAL);
    }
    return BH_OK;
}

bh_rc
bh_cgroup_destroy(const struct bh_cgroup_host *host, const char *path, struct bh_err *err)
{
    bh_ns deadline = bh_time_monotonic() + BH_PROGRESS_TIMEOUT;
    char folder[PATH_SIZE];
    bh_rc rc = cgroup_kill_all(host, path, deadline, err);

    for (uint32_t i = 0; i < cgroup_hierarchy_count(host) && rc == BH_OK; i++) {
        cgroup_path_of(host, i, path, "", folder);
        rc = cgroup_remove_folder(folder, deadline, err);
    }
    return rc;
}

void
bh_cgroup_remove_empty(const struct bh_cgroup_host *host, const char *path)
{
    char folder[PATH_SIZE];

    if (host->unified) {
        cgroup_keepers_of(host, path, strlen(path), folder);
        rmdir(folder);
    }
    for (uint32_t i = 0; i < cgroup_hierarchy_count(host); i++) {
        cgroup_path_of(host, i, path, "", folder);
        rmdir(folder);
    }
}

/* ---- accounting ---- */

/* Cached files; what lies in a tmpfs is none of them. */
static uint64_t
cgroup_file_bytes(const char *stat, const char *active, const char *inactive)
{
    uint64_t some = 0, others = 0;

    (void)cgroup_read_keyed(stat, active, &some);
    (void)cgroup_read_keyed(stat, inactive, &others);
    return some + others;
}

static bool
cgroup_usage_of_v1(const struct bh_cgroup_host *host, const char *path, struct bh_sandbox_usage *usage)
{
    char name[PATH_SIZE];
    uint64_t kills = 0;
    bool found;

    cgroup_path_of(host, CPUACCT, path, "cpuacct.usage", name);
    found = cgroup_read_number(name, &usage->cpu_ns);
    cgroup_path_of(host, MEMORY, path, "memory.usage_in_bytes", name);
    found = cgroup_read_number(name, &usage->bytes) && found;
    cgroup_path_of(host, MEMORY, path, "memory.max_usage_in_bytes", name);
    found = cgroup_read_number(name, &usage->peak_bytes) && found;
    cgroup_path_of(host, MEMORY, path, "memory.stat", name);
    usage->file_bytes = cgroup_file_bytes(name, "total_active_file", "total_inactive_file");
    cgroup_path_of(host, MEMORY, path, "memory.oom_control", name);
    usage->oom = cgroup_read_keyed(name, "oom_kill", &kills) && kills > 0;
    return found;
}

static bool
cgroup_usage_of_v2(const struct bh_cgroup_host *host, const char *path, struct bh_sandbox_usage *usage)
{
    char name[PATH_SIZE];
    uint64_t kills = 0, cpu_us = 0;
    bool found;

    cgroup_path_of(host, CPU, path, "cpu.stat", name);
    found = cgroup_read_keyed(name, "usage_usec", &cpu_us);
    usage->cpu_ns = cpu_us * 1000;
    cgroup_path_of(host, MEMORY, path, "memory.current", name);
    found = cgroup_read_number(name, &usage->bytes) && found;
    cgroup_path_of(host, MEMORY, path, "memory.peak", name); /* since Linux 5.19 */
    if (!cgroup_read_number(name, &usage->peak_bytes))
        usage->peak_bytes = usage->bytes;
    cgroup_path_of(host, MEMORY, path, "memory.stat", name);
    usage->file_bytes = cgroup_file_bytes(name, "active_file", "inactive_file");
    cgroup_path_of(host, MEMORY, path, "memory.events", name);
    usage->oom = cgroup_read_keyed(name, "oom_kill", &kills) && kills > 0;
    return found;
}

bh_rc
bh_cgroup_usage(const struct bh_cgroup_host *host, const char *path, struct bh_sandbox_usage *ret_usage,
                struct bh_err *err)
{
    struct bh_sandbox_usage usage = { 0 };

    if (!(host->unified ? cgroup_usage_of_v2 : cgroup_usage_of_v1)(host, path, &usage))
        return bh_err_set(err, BH_NOT_FOUND, "no accounting in control group %s", path);
    *ret_usage = usage;
    return BH_OK;
}

bh_rc
bh_cgroup_list(const struct bh_cgroup_host *host, const char *parent, struct bh_cgroup_names *ret_names,
               struct bh_err *err)
{
    char folder[PATH_SIZE];
    DIR *dir;

    ret_names->count = 0;
    cgroup_path_of(host, MEMORY, parent, "", folder);
    dir = opendir(folder);
    if (!dir && errno == ENOENT)
        return BH_OK;
    if (!dir)
        return bh_err_errno(err, "open %s", folder);
    for (const struct dirent *entry; ret_names->count < BH_CGROUP_NAMES_MAX && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);

        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && length < BH_CGROUP_NAME_MAX)
            memcpy(ret_names->names[ret_names->count++], entry->d_name, length + 1);
    }
    closedir(dir);
    return BH_OK;
}
