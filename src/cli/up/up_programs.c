#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/slice.h"
#include "base/time.h"
#include "cli/up/up.h"

/* The node runs its isolation checks first, for verify_timeout_ms at most: ten minutes. */
#define READY_MAX_NS (11 * 60 * BH_NS_PER_S)
#define READY_REPORT_NS (60 * BH_NS_PER_S)
#define STOP_MAX_NS (15 * BH_NS_PER_S)
#define RESTART_WINDOW_NS (60 * BH_NS_PER_S)

enum { LINE_BYTES_MAX = 4096, WHAT_BYTES_MAX = 240, RESTARTS_MAX = 10, POLL_MS = 50 };

static const char see_output[] = "the output of the programs, above or in up.log, says why";
static const char *const names[BH_UP_PROGRAMS] = { "node", "signer", "daemon" };

/* One of the programs. */
struct programs_child {
    pid_t pid;         /* 0: not running */
    int output;        /* its standard output and error, -1 */
    uint32_t restarts; /* within the window */
    bh_ns window_from;
    size_t held;
    char line[LINE_BYTES_MAX];
    char last[LINE_BYTES_MAX]; /* the last line that it said */
};

struct supervisor {
    const struct bh_up *up;
    int signals;
    bool stopping;
    struct programs_child children[BH_UP_PROGRAMS];
};

/* ---- starting ---- */

/* In the child: become the program's user, with no group but its own and no way to any right. */
static int
up_drop_rights(void *self)
{
    uid_t uid = *(const uint32_t *)self;
    struct bh_err err;

    if (bh_capability_bound(NULL, 0, &err) != BH_OK)
        return err.sys ? err.sys : EPERM;
    if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return errno;
    return 0;
}

enum { ARGUMENTS_MAX = 8 };

struct programs_command {
    char *argv[ARGUMENTS_MAX + 1];
    int count;
};

static void BH_PRINTF(2, 3) programs_add_argument(struct programs_command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (command->count < ARGUMENTS_MAX && vasprintf(&command->argv[command->count], format, args) > 0)
        command->count++;
    va_end(args);
}

/* The signer's place holds over what a person may have written for the daemon: there is one
 * key. */
static void
programs_make_command(const struct bh_up *up, enum bh_up_program which, struct programs_command *command)
{
    programs_add_argument(command, "%s", up->program[which]);
    if (which == BH_UP_SIGNER) {
        programs_add_argument(command, "--dir=%s/signer", up->state);
        programs_add_argument(command, "--socket=%s", up->signer_socket);
        programs_add_argument(command, "--peer=%u", up->daemon_uid);
        return;
    }
    programs_add_argument(command, "--config=%s/%s", up->conf,
                          which == BH_UP_NODE ? "node.conf" : "bulkheadd.conf");
    if (which == BH_UP_DAEMON)
        programs_add_argument(command, "--set=signer_socket=%s", up->signer_socket);
}

/* In a group of its own: Ctrl-C reaches the supervisor, which ends them in order. */
static bh_rc
up_spawn(const struct bh_up *up, enum bh_up_program which, int output, pid_t *ret_pid, struct bh_err *err)
{
    struct programs_command command = { .count = 0 };
    uint32_t uid = which == BH_UP_DAEMON ? up->daemon_uid : up->signer_uid;
    struct bh_process_options options = {
        .argv = (const char *const *)command.argv,
        .envp = (const char *const *)environ,
        .fds = { { STDOUT_FILENO, output }, { STDERR_FILENO, output } },
        .fd_count = 2,
        .folder = "/",
        .new_group = true,
        .parent_death_signal = SIGTERM,
        .enter = which == BH_UP_NODE ? NULL : up_drop_rights,
        .self = &uid,
    };
    bh_rc rc;

    programs_make_command(up, which, &command);
    rc = bh_process_start(&options, ret_pid, NULL, err);
    for (int i = 0; i < command.count; i++)
        free(command.argv[i]);
    return rc;
}

static bh_rc
up_start(struct supervisor *s, enum bh_up_program which, struct bh_err *err)
{
    struct programs_child *child = &s->children[which];
    int ends[2];
    bh_rc rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bh_err_errno(err, "a pipe for %s", names[which]);
    rc = up_spawn(s->up, which, ends[1], &child->pid, err);
    bh_fd_close(ends[1]);
    if (rc != BH_OK) {
        bh_fd_close(ends[0]);
        return rc;
    }
    if (child->output >= 0)
        bh_fd_close(child->output);
    child->output = ends[0];
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return BH_OK;
}

