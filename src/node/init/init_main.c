/* bulkhead-init: process 1 of every job.  The kernel spares process 1 the default action of signals and makes
 * it the parent of every orphan; so that a job's own command is an ordinary process, this one starts it,
 * reaps, and ends as it ended.  It passes no signals on: the node sends them to every process of a job
 * itself.
 *
 * A command that is added to a running job (exec, port-forward) is its child, too: it is in the same sandbox
 * because it was never outside of it (node/init/init_stream.h).
 *
 *   init [--tty] -- COMMAND [ARGUMENT...] */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/common/init_message.h"
#include "node/init/init_stream.h"

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 };

static pid_t
init_start(char **command, int slave)
{
    pid_t child = fork();

    if (child != 0)
        return child;
    if (slave >= 0)
        bh_init_terminal_enter(slave);
    else
        setpgid(0, 0);
    bh_init_become(command);
}

/* Reap all that have ended; true, with its status, when the job's command is among them. */
static bool
init_reap(pid_t child, int *ret_status)
{
    for (;;) {
        int status;
        pid_t ended = waitpid(-1, &status, WNOHANG);

        if (ended == child) {
            *ret_status = bh_init_status(status);
            return true;
        }
        if (ended < 0 && errno != EINTR) {
            *ret_status = EXIT_NOT_EXECUTABLE;
            return true;
        }
        if (ended == 0)
            return false;
        if (ended > 0)
            bh_init_streams_reaped(ended, status);
    }
}

static volatile sig_atomic_t may_begin;

static void
init_begin(int number)
{
    may_begin = 1;
}

/* The sandbox is complete here: the node inspects it from outside before the job's command begins
 * (node/verify/start_barrier.h).  The keeper and the signal handler that is set tell the node that this
 * process waits.  The node ends the wait with a signal that no process inside can send before there is a
 * command.  Only the keeper reports how a job ended: without a keeper there is nothing to wait for. */
static void
await_check(void)
{
    struct pollfd keeper = { .fd = BH_INIT_FD };
    sigset_t go, before;

    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, &before);
    signal(SIGUSR1, init_begin);
    sigdelset(&before, SIGUSR1);
    bh_init_streams_send_waits();
    while (!may_begin)
        if (ppoll(&keeper, 1, NULL, &before) > 0)
            bh_init_streams_orphaned();
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int
main(int argc, char **argv)
{
    bool tty = argc > 1 && strcmp(argv[1], "--tty") == 0;
    char **command = argv + 1 + tty;
    int master = -1, slave = -1, status;
    pid_t child;

    if (!*command || strcmp(*command++, "--") != 0 || !*command)
        return EXIT_NOT_FOUND;
    await_check();
    bh_init_streams_open();
    if (tty && !bh_init_terminal(&master, &slave))
        return EXIT_NOT_EXECUTABLE;
    if (tty)
        bh_init_streams_give(master);
    child = init_start(command, slave); /* `slave` stays open: the terminal lives as long as the job */
    while (!init_reap(child, &status))
        bh_init_streams_wait();
    return status;
}
