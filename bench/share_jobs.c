/* Programs with shares of one GPU, without bulkhead-node and its sandboxes: for machines where
 * jobs cannot have sandboxes, and for figures that are about shares alone.
 *
 *   share_jobs BULKHEAD_SHARE SHIM_DIR DRIVER_DIR GPU_UUID OUT_DIR LEASE [-- LEASE]...
 *   LEASE     WEIGHT:CAP_MIB:CONTEXT_MIB[:hard|:latency] PROGRAM [ARGUMENT]...
 *
 * WEIGHT is in parts of 4200.  Each lease's program finds in a mount namespace of its own what a
 * job finds: the socket, the driver beside it, and the shim by LD_LIBRARY_PATH.  What lease N prints
 * is in OUT_DIR/N.log; a last line for each on standard output says how it ended, and the most
 * that it was seen to have by two counts: what was charged, and what the driver's library asked
 * the kernel for (enum bh_share_seen_kind, MiB).  As root. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/time.h"
#include "bulkhead/share_socket.h"
#include "node/share/share.h"

enum { LEASES_MAX = 32 };

struct run {
    const char *shim, *driver, *uuid, *out;
    char folder[64];
    struct bh_share_host *host;
    struct {
        pid_t pid;
        int status;
        struct bh_share_lease_state last;
        uint32_t charged_mib, seen_kind, seen_mib; /* the most of each */
    } lease[LEASES_MAX];
    uint32_t count;
};

static void
must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "share_jobs: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void
report_notice(void *self, const struct bh_share_notice *notice)
{
    fprintf(stderr, "share_jobs: notice %u of lease %" PRIu64 "\n", notice->kind, notice->lease);
}

/* "2100:20480:600:hard" */
static void
read_lease(const char *text, struct bh_share_open *open)
{
    char copy[96], *save, *part[4] = { NULL };
    uint64_t numbers[3];
    struct bh_err err;

    snprintf(copy, sizeof copy, "%s", text);
    for (int i = 0; i < 4; i++)
        part[i] = strtok_r(i ? NULL : copy, ":", &save);
    for (int i = 0; i < 3; i++)
        if (!part[i] || bh_parse_u64(part[i], &numbers[i], &err) != BH_OK) {
            fprintf(stderr, "share_jobs: %s: expected WEIGHT:CAP_MIB:CONTEXT_MIB[:MODE]\n", text);
            exit(2);
        }
    open->weight = (uint32_t)numbers[0];
    open->gpus[0].cap_bytes = numbers[1] << 20;
    open->gpus[0].context_bytes = numbers[2] << 20;
    open->gpus[0].memory_bytes = numbers[1] << 20;
    open->hard = part[3] && strcmp(part[3], "hard") == 0;
    open->latency = part[3] && strcmp(part[3], "latency") == 0;
}

/* What a job's sandbox would be: /run is its own, with the socket and the driver in it. */
static void
enter(const struct run *run, const char *folder)
{
    char path[BH_SHARE_PATH_MAX + 16];

    must(unshare(CLONE_NEWNS) == 0, "unshare");
    must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "private mounts");
    snprintf(path, sizeof path, "%s/door/driver", folder);
    must(mkdir(path, 0755) == 0 || errno == EEXIST, path);
    must(mount(run->driver, path, NULL, MS_BIND, NULL) == 0, run->driver);
    snprintf(path, sizeof path, "%s/door", folder);
    must(mkdir("/run/bulkhead", 0755) == 0 || errno == EEXIST, "/run/bulkhead");
    must(mount(path, "/run/bulkhead", NULL, MS_BIND | MS_REC, NULL) == 0, "bind the socket");
}

static _Noreturn void
become(const struct run *run, const char *folder, char **argv)
{
    char path[BH_SHARE_PATH_MAX];
    int log;

    snprintf(path, sizeof path, "%s/%" PRIu32 ".log", run->out, run->count);
    log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(log >= 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2, path);
    enter(run, folder);
    must(setenv("LD_LIBRARY_PATH", run->shim, 1) == 0, "setenv");
    execvp(argv[0], argv);
    must(false, argv[0]);
    _exit(1);
}

