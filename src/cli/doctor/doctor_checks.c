#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process.h"
#include "base/time.h"
#include "cli/command/setting.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/driver_probe.h"
#include "device/holders.h"

enum {
    CGROUP2_MAGIC = 0x63677270,
    NOFILE_WANTED = 8192,
    MEMLOCK_WANTED_KIB = 8192,
    DISK_LEAST_MIB = 512,
    DISK_WANTED_MIB = 4096,
    KERNEL_MAJOR = 5,
    KERNEL_MINOR = 15,
    PROBE_TEXT_MAX = 4096,
    CLOCK_AHEAD_MOST_MS = 5000
};

static void BH_PRINTF(3, 4)
    doctor_report(struct bh_finding *finding, enum bh_verdict_kind verdict, const char *format, ...)
{
    va_list args;

    finding->verdict = verdict;
    va_start(args, format);
    vsnprintf(finding->found, sizeof finding->found, format, args);
    va_end(args);
}

static void BH_PRINTF(2, 3) doctor_advise(struct bh_finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(finding->fix, sizeof finding->fix, format, args);
    va_end(args);
}

/* What could not be found out, and what to do about that. */
static void
doctor_report_err(struct bh_finding *finding, enum bh_verdict_kind verdict, const struct bh_err *err)
{
    doctor_report(finding, verdict, "%s", err->msg);
    doctor_advise(finding, "%s", err->hint);
}

/* Whether the daemon of that folder's configuration serves on the socket that is used. */
static bool
checks_is_of_socket(const struct bh_cli *cli, const char *folder)
{
    char conf[PATH_MAX], socket[PATH_MAX];

    if (snprintf(conf, sizeof conf, "%s/bulkheadd.conf", folder) >= (int)sizeof conf)
        return false;
    bh_setting_read(conf, "socket", "/run/bulkhead/bulkhead.sock", socket, sizeof socket);
    return cli->client.socket && strcmp(socket, cli->client.socket) == 0;
}

/* The folder with the configuration of the site that is asked about: --dir, or that of `up --dir`
 * whose socket is used, else /etc/bulkhead.  `size` PATH_MAX is enough. */
static void
doctor_put_folder(const struct bh_cli *cli, char *ret_folder, size_t size)
{
    static const char below[] = "/run/bulkhead.sock"; /* `up --dir` has it in its folder */
    const char *dir = cli->args->options[BH_OPT_DIR].text, *socket = cli->client.socket;
    size_t length = socket ? strlen(socket) : 0;

    if (!dir && length > sizeof below && length < size
        && strcmp(socket + length - (sizeof below - 1), below) == 0) {
        snprintf(ret_folder, size, "%.*s", (int)(length - (sizeof below - 1)), socket);
        if (checks_is_of_socket(cli, ret_folder))
            return;
    }
    snprintf(ret_folder, size, "%s", dir ? dir : "/etc/bulkhead");
}

/* A file of that folder. */
static void
doctor_put_file(const struct bh_cli *cli, const char *name, char ret_path[PATH_MAX])
{
    size_t length;

    doctor_put_folder(cli, ret_path, PATH_MAX);
    length = strlen(ret_path);
    snprintf(ret_path + length, PATH_MAX - length, "/%s", name);
}

