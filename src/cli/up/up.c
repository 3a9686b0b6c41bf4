#include "cli/up/up.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/time.h"
#include "cli/site/site.h"

/* A machine with this system user has the packages, whose folders are that user's. */
#define PACKAGES_USER "bulkhead"
#define JOBS_END_MAX_NS (60 * BH_NS_PER_S)

enum { KEY_BYTES_MAX = 4096, REPORT_BYTES_MAX = 4096, SLOW_MS = 60 * 1000 };

/* The write end that a detached supervisor says "ready" on, or -1. */
static int parent_fd = -1;

static void
up_make_inner(const struct bh_up *up, struct bh_cli *ret_cli)
{
    *ret_cli = *up->cli;
    ret_cli->client = (struct bh_client){ .socket = up->socket };
}

static bh_rc
up_apply_site(const struct bh_up *up, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    const char *file = up->cli->args->options[BH_OPT_SITE].text;
    struct bh_cli inner;
    bh_rc rc;

    if (!file)
        return BH_OK;
    up_make_inner(up, &inner);
    rc = bh_site_send(&inner, file, "", &json, err);
    if (rc != BH_OK)
        return rc;
    printf("bulkhead: %s is in force: %" PRIu64 " changes\n", file,
           bh_json_number(bh_json_get(bh_json_root(json), "change_count"), 0));
    return BH_OK;
}

/* "name+0a1b2c3d+base64" */
static bool
up_is_public_key(const char *line, size_t length)
{
    const char *first = memchr(line, '+', length);
    const char *second = first ? memchr(first + 1, '+', length - (size_t)(first + 1 - line)) : NULL;

    return second && second - first == 9 && strspn(first + 1, "0123456789abcdef") == 8;
}

/* One a line, and nothing else. */
static bool
up_are_public_keys(const char *text)
{
    size_t length;

    for (const char *at = text; *at; at += length + 1) {
        length = strcspn(at, "\n");
        if (at[length] != '\n' || !up_is_public_key(at, length))
            return false;
    }
    return *text != '\0';
}

/* The daemon's folder is its own; the audit log's public key is public.  The
 * daemon is not trusted: no link of its making is followed, and nothing but a key is
 * published. */
static bh_rc
up_publish_key(const struct bh_up *up, struct bh_err *err)
{
    char from[PATH_MAX + 32], to[PATH_MAX + 16], text[KEY_BYTES_MAX];
    ssize_t length;
    int fd;
    bh_rc rc;

    snprintf(from, sizeof from, "%s/daemon/audit.vkey", up->state);
    snprintf(to, sizeof to, "%s/audit.vkey", up->state);
    rc = bh_file_open(from, O_RDONLY | O_NOFOLLOW, 0, &fd, err);
    if (rc != BH_OK)
        return rc;
    length = read(fd, text, sizeof text - 1);
    bh_fd_close(fd);
    text[length > 0 ? length : 0] = '\0';
    if (!up_are_public_keys(text)) {
        bh_err_set(err, BH_INVALID, "%s contains no public key", from);
        return bh_err_hint(err,
                           "put it back from its copy; without one remove it: the next start makes it anew");
    }
    return bh_file_keep(to, text, (size_t)length, 0644, err);
}

/* A line for each GPU that its driver has lost: the others serve without it. */
static void
up_put_lost(const struct bh_up *up, struct bh_buf *out)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_cli inner;
    struct bh_err unread;
    bh_json_value items;

    up_make_inner(up, &inner);
    if (bh_cli_fetch(&inner, "/v1/gpus", &json, &unread) != BH_OK)
        return;
    items = bh_json_get(bh_json_root(json), "items");
    for (size_t i = 0; i < bh_json_count(items); i++) {
        bh_json_value gpu = bh_json_at(items, i), index = bh_json_get(gpu, "index");

        if (strcmp(bh_json_text(bh_json_get(gpu, "health"), ""), "lost") != 0)
            continue;
        bh_buf_puts(out, "  missing         GPU ");
        if (index)
            bh_buf_printf(out, "%" PRIu64 ", ", bh_json_number(index, 0));
        bh_buf_printf(out, "%s: %s; it is used again when its driver answers\n",
                      bh_json_text(bh_json_get(gpu, "uuid"), ""),
                      bh_json_text(bh_json_get(gpu, "fenced_why"), "its node does not report it"));
    }
}

