#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli/command/setting.h"
#include "cli/up/up.h"

enum {
    DAEMON_UID_STANDARD = 64101,
    CONF_BYTES_MAX = 16 << 10,
    DAEMON_FILE_BYTES_MAX = 8192,
    UIDS_END = 1000000
};

/* Where a program may lie, seen from the folder of this one: an installed or staged
 * tree, then a build folder. */
static const char *const program_candidates[BH_UP_PROGRAMS][4] = {
    [BH_UP_NODE] = { "../sbin/bulkhead-node", "../libexec/bulkhead/bulkhead-node", "../node/bulkhead-node" },
    [BH_UP_SIGNER] = { "../libexec/bulkhead/bulkhead-signer", "../signer/bulkhead-signer" },
    [BH_UP_DAEMON] = { "../libexec/bulkhead/bulkheadd", "../sbin/bulkheadd", "../daemon/bulkheadd" },
};
static const char *const library_candidates[] = { "../lib/bulkhead/sim",
                                                  "../lib64/bulkhead/sim",
                                                  "../lib/x86_64-linux-gnu/bulkhead/sim",
                                                  "../lib/aarch64-linux-gnu/bulkhead/sim",
                                                  "../../sim",
                                                  NULL };
static const char *const shim_candidates[] = { "../lib/bulkhead/shim",
                                               "../lib64/bulkhead/shim",
                                               "../lib/x86_64-linux-gnu/bulkhead/shim",
                                               "../lib/aarch64-linux-gnu/bulkhead/shim",
                                               "../shim",
                                               NULL };
static const char *const libexec_candidates[] = { "../libexec/bulkhead", "../node", NULL };
static const char *const tools_candidates[] = { "../libexec/bulkhead/tools", "../../sim/smi", NULL };
#define NVIDIA_SMI "/usr/bin/nvidia-smi"
static const char *const simctl_candidates[] = { "bulkhead-simctl", "../../sim/bulkhead-simctl", NULL };

static bh_rc BH_PRINTF(3, 4) up_put_path(char written[PATH_MAX], struct bh_err *err, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(written, PATH_MAX, format, args);
    va_end(args);
    if (length < 0 || length >= PATH_MAX / 2)
        return bh_err_set(err, BH_RANGE, "--dir: the path is too long");
    return BH_OK;
}

/* The first of the places that exists, made absolute; BH_NOT_FOUND. */
static bh_rc
up_find(const char *const candidates[], char ret_path[PATH_MAX], struct bh_err *err)
{
    char candidate[PATH_MAX];
    bh_rc rc = BH_NOT_FOUND;

    for (size_t i = 0; candidates[i]; i++) {
        rc = bh_cli_program_path(candidates[i], candidate, sizeof candidate, err);
        if (rc != BH_OK)
            return rc;
        if (realpath(candidate, ret_path))
            return BH_OK;
    }
    bh_err_set(err, BH_NOT_FOUND, "%s is missing beside this program", candidates[0]);
    return bh_err_hint(err, "run bulkhead from an installed or staged tree (tools/stage DIR)");
}

static bh_rc
files_locate_programs(struct bh_up *up, struct bh_err *err)
{
    struct bh_err unneeded;
    bh_rc rc = up_find(libexec_candidates, up->libexec_dir, err);

    if (rc != BH_OK)
        return rc;
    for (int i = 0; i < BH_UP_PROGRAMS; i++) {
        rc = up_find(program_candidates[i], up->program[i], err);
        if (rc != BH_OK)
            return rc;
    }
    if (!up->real_driver)
        rc = up_find(library_candidates, up->library_dir, err);
    if (rc != BH_OK)
        return rc;
    if (up_find(tools_candidates, up->tools_dir, &unneeded) != BH_OK)
        *up->tools_dir = '\0';
    if (up_find(shim_candidates, up->shim_dir, &unneeded) != BH_OK)
        *up->shim_dir = '\0';
    return BH_OK;
}

/* A number that stays the same for the same folder: two trees on one machine must not
 * clean up each other's jobs. */
static uint32_t
files_hash(const char *text)
{
    uint32_t value = 2166136261u;

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return value;
}