/* One lease of argv, up to "--" or the end; returns what comes behind it. */
static char **
start(struct run *run, char **argv)
{
    struct bh_share_open open = { .lease = run->count + 1, .gpu_count = 1 };
    struct bh_err err;
    char **end = argv;
    pid_t pid;

    while (*end && strcmp(*end, "--") != 0)
        end++;
    if (end - argv < 2 || run->count == LEASES_MAX) {
        fprintf(stderr, "share_jobs: a lease and a program, at most %d times\n", LEASES_MAX);
        exit(2);
    }
    read_lease(argv[0], &open);
    snprintf(open.gpus[0].uuid, sizeof open.gpus[0].uuid, "%s", run->uuid);
    snprintf(open.folder, sizeof open.folder, "%s/%" PRIu64, run->folder, open.lease);
    must(mkdir(open.folder, 0700) == 0, open.folder);
    if (bh_share_host_open(run->host, &open, &err) != BH_OK) {
        fprintf(stderr, "share_jobs: %s\n", err.msg);
        exit(1);
    }
    if (*end)
        *end++ = NULL;
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0)
        become(run, open.folder, argv + 1);
    run->lease[run->count++].pid = pid;
    return end;
}

static void
keep(struct run *run, uint32_t i, const struct bh_share_lease_state *state)
{
    uint32_t charged_mib = (uint32_t)(state->used_bytes[0] >> 20);

    run->lease[i].last = *state;
    if (run->lease[i].charged_mib < charged_mib)
        run->lease[i].charged_mib = charged_mib;
    if (run->lease[i].seen_mib < state->seen_mib[0])
        run->lease[i].seen_mib = state->seen_mib[0];
    if (run->lease[i].seen_kind < state->seen_kind)
        run->lease[i].seen_kind = state->seen_kind;
}

/* Until all have ended: let the host receive messages, and keep what was last known of each. */
static void
watch(struct run *run)
{
    uint32_t left = run->count;

    while (left > 0) {
        struct pollfd ready = { .fd = bh_share_host_fd(run->host), .events = POLLIN };

        poll(&ready, 1, 100);
        bh_share_host_dispatch(run->host);
        for (uint32_t i = 0; i < run->count; i++) {
            const struct bh_share_lease_state *state = bh_share_host_find(run->host, i + 1);

            if (state)
                keep(run, i, state);
            if (run->lease[i].pid > 0 && waitpid(run->lease[i].pid, &run->lease[i].status, WNOHANG) > 0) {
                run->lease[i].pid = 0;
                left--;
            }
        }
    }
}

int
main(int argc, char **argv)
{
    struct run run = { .folder = "/tmp/bh-share-jobs-XXXXXX" };

    if (argc < 8) {
        fputs("usage: share_jobs BULKHEAD_SHARE SHIM_DIR DRIVER_DIR GPU_UUID OUT_DIR LEASE "
              "[-- LEASE]...\n",
              stderr);
        return 2;
    }
    run.shim = argv[2];
    run.driver = argv[3];
    run.uuid = argv[4];
    run.out = argv[5];
    must(mkdtemp(run.folder) != NULL, run.folder);
    run.host =
        bh_share_host_new(&(struct bh_share_host_options){ .program = argv[1], .notice = report_notice });
    for (char **next = argv + 6; *next;)
        next = start(&run, next);
    watch(&run);
    for (uint32_t i = 0; i < run.count; i++) {
        static const char *const made[] = { "/door/driver", "/door", "" };

        printf("lease %" PRIu32 " status %d signal %d gpu_ns %" PRIu64 " charged %" PRIu32 " seen %" PRIu32
               " %" PRIu32 "\n",
               i, WIFEXITED(run.lease[i].status) ? WEXITSTATUS(run.lease[i].status) : -1,
               WIFSIGNALED(run.lease[i].status) ? WTERMSIG(run.lease[i].status) : 0, run.lease[i].last.gpu_ns,
               run.lease[i].charged_mib, run.lease[i].seen_kind, run.lease[i].seen_mib);
        bh_share_host_close(run.host, i + 1);
        for (size_t n = 0; n < BH_COUNT(made); n++) {
            char folder[96];

            snprintf(folder, sizeof folder, "%s/%" PRIu32 "%s", run.folder, i + 1, made[n]);
            (void)rmdir(folder);
        }
    }
    bh_share_host_free(run.host);
    (void)rmdir(run.folder);
    return 0;
}