static bool
doctor_is_there(const char *path)
{
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* Whether a site was made in the folder: one of its two files is there. */
static bool
checks_has_site(const struct bh_cli *cli)
{
    char daemon[PATH_MAX], node[PATH_MAX];

    doctor_put_file(cli, "bulkheadd.conf", daemon);
    doctor_put_file(cli, "node.conf", node);
    return doctor_is_there(daemon) || doctor_is_there(node);
}

/* The first bytes that a program prints, or -1: it cannot be run. */
static int
checks_ask_program(const char *const argv[], char *ret_text, size_t size)
{
    struct bh_process_options options;
    struct bh_err unread;
    int ends[2], status = -1;
    size_t held = 0;
    ssize_t got;
    pid_t pid;
    bh_rc rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    options = (struct bh_process_options){
        .search = true,
        .argv = argv,
        .envp = (const char *const *)environ,
        .fds = { { STDOUT_FILENO, ends[1] }, { STDERR_FILENO, ends[1] } },
        .fd_count = 2,
    };
    rc = bh_process_start(&options, &pid, NULL, &unread);
    bh_fd_close(ends[1]);
    while (rc == BH_OK && held < size - 1 && (got = read(ends[0], ret_text + held, size - 1 - held)) > 0)
        held += (size_t)got;
    bh_fd_close(ends[0]);
    ret_text[held] = '\0';
    if (rc == BH_OK)
        status = bh_process_wait(pid);
    return status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) != 127 ? WEXITSTATUS(status) : -1;
}

/* ---- the machine ---- */

static void
check_root(const struct bh_cli *cli, struct bh_finding *f)
{
    if (geteuid() == 0) {
        doctor_report(f, BH_CHECK_OK, "running as root");
        return;
    }
    doctor_report(f, BH_CHECK_WARN, "running as uid %u: some checks see less", geteuid());
    doctor_advise(f, "bulkhead-node needs root; run doctor as root too");
}

static void
check_kernel(const struct bh_cli *cli, struct bh_finding *f)
{
    struct utsname name;
    unsigned major = 0, minor = 0;

    uname(&name);
    sscanf(name.release, "%u.%u", &major, &minor);
    doctor_report(f, BH_CHECK_OK, "Linux %s on %s", name.release, name.machine);
    if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
        return;
    f->verdict = BH_CHECK_FAIL;
    doctor_advise(f, "use Linux %d.%d or newer", KERNEL_MAJOR, KERNEL_MINOR);
}

static void
check_cgroups(const struct bh_cli *cli, struct bh_finding *f)
{
    static const char *const wanted[] = { "memory", "pids", "cpu", "devices", "freezer" };
    struct statfs top, unified;
    char path[64], missing[64] = "";
    size_t used = 0;

    if (statfs("/sys/fs/cgroup", &top) != 0) {
        doctor_report(f, BH_CHECK_FAIL, "/sys/fs/cgroup is not mounted");
        doctor_advise(f, "mount -t cgroup2 none /sys/fs/cgroup");
        return;
    }
    if ((unsigned long)top.f_type == CGROUP2_MAGIC) {
        doctor_report(f, BH_CHECK_OK, "cgroup v2");
        return;
    }
    for (size_t i = 0; i < BH_COUNT(wanted); i++) {
        snprintf(path, sizeof path, "/sys/fs/cgroup/%s", wanted[i]);
        if (access(path, F_OK) != 0)
            used += (size_t)snprintf(missing + used, sizeof missing - used, " %s", wanted[i]);
    }
    doctor_report(f, *missing ? BH_CHECK_FAIL : BH_CHECK_WARN, "cgroup %s%s%s",
                  statfs("/sys/fs/cgroup/unified", &unified) == 0 ? "v1 with v2 beside it (hybrid)" : "v1",
                  *missing ? "; missing:" : "", missing);
    doctor_advise(
        f, *missing
               ? "boot with systemd.unified_cgroup_hierarchy=1"
               : "supported, but cgroup v2 is recommended: boot with systemd.unified_cgroup_hierarchy=1");
}

/* What an unprivileged process of a job depends on: can a user namespace be made? */
static void
check_user_namespaces(const struct bh_cli *cli, struct bh_finding *f)
{
    struct bh_buf text;
    char memory[32] = "0";
    struct bh_err unread;

    bh_buf_init_fixed(&text, memory, sizeof memory - 1);
    if (bh_file_read("/proc/sys/user/max_user_namespaces", sizeof memory - 1, &text, &unread) != BH_OK) {
        doctor_report(f, BH_CHECK_FAIL, "this kernel has no user namespaces");
        doctor_advise(f, "use a kernel with CONFIG_USER_NS");
        return;
    }
    memory[strcspn(memory, "\n")] = '\0';
    if (strcmp(memory, "0") != 0) {
        doctor_report(f, BH_CHECK_OK, "up to %.20s", memory);
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "user namespaces are turned off");
    doctor_advise(f, "sysctl -w user.max_user_namespaces=16384");
}

