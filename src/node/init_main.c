/* bulkhead-init: process 1 of every job.  The kernel spares process 1 the default action
 * of signals and makes it the parent of every orphan; so that a job's own command is an
 * ordinary process, this one starts it, passes signals on, reaps, and ends as it ended. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 };

static pid_t child;

static void
pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

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

int
main(int argc, char **argv)
{
    static const int passed[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT };
    int status;

    if (argc < 2)
        return EXIT_NOT_FOUND;
    child = fork();
    if (child == 0)
        become(argv + 1);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        signal(passed[i], pass_on);
    for (;;) {
        pid_t ended = wait(&status);

        if (ended == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended < 0 && errno != EINTR)
            return EXIT_NOT_EXECUTABLE;
    }
}