/* The owner of the folder can replace anything that root makes in it. */
static bh_rc
files_check_owner(const char *dir, struct bh_err *err)
{
    struct stat status;

    if (stat(dir, &status) != 0)
        return bh_err_errno(err, "--dir %s", dir);
    if (status.st_uid == 0 && !(status.st_mode & (S_IWGRP | S_IWOTH)))
        return BH_OK;
    bh_err_set(err, BH_DENIED, "--dir: %s can be changed by users other than root", dir);
    return bh_err_hint(err, "chown root %s; chmod go-w %s", dir, dir);
}

static bh_rc
files_locate_below(struct bh_up *up, const char *dir, struct bh_err *err)
{
    char absolute[PATH_MAX];
    bh_rc rc;

    up->made = access(dir, F_OK) != 0;
    rc = bh_dir_make(dir, 0755, err);
    if (rc != BH_OK)
        return rc;
    if (!realpath(dir, absolute))
        rc = bh_err_errno(err, "--dir %s", dir);
    if (rc != BH_OK)
        return rc;
    rc = files_check_owner(absolute, err);
    if (rc != BH_OK)
        return rc;
    if (strpbrk(absolute, "\n#:"))
        return bh_err_set(err, BH_INVALID, "--dir: the path contains a line end, # or :");
    rc = up_put_path(up->state, err, "%s", absolute);
    if (rc != BH_OK)
        return rc;
    rc = up_put_path(up->conf, err, "%s", absolute);
    if (rc != BH_OK)
        return rc;
    rc = up_put_path(up->run, err, "%s/run", absolute);
    if (rc != BH_OK)
        return rc;
    snprintf(up->cgroup, sizeof up->cgroup, "/bulkhead-%08x", rc == BH_OK ? files_hash(absolute) : 0);
    return BH_OK;
}

static bh_rc
files_locate_folders(struct bh_up *up, struct bh_err *err)
{
    const char *dir = up->cli->args->options[BH_OPT_DIR].text;
    bh_rc rc = BH_OK;

    if (dir) {
        rc = files_locate_below(up, dir, err);
    } else {
        snprintf(up->state, sizeof up->state, "/var/lib/bulkhead");
        snprintf(up->run, sizeof up->run, "/run/bulkhead");
        snprintf(up->conf, sizeof up->conf, "/etc/bulkhead");
        snprintf(up->cgroup, sizeof up->cgroup, "/bulkhead");
    }
    if (rc != BH_OK)
        return rc;
    rc = up_put_path(up->socket, err, "%s/bulkhead.sock", up->run);
    if (rc != BH_OK)
        return rc;
    rc = up_put_path(up->node_socket, err, "%s/node/node.sock", up->run);
    if (rc != BH_OK)
        return rc;
    rc = up_put_path(up->signer_socket, err, "%s/signer/signer.sock", up->run);
    if (rc != BH_OK)
        return rc;
    rc = up_put_path(up->sim, err, "%s/sim", up->state);
    if (rc != BH_OK)
        return rc;
    if (strlen(up->signer_socket) > 104) {
        bh_err_set(err, BH_RANGE, "--dir: %s is too long for a socket's path", up->run);
        rc = bh_err_hint(err, "choose a DIR of at most 80 characters");
    }
    return rc;
}

/* ---- a site that is there already ---- */

static const char *
files_wanted_driver(const struct bh_up *up)
{
    const char *gpu = up->cli->args->options[BH_OPT_GPU].text;

    gpu = gpu ? gpu : getenv("GPU");
    return gpu && *gpu ? gpu : NULL;
}

static bh_rc
files_refuse_otherwise(const struct bh_up *up, const char *option, const char *has, struct bh_err *err)
{
    bh_err_set(err, BH_CONFLICT, "--%s: the site in %s has %s", option, up->state, has);
    return bh_err_hint(
        err, "it is fixed when a site is made: leave the option out, or make a second site with --dir");
}

/* The simulated driver is Bulkhead's own library in a folder sim. */
static bh_rc
files_adopt_driver(struct bh_up *up, const char *conf, struct bh_err *err)
{
    char library[PATH_MAX];
    bool simulated =
        bh_setting_read(conf, "nvml_library", "", library, sizeof library) && strstr(library, "/sim");

    if (files_wanted_driver(up) && up->real_driver == simulated)
        return files_refuse_otherwise(up, "gpu", simulated ? "simulated GPUs" : "the vendor's driver", err);
    up->real_driver = !simulated;
    return BH_OK;
}