static void
check_idmapped_mounts(const struct bh_cli *cli, struct bh_finding *f)
{
    /* A wrong descriptor is refused before anything else: EBADF proves the call. */
    struct {
        uint64_t set, clear, propagation, userns;
    } attributes = { 0x00100000, 0, 0, 0 };
    long rc = syscall(SYS_mount_setattr, -1, "", 0x1000, &attributes, sizeof attributes);

    if (rc == 0 || errno != ENOSYS) {
        doctor_report(f, BH_CHECK_OK, "the kernel knows mount_setattr");
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "no mount_setattr");
    doctor_advise(f, "use Linux 5.12 or newer");
}

static void
check_seccomp(const struct bh_cli *cli, struct bh_finding *f)
{
    if (access("/proc/sys/kernel/seccomp/actions_avail", R_OK) == 0) {
        doctor_report(f, BH_CHECK_OK, "filters are available");
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "no seccomp filters");
    doctor_advise(f, "use a kernel with CONFIG_SECCOMP_FILTER");
}

static void
check_limits(const struct bh_cli *cli, struct bh_finding *f)
{
    struct rlimit files, locked;
    char amount[40] = "unlimited";

    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_MEMLOCK, &locked);
    if (locked.rlim_max != RLIM_INFINITY)
        snprintf(amount, sizeof amount, "%llu KiB", (unsigned long long)locked.rlim_max / 1024);
    doctor_report(f, BH_CHECK_OK, "%llu open files, %s of locked memory", (unsigned long long)files.rlim_max,
                  amount);
    if (files.rlim_max < NOFILE_WANTED) {
        f->verdict = BH_CHECK_WARN;
        doctor_advise(f, "raise LimitNOFILE to %d: each connection and each job needs one", NOFILE_WANTED);
    } else if (locked.rlim_max / 1024 < MEMLOCK_WANTED_KIB) {
        f->verdict = BH_CHECK_WARN;
        doctor_advise(f, "raise LimitMEMLOCK to %d KiB: device rules of jobs use locked memory",
                      MEMLOCK_WANTED_KIB);
    }
}

static void
checks_put_client(const struct bh_cli *cli, struct bh_cli *ret_inner, char socket[PATH_MAX])
{
    *ret_inner = *cli;
    if (!bh_cli_flag(cli, BH_OPT_DIR) || bh_cli_flag(cli, BH_OPT_SOCKET))
        return;
    snprintf(socket, PATH_MAX, "%s/run/bulkhead.sock", cli->args->options[BH_OPT_DIR].text);
    ret_inner->client = (struct bh_client){ .socket = socket };
}

/* From the daemon of the site that is looked at. */
static bh_rc
doctor_fetch(const struct bh_cli *cli, const char *path, struct bh_json **ret_json, struct bh_err *err)
{
    char socket[PATH_MAX];
    struct bh_cli inner;

    checks_put_client(cli, &inner, socket);
    return bh_cli_fetch(&inner, path, ret_json, err);
}

/* How far the wall clock is ahead of engine time, in ms; 0 where no daemon answers. */
static int64_t
checks_ask_clock_ahead(const struct bh_cli *cli)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err ignored;

    if (doctor_fetch(cli, "/v1/status", &json, &ignored) != BH_OK)
        return 0;
    return bh_json_integer(bh_json_get(bh_json_root(json), "clock_ahead_ms"), 0);
}

