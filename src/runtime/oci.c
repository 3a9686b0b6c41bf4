#include "runtime/oci.h"

#include <stdio.h>

#include "base/json.h"

enum { PATH_SIZE = 4096 };

static void
oci_put_texts(struct bh_json_writer *w, const char *key, const struct bh_texts *texts)
{
    bh_json_open(w, key, '[');
    for (uint32_t i = 0; i < texts->count; i++)
        bh_json_str(w, NULL, texts->items[i]);
    bh_json_close(w, ']');
}

static void
oci_put_list(struct bh_json_writer *w, const char *key, const char *const *texts)
{
    bh_json_open(w, key, '[');
    for (; *texts; texts++)
        bh_json_str(w, NULL, *texts);
    bh_json_close(w, ']');
}

static void
oci_put_rlimit(struct bh_json_writer *w, const char *type, uint64_t value)
{
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "type", type);
    bh_json_u64(w, "soft", value);
    bh_json_u64(w, "hard", value);
    bh_json_close(w, '}');
}

static void
oci_put_capabilities(struct bh_json_writer *w)
{
    static const char *const sets[] = { "bounding", "effective", "inheritable", "permitted", "ambient" };
    static const char *const none[] = { NULL };

    bh_json_open(w, "capabilities", '{');
    for (size_t i = 0; i < BH_COUNT(sets); i++)
        oci_put_list(w, sets[i], none);
    bh_json_close(w, '}');
}

static void
oci_put_process(struct bh_json_writer *w, const struct bh_sandbox *sandbox, const struct bh_oci_host *host)
{
    bh_json_open(w, "process", '{');
    bh_json_bool(w, "terminal", false);
    bh_json_open(w, "user", '{');
    bh_json_u64(w, "uid", sandbox->uid ? sandbox->uid : BH_OCI_JOB_UID);
    bh_json_u64(w, "gid", sandbox->gid ? sandbox->gid : BH_OCI_JOB_GID);
    bh_json_close(w, '}');
    oci_put_texts(w, "args", &sandbox->args);
    oci_put_texts(w, "env", &sandbox->env);
    bh_json_str(w, "cwd", sandbox->cwd);
    oci_put_capabilities(w);
    bh_json_open(w, "rlimits", '[');
    oci_put_rlimit(w, "RLIMIT_CORE", host->core_max);
    oci_put_rlimit(w, "RLIMIT_NOFILE", host->files_max);
    oci_put_rlimit(w, "RLIMIT_MEMLOCK", host->locked_max);
    bh_json_close(w, ']');
    bh_json_bool(w, "noNewPrivileges", true);
    bh_json_u64(w, "oomScoreAdj", host->oom_score);
    bh_json_close(w, '}');
}

/* ---- mounts ---- */

struct mount_row {
    const char *target, *type, *source;
    const char *options[8];
};

static void
oci_put_mount(struct bh_json_writer *w, const struct mount_row *row, const char *extra)
{
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "destination", row->target);
    bh_json_str(w, "type", row->type);
    bh_json_str(w, "source", row->source);
    bh_json_open(w, "options", '[');
    for (size_t i = 0; i < BH_COUNT(row->options) && row->options[i]; i++)
        bh_json_str(w, NULL, row->options[i]);
    if (extra)
        bh_json_str(w, NULL, extra);
    bh_json_close(w, ']');
    bh_json_close(w, '}');
}

static void
oci_put_own_mounts(struct bh_json_writer *w, const struct bh_sandbox *sandbox)
{
    static const struct mount_row proc = {
        "/proc", "proc", "proc", { "nosuid", "noexec", "nodev", "hidepid=2" }
    };
    static const struct mount_row terminals = { "/dev/pts",
                                                "devpts",
                                                "devpts",
                                                { "nosuid", "noexec", "newinstance", "ptmxmode=0666",
                                                  "mode=0620", "max=64" } };
    /* the namespace is root's, so no process in a user namespace may mount /sys */
    const struct mount_row sys =
        sandbox->sys ? (
            struct mount_row){ "/sys", "bind", sandbox->sys, { "bind", "ro", "nosuid", "noexec", "nodev" } }
                     : (struct mount_row){ "/sys", "sysfs", "sysfs", { "ro", "nosuid", "noexec", "nodev" } };
    static const struct mount_row scratch[] = {
        { "/dev/shm", "tmpfs", "tmpfs", { "nosuid", "noexec", "nodev", "mode=1777" } },
        { "/tmp", "tmpfs", "tmpfs", { "nosuid", "nodev", "mode=1777" } },
    };
    char size[32], dev[PATH_SIZE];

    snprintf(size, sizeof size, "size=%llu", (unsigned long long)sandbox->tmp_bytes);
    snprintf(dev, sizeof dev, "%s/" BH_SANDBOX_FILES_DEV, sandbox->bundle);
    oci_put_mount(w, &proc, NULL);
    /* a bind: the runtime adds none of the machine's nodes to it */
    oci_put_mount(w, &(struct mount_row){ "/dev", "bind", dev, { "bind", "ro", "nosuid", "noexec" } }, NULL);
    oci_put_mount(w, &terminals, NULL);
    oci_put_mount(w, &sys, NULL);
    for (size_t i = 0; i < BH_COUNT(scratch); i++)
        oci_put_mount(w, &scratch[i], size);
}