/* Folders are the user's whose number node.conf has. */
static bh_rc
files_adopt_user(struct bh_up *up, const char *conf, struct bh_err *err)
{
    char text[32], has[48];
    uint64_t uid;

    if (!bh_setting_read(conf, "daemon_uid", "", text, sizeof text))
        return BH_OK;
    if (bh_parse_u64(text, &uid, err) != BH_OK)
        return bh_err_wrap(err, "%s: daemon_uid", conf);
    if (uid == 0 || uid >= UIDS_END)
        return bh_err_set(err, BH_RANGE, "%s: daemon_uid: %s must be between 1 and %d", conf, text,
                          UIDS_END - 1);
    snprintf(has, sizeof has, "user id %s", text);
    if (up->cli->args->options[BH_OPT_DAEMON_UID].given && up->daemon_uid != uid)
        return files_refuse_otherwise(up, "daemon-uid", has, err);
    up->daemon_uid = (uint32_t)uid;
    up->signer_uid = (uint32_t)uid + 1;
    return BH_OK;
}

static void
files_put_topology_path(const struct bh_up *up, char ret_path[PATH_MAX])
{
    snprintf(ret_path, PATH_MAX, "%.4000s/topology", up->sim);
}

static bh_rc
files_adopt_gpus(struct bh_up *up, struct bh_err *err)
{
    char path[PATH_MAX], memory[sizeof up->gpus] = "others";
    struct bh_err unread;
    struct bh_buf text;

    snprintf(path, sizeof path, "%.4000s/state", up->sim);
    if (access(path, F_OK) != 0)
        return BH_OK;
    files_put_topology_path(up, path);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    if (bh_file_read(path, sizeof memory - 1, &text, &unread) != BH_OK)
        snprintf(memory, sizeof memory, "others"); /* made by a version that did not write it */
    if (up->cli->args->options[BH_OPT_SIM].given && strcmp(memory, up->gpus) != 0)
        return files_refuse_otherwise(up, "sim", memory, err);
    snprintf(up->gpus, sizeof up->gpus, "%s", memory);
    return BH_OK;
}

/* What its files say holds; options may only say the same. */
static bh_rc
files_adopt_site(struct bh_up *up, struct bh_err *err)
{
    char conf[PATH_MAX];
    bh_rc rc = up_put_path(conf, err, "%s/node.conf", up->conf);

    if (rc != BH_OK || access(conf, F_OK) != 0)
        return rc;
    rc = files_adopt_driver(up, conf, err);
    if (rc == BH_OK)
        rc = files_adopt_user(up, conf, err);
    return rc == BH_OK && !up->real_driver ? files_adopt_gpus(up, err) : rc;
}

/* Not settled when it is made: the daemon reads it at its start. */
static bh_rc
files_set_port(const struct bh_up *up, struct bh_err *err)
{
    char conf[PATH_MAX], present[32], port[16];
    bh_rc rc = up_put_path(conf, err, "%s/bulkheadd.conf", up->conf);

    if (rc != BH_OK || !up->cli->args->options[BH_OPT_HTTPS_PORT].given)
        return rc;
    snprintf(port, sizeof port, "%u", up->https_port);
    bh_setting_read(conf, "https_port", "", present, sizeof present);
    return strcmp(present, port) == 0 ? BH_OK : bh_setting_write(conf, "https_port", port, err);
}

