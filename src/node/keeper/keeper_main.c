/* bulkhead-keeper: one for each job.  It owns the job's input and output, runs the sandbox in
 * the foreground, waits for it and writes down durably how it ended.  It is small, needs
 * nothing from the node while it works, and outlives it. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/disk_space.h"
#include "base/fd.h"
#include "base/num.h"
#include "base/process.h"
#include "base/slice.h"
#include "base/time.h"
#include "base/utf8.h"
#include "model/job.h"
#include "node/common/exit_record.h"
#include "node/common/init_message.h"
#include "node/common/tenant_logs.h"
#include "node/keeper/keeper_stream.h"
#include "runtime/cgroup.h"

enum {
    OUTPUT_CHUNK = 65536,
    DISK_CHECKED_EVERY = 1 << 20,
    STEPS_LEAST = 16,
    RUNTIME_LOG_MAX = 65536,
    EXIT_CANNOT_RUN = 127
};

struct keeper {
    uint64_t lease, log_space; /* log_space: bytes that may still be written */
    bool log_full;
    size_t log_unchecked; /* bytes until the disk is looked at again */
    struct bh_tenant_logs logs;
    uint64_t log_granted; /* bytes until the tenant's logs are counted again */
    const char *folder, *cgroup_mount, *cgroup, *runtime_log;
    char **command;
    struct bh_cgroup_host cgroups;
    pid_t child;
    int child_fd, output_fd; /* output_fd: -1 once the job has closed it */
    uint32_t stdio;          /* enum bh_stdio */
    struct bh_keeper_streams *streams;
    struct bh_msg_ended end;
};

/* ---- output ---- */

static void
keeper_write_log(const char *bytes, size_t length)
{
    struct bh_err ignored; /* a full disk must not end the job */

    (void)!bh_fd_write_all(BH_KEEPER_LOG_FD, bytes, length, &ignored);
}