bh_rc
bh_up_call(const char *const argv[], struct bh_err *err)
{
    struct bh_process_options options = {
        .argv = argv,
        .envp = (const char *const *)environ,
        .fds = { { STDOUT_FILENO, STDERR_FILENO }, { STDERR_FILENO, STDERR_FILENO } },
        .fd_count = 2,
    };
    pid_t pid;
    bh_rc rc = bh_process_start(&options, &pid, NULL, err);

    if (rc != BH_OK)
        return rc;
    if (bh_process_wait(pid) != 0)
        return bh_err_set(err, BH_IO, "%s failed", argv[0]);
    return BH_OK;
}

/* ---- output ---- */

static void
programs_print_line(struct programs_child *child, const char *name)
{
    printf("%-6s | %.*s\n", name, (int)child->held, child->line);
    snprintf(child->last, sizeof child->last, "%.*s", (int)child->held, child->line);
    child->held = 0;
}

/* Pass on what a program said, line by line. */
static void
programs_relay(struct programs_child *child, const char *name)
{
    char bytes[LINE_BYTES_MAX];
    ssize_t got;

    while (child->output >= 0 && (got = read(child->output, bytes, sizeof bytes)) != 0) {
        if (got < 0)
            break;
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] != '\n')
                child->line[child->held++] = bytes[i];
            if (bytes[i] == '\n' || child->held == sizeof child->line)
                programs_print_line(child, name);
        }
    }
    fflush(stdout);
}

/* ---- watching ---- */

/* Take the ends of children; true when one of the programs ended. */
static bool
up_reap(struct supervisor *s)
{
    bool any = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < BH_UP_PROGRAMS; i++) {
            struct programs_child *child = &s->children[i];

            if (child->pid != pid)
                continue;
            programs_relay(child, names[i]);
            child->pid = 0;
            any = true;
            if (WIFSIGNALED(status))
                printf("%-6s | ended by signal %d\n", names[i], WTERMSIG(status));
            else if (!s->stopping || WEXITSTATUS(status) != 0)
                printf("%-6s | ended with status %d\n", names[i], WEXITSTATUS(status));
        }
    fflush(stdout);
    return any;
}

/* The text `name="TEXT"` of a log line; "" without one. */
static void
programs_read_field(const char *line, const char *name, char *ret_text, size_t size)
{
    char key[16];
    const char *from, *end;

    ret_text[0] = '\0';
    snprintf(key, sizeof key, " %s=\"", name);
    from = strstr(line, key);
    if (!from)
        return;
    from += strlen(key) - 1;
    for (end = from + 1; *end && *end != '"';)
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!*end || !bh_slice_str((struct bh_slice){ from, (size_t)(end + 1 - from) }, ret_text, size))
        ret_text[0] = '\0';
}

/* What happened to a program, and why by the last line that it said: as a rule its refusal to start. */
static bh_rc
programs_explain_end(const struct programs_child *child, const char *what, struct bh_err *err)
{
    char why[sizeof err->msg], next[sizeof err->hint];

    programs_read_field(child->last, "why", why, sizeof why);
    programs_read_field(child->last, "next", next, sizeof next);
    bh_err_set(err, BH_UNAVAILABLE, "%s: %s", what, *why ? why : child->last);
    return bh_err_hint(err, "%s", *next ? next : see_output);
}

/* Start again what died or could not be started, unless that is so all the time. */
static bh_rc
up_restart(struct supervisor *s, struct bh_err *err)
{
    bh_ns now = bh_time_monotonic();
    char what[WHAT_BYTES_MAX];

    for (int i = 0; i < BH_UP_PROGRAMS; i++) {
        struct programs_child *child = &s->children[i];

        if (child->pid != 0)
            continue;
        if (now - child->window_from > RESTART_WINDOW_NS) {
            child->window_from = now;
            child->restarts = 0;
        }
        if (child->restarts++ >= RESTARTS_MAX) {
            snprintf(what, sizeof what, "%.180s ended unexpectedly more than %d times within a minute",
                     s->up->program[i], RESTARTS_MAX);
            return programs_explain_end(child, what, err);
        }
        if (up_start(s, (enum bh_up_program)i, err) != BH_OK)
            printf("%-6s | %s\n", names[i], err->msg);
    }
    return BH_OK;
}

/* Wait a little, relaying output.  Returns the number of a signal that asks this program to end,
 * or 0. */
static int
up_poll_once(struct supervisor *s)
{
    struct pollfd watched[BH_UP_PROGRAMS + 1] = { { .fd = s->signals, .events = POLLIN } };
    struct signalfd_siginfo signal;
    int asked = 0;

    for (int i = 0; i < BH_UP_PROGRAMS; i++)
        watched[i + 1] =
            (struct pollfd){ .fd = s->children[i].pid ? s->children[i].output : -1, .events = POLLIN };
    poll(watched, BH_COUNT(watched), POLL_MS);
    for (int i = 0; i < BH_UP_PROGRAMS; i++)
        programs_relay(&s->children[i], names[i]);
    while (read(s->signals, &signal, sizeof signal) == (ssize_t)sizeof signal)
        if (signal.ssi_signo != SIGCHLD)
            asked = (int)signal.ssi_signo;
    return asked;
}