static void
check_clock(const struct bh_cli *cli, struct bh_finding *f)
{
    struct timex state = { 0 };
    int rc = adjtimex(&state);
    int64_t ahead_ms = checks_ask_clock_ahead(cli);

    if (bh_time_now() < UINT64_C(1700000000) * BH_NS_PER_S) {
        doctor_report(f, BH_CHECK_FAIL, "the clock is years behind");
        doctor_advise(f, "set it: audit records contain the time");
    } else if (ahead_ms > CLOCK_AHEAD_MOST_MS || ahead_ms < -CLOCK_AHEAD_MOST_MS) {
        doctor_report(f, BH_CHECK_WARN, "engine time is %lld s %s the wall clock",
                      (long long)llabs(ahead_ms) / 1000, ahead_ms > 0 ? "behind" : "ahead of");
        doctor_advise(f, "it approaches it by 36 s an hour; docs/time.md");
    } else if (rc == TIME_ERROR || state.status & STA_UNSYNC) {
        doctor_report(f, BH_CHECK_WARN, "the clock is not synchronized");
        doctor_advise(f, "run chrony or systemd-timesyncd: audit records and usage contain the time");
    } else {
        doctor_report(f, BH_CHECK_OK, "synchronised");
    }
}

/* ---- programs ---- */

const char *
bh_doctor_crun_holes(uint32_t major, uint32_t minor, uint32_t patch)
{
    static const struct {
        uint32_t minor, patch;
        const char *holes;
    } fixed[] = {
        /* the first version without them, oldest first */
        { 4, 4, "CVE-2022-27650, CVE-2026-30892, CVE-2026-47766, CVE-2026-88264" },
        { 27, 0, "CVE-2026-30892, CVE-2026-47766, CVE-2026-88264" },
        { 28, 0, "CVE-2026-47766, CVE-2026-88264" },
        { 30, 0, "CVE-2026-88264" },
    };

    if (major != 1)
        return major > 1 ? NULL : fixed[0].holes;
    for (size_t i = 0; i < BH_COUNT(fixed); i++)
        if (minor < fixed[i].minor || (minor == fixed[i].minor && patch < fixed[i].patch))
            return fixed[i].holes;
    return NULL;
}

static void
check_crun(const struct bh_cli *cli, struct bh_finding *f)
{
    const char *const argv[] = { "crun", "--version", NULL };
    char text[PROBE_TEXT_MAX];
    unsigned major = 0, minor = 0, patch = 0;
    const char *holes;

    if (checks_ask_program(argv, text, sizeof text) != 0
        || sscanf(text, "crun version %u.%u.%u", &major, &minor, &patch) < 2) {
        doctor_report(f, BH_CHECK_FAIL, "crun does not run");
        doctor_advise(f, "apt-get install crun");
        return;
    }
    holes = bh_doctor_crun_holes(major, minor, patch);
    doctor_report(f, holes ? BH_CHECK_WARN : BH_CHECK_OK, "crun %u.%u.%u%s%s", major, minor, patch,
                  holes ? "; known vulnerabilities: " : "", holes ? holes : "");
    if (holes)
        doctor_advise(
            f, "not exploitable here: jobs get a tmpfs on /dev and numeric users, and crun exec is never "
               "used; 1.30 fixes all");
}

static void
check_images(const struct bh_cli *cli, struct bh_finding *f)
{
    const char *const umoci[] = { "umoci", "--version", NULL };
    const char *const skopeo[] = { "skopeo", "--version", NULL };
    char text[PROBE_TEXT_MAX];
    bool unpacks = checks_ask_program(umoci, text, sizeof text) == 0;
    bool fetches = checks_ask_program(skopeo, text, sizeof text) == 0;

    if (!unpacks) {
        doctor_report(f, BH_CHECK_WARN, "umoci does not run: jobs cannot have images");
        doctor_advise(f, "apt-get install umoci, or set umoci in node.conf");
    } else if (!fetches) {
        doctor_report(f, BH_CHECK_OK, "umoci; without skopeo no images from registries");
    } else {
        doctor_report(f, BH_CHECK_OK, "umoci, and skopeo for registries");
    }
}