bh_rc
bh_up_locate(struct bh_up *up, struct bh_err *err)
{
    const struct bh_option_value *options = up->cli->args->options;
    const char *gpu = files_wanted_driver(up);
    uint64_t uid = options[BH_OPT_DAEMON_UID].given ? options[BH_OPT_DAEMON_UID].number : DAEMON_UID_STANDARD;
    bh_rc rc;

    if (gpu && strcmp(gpu, "real") != 0 && strcmp(gpu, "sim") != 0)
        return bh_err_set(err, BH_INVALID, "--gpu: \"%.40s\" is neither real nor sim", gpu);
    if (uid == 0 || uid >= UIDS_END)
        return bh_err_set(err, BH_RANGE, "--daemon-uid: must be between 1 and 999999");
    if (options[BH_OPT_HTTPS_PORT].number > 65535)
        return bh_err_set(err, BH_RANGE, "--https-port: must be at most 65535");
    up->real_driver = gpu && strcmp(gpu, "real") == 0;
    up->daemon_uid = (uint32_t)uid;
    up->signer_uid = (uint32_t)uid + 1;
    up->https_port = (uint32_t)options[BH_OPT_HTTPS_PORT].number;
    if (options[BH_OPT_SIM].text && strlen(options[BH_OPT_SIM].text) >= sizeof up->gpus)
        return bh_err_set(err, BH_RANGE, "--sim: longer than %zu bytes", sizeof up->gpus - 1);
    snprintf(up->gpus, sizeof up->gpus, "%s",
             options[BH_OPT_SIM].text ? options[BH_OPT_SIM].text : "8x H100-80GB");
    rc = files_locate_folders(up, err);
    if (rc != BH_OK)
        return rc;
    rc = files_adopt_site(up, err);
    if (rc != BH_OK)
        return rc;
    return files_locate_programs(up, err);
}

/* ---- folders ---- */

struct folder {
    const char *base, *name;
    uid_t uid;
    gid_t gid;
    mode_t mode;
};

/* A folder with exactly this owner and mode.  A symbolic link is refused: root must not change a target that
 * another user chose. */
static bh_rc
up_make_folder(const struct folder *folder, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char path[PATH_MAX];
    bh_rc rc = up_put_path(path, err, "%s%s", folder->base, folder->name);

    if (rc != BH_OK)
        return rc;
    rc = bh_dir_make(path, 0755, err);
    if (rc != BH_OK)
        return rc;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, folder->uid, folder->gid) != 0 || fchmod(fd, folder->mode) != 0)
        return bh_err_errno(err, "%s", path);
    return BH_OK;
}

/* Every folder above `path` must let other users through. */
static bh_rc
files_check_reachable(const char *path, struct bh_err *err)
{
    char part[PATH_MAX];
    struct stat status;

    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strrchr(part, '/'); slash && slash != part; slash = strrchr(part, '/')) {
        *slash = '\0';
        if (stat(part, &status) != 0)
            return bh_err_errno(err, "%s", part);
        if (status.st_mode & S_IXOTH)
            continue;
        bh_err_set(err, BH_DENIED, "other users cannot enter %s, so bulkheadd cannot reach %s", part, path);
        return bh_err_hint(err, "chmod o+x %s, or stage elsewhere and use --dir", part);
    }
    return BH_OK;
}

static bh_rc
up_make_folders(const struct bh_up *up, struct bh_err *err)
{
    const struct folder folders[] = {
        { up->conf, "", 0, 0, 0755 },
        { up->state, "", 0, 0, 0755 },
        /* Sticky: the daemon makes its socket there and can replace nothing of root's. */
        { up->run, "", 0, up->daemon_uid, 01775 },
        { up->run, "/node", 0, 0, 0711 },
        { up->run, "/signer", up->signer_uid, up->daemon_uid, 0710 },
        { up->state, "/signer", up->signer_uid, up->signer_uid, 0700 },
        { up->state, "/daemon", up->daemon_uid, up->daemon_uid, 0700 },
        { up->state, "/node", 0, 0, 0700 },
        { up->state, "/logs", 0, 0, 0711 },
    };
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && i < BH_COUNT(folders); i++)
        rc = up_make_folder(&folders[i], err);
    return rc;
}

/* ---- the audit key of a site that had no signer of its own ---- */

/* The bytes of the daemon's file, which it may have put anything in place of: nothing that
 * is a link, a device or long is read.  BH_NOT_FOUND. */
static bh_rc
read_daemon_file(const char *path, struct bh_buf *out, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char bytes[DAEMON_FILE_BYTES_MAX];
    struct stat status;
    ssize_t length;

    if (fd < 0 || fstat(fd, &status) != 0)
        return bh_err_errno(err, "%s", path);
    length = S_ISREG(status.st_mode) ? read(fd, bytes, sizeof bytes) : -1;
    if (length < 0 || (size_t)length == sizeof bytes)
        return bh_err_set(err, BH_INVALID, "%s is neither a key nor a marker", path);
    bh_buf_put(out, bytes, (size_t)length);
    explicit_bzero(bytes, sizeof bytes);
    return BH_OK;
}

