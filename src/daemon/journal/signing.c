#include "daemon/journal/signing.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/process.h"
#include "base/time.h"

enum { CHANNEL = 3 };

static const bh_ns pause_first_ns = 100 * BH_NS_PER_MS;
static const bh_ns pause_most_ns = 30 * BH_NS_PER_S;
static const bh_ns await_poll_ns = 20 * BH_NS_PER_MS;
static const bh_ns steady_ns = 60 * BH_NS_PER_S; /* after so long all is well again */

/* Where the program may lie, seen from the folder of this one: installed, then built, then
 * beside. */
static const char *const places[] = { "../libexec/bulkhead/bulkhead-signer", "../signer/bulkhead-signer",
                                      "bulkhead-signer" };

struct bh_signing_process {
    const char *socket, *folder, *program;
    int fd;    /* -1: no connection */
    pid_t pid; /* 0: no child */
    bh_ns connect_ns, pause_ns, since_ns;
    size_t held; /* bytes of the next answer */
    struct bh_signer_reply answer;
};

struct bh_signing_process *
bh_signing_process_new(const struct bh_daemon_config *config)
{
    struct bh_signing_process *process = calloc(1, sizeof *process);

    BH_ASSERT(process);
    process->socket = config->signer_socket;
    process->program = config->signer;
    process->folder = config->state_dir;
    process->fd = -1;
    process->pause_ns = pause_first_ns;
    return process;
}

/* The child ends by itself when its socket closes; it is asked to, all the same. */
static void
signing_disconnect(struct bh_signing_process *process)
{
    bh_ns now = bh_time_monotonic();

    bh_fd_close(process->fd);
    process->fd = -1;
    process->held = 0;
    if (process->pid) {
        kill(process->pid, SIGKILL);
        while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    process->pid = 0;
    if (now - process->since_ns > steady_ns)
        process->pause_ns = pause_first_ns;
    process->connect_ns = now + process->pause_ns;
    process->pause_ns = 2 * process->pause_ns < pause_most_ns ? 2 * process->pause_ns : pause_most_ns;
}

void
bh_signing_process_free(struct bh_signing_process *process)
{
    if (!process)
        return;
    signing_disconnect(process);
    free(process);
}

/* ---- connecting ---- */

static bh_rc
signing_find_program(const struct bh_signing_process *process, char ret_path[PATH_MAX], struct bh_err *err)
{
    char own[PATH_MAX];
    bh_rc rc;

    if (process->program[0]) {
        snprintf(ret_path, PATH_MAX, "%s", process->program);
        return BH_OK;
    }
    rc = bh_proc_own_folder(own, sizeof own, err);
    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < BH_COUNT(places); i++)
        if (snprintf(ret_path, PATH_MAX, "%s/%s", own, places[i]) < PATH_MAX && access(ret_path, X_OK) == 0)
            return BH_OK;
    bh_err_set(err, BH_UNAVAILABLE, "bulkhead-signer is not beside %.150s", own);
    return bh_err_hint(err, "name it with `signer` in bulkheadd.conf");
}

/* Only the socket and standard error reach it. */
static bh_rc
signing_spawn(const char *const argv[], int socket, pid_t *ret_pid, struct bh_err *err)
{
    static const char *const environment[] = { NULL };
    struct bh_process_options options = {
        .argv = argv,
        .envp = environment,
        .fds = { { STDOUT_FILENO, STDERR_FILENO }, { STDERR_FILENO, STDERR_FILENO }, { CHANNEL, socket } },
        .fd_count = 3,
        .new_group = true,
    };

    if (bh_process_start(&options, ret_pid, NULL, err) != BH_OK)
        return err->rc = BH_UNAVAILABLE;
    return BH_OK;
}

static bh_rc
signing_start_child(struct bh_signing_process *process, struct bh_err *err)
{
    char path[PATH_MAX];
    const char *const argv[] = { path, "--dir", process->folder, NULL };
    int pair[2];
    bh_rc rc = signing_find_program(process, path, err);

    if (rc != BH_OK)
        return rc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return bh_err_errno(err, "a socket pair");
    rc = signing_spawn(argv, pair[1], &process->pid, err);
    bh_fd_close(pair[1]);
    if (rc != BH_OK) {
        bh_fd_close(pair[0]);
        process->pid = 0;
        return rc;
    }
    process->fd = pair[0];
    return BH_OK;
}

