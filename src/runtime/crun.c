#include "runtime/crun.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/time.h"
#include "runtime/oci.h"
#include "runtime/sandbox_files.h"
#include "runtime/seccomp.h"

enum {
    PATH_SIZE = 512,
    CONFIG_MAX = 4 << 20,
    FILES_WANTED = 65536,
    LOCKED_MOST = 8 << 20,
    OOM_SCORE = 500,
    KILL_PASSES = 8
};

/* How long a look at what is to be masked serves.  It costs a job's start a millisecond, and what
 * the machine gets a moment later is seen by the jobs that run already as well. */
static const bh_ns MASKED_LIFE = BH_NS_PER_S;

struct crun {
    char program[PATH_SIZE], state[PATH_SIZE], parent[100];
    char log[PATH_SIZE], bundle[PATH_SIZE], id[64]; /* of the last command */
    char own_pid_namespace[64];
    struct bh_cgroup_host cgroups;
    struct bh_buf oci, bpf;
    struct bh_oci_host host;
    struct bh_masked_list masked;
    bh_ns masked_at; /* monotonic; 0: never */
};

/* ---- the program ---- */

static void
crun_read_line(int fd, char *text, size_t size)
{
    ssize_t n = read(fd, text, size - 1);

    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

/* "crun version 1.8.1" */
bh_rc
bh_crun_version(const char *program, char *ret_text, size_t size, struct bh_err *err)
{
    const char *const argv[] = { program, "--version", NULL };
    char line[80] = "", version[40];
    struct bh_process_options options;
    int ends[2], status = -1;
    pid_t pid;
    bh_rc rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bh_err_errno(err, "pipe");
    options = (struct bh_process_options){
        .search = true,
        .argv = argv,
        .envp = (const char *const *)environ,
        .fds = { { STDOUT_FILENO, ends[1] }, { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 2,
    };
    rc = bh_process_start(&options, &pid, NULL, err);
    close(ends[1]);
    if (rc == BH_OK) {
        crun_read_line(ends[0], line, sizeof line);
        status = bh_process_wait(pid);
    }
    close(ends[0]);
    if (status != 0 || sscanf(line, "crun version %39s", version) != 1) {
        bh_err_set(err, BH_UNAVAILABLE, "%s does not run", program);
        return bh_err_hint(err, "install crun, or set runtime in node.conf");
    }
    snprintf(ret_text, size, "crun %s", version);
    return BH_OK;
}

/* ---- preparing ---- */

static bh_rc
crun_write_config(struct crun *crun, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    char path[PATH_SIZE];
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_buf out;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/config.json", sandbox->bundle);
    rc = bh_file_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600, &fd, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init(&out, CONFIG_MAX);
    bh_oci_put(&out, sandbox, &crun->host);
    rc = out.overflow ? bh_err_set(err, BH_FULL, "the job's config.json is too long")
                      : bh_fd_write_all(fd, out.bytes, out.length, err);
    bh_buf_fini(&out);
    return rc;
}

static bh_rc
crun_read_masked(struct crun *crun, struct bh_err *err)
{
    bh_ns now = bh_time_monotonic();
    bh_rc rc;

    if (crun->masked_at != 0 && now - crun->masked_at < MASKED_LIFE)
        return BH_OK;
    rc = bh_masked_read(&crun->masked, err);
    crun->masked_at = rc == BH_OK ? now : 0;
    return rc;
}

static bh_rc
crun_prepare(void *self, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    struct crun *crun = self;
    bh_rc rc = bh_sandbox_files_make(sandbox, err);

    if (rc != BH_OK)
        return rc;
    rc = crun_read_masked(crun, err);
    if (rc != BH_OK)
        return rc;
    rc = crun_write_config(crun, sandbox, err);
    if (rc != BH_OK)
        return rc;
    return bh_cgroup_make(&crun->cgroups, sandbox, err);
}

static bh_rc
crun_command(void *self, const struct bh_sandbox *sandbox, const char *ret_argv[16], struct bh_err *err)
{
    struct crun *crun = self;
    const char *words[] = { crun->program,       "--root",     crun->state, "--cgroup-manager=disabled",
                            "--log-format=json", crun->log,    "run",       "--preserve-fds=1",
                            "--bundle",          crun->bundle, crun->id,    NULL };

    if (snprintf(crun->log, sizeof crun->log, "--log=%s/runtime.log", sandbox->bundle)
        >= (int)sizeof crun->log)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", sandbox->bundle);
    snprintf(crun->bundle, sizeof crun->bundle, "%s", sandbox->bundle);
    snprintf(crun->id, sizeof crun->id, "%s", sandbox->id);
    memcpy(ret_argv, words, sizeof words);
    return BH_OK;
}

/* ---- running ---- */

static void
crun_group_of(const struct crun *crun, const char *id, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "%s/%s", crun->parent, id);
}

/* crun itself waits in the job's groups, but in this process's namespace. */
static bool
crun_is_inside(void *self, pid_t pid)
{
    const struct crun *crun = self;
    struct bh_err ignored;
    char name[64];

    return bh_proc_link(pid, "ns/pid", name, sizeof name, &ignored) == BH_OK
           && strcmp(name, crun->own_pid_namespace) != 0;
}

static bool
crun_is_runtime(void *self, pid_t pid)
{
    return !crun_is_inside(self, pid);
}

static bh_rc
crun_processes(void *self, const char *id, pid_t *ret_pids, uint32_t max, uint32_t *ret_count,
               struct bh_err *err)
{
    struct crun *crun = self;
    char path[200];
    static struct bh_cgroup_members all;
    uint32_t kept = 0;
    bh_rc rc;

    crun_group_of(crun, id, path, sizeof path);
    rc = bh_cgroup_processes(&crun->cgroups, path, &all, err);
    for (uint32_t i = 0; i < all.count && kept < max && rc == BH_OK; i++) {
        if (crun_is_inside(crun, all.pids[i]))
            ret_pids[kept++] = all.pids[i];
    }
    *ret_count = kept;
    return rc;
}

static bh_rc
crun_has(void *self, const char *id, pid_t pid, bool *ret_inside, struct bh_err *err)
{
    struct crun *crun = self;
    char path[200];

    crun_group_of(crun, id, path, sizeof path);
    return bh_cgroup_has(&crun->cgroups, path, pid, ret_inside, err);
}

static bh_rc
crun_freeze(void *self, const char *id, bool frozen, struct bh_err *err)
{
    struct crun *crun = self;
    char path[200];

    crun_group_of(crun, id, path, sizeof path);
    return bh_cgroup_freeze(&crun->cgroups, path, frozen, err);
}

/* crun ends by itself and passes on the status, once what it waits for has ended: where it was
 * stopped it is continued.  Only when nothing is left to wait for is it killed. */
static bh_rc
crun_signal_runtime(struct crun *crun, const char *path, bool kills, struct bh_err *err)
{
    const struct bh_cgroup_call call = { kills ? SIGKILL : SIGCONT, crun_is_runtime, crun };
    uint32_t count;

    return bh_cgroup_signal(&crun->cgroups, path, &call, &count, err);
}

/* The list may be stale when the signal is sent; the worst is a signal to a process
 * that took the number within the same microseconds, which every supervisor on cgroup
 * version 1 lives with. */
static bh_rc
crun_signal(void *self, const char *id, int number, struct bh_err *err)
{
    struct crun *crun = self;
    const struct bh_cgroup_call call = { number, crun_is_inside, crun };
    uint32_t passes = number == SIGKILL ? KILL_PASSES : 1, count = 0, more; /* one may just fork */
    char path[200];
    bh_rc rc;

    crun_group_of(crun, id, path, sizeof path);
    rc = bh_cgroup_signal(&crun->cgroups, path, &call, &count, err);
    more = count;
    for (uint32_t i = 1; i < passes && more > 0 && rc == BH_OK; i++)
        rc = bh_cgroup_signal(&crun->cgroups, path, &call, &more, err);
    return rc == BH_OK ? crun_signal_runtime(crun, path, number == SIGKILL && count == 0, err) : rc;
}

/* crun's folder for a container: a flat one. */
static void
crun_forget_state(const struct crun *crun, const char *id)
{
    static const char *const files[] = { "status", "config.json", "exec.fifo", "seccomp.bpf" };
    char path[PATH_SIZE + 100];

    for (size_t i = 0; i < BH_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s/%s", crun->state, id, files[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/%s", crun->state, id);
    rmdir(path);
}

static bh_rc
crun_destroy(void *self, const char *id, struct bh_err *err)
{
    struct crun *crun = self;
    char path[200];
    bh_rc rc;

    crun_group_of(crun, id, path, sizeof path);
    rc = bh_cgroup_destroy(&crun->cgroups, path, err);
    if (rc != BH_OK)
        return rc;
    crun_forget_state(crun, id);
    return BH_OK;
}

static bh_rc
crun_usage(void *self, const char *id, struct bh_sandbox_usage *ret_usage, struct bh_err *err)
{
    struct crun *crun = self;
    char path[200];

    crun_group_of(crun, id, path, sizeof path);
    return bh_cgroup_usage(&crun->cgroups, path, ret_usage, err);
}

static void
crun_close(void *self)
{
    struct crun *crun = self;

    bh_buf_fini(&crun->oci);
    bh_buf_fini(&crun->bpf);
    free(crun);
}

static const struct bh_runtime_ops crun_ops = {
    .name = "crun",
    .prepare = crun_prepare,
    .command = crun_command,
    .processes = crun_processes,
    .has = crun_has,
    .freeze = crun_freeze,
    .signal = crun_signal,
    .destroy = crun_destroy,
    .usage = crun_usage,
    .close = crun_close,
};

/* ---- opening ---- */

/* What a job gets of a resource: never more than the node has, because not every root may raise a
 * limit, and never what a unit gives the node for itself (LimitMEMLOCK=infinity). */
static uint64_t
crun_at_most(int resource, uint64_t wanted)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_max < wanted ? limit.rlim_max : wanted;
}

/* Jobs go before the system's own programs when memory runs out, and never below this
 * process's own score, which not every root may undercut. */
static uint32_t
crun_oom_score(void)
{
    struct bh_err ignored;
    char text[16];
    int own = 0;

    if (bh_proc_read(BH_PROC_SELF, "oom_score_adj", text, sizeof text, &ignored) == BH_OK)
        own = (int)strtol(text, NULL, 10);
    return own > OOM_SCORE ? (uint32_t)own : OOM_SCORE;
}

static void
crun_describe_host(struct crun *crun, enum bh_seccomp_profile profile)
{
    bh_buf_init(&crun->oci, 64 << 10);
    bh_buf_init(&crun->bpf, 64 << 10);
    bh_seccomp_put_oci(profile, &crun->oci);
    bh_seccomp_put_base64(profile, &crun->bpf);
    /* No core files: 1 is less than any.  And of a host that pipes cores to a program, which does
     * not ask for a limit, 1 is the one that the kernel heeds: its crash handler, root's as a rule,
     * never reads a job's memory. */
    crun->host = (struct bh_oci_host){ .seccomp_oci = bh_buf_text(&crun->oci),
                                       .seccomp_bpf = bh_buf_text(&crun->bpf),
                                       .files_max = crun_at_most(RLIMIT_NOFILE, FILES_WANTED),
                                       .oom_score = crun_oom_score(),
                                       .core_max = crun_at_most(RLIMIT_CORE, 1),
                                       .locked_max = crun_at_most(RLIMIT_MEMLOCK, LOCKED_MOST),
                                       .masked = &crun->masked };
}

bh_rc
bh_crun_open(const struct bh_crun_options *options, struct bh_runtime *ret_runtime, struct bh_err *err)
{
    struct bh_cgroup_host cgroups;
    struct crun *crun;
    bh_rc rc = bh_cgroup_probe(options->cgroup_mount, &cgroups, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_dir_make(options->state, 0700, err);
    if (rc != BH_OK)
        return rc;
    crun = calloc(1, sizeof *crun);
    if (!crun)
        return bh_err_set(err, BH_FULL, "out of memory");
    crun->cgroups = cgroups;
    snprintf(crun->program, sizeof crun->program, "%s", options->program);
    snprintf(crun->state, sizeof crun->state, "%s", options->state);
    snprintf(crun->parent, sizeof crun->parent, "%s", options->cgroup_parent);
    rc = bh_proc_link(BH_PROC_SELF, "ns/pid", crun->own_pid_namespace, sizeof crun->own_pid_namespace, err);
    if (rc != BH_OK) { /* the runtime itself would be taken for the job */
        free(crun);
        return rc;
    }
    crun_describe_host(crun, options->strict ? BH_SECCOMP_STRICT : BH_SECCOMP_DEFAULT);
    *ret_runtime = (struct bh_runtime){ &crun_ops, crun };
    return BH_OK;
}