/* All serve: the daemon answers, and places jobs on the node.  A node that is connected is not up
 * before it has reported what ended while it was away; until then its jobs wait for it. */
static bool
programs_is_ready(const struct bh_up *up)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_cli inner = *up->cli;
    struct bh_err unread;
    bh_json_value items;

    inner.client = (struct bh_client){ .socket = up->socket };
    if (bh_cli_fetch(&inner, "/v1/nodes", &json, &unread) != BH_OK || !json)
        return false;
    items = bh_json_get(bh_json_root(json), "items");
    for (size_t i = 0; i < bh_json_count(items); i++)
        if (strcmp(bh_json_text(bh_json_get(bh_json_at(items, i), "state"), ""), "up") == 0)
            return true;
    return false;
}

/* Until ready (*ret_asked 0) or asked to end. */
static bh_rc
programs_await_ready(struct supervisor *s, int *ret_asked, struct bh_err *err)
{
    bh_ns begun = bh_time_monotonic(), passed = 0;
    char what[WHAT_BYTES_MAX];
    bool reported = false;

    *ret_asked = 0;
    while (*ret_asked == 0 && !programs_is_ready(s->up)) {
        *ret_asked = up_poll_once(s);
        up_reap(s);
        for (int i = 0; i < BH_UP_PROGRAMS; i++)
            if (s->children[i].pid == 0) {
                snprintf(what, sizeof what, "%s ended before it was ready", names[i]);
                return programs_explain_end(&s->children[i], what, err);
            }
        passed = bh_time_monotonic() - begun;
        if (passed > READY_MAX_NS) {
            bh_err_set(err, BH_UNAVAILABLE, "not ready within eleven minutes");
            return bh_err_hint(err, see_output);
        }
        if (passed > READY_REPORT_NS && !reported) {
            puts("not ready after a minute; waiting on");
            fflush(stdout);
            reported = true;
        }
    }
    return BH_OK;
}

static bh_rc
up_watch(struct supervisor *s, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    while (rc == BH_OK && up_poll_once(s) == 0) {
        up_reap(s);
        rc = up_restart(s, err);
    }
    return rc;
}

/* ---- ending ---- */

static void
programs_end_child(struct supervisor *s, enum bh_up_program which)
{
    struct programs_child *child = &s->children[which];
    bh_ns deadline = bh_time_monotonic() + STOP_MAX_NS;

    if (child->pid == 0)
        return;
    kill(child->pid, SIGTERM);
    while (child->pid != 0) {
        up_poll_once(s);
        up_reap(s);
        if (child->pid != 0 && bh_time_monotonic() > deadline) {
            kill(child->pid, SIGKILL);
            deadline = UINT64_MAX;
        }
    }
}

static void
programs_end_all(struct supervisor *s)
{
    s->stopping = true;
    programs_end_child(s, BH_UP_DAEMON);
    programs_end_child(s, BH_UP_SIGNER);
    programs_end_child(s, BH_UP_NODE);
    for (int i = 0; i < BH_UP_PROGRAMS; i++)
        if (s->children[i].output >= 0)
            bh_fd_close(s->children[i].output);
    bh_fd_close(s->signals);
}

static bh_rc
programs_open_signals(struct supervisor *s, struct bh_err *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signals < 0 ? bh_err_errno(err, "signalfd") : BH_OK;
}

bh_rc
bh_up_supervise(const struct bh_up *up, bh_rc (*ready)(const struct bh_up *up, struct bh_err *err),
                void (*stopping)(const struct bh_up *up), struct bh_err *err)
{
    struct supervisor s = { .up = up };
    int asked = 0;
    bh_rc rc;

    for (int i = 0; i < BH_UP_PROGRAMS; i++)
        s.children[i].output = -1;
    rc = programs_open_signals(&s, err);
    for (int i = 0; rc == BH_OK && i < BH_UP_PROGRAMS; i++)
        rc = up_start(&s, (enum bh_up_program)i, err);
    if (rc == BH_OK)
        rc = programs_await_ready(&s, &asked, err);
    if (rc == BH_OK && asked == 0)
        rc = ready(up, err);
    if (rc == BH_OK && asked == 0)
        rc = up_watch(&s, err);
    if (rc == BH_OK)
        stopping(up);
    programs_end_all(&s);
    return rc;
}