/* Which site the rest is about.  A socket elsewhere belongs to a different site than the folder that is read.
 */
static void
check_site(const struct bh_cli *cli, struct bh_finding *f)
{
    char folder[PATH_MAX];

    doctor_put_folder(cli, folder, sizeof folder);
    if (!checks_has_site(cli)) {
        doctor_report(f, bh_cli_flag(cli, BH_OPT_DIR) ? BH_CHECK_FAIL : BH_CHECK_WARN,
                      doctor_is_there(folder) ? "no site is configured in %s" : "there is no folder %s",
                      folder);
        doctor_advise(
            f, "bulkhead up makes a site, up --dir DIR one in a folder, which doctor --dir DIR checks");
        return;
    }
    if (bh_cli_flag(cli, BH_OPT_DIR) || cli->client.server || checks_is_of_socket(cli, folder)) {
        doctor_report(f, BH_CHECK_OK, "configured in %s", folder);
        return;
    }
    doctor_report(f, BH_CHECK_WARN, "%s is read, but its daemon is not on %s", folder, cli->client.socket);
    doctor_advise(f, "bulkhead doctor --dir DIR checks the site whose configuration is in DIR");
}

static void
check_driver(const struct bh_cli *cli, struct bh_finding *f)
{
    char conf[PATH_MAX], library[PATH_MAX], environment[PATH_MAX];
    struct bh_err err;
    uint32_t gpus;
    bh_rc rc;

    doctor_put_file(cli, "node.conf", conf);
    bh_setting_read(conf, "nvml_library", "libnvidia-ml.so.1", library, sizeof library);
    bh_setting_read(conf, "driver_env", "", environment, sizeof environment);
    rc = bh_driver_probe(library, environment, &gpus, &err);
    if (rc == BH_OK) {
        doctor_report(f, gpus ? BH_CHECK_OK : BH_CHECK_WARN, "%s lists %u GPUs", library, gpus);
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "%s", err.msg);
    doctor_advise(f, rc == BH_NOT_FOUND ? "install NVIDIA's driver, or use the simulated one: bulkhead up"
                                        : "nvidia-smi must work first");
}

/* ---- this installation ---- */

/* What would keep a GPU from changing its MIG mode, or an instance from being destroyed. */
static void
check_holders(const struct bh_cli *cli, struct bh_finding *f)
{
    struct bh_buf held;
    uint32_t count;

    bh_buf_init_fixed(&held, f->fix, sizeof f->fix);
    count = bh_holders_put(&held, "/proc", BH_HOLDERS_ANY, 4);
    if (count == 0) {
        doctor_report(f, BH_CHECK_OK, "no visible process holds a GPU open");
        f->fix[0] = '\0';
        return;
    }
    doctor_report(f, BH_CHECK_WARN, "%u processes hold GPUs open; until they end, MIG modes cannot change%s",
                  count, bh_holders_has_drm("/proc") ? ", and nvidia_drm is loaded" : "");
    if (!bh_buf_text(&held) || held.overflow)
        doctor_advise(f, "fuser -v /dev/nvidia*");
}

/* What a file system has, and what is made of it; the worst of several folders is reported. */
static void
check_disk_of(struct bh_finding *f, char *folder, const char *when_full)
{
    struct statvfs status;
    enum bh_verdict_kind verdict;
    unsigned long long mib;

    while (access(folder, F_OK) != 0 && strrchr(folder, '/') > folder)
        *strrchr(folder, '/') = '\0'; /* it is made there */
    if (access(folder, F_OK) != 0 && *folder != '/')
        memcpy(folder, ".", 2);
    if (statvfs(folder, &status) != 0) {
        doctor_report(f, BH_CHECK_WARN, "%s: %s", folder, strerror(errno));
        return;
    }
    mib = (unsigned long long)status.f_bavail * status.f_frsize >> 20;
    verdict = mib < DISK_LEAST_MIB ? BH_CHECK_FAIL : mib < DISK_WANTED_MIB ? BH_CHECK_WARN : BH_CHECK_OK;
    if (*f->found && (verdict == BH_CHECK_OK || f->verdict != BH_CHECK_OK))
        return;
    doctor_report(f, verdict, "%llu MiB free for %s", mib, folder);
    if (verdict != BH_CHECK_OK)
        doctor_advise(f, "make room: %s; %d MiB are recommended", when_full, DISK_WANTED_MIB);
}

