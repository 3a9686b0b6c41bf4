/* bulkhead-init: process 1 of every job.  The kernel spares process 1 the default action
 * of signals and makes it the parent of every orphan; so that a job's own command is an
 * ordinary process, this one starts it, reaps, and ends as it ended.  It passes no signals
 * on: the node sends them to every process of a job itself. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 };

static void
write_text(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static _Noreturn void
become(char **command)
{
    int failed;

    setpgid(0, 0);
    execvp(command[0], command);
    failed = errno;
    write_text("bulkhead: cannot run ");
    write_text(command[0]);
    write_text(": ");
    write_text(strerror(failed));
    write_text("\n");
    _exit(failed == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static volatile sig_atomic_t may_begin;

static void
begin(int number)
{
    may_begin = 1;
}

/* All walls stand by now: the node looks at them from outside before the job's command begins
 * (node/gate.h).  It sees by the handler that is set that this process waits, and ends the wait
 * with a signal that nobody inside can send before there is a command. */
static void
await_look(void)
{
    sigset_t go, before;

    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, &before);
    signal(SIGUSR1, begin);
    sigdelset(&before, SIGUSR1);
    while (!may_begin)
        sigsuspend(&before);
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

int
main(int argc, char **argv)
{
    int status;
    pid_t child;

    if (argc < 2)
        return EXIT_NOT_FOUND;
    await_look();
    child = fork();
    if (child == 0)
        become(argv + 1);
    for (;;) {
        pid_t ended = wait(&status);

        if (ended == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended < 0 && errno != EINTR)
            return EXIT_NOT_EXECUTABLE;
    }
}