/* Copy one file to the signer's folder.  BH_NOT_FOUND: the daemon has none. */
static bh_rc
files_copy_to_signer(const struct bh_up *up, const char *name, struct bh_err *err)
{
    char from[PATH_MAX + 48], to[PATH_MAX + 48], memory[DAEMON_FILE_BYTES_MAX];
    struct bh_buf bytes;
    bh_rc rc;

    snprintf(from, sizeof from, "%s/daemon/%s", up->state, name);
    snprintf(to, sizeof to, "%s/signer/%s", up->state, name);
    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    rc = read_daemon_file(from, &bytes, err);
    if (rc == BH_OK)
        rc = bh_file_replace(to, bytes.bytes, bytes.length, 0600, err);
    if (rc == BH_OK && lchown(to, up->signer_uid, up->signer_uid) != 0)
        rc = bh_err_errno(err, "%s", to);
    explicit_bzero(memory, sizeof memory);
    return rc;
}

static void
remove_daemon_file(const struct bh_up *up, const char *name)
{
    char path[PATH_MAX + 48];

    snprintf(path, sizeof path, "%s/daemon/%s", up->state, name);
    unlink(path); /* often there is none */
}

/* The key last: a signer that has a key without its mark could sign again from nothing, and without
 * its name or the key before it would not see what lacks. */
static const char *const stored[] = { "audit.signed", "audit.public", "audit.key.old", "audit.key" };

static bh_rc
files_move_key(const struct bh_up *up, struct bh_err *err)
{
    char key[PATH_MAX + 48];
    bh_rc rc = BH_OK;

    snprintf(key, sizeof key, "%s/signer/audit.key", up->state);
    if (access(key, F_OK) != 0)
        for (size_t i = 0; i < BH_COUNT(stored) && (rc == BH_OK || rc == BH_NOT_FOUND); i++)
            rc = files_copy_to_signer(up, stored[i], err);
    if (rc == BH_NOT_FOUND) /* a new site: the signer makes its key */
        return BH_OK;
    if (rc != BH_OK)
        return rc;
    for (size_t i = BH_COUNT(stored); i-- > 0;)
        remove_daemon_file(up, stored[i]);
    return BH_OK;
}

/* ---- configuration ---- */

static void
files_put_node_conf(struct bh_buf *out, const struct bh_up *up)
{
    char simctl[PATH_MAX];
    struct bh_err ignored;

    bh_buf_printf(out,
                  "# node.conf, written by `bulkhead up`; bulkhead-node --help-config explains\n"
                  "state_dir = %s/node\nlog_dir = %s/logs\nrun_dir = %s/node\nsocket = %s\n"
                  "cdi_dir = %s/cdi\n"
                  "daemon_uid = %u\ndaemon_gid = %u\nlibexec_dir = %s\ncgroup_parent = %s\n",
                  up->state, up->state, up->run, up->node_socket, up->state, up->daemon_uid, up->daemon_uid,
                  up->libexec_dir, up->cgroup);
    bh_buf_puts(out, "# GPUs that Bulkhead may change, if the site file says managed: true too\n"
                     "gpus = all\n");
    if (*up->tools_dir)
        bh_buf_printf(out, "tools_dir = %s\n", up->tools_dir);
    if (*up->shim_dir)
        bh_buf_printf(out, "shim_dir = %s\n", up->shim_dir);
    if (up->real_driver) {
        if (access(NVIDIA_SMI, X_OK) == 0)
            bh_buf_puts(out, "gpu_reset = " NVIDIA_SMI "\n");
        return;
    }
    bh_buf_printf(out,
                  "# the simulated driver, and the cores of a server with such GPUs: jobs share those of\n"
                  "# this machine; memory cannot be shared that way, and is what this machine has\n"
                  "offer_cpu_milli = 256000\n"
                  "nvml_library = %s/libnvidia-ml.so.1\ndriver_lib_dir = %s\n"
                  "driver_env = BULKHEAD_SIM_STATE=%s\nproc_root = %s/proc\n"
                  "job_driver_mount = %s/view/{minor}-{gi}:/run/bulkhead-sim/view\n"
                  "job_driver_mount = %s/vram/{minor}-{gi}:/run/bulkhead-sim/vram:rw\n",
                  up->library_dir, up->library_dir, up->sim, up->sim, up->sim, up->sim);
    if (up_find(simctl_candidates, simctl, &ignored) == BH_OK)
        bh_buf_printf(out, "gpu_reset = %s\n", simctl);
}