static void
keeper_write_record(const char *text)
{
    char line[400];
    int length = snprintf(line, sizeof line, "bulkhead: %s\n", text);

    keeper_write_log(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

/* The rest of the output is dropped. */
static void
keeper_close_log(struct keeper *keeper, const char *why)
{
    keeper->log_space = 0;
    if (keeper->log_full)
        return;
    keeper->log_full = true;
    keeper_write_log("\n", 1);
    keeper_write_record(why);
}

/* The output of jobs leaves room on the disk for operators: checked once for each MiB. */
static void
keeper_check_disk(struct keeper *keeper, size_t length)
{
    if (keeper->log_unchecked > length) {
        keeper->log_unchecked -= length;
        return;
    }
    keeper->log_unchecked = DISK_CHECKED_EVERY;
    if (!bh_disk_leaves_space(BH_KEEPER_LOG_FD, DISK_CHECKED_EVERY))
        keeper_close_log(keeper, "the node's disk is nearly full, the rest of the output is dropped");
}

/* A party's output displaces its own older output, never another party's. */
static void
keeper_check_tenant(struct keeper *keeper, size_t length)
{
    uint64_t bound = keeper->logs.bound_bytes, step = DISK_CHECKED_EVERY;

    if (keeper->log_granted > length) {
        keeper->log_granted -= length;
        return;
    }
    if (bound / STEPS_LEAST < step)
        step = bound / STEPS_LEAST;
    keeper->log_granted = bh_tenant_logs_free_bytes(&keeper->logs, step);
    if (keeper->log_granted == 0)
        keeper_close_log(
            keeper,
            "running jobs of this tenant, or of others under the same top-level tenant, have filled their "
            "part of the node's disk with output (log_tenant_share in node.conf), the rest is dropped; end "
            "one of them, or write less");
}

static void
keeper_store_output(struct keeper *keeper, const char *bytes, size_t length)
{
    size_t kept;

    if (keeper->log_space > 0)
        keeper_check_tenant(keeper, length);
    keeper_check_disk(keeper, length);
    kept = length < keeper->log_space ? length : (size_t)keeper->log_space;
    keeper_write_log(bytes, kept);
    keeper->log_space -= kept;
    if (kept < length)
        keeper_close_log(keeper, "output is longer than log_cap_mib, the rest is dropped");
}

/* Read once, keep it and show it.  How many bytes; 0 at the end, -1 for nothing now. */
static ssize_t
keeper_receive_output(struct keeper *keeper, int fd)
{
    static char chunk[OUTPUT_CHUNK];
    ssize_t n = read(fd, chunk, sizeof chunk);

    if (n > 0) {
        keeper_store_output(keeper, chunk, (size_t)n);
        bh_keeper_streams_show(keeper->streams, chunk, (size_t)n);
    }
    return n < 0 && errno == EIO ? 0 : n; /* no process has the terminal open */
}

/* ---- the sandbox ---- */

/* What the sandbox gets of the keeper. */
struct keeper_ends {
    int input, output, init;
};

/* In the child. */
static int
keeper_enter_groups(void *self)
{
    const struct keeper *keeper = self;
    struct bh_err err;

    if (bh_cgroup_enter(&keeper->cgroups, keeper->cgroup, &err) == BH_OK)
        return 0;
    return err.sys ? err.sys : EIO;
}

static bh_rc
keeper_spawn(struct keeper *keeper, const struct keeper_ends *ends, struct bh_err *err)
{
    static const int runtime = BH_KEEPER_RUNTIME_FD;
    struct bh_process_options options = {
        .search = true,
        .image = &runtime,
        .argv = (const char *const *)keeper->command,
        .envp = (const char *const *)environ,
        .fds = { { STDIN_FILENO, ends->input },
                 { STDOUT_FILENO, ends->output },
                 { STDERR_FILENO, ends->output },
                 { BH_INIT_FD, ends->init } },
        .fd_count = 4,
        .enter = keeper_enter_groups,
        .self = keeper,
    };

    return bh_process_start(&options, &keeper->child, &keeper->child_fd, err);
}

/* Standard input is a pipe and not /dev/null: crun gives the standard streams to the job's user, and the
 * machine's null device must not be given away.  It is empty, unless an attached client may write to it. */
static bh_rc
keeper_start(struct keeper *keeper, struct bh_err *err)
{
    int input[2], output[2], init;
    bh_rc rc;

    keeper->streams = bh_keeper_streams_open(keeper->folder, keeper->stdio, &init);
    if (init < 0 || pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        return bh_err_errno(err, "pipe");
    rc = keeper_spawn(keeper, &(struct keeper_ends){ input[0], output[1], init }, err);
    if (rc != BH_OK)
        return rc;
    close(init);
    close(input[0]);
    close(output[1]);
    if (keeper->stdio == BH_STDIO_PIPE) {
        fcntl(input[1], F_SETFL, O_NONBLOCK);
        bh_keeper_streams_input(keeper->streams, input[1]);
    } else {
        close(input[1]);
    }
    keeper->output_fd = output[0];
    fcntl(output[0], F_SETFL, O_NONBLOCK);
    return BH_OK;
}

/* Where output comes from: the pipe, and the job's terminal. */
enum { CHILD, PIPE, TERMINAL, FIXED_POLLS };

static void
keeper_receive_available(struct keeper *keeper, const struct pollfd *polls)
{
    if (polls[PIPE].revents && keeper_receive_output(keeper, keeper->output_fd) == 0) {
        close(keeper->output_fd); /* closed by the job; wait for its end alone */
        keeper->output_fd = -1;
    }
    if (polls[TERMINAL].revents && !bh_keeper_streams_busy(keeper->streams))
        (void)!keeper_receive_output(keeper, polls[TERMINAL].fd);
}

/* One turn of the loop; true once the sandbox has ended. */
static bool
keeper_dispatch(struct keeper *keeper, int wait_ms)
{
    struct pollfd polls[FIXED_POLLS + BH_KEEPER_POLLS_MAX];
    bool busy = bh_keeper_streams_busy(keeper->streams);
    int wait = -1;
    size_t count = bh_keeper_streams_poll(keeper->streams, polls + FIXED_POLLS, &wait);

    polls[CHILD] = (struct pollfd){ .fd = keeper->child_fd, .events = POLLIN };
    polls[PIPE] = (struct pollfd){ .fd = busy ? -1 : keeper->output_fd, .events = POLLIN };
    polls[TERMINAL] =
        (struct pollfd){ .fd = busy ? -1 : bh_keeper_streams_terminal(keeper->streams), .events = POLLIN };
    if (poll(polls, FIXED_POLLS + count, wait_ms >= 0 ? wait_ms : wait) < 0)
        return errno != EINTR;
    keeper_receive_available(keeper, polls);
    bh_keeper_streams_dispatch(keeper->streams, polls + FIXED_POLLS);
    return polls[CHILD].revents & POLLIN;
}

/* Wait until attached clients have taken the last chunk, or are cut off. */
static void
keeper_wait_for_readers(struct keeper *keeper)
{
    int no_child = keeper->child_fd, no_output = keeper->output_fd;

    keeper->child_fd = keeper->output_fd = -1;
    while (bh_keeper_streams_busy(keeper->streams))
        keeper_dispatch(keeper, 100);
    keeper->child_fd = no_child;
    keeper->output_fd = no_output;
}

/* All that the job has written before its end: processes that it left running have ended, too. */
static void
keeper_receive_rest(struct keeper *keeper, int fd)
{
    do
        keeper_wait_for_readers(keeper);
    while (fd >= 0 && keeper_receive_output(keeper, fd) > 0);
}

static int
keeper_wait_for_end(struct keeper *keeper)
{
    int status = 0;

    while (!keeper_dispatch(keeper, -1))
        ;
    while (waitpid(keeper->child, &status, 0) < 0 && errno == EINTR)
        ;
    keeper_receive_rest(keeper, keeper->output_fd);
    keeper_receive_rest(keeper, bh_keeper_streams_terminal(keeper->streams));
    bh_keeper_streams_close(keeper->streams);
    return status;
}

/* ---- how it ended ---- */

/* What the runtime could not do, or false when it started the job. */
static bool
keeper_runtime_refused(const struct keeper *keeper, char *ret_why, size_t size)
{
    char memory[RUNTIME_LOG_MAX];
    struct bh_slice message;
    struct bh_buf text;
    struct bh_err ignored;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    if (bh_file_read(keeper->runtime_log, sizeof memory - 1, &text, &ignored) != BH_OK || text.length == 0)
        return false;
    if (!bh_slice_get((struct bh_slice){ text.bytes, strcspn(bh_buf_text(&text), "\n") }, "msg", &message)
        || !bh_slice_str(message, ret_why, size))
        snprintf(ret_why, size, "the runtime failed, see %s", keeper->runtime_log);
    bh_utf8_scrub(ret_why);
    return true;
}

/* Whether all jobs are ended because the machine goes down: SIGPWR says so, which is
 * blocked from the start and only ever pending. */
static bool
keeper_is_shutting_down(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGPWR) == 1;
}

static void
keeper_judge(struct keeper *keeper, int status)
{
    struct bh_sandbox_usage usage = { 0 };
    struct bh_msg_ended *end = &keeper->end;
    struct bh_err err;

    end->ended_ns = bh_time_now();
    end->boot_ns = bh_time_boot();
    if (bh_cgroup_usage(&keeper->cgroups, keeper->cgroup, &usage, &err) == BH_OK) {
        end->cpu_ns = usage.cpu_ns;
        end->memory_peak_bytes = usage.peak_bytes;
    }
    end->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    end->cause = end->exit_status > 128 ? BH_END_SIGNALLED : BH_END_EXITED;
    if (end->exit_status != 0 && usage.oom) {
        end->cause = BH_END_OUT_OF_MEMORY;
        snprintf(end->why, sizeof end->why, "the job used all of its memory");
    } else if (end->exit_status != 0 && keeper_runtime_refused(keeper, end->why, sizeof end->why)) {
        end->cause = BH_END_START_FAILED; /* crun has said so on standard error, too */
    } else if (keeper_is_shutting_down()) {
        end->cause = BH_END_NODE_LOST;
        snprintf(end->why, sizeof end->why, "all jobs of the machine were ended");
    }
}

/* ---- the program ---- */

/* bh_keeper_disown(): the node did not find this keeper, and ended the job. */
static bool
keeper_is_disowned(const struct keeper *keeper)
{
    char path[600];

    return snprintf(path, sizeof path, "%s/keeper.disowned", keeper->folder) < (int)sizeof path
           && access(path, F_OK) == 0;
}

static void
keeper_report_started(struct keeper *keeper)
{
    char line[64];
    int length;

    keeper->end.started_ns = bh_time_now();
    length =
        snprintf(line, sizeof line, "%d %llu\n", (int)getpid(), (unsigned long long)keeper->end.started_ns);
    (void)!pwrite(BH_KEEPER_LOCK_FD, line, (size_t)length, 0);
}

static bh_rc
keeper_read_options(struct keeper *keeper, int argc, char **argv, struct bh_err *err)
{
    static const struct option options[] = {
        { "lease", required_argument, NULL, 'l' },        { "folder", required_argument, NULL, 'f' },
        { "cgroup-mount", required_argument, NULL, 'm' }, { "cgroup", required_argument, NULL, 'g' },
        { "log-cap", required_argument, NULL, 'c' },      { "log-dir", required_argument, NULL, 'd' },
        { "log-tenant", required_argument, NULL, 't' },   { "log-party", required_argument, NULL, 'p' },
        { "log-bound", required_argument, NULL, 'b' },    { "runtime-log", required_argument, NULL, 'r' },
        { "stdio", required_argument, NULL, 's' },        { 0 },
    };
    const char *texts[128] = { 0 };
    uint64_t stdio, tenant = 0;
    bh_rc rc;

    for (int option; (option = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
        if (option == '?')
            return bh_err_set(err, BH_INVALID, "unknown option");
        texts[option] = optarg;
    }
    for (size_t i = 0; options[i].name; i++) {
        if (!texts[options[i].val])
            return bh_err_set(err, BH_INVALID, "--%s is missing", options[i].name);
    }
    if (optind == argc)
        return bh_err_set(err, BH_INVALID, "no command to run");
    keeper->folder = texts['f'];
    keeper->cgroup_mount = texts['m'];
    keeper->cgroup = texts['g'];
    keeper->runtime_log = texts['r'];
    keeper->logs.folder = texts['d'];
    keeper->logs.party = texts['p'];
    keeper->command = argv + optind;
    rc = bh_parse_u64(texts['l'], &keeper->lease, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u64(texts['t'], &tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u64(texts['b'], &keeper->logs.bound_bytes, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u64(texts['c'], &keeper->log_space, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u64(texts['s'], &stdio, err);
    if (rc != BH_OK)
        return rc;
    keeper->logs.tenant = (uint32_t)tenant;
    keeper->stdio = stdio < BH_STDIOS ? (uint32_t)stdio : BH_STDIO_NONE;
    return BH_OK;
}

static void
keeper_guard_inherited(void)
{
    sigset_t power;

    fcntl(BH_KEEPER_LOCK_FD, F_SETFD, FD_CLOEXEC);
    fcntl(BH_KEEPER_LOG_FD, F_SETFD, FD_CLOEXEC);
    fcntl(BH_KEEPER_RUNTIME_FD, F_SETFD, FD_CLOEXEC);
    fcntl(BH_KEEPER_BARRIER_FD, F_SETFD, FD_CLOEXEC);
    close_range(BH_KEEPER_BARRIER_FD + 1, ~0U, 0);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigemptyset(&power);
    sigaddset(&power, SIGPWR);
    sigprocmask(SIG_BLOCK, &power, NULL);
}

int
main(int argc, char **argv)
{
    struct keeper keeper = { .child_fd = -1, .output_fd = -1 };
    struct bh_err err = { 0 };
    bh_rc rc;

    keeper_guard_inherited();
    rc = keeper_read_options(&keeper, argc, argv, &err);
    if (rc != BH_OK) {
        fprintf(stderr, "bulkhead-keeper: %s\n", err.msg);
        return bh_rc_exit(rc);
    }
    keeper.end.lease = keeper.lease;
    keeper_report_started(&keeper);
    rc = bh_cgroup_probe(keeper.cgroup_mount, &keeper.cgroups, &err);
    if (rc == BH_OK)
        rc = bh_cgroup_step_aside(&keeper.cgroups, keeper.cgroup, &err);
    if (rc == BH_OK)
        rc = keeper_start(&keeper, &err);
    if (rc == BH_OK) {
        keeper_judge(&keeper, keeper_wait_for_end(&keeper));
    } else {
        keeper.end.cause = BH_END_START_FAILED;
        keeper.end.ended_ns = bh_time_now();
        keeper.end.boot_ns = bh_time_boot();
        keeper.end.exit_status = EXIT_CANNOT_RUN;
        snprintf(keeper.end.why, sizeof keeper.end.why, "%.199s", err.msg);
        keeper_write_record(err.msg);
    }
    if (keeper_is_disowned(&keeper))
        return EXIT_SUCCESS;
    rc = bh_exit_record_write(keeper.folder, &keeper.end, &err);
    if (rc != BH_OK) /* its message names folders of the node, and the log is the tenant's */
        keeper_write_record("the node could not record how the job ended");
    return bh_rc_exit(rc);
}