static bh_rc
signing_try_connect(struct bh_signing_process *process, struct bh_err *err)
{
    bh_rc rc = process->socket[0] ? bh_unix_connect(process->socket, &process->fd, err)
                                  : signing_start_child(process, err);

    if (rc != BH_OK)
        return rc;
    if (fcntl(process->fd, F_SETFL, O_NONBLOCK) != 0)
        return bh_err_errno(err, "the signer's socket");
    return BH_OK;
}

bool
bh_signing_process_await(struct bh_signing_process *process, uint64_t most_ns)
{
    bh_ns until = bh_time_monotonic() + most_ns;
    struct bh_err err;

    process->since_ns = bh_time_monotonic();
    while (process->socket[0] && process->fd < 0 && signing_try_connect(process, &err) != BH_OK) {
        if (bh_time_monotonic() >= until)
            return false;
        bh_time_sleep(await_poll_ns);
    }
    return true;
}

static bool
signing_process_connected(void *self)
{
    struct bh_signing_process *process = self;
    struct bh_err err;

    if (process->fd >= 0)
        return true;
    if (bh_time_monotonic() < process->connect_ns)
        return false;
    process->since_ns = bh_time_monotonic();
    if (signing_try_connect(process, &err) == BH_OK)
        return true;
    bh_log(SIGNER_LOST, BH_ERRLOG(&err), BH_STR("next", err.hint));
    signing_disconnect(process);
    return false;
}

/* ---- questions and answers ---- */

/* A socket that does not take a whole question belongs to a signer that stopped reading. */
static bool
signing_process_ask(void *self, const struct bh_signer_request *question)
{
    struct bh_signing_process *process = self;

    if (process->fd < 0)
        return false;
    if (send(process->fd, question, sizeof *question, MSG_NOSIGNAL) == (ssize_t)sizeof *question)
        return true;
    signing_disconnect(process);
    return false;
}

/* What is there; false when the other end is gone. */
static bool
signing_receive(struct bh_signing_process *process)
{
    while (process->held < sizeof process->answer) {
        ssize_t got = read(process->fd, (char *)&process->answer + process->held,
                           sizeof process->answer - process->held);

        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return false;
        if (got < 0 && errno == EAGAIN)
            return true;
        process->held += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Texts are ended here: they are printed. */
static void
signing_end_texts(struct bh_signer_reply *answer)
{
    answer->vkeys[sizeof answer->vkeys - 1] = '\0';
    answer->note[sizeof answer->note - 1] = '\0';
    answer->why[sizeof answer->why - 1] = '\0';
    answer->hint[sizeof answer->hint - 1] = '\0';
}

static bh_rc
signing_process_receive(void *self, uint64_t wait_ns, struct bh_signer_reply *ret_answer, struct bh_err *err)
{
    struct bh_signing_process *process = self;
    bh_ns deadline = bh_time_monotonic() + wait_ns;

    for (;;) {
        bh_ns now = bh_time_monotonic();
        struct pollfd waiting = { .fd = process->fd, .events = POLLIN };

        if (process->fd < 0 || !signing_receive(process)) {
            signing_disconnect(process);
            return bh_err_set(err, BH_UNAVAILABLE, "the signer is gone");
        }
        if (process->held == sizeof process->answer)
            break;
        if (now >= deadline)
            return bh_err_set(err, BH_NOT_FOUND, "the signer has not answered");
        poll(&waiting, 1, (int)((deadline - now) / BH_NS_PER_MS) + 1);
    }
    process->held = 0;
    *ret_answer = process->answer;
    signing_end_texts(ret_answer);
    return BH_OK;
}

static void
signing_process_drop(void *self)
{
    signing_disconnect(self);
}

static int
signing_process_fd(const void *self)
{
    const struct bh_signing_process *process = self;

    return process->fd;
}

struct bh_signing
bh_signing_process_port(struct bh_signing_process *process)
{
    static const struct bh_signing_ops ops = { .connected = signing_process_connected,
                                               .ask = signing_process_ask,
                                               .receive = signing_process_receive,
                                               .drop = signing_process_drop,
                                               .fd = signing_process_fd };

    return (struct bh_signing){ &ops, process };
}