static void
files_put_daemon_conf(struct bh_buf *out, const struct bh_up *up)
{
    bh_buf_printf(out,
                  "# bulkheadd.conf, written by `bulkhead up`; bulkheadd --help-config explains\n"
                  "state_dir = %s/daemon\nlog_dir = %s/logs\nsocket = %s\nnode_socket = %s\n"
                  "https_port = %u\n",
                  up->state, up->state, up->socket, up->node_socket, up->https_port);
}

/* Write the file unless it is there: what a person changed stays. */
static bh_rc
files_write_missing(const struct bh_up *up, const char *name,
                    void (*put)(struct bh_buf *out, const struct bh_up *up), struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = CONF_BYTES_MAX };
    char path[PATH_MAX];
    bh_rc rc = up_put_path(path, err, "%s/%s", up->conf, name);

    if (rc != BH_OK || access(path, F_OK) == 0)
        return rc;
    put(&text, up);
    return text.overflow ? bh_err_set(err, BH_FULL, "%s: the paths are too long", name)
                         : bh_file_replace(path, text.bytes, text.length, 0644, err);
}

bh_rc
bh_up_simctl(const struct bh_up *up, const char *command, const char *word, struct bh_err *err)
{
    char simctl[PATH_MAX];
    const char *const argv[] = { simctl, "--state", up->sim, "--", command, word, NULL };
    bh_rc rc = up_find(simctl_candidates, simctl, err);

    return rc == BH_OK ? bh_up_call(argv, err) : rc;
}

/* Its state stays over starts of the machine, the file system of its memory does not. */
static bh_rc
files_make_simulated_driver(const struct bh_up *up, struct bh_err *err)
{
    char path[PATH_MAX];
    bh_rc rc = up_put_path(path, err, "%s/state", up->sim);

    if (rc != BH_OK)
        return rc;
    if (access(path, F_OK) != 0) {
        rc = up_make_folder(&(struct folder){ up->sim, "", 0, 0, 0755 }, err);
        if (rc == BH_OK)
            rc = bh_up_simctl(up, "init", up->gpus, err);
        files_put_topology_path(up, path);
        if (rc == BH_OK)
            rc = bh_file_replace(path, up->gpus, strlen(up->gpus), 0644, err);
    }
    if (rc != BH_OK)
        return rc;
    return bh_up_simctl(up, "mount", NULL, err);
}

void
bh_up_leave(const struct bh_up *up)
{
    struct bh_err ignored;

    if (!up->real_driver)
        (void)!bh_up_simctl(up, "unmount", NULL, &ignored); /* jobs that keep running keep it */
}

bh_rc
bh_up_prepare(const struct bh_up *up, struct bh_err *err)
{
    bh_rc rc;

    umask(022);
    rc = up_make_folders(up, err);
    if (rc != BH_OK)
        return rc;
    rc = files_move_key(up, err);
    if (rc != BH_OK)
        return rc;
    rc = files_check_reachable(up->program[BH_UP_DAEMON], err);
    if (rc != BH_OK)
        return rc;
    rc = files_check_reachable(up->socket, err);
    if (rc != BH_OK)
        return rc;
    rc = files_write_missing(up, "node.conf", files_put_node_conf, err);
    if (rc != BH_OK)
        return rc;
    rc = files_write_missing(up, "bulkheadd.conf", files_put_daemon_conf, err);
    if (rc != BH_OK)
        return rc;
    rc = files_set_port(up, err);
    if (rc != BH_OK)
        return rc;
    if (!up->real_driver)
        return files_make_simulated_driver(up, err);
    return BH_OK;
}