static void
check_disk(const struct bh_cli *cli, struct bh_finding *f)
{
    char conf[PATH_MAX], folder[PATH_MAX];

    doctor_put_file(cli, "bulkheadd.conf", conf);
    if (!bh_setting_read(conf, "state_dir", "/var/lib/bulkhead/daemon", folder, sizeof folder)
        && bh_cli_flag(cli, BH_OPT_DIR))
        doctor_put_folder(cli, folder, sizeof folder); /* what `up --dir` would fill */
    check_disk_of(f, folder, "a full disk stops all changes");
    doctor_put_file(cli, "node.conf", conf);
    if (access(conf, F_OK) != 0)
        return;
    bh_setting_read(conf, "log_dir", "/var/lib/bulkhead/logs", folder, sizeof folder);
    check_disk_of(f, folder, "on a full disk jobs' output is dropped");
    bh_setting_read(conf, "scratch_dir", "", folder, sizeof folder);
    if (!*folder)
        bh_setting_read(conf, "state_dir", "/var/lib/bulkhead/node", folder, sizeof folder);
    check_disk_of(f, folder, "on a full disk jobs with scratch wait");
}

static void
check_node_conf(const struct bh_cli *cli, struct bh_finding *f)
{
    char path[PATH_MAX];
    struct stat status;

    doctor_put_file(cli, "node.conf", path);
    if (stat(path, &status) != 0) {
        doctor_report(f, errno == ENOENT ? BH_CHECK_WARN : BH_CHECK_FAIL, "%s: %s", path, strerror(errno));
        doctor_advise(f, "bulkhead up writes it; examples are in share/doc/bulkhead");
        return;
    }
    if (status.st_uid == 0 && !(status.st_mode & (S_IWGRP | S_IWOTH))) {
        doctor_report(f, BH_CHECK_OK, "%s belongs to root", path);
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "%s can be changed by users other than root", path);
    doctor_advise(f, "chown root %s; chmod go-w %s", path, path);
}

/* It answers, and may refuse changes all the same. */
static void
check_served(const struct bh_cli *inner, bh_json_value health, struct bh_finding *f)
{
    const char *place = inner->client.server ? inner->client.server : inner->client.socket;
    const char *why = bh_json_text(bh_json_get(health, "why"), "");

    if (!*why) {
        doctor_report(f, BH_CHECK_OK, "bulkheadd serves on %s", place);
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "%.180s", why);
    doctor_advise(f, "bulkheadd's log says which; save them before it ends: docs/install.md");
}

static void
check_daemon(const struct bh_cli *cli, struct bh_finding *f)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char socket[PATH_MAX];
    struct bh_cli inner;
    struct bh_err err;

    checks_put_client(cli, &inner, socket);
    if (bh_cli_fetch(&inner, "/healthz", &json, &err) == BH_OK) {
        check_served(&inner, bh_json_root(json), f);
        return;
    }
    doctor_report_err(f, BH_CHECK_FAIL, &err);
}