/* Files and folders of the sandbox's own, empty: the runtime would put the machine's null device
 * over a file. */
static void
oci_put_masks(struct bh_json_writer *w, const struct bh_sandbox *sandbox, const struct bh_masked_list *masked)
{
    char source[PATH_SIZE];

    for (size_t i = 0; i < masked->count; i++) {
        if (masked->items[i].kind == BH_MASKED_ABSENT)
            continue;
        snprintf(source, sizeof source, "%s/%s", sandbox->bundle,
                 masked->items[i].kind == BH_MASKED_FOLDER ? BH_SANDBOX_FILES_NO_FOLDER
                                                           : BH_SANDBOX_FILES_NO_FILE);
        oci_put_mount(
            w,
            &(struct mount_row){
                masked->items[i].path, "bind", source, { "bind", "ro", "nosuid", "noexec", "nodev" } },
            NULL);
    }
}

static void
oci_put_mounts(struct bh_json_writer *w, const struct bh_sandbox *sandbox,
               const struct bh_masked_list *masked)
{
    bh_json_open(w, "mounts", '[');
    oci_put_own_mounts(w, sandbox);
    oci_put_masks(w, sandbox, masked);
    for (uint32_t i = 0; i < sandbox->mount_count; i++) {
        const struct bh_sandbox_mount *mount = &sandbox->mounts[i];

        /* not rbind: what is mounted below would not be read-only */
        oci_put_mount(w,
                      &(struct mount_row){ mount->target,
                                           "bind",
                                           mount->source,
                                           { "bind", "nosuid", "nodev", mount->write ? "rw" : "ro" } },
                      NULL);
    }
    bh_json_close(w, ']');
}

/* ---- namespaces and what of /proc and /sys is shown ---- */

static void
oci_put_mapping(struct bh_json_writer *w, const char *key, uid_t base)
{
    bh_json_open(w, key, '[');
    bh_json_open(w, NULL, '{');
    bh_json_u64(w, "containerID", 0);
    bh_json_u64(w, "hostID", base);
    bh_json_u64(w, "size", BH_OCI_ID_RANGE);
    bh_json_close(w, '}');
    bh_json_close(w, ']');
}

static void
oci_put_namespaces(struct bh_json_writer *w, const struct bh_sandbox *sandbox)
{
    static const char *const types[] = { "user", "pid", "mount", "ipc", "uts", "cgroup" };

    bh_json_open(w, "namespaces", '[');
    for (size_t i = 0; i < BH_COUNT(types); i++) {
        bh_json_open(w, NULL, '{');
        bh_json_str(w, "type", types[i]);
        bh_json_close(w, '}');
    }
    bh_json_open(w, NULL, '{');
    bh_json_str(w, "type", "network");
    if (sandbox->network)
        bh_json_str(w, "path", sandbox->network);
    bh_json_close(w, '}');
    bh_json_close(w, ']');
}

/* What the machine did not have a moment ago is left to the runtime, which passes over what it does
 * not find. */
static void
oci_put_absent(struct bh_json_writer *w, const struct bh_masked_list *masked)
{
    bh_json_open(w, "maskedPaths", '[');
    for (size_t i = 0; i < masked->count; i++)
        if (masked->items[i].kind == BH_MASKED_ABSENT)
            bh_json_str(w, NULL, masked->items[i].path);
    bh_json_close(w, ']');
}

static void
oci_put_linux(struct bh_json_writer *w, const struct bh_sandbox *sandbox, const struct bh_oci_host *host)
{
    static const char *const readonly[] = { "/proc/bus",           "/proc/fs", "/proc/irq", "/proc/sys",
                                            "/proc/sysrq-trigger", NULL };

    bh_json_open(w, "linux", '{');
    oci_put_namespaces(w, sandbox);
    oci_put_mapping(w, "uidMappings", sandbox->uid_base);
    oci_put_mapping(w, "gidMappings", sandbox->uid_base);
    oci_put_absent(w, host->masked);
    oci_put_list(w, "readonlyPaths", readonly);
    bh_json_raw(w, "seccomp", host->seccomp_oci);
    bh_json_close(w, '}');
}

void
bh_oci_put(struct bh_buf *out, const struct bh_sandbox *sandbox, const struct bh_oci_host *host)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "ociVersion", "1.0.2");
    oci_put_process(&w, sandbox, host);
    bh_json_open(&w, "root", '{');
    bh_json_str(&w, "path", sandbox->rootfs);
    bh_json_bool(&w, "readonly", true);
    bh_json_close(&w, '}');
    bh_json_str(&w, "hostname", sandbox->hostname);
    oci_put_mounts(&w, sandbox, host->masked);
    bh_json_open(&w, "annotations", '{');
    bh_json_str(&w, "run.oci.seccomp_bpf_data", host->seccomp_bpf);
    bh_json_close(&w, '}');
    oci_put_linux(&w, sandbox, host);
    bh_json_close(&w, '}');
}