/* To the terminal that waits for a detached supervisor: "+", and what is missing. */
static bh_rc
up_release_parent(const char *missing, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (parent_fd < 0)
        return rc;
    rc = bh_fd_write_all(parent_fd, "+", 1, err);
    if (rc == BH_OK)
        rc = bh_fd_write_all(parent_fd, missing, strlen(missing), err);
    bh_fd_close(parent_fd);
    parent_fd = -1;
    return rc;
}

/* Report that all serve, and what to do next. */
static bh_rc
up_announce(const struct bh_up *up, struct bh_err *err)
{
    char text[REPORT_BYTES_MAX - 2];
    struct bh_buf missing;
    bh_rc rc = up_publish_key(up, err);

    if (rc != BH_OK)
        return rc;
    rc = up_apply_site(up, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&missing, text, sizeof text);
    up_put_lost(up, &missing);
    printf("bulkhead: ready\n"
           "  socket          %s\n"
           "  configuration   %s/node.conf, %s/bulkheadd.conf\n"
           "  state, logs     %s\n",
           up->socket, up->conf, up->conf, up->state);
    if (!up->real_driver)
        printf("  GPUs            simulated (%s); bulkhead-simctl --state %s\n", up->gpus, up->sim);
    if (up->cli->args->options[BH_OPT_DIR].given)
        printf("  export BULKHEAD_SOCKET=%s\n", up->socket);
    printf("%s", bh_buf_text(&missing));
    printf("  bulkhead status; bulkhead gpu; bulkhead apply -f site.yaml\n"
           "  bulkhead run --sku small -- bulkhead-smi -L\n");
    fflush(stdout);
    return up_release_parent(bh_buf_text(&missing), err);
}

/* Cancel every job that has not ended; how many there were. */
static size_t
up_cancel_jobs(const struct bh_cli *cli, bool again)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err unread;
    bh_json_value items;

    if (bh_cli_fetch(cli, "/v1/jobs?active=true&limit=1000", &json, &unread) != BH_OK)
        return 0;
    items = bh_json_get(bh_json_root(json), "items");
    for (size_t i = 0; again && i < bh_json_count(items); i++) {
        BH_AUTO(bh_json_free) struct bh_json *reply = NULL;
        char what[64];

        snprintf(what, sizeof what, "POST /v1/jobs/%" PRIu64 "/cancel",
                 bh_json_number(bh_json_get(bh_json_at(items, i), "id"), 0));
        if (bh_cli_change(cli, what, NULL, &reply, &unread) != BH_OK)
            continue; /* it has ended meanwhile */
    }
    return bh_json_count(items);
}

static void
up_stop_jobs(const struct bh_up *up)
{
    bh_ns deadline = bh_time_monotonic() + JOBS_END_MAX_NS;
    struct bh_cli inner;

    printf("bulkhead: stopping\n");
    if (!bh_cli_flag(up->cli, BH_OPT_STOP_JOBS))
        return;
    up_make_inner(up, &inner);
    if (up_cancel_jobs(&inner, true) == 0)
        return;
    while (up_cancel_jobs(&inner, false) > 0 && bh_time_monotonic() < deadline)
        bh_time_sleep(100 * BH_NS_PER_MS);
}

/* ---- detached ---- */

/* A terminal that shows nothing for minutes seems to hang. */
static void
up_report_slow(const struct bh_up *up, int fd)
{
    struct pollfd watched = { .fd = fd, .events = POLLIN };

    if (poll(&watched, 1, SLOW_MS) != 0)
        return;
    printf("bulkhead: not ready after a minute; waiting on; %s/up.log says what for\n", up->state);
    fflush(stdout);
}

/* In the parent: wait for the "+" of a supervisor that is ready, with what is missing, or for what
 * it could not do, and behind a line's end what to do about it. */
static bh_rc
up_await_supervisor(const struct bh_up *up, pid_t pid, int fd, struct bh_err *err)
{
    char output[REPORT_BYTES_MAX], *hint;
    size_t held = 0;
    ssize_t got = 1;

    up_report_slow(up, fd);
    while (held < sizeof output - 1 && got != 0) {
        got = read(fd, output + held, sizeof output - 1 - held);
        if (got > 0)
            held += (size_t)got;
        else if (got < 0 && errno != EINTR)
            break;
    }
    output[held] = '\0';
    if (*output == '+') {
        printf("bulkhead: ready on %s; kill %d ends it; its output is in %s/up.log\n", up->socket, (int)pid,
               up->state);
        fputs(output + 1, stdout);
        return BH_OK;
    }
    hint = strchr(output, '\n');
    if (hint)
        *hint++ = '\0';
    bh_err_set(err, BH_UNAVAILABLE, "Bulkhead did not start: %s", held ? output : "it ended unexpectedly");
    return hint && *hint ? bh_err_hint(err, "%s", hint) : bh_err_hint(err, "%s/up.log says more", up->state);
}