static void
check_node(const struct bh_cli *cli, struct bh_finding *f)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err;
    bh_json_value node;

    if (doctor_fetch(cli, "/v1/status", &json, &err) != BH_OK) {
        doctor_report_err(f, err.rc == BH_UNAVAILABLE ? BH_CHECK_FAIL : BH_CHECK_WARN, &err);
        return;
    }
    node = bh_json_get(bh_json_root(json), "node");
    if (bh_json_truth(bh_json_get(node, "connected"))) {
        doctor_report(f, BH_CHECK_OK, "%s is connected, driver %s",
                      bh_json_text(bh_json_get(node, "name"), "?"),
                      bh_json_text(bh_json_get(node, "driver"), "?"));
        return;
    }
    doctor_report(f, BH_CHECK_FAIL, "no bulkhead-node is connected");
    doctor_advise(f, "start it: systemctl start bulkhead-node, or bulkhead up");
}

/* GPUs that get no work because their drivers do not answer for them. */
static void
check_lost(const struct bh_cli *cli, struct bh_finding *f)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err;
    bh_json_value items, first = NULL;
    uint32_t lost = 0;

    if (doctor_fetch(cli, "/v1/gpus", &json, &err) != BH_OK) {
        doctor_report_err(f, BH_CHECK_WARN, &err);
        return;
    }
    items = bh_json_get(bh_json_root(json), "items");
    for (size_t i = 0; i < bh_json_count(items); i++)
        if (strcmp(bh_json_text(bh_json_get(bh_json_at(items, i), "health"), ""), "lost") == 0)
            first = lost++ ? first : bh_json_at(items, i);
    if (!lost) {
        doctor_report(f, BH_CHECK_OK, "none of %zu is lost", bh_json_count(items));
        return;
    }
    doctor_report(f, BH_CHECK_WARN, "%u of %zu lost, the first: %s: %s", lost, bh_json_count(items),
                  bh_json_text(bh_json_get(first, "uuid"), "?"),
                  bh_json_text(bh_json_get(first, "fenced_why"), "its node does not report it"));
    doctor_advise(f,
                  "the kernel's log says why; reset it or reboot its node: it is used again when it answers");
}

/* GPUs that Bulkhead would manage, were it not for instances that are not in a node's journal. */
static void
check_unmanaged(const struct bh_cli *cli, struct bh_finding *f)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err;
    bh_json_value items, first = NULL;
    uint32_t count = 0;

    if (doctor_fetch(cli, "/v1/gpus", &json, &err) != BH_OK) {
        doctor_report_err(f, BH_CHECK_WARN, &err);
        return;
    }
    items = bh_json_get(bh_json_root(json), "items");
    for (size_t i = 0; i < bh_json_count(items); i++)
        if (bh_json_get(bh_json_at(items, i), "foreign_instances"))
            first = count++ ? first : bh_json_at(items, i);
    if (!count) {
        doctor_report(f, BH_CHECK_OK, "none of %zu has foreign instances", bh_json_count(items));
        return;
    }
    doctor_report(f, BH_CHECK_WARN, "%u of %zu unmanaged, the first: %s: %s", count, bh_json_count(items),
                  bh_json_text(bh_json_get(first, "uuid"), "?"),
                  bh_json_text(bh_json_get(first, "unmanaged_why"), "foreign instances"));
    doctor_advise(f, "%s; docs/mig.md", bh_json_text(bh_json_get(first, "unmanaged_fix"), ""));
}

const struct bh_doctor_check bh_doctor_checks[] = {
    { "root", check_root },
    { "kernel", check_kernel },
    { "cgroups", check_cgroups },
    { "user namespaces", check_user_namespaces },
    { "idmapped mounts", check_idmapped_mounts },
    { "seccomp", check_seccomp },
    { "limits", check_limits },
    { "clock", check_clock },
    { "crun", check_crun },
    { "images", check_images },
    { "site", check_site },
    { "driver", check_driver },
    { "GPU holders", check_holders },
    { "disk", check_disk },
    { "node.conf", check_node_conf },
    { "daemon", check_daemon },
    { "node", check_node },
    { "GPUs", check_lost },
    { "GPUs' instances", check_unmanaged },
};
const size_t bh_doctor_check_count = BH_COUNT(bh_doctor_checks);
