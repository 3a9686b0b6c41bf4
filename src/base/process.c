#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

/* All that stands between fork and exec is async-signal-safe: another thread may hold any lock.
 * After vfork the child borrows the caller's memory, so it writes nothing but its own stack. */

enum { NO_IMAGE = -1, STREAMS = STDERR_FILENO + 1 };

static const char *
process_program(const struct bh_process_options *options)
{
    return options->program ? options->program : options->argv[0];
}

/* ---- in the child ---- */

/* What the caller ignored or caught is not the program's: an ignored SIGPIPE, say, would be. */
static void
process_reset_signals(void)
{
    /* As the kernel has it: the handler, flags, restorer, mask; zeros are SIG_DFL.  The C library's
     * sigaction() refuses the signals that it keeps for itself, which a caller may have been started with
     * ignored. */
    static const unsigned long usual[8];

    for (int number = 1; number < NSIG; number++) {
        unsigned long found[8] = { 0 };
        bool is_the_librarys = number >= __SIGRTMIN && number < SIGRTMIN;

        /* Its handlers serve a change of user in a child that has threads (of a sanitizer). */
        if (is_the_librarys && syscall(SYS_rt_sigaction, number, NULL, found, NSIG / 8) == 0
            && found[0] != (unsigned long)SIG_IGN)
            continue;
        syscall(SYS_rt_sigaction, number, usual, NULL, NSIG / 8); /* SIGKILL and SIGSTOP refuse */
    }
}

static void
process_unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A copy above all targets, so that none is overwritten before it was copied. */
static int
process_lift(int fd, int above)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, above);
}

/* The lowest free number may be `target` itself. */
static int
process_place_nothing(int target)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return errno;
    if (fd == target)
        return fcntl(fd, F_SETFD, 0) != 0 ? errno : 0;
    return dup2(fd, target) < 0 ? errno : 0;
}

/* Everything is marked to be closed by exec first; what is put in place then is not. */
static int
process_place_fds(const struct bh_process_options *options, int above)
{
    int lifted[BH_PROCESS_FDS_MAX], failed = 0;
    bool named[STREAMS] = { false };

    if (close_range(0, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
        return errno;
    for (size_t i = 0; i < options->fd_count; i++)
        if ((lifted[i] = process_lift(options->fds[i].source, above)) < 0)
            return errno;
    for (size_t i = 0; i < options->fd_count; i++) {
        if (dup2(lifted[i], options->fds[i].target) < 0)
            return errno;
        if (options->fds[i].target < STREAMS)
            named[options->fds[i].target] = true;
    }
    for (int target = 0; target < STREAMS && failed == 0; target++)
        if (!named[target])
            failed = process_place_nothing(target);
    return failed;
}

static int
process_place_self(const struct bh_process_options *options)
{
    if (options->new_session && setsid() < 0)
        return errno;
    if (options->new_group && setpgid(0, 0) != 0)
        return errno;
    if (options->folder && chdir(options->folder) != 0)
        return errno;
    return 0;
}

/* A script is not read through a descriptor that exec closes, so it is read by its name. */
static int
process_exec(const struct bh_process_options *options, int image)
{
    const char *program = process_program(options);
    char *const *argv = (char *const *)(uintptr_t)options->argv;
    char *const *envp = (char *const *)(uintptr_t)options->envp;

    if (image >= 0)
        syscall(SYS_execveat, image, "", argv, envp, AT_EMPTY_PATH);
    if (options->search)
        execvpe(program, argv, envp);
    else
        execve(program, argv, envp);
    return errno;
}

/* A change of user takes the parent's signal back, so that is asked for last.  `parent` may have ended
 * before; 0: it is not known. */
static int
process_finish(const struct bh_process_options *options, pid_t parent, int image)
{
    int failed = options->enter ? options->enter(options->self) : 0;

    if (failed != 0)
        return failed;
    if (options->parent_death_signal && prctl(PR_SET_PDEATHSIG, options->parent_death_signal, 0, 0, 0) != 0)
        return errno;
    if (options->parent_death_signal && parent != 0 && getppid() != parent)
        return ESRCH;
    process_unblock_signals();
    return process_exec(options, image);
}

static int
process_above(const struct bh_process_options *options)
{
    int above = STREAMS;

    for (size_t i = 0; i < options->fd_count; i++)
        if (options->fds[i].target >= above)
            above = options->fds[i].target + 1;
    return above;
}

static int
process_prepare(const struct bh_process_options *options, int above)
{
    int failed = process_place_fds(options, above);

    process_reset_signals();
    return failed != 0 ? failed : process_place_self(options);
}

int
bh_process_become(const struct bh_process_options *options)
{
    int above = process_above(options), failed;
    int image = options->image ? process_lift(*options->image, above) : NO_IMAGE;

    BH_ASSERT(options->argv && options->envp && options->fd_count <= BH_PROCESS_FDS_MAX);
    failed = process_prepare(options, above);
    return failed != 0 ? failed : process_finish(options, 0, image);
}

/* Its end of the pipe closes when the program starts, so that reading ends. */
static _Noreturn void
process_child(const struct bh_process_options *options, int pipe_end, pid_t parent)
{
    int above = process_above(options);
    int answer = process_lift(pipe_end, above), failed = answer < 0 ? errno : 0;
    int image = options->image ? process_lift(*options->image, above) : NO_IMAGE;

    if (failed == 0)
        failed = process_prepare(options, above);
    if (failed == 0)
        failed = process_finish(options, parent, image);
    (void)!write(answer < 0 ? pipe_end : answer, &failed, sizeof failed);
    _exit(127);
}

/* ---- in the caller ---- */

/* Signals are blocked meanwhile: no handler of the caller's runs in the child, which may share
 * its memory. */
static pid_t
process_fork(const struct bh_process_options *options, int pipe_end)
{
    pid_t parent = getpid(), pid;
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = options->enter ? fork() : vfork();
    if (pid == 0)
        process_child(options, pipe_end, parent);
    failed = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return pid;
}

/* The errno value that the child sent; 0: its program runs, or it was killed. */
static int
process_answer(int fd)
{
    int failed = 0;
    ssize_t n;

    do
        n = read(fd, &failed, sizeof failed);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof failed ? failed : 0;
}

static bh_rc
process_fail(const struct bh_process_options *options, int failed, struct bh_err *err)
{
    errno = failed;
    return bh_err_errno(err, "cannot start %.150s", process_program(options));
}

bh_rc
bh_process_start(const struct bh_process_options *options, pid_t *ret_pid, int *ret_pidfd, struct bh_err *err)
{
    int ends[2], failed, pidfd = -1;
    pid_t pid;

    BH_ASSERT(options->argv && options->envp && options->fd_count <= BH_PROCESS_FDS_MAX);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return process_fail(options, errno, err);
    pid = process_fork(options, ends[1]);
    failed = pid < 0 ? errno : 0;
    bh_fd_close(ends[1]);
    if (pid > 0)
        failed = process_answer(ends[0]);
    bh_fd_close(ends[0]);
    if (failed == 0 && ret_pidfd && (pidfd = (int)syscall(SYS_pidfd_open, pid, 0)) < 0) {
        failed = errno;
        kill(pid, SIGKILL);
    }
    if (failed != 0) {
        if (pid > 0)
            bh_process_wait(pid);
        return process_fail(options, failed, err);
    }
    if (ret_pidfd)
        *ret_pidfd = pidfd;
    *ret_pid = pid;
    return BH_OK;
}

int
bh_process_wait(pid_t pid)
{
    int status = -1;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}