/* In the child: a session of its own, output to a file. */
static bh_rc
up_leave_terminal(const struct bh_up *up, struct bh_err *err)
{
    char path[PATH_MAX + 16];
    int log = -1, nothing;
    bh_rc rc;

    setsid();
    snprintf(path, sizeof path, "%s/up.log", up->state);
    rc = bh_file_open(path, O_WRONLY | O_CREAT | O_APPEND, 0640, &log, err);
    if (rc != BH_OK)
        return rc;
    nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0)
        return bh_err_errno(err, "/dev/null");
    dup2(nothing, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    return BH_OK;
}

/* For programs that look for this process.  On a full disk there is none, rather than that of an earlier
 * start. */
static bh_rc
up_write_pid(const struct bh_up *up, struct bh_err *err)
{
    char path[PATH_MAX + 16], text[24];
    int length = snprintf(text, sizeof text, "%d\n", (int)getpid());
    bh_rc rc;

    snprintf(path, sizeof path, "%s/up.pid", up->state);
    rc = bh_file_replace(path, text, (size_t)length, 0644, err);
    if (rc != BH_FULL)
        return rc;
    printf("bulkhead: up.pid is not written: %s\n", err->msg);
    (void)unlink(path);
    return BH_OK;
}

/* Fork; *ret_parent is true in the parent, where nothing remains to be done. */
static bh_rc
up_detach(const struct bh_up *up, bool *ret_parent, struct bh_err *err)
{
    int ends[2];
    pid_t pid;
    bh_rc rc;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return bh_err_errno(err, "a pipe");
    fflush(stdout);
    pid = fork();
    if (pid < 0)
        return bh_err_errno(err, "fork");
    *ret_parent = pid != 0;
    bh_fd_close(ends[pid != 0]);
    if (pid == 0) {
        parent_fd = ends[1];
        return up_leave_terminal(up, err);
    }
    rc = up_await_supervisor(up, pid, ends[0], err);
    bh_fd_close(ends[0]);
    return rc;
}

static bh_rc
up_check_alone(const struct bh_up *up, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    struct bh_err unread;

    if (!up->cli->args->options[BH_OPT_DIR].given && getpwnam(PACKAGES_USER)) {
        bh_err_set(err, BH_CONFLICT, "packages are installed here, and their units use %s", up->state);
        return bh_err_hint(err, "systemctl start bulkheadd, or use --dir for a separate trial");
    }
    if (bh_unix_connect(up->socket, &fd, &unread) != BH_OK)
        return BH_OK;
    bh_err_set(err, BH_CONFLICT, "bulkheadd already serves on %s", up->socket);
    return bh_err_hint(err, "use it, or start a second one with --dir");
}

/* Of a site that cannot be, no folder stays: rmdir takes it while it is empty. */
static bh_rc
up_make_ready(struct bh_up *up, struct bh_err *err)
{
    bh_rc rc = bh_up_locate(up, err);

    if (rc == BH_OK)
        rc = up_check_alone(up, err);
    if (rc == BH_OK)
        rc = bh_up_check(up, err);
    if (rc == BH_OK)
        rc = bh_up_prepare(up, err);
    if (rc != BH_OK && up->made)
        (void)!rmdir(up->cli->args->options[BH_OPT_DIR].text);
    return rc;
}

bh_rc
bh_cli_up(struct bh_cli *cli, struct bh_err *err)
{
    struct bh_up *up = bh_arena_alloc(cli->arena, sizeof *up);
    bool parent = false;
    bh_rc rc;

    if (!up)
        return bh_err_set(err, BH_FULL, "no memory");
    if (geteuid() != 0) {
        bh_err_set(err, BH_DENIED, "up starts bulkhead-node, which needs root");
        return bh_err_hint(err, "sudo bulkhead up");
    }
    up->cli = cli;
    rc = up_make_ready(up, err);
    if (rc == BH_OK && bh_cli_flag(cli, BH_OPT_DETACH))
        rc = up_detach(up, &parent, err);
    if (rc != BH_OK || parent)
        return rc;
    rc = up_write_pid(up, err);
    if (rc == BH_OK)
        rc = bh_up_supervise(up, up_announce, up_stop_jobs, err);
    bh_up_leave(up);
    if (rc != BH_OK && parent_fd >= 0)
        dprintf(parent_fd, "%s\n%s", err->msg, err->hint);
    return rc;
}
