#include "base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

/* The test starts itself, and the child prints what it sees. */

#define SELF "/proc/self/exe"

static const char *const no_environment[] = { NULL };

/* ---- what a child sees ---- */

static void
show_status(void)
{
    static const char *const wanted[] = { "SigBlk:",
                                          "SigIgn:" }; /* handlers end with exec; a sanitizer has its own */
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];

    while (file && fgets(line, sizeof line, file))
        for (size_t i = 0; i < BH_COUNT(wanted); i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
                printf("%s %s", wanted[i], line + strlen(wanted[i]) + 1);
    if (file)
        fclose(file);
}

static void
show_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    char target[256];

    for (int fd = 0; fd < 1024; fd++) {
        char path[64];
        ssize_t length;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        length = fd == dirfd(folder) ? -1 : readlink(path, target, sizeof target - 1);
        if (length >= 0)
            printf("fd %d %s\n", fd, strncmp(target, "/dev/null", (size_t)length) == 0 ? "null" : "file");
    }
    closedir(folder);
}

static int
child_main(void)
{
    char folder[256];
    int signal_number = -1;

    show_status();
    show_fds();
    for (char **variable = environ; *variable; variable++)
        printf("env %s\n", *variable);
    printf("folder %s\n", getcwd(folder, sizeof folder));
    printf("session %d group %d\n", getsid(0) == getpid(), getpgrp() == getpid());
    prctl(PR_GET_PDEATHSIG, &signal_number);
    printf("parent's death %d\n", signal_number);
    fflush(stdout);
    return 0;
}

/* What the child said on its standard output; the caller's state is as hostile as it may be. */
static void
see(struct bh_process_options options, char *ret_text, size_t size)
{
    static const char *const argv[] = { "child", NULL };
    int output = memfd_create("output", 0); /* inherited by a child that does not close it */
    struct bh_err err = { 0 };
    ssize_t length;
    pid_t pid = 0;
    int status = -1;

    options.program = SELF;
    options.argv = argv;
    options.envp = options.envp ? options.envp : no_environment;
    options.fds[options.fd_count++] = (struct bh_process_fd){ STDOUT_FILENO, output };
    BH_CHECK_EQ(err.msg, bh_process_start(&options, &pid, NULL, &err), BH_OK);
    if (pid > 0)
        status = bh_process_wait(pid);
    BH_CHECK_EQ("status", status, 0);
    length = pread(output, ret_text, size - 1, 0);
    ret_text[length > 0 ? length : 0] = '\0';
    bh_fd_close(output);
}

static void
never(int number)
{
}

#define PLAIN "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n"
#define STREAMS "fd 0 null\nfd 1 file\nfd 2 null\n"

static void
child_sees_what_is_named(void **state)
{
    static const unsigned long ignored[8] = { 1 /* SIG_IGN, to the kernel */ };
    static const char *const variables[] = { "A=1", "B=two", NULL };
    static const struct {
        const char *name;
        struct bh_process_options options;
        const char *want;
    } rows[] = {
        { "nothing", { .folder = "/" }, PLAIN STREAMS "folder /\nsession 0 group 0\nparent's death 0\n" },
        { "environment",
          { .folder = "/", .envp = variables },
          PLAIN STREAMS "env A=1\nenv B=two\nfolder /\nsession 0 group 0\nparent's death 0\n" },
        { "descriptors cross",
          { .folder = "/proc", .fds = { { 40, 41 }, { 41, 40 }, { 3, 41 } }, .fd_count = 3 },
          PLAIN STREAMS
          "fd 3 null\nfd 40 null\nfd 41 file\nfolder /proc\nsession 0 group 0\nparent's death 0\n" },
        { "a stream from above",
          { .folder = "/", .fds = { { 0, 41 }, { 2, 40 } }, .fd_count = 2 },
          PLAIN "fd 0 null\nfd 1 file\nfd 2 file\nfolder /\nsession 0 group 0\nparent's death 0\n" },
        { "session",
          { .folder = "/", .new_session = true },
          PLAIN STREAMS "folder /\nsession 1 group 1\nparent's death 0\n" },
        { "group",
          { .folder = "/", .new_group = true, .parent_death_signal = SIGTERM },
          PLAIN STREAMS "folder /\nsession 0 group 1\nparent's death 15\n" },
    };
    int file = memfd_create("file", 0), nothing = open("/dev/null", O_RDONLY);
    sigset_t many;

    /* 40 is a file and 41 is /dev/null, both without close-on-exec */
    assert_int_equal(dup2(file, 40), 40);
    assert_int_equal(dup2(nothing, 41), 41);
    sigemptyset(&many);
    sigaddset(&many, SIGTERM);
    sigaddset(&many, SIGCHLD);
    sigprocmask(SIG_BLOCK, &many, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, never);
    /* one that the C library keeps for itself, as some runners of tests leave it */
    assert_int_equal(syscall(SYS_rt_sigaction, 32, ignored, NULL, 8), 0);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char text[4096];

        see(rows[i].options, text, sizeof text);
        BH_CHECK_STR(rows[i].name, text, rows[i].want);
    }
    signal(SIGPIPE, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &many, NULL);
    for (int fd = 40; fd <= 41; fd++)
        close(fd);
    close(file);
    close(nothing);
    BH_CHECK_DONE();
}

/* The caller's own streams may be closed. */
static void
streams_may_be_closed(void **state)
{
    int kept = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 20);
    char text[4096];

    close(STDIN_FILENO);
    see((struct bh_process_options){ .folder = "/" }, text, sizeof text);
    dup2(kept, STDIN_FILENO);
    close(kept);
    BH_CHECK_STR("closed", text, PLAIN STREAMS "folder /\nsession 0 group 0\nparent's death 0\n");
    BH_CHECK_DONE();
}

/* The mask of the caller is as it was. */
static void
caller_keeps_its_mask(void **state)
{
    sigset_t before, after;
    char text[4096];

    sigprocmask(SIG_SETMASK, NULL, &before);
    see((struct bh_process_options){ .folder = "/" }, text, sizeof text);
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int number = 1; number < NSIG; number++)
        BH_CHECK_EQ("mask", sigismember(&before, number), sigismember(&after, number));
    BH_CHECK_DONE();
}

/* ---- what cannot be started ---- */

static int
enter_fails(void *self)
{
    return ENOSPC;
}

static int
enter_is_killed(void *self)
{
    return kill(getpid(), SIGKILL);
}

static void
failures_are_the_callers(void **state)
{
    static const char *const words[] = { "/nonexistent/program", NULL };
    static const struct {
        const char *name;
        struct bh_process_options options;
        int want;
        /* clang-format off */
    } rows[] = {
        { "no program", { .argv = words }, ENOENT },
        { "a folder", { .program = "/", .argv = words }, EACCES },
        { "no executable", { .program = "/etc/passwd", .argv = words }, EACCES },
        { "no such name", { .program = "no-such-program", .search = true, .argv = words }, ENOENT },
        { "no folder", { .program = "/bin/true", .argv = words, .folder = "/nonexistent" }, ENOENT },
        { "no descriptor", { .program = "/bin/true", .argv = words, .fds = { { 3, 999 } }, .fd_count = 1 }, EBADF },
        { "negative", { .program = "/bin/true", .argv = words, .fds = { { 3, -1 } }, .fd_count = 1 }, EBADF },
        { "the hook", { .program = "/bin/true", .argv = words, .enter = enter_fails }, ENOSPC },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_process_options options = rows[i].options;
        struct bh_err err = { 0 };
        int pidfd = -7;
        pid_t pid = -7;
        bh_rc rc;

        options.envp = no_environment;
        rc = bh_process_start(&options, &pid, &pidfd, &err);
        BH_CHECK(rows[i].name, rc != BH_OK);
        BH_CHECK_EQ(rows[i].name, err.sys, rows[i].want);
        BH_CHECK_EQ(rows[i].name, pid, -7);
        BH_CHECK_EQ(rows[i].name, pidfd, -7);
        BH_CHECK_EQ(rows[i].name, waitpid(-1, NULL, WNOHANG), -1); /* none is left */
    }
    BH_CHECK_DONE();
}

static void
one_killed_before_its_program_has_ended(void **state)
{
    static const char *const words[] = { "/bin/true", NULL };
    struct bh_process_options options = { .argv = words, .envp = no_environment, .enter = enter_is_killed };
    struct bh_err err;
    pid_t pid = 0;
    int status;

    assert_int_equal(bh_process_start(&options, &pid, NULL, &err), BH_OK);
    status = bh_process_wait(pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(bh_process_wait(pid), -1);
}

/* ---- the program's file ---- */

static void
an_open_file_is_executed(void **state)
{
    static const char *const words[] = { "/nonexistent", "-c", "exit 7", NULL };
    int shell = open("/bin/sh", O_RDONLY | O_CLOEXEC);
    struct bh_process_options options = { .argv = words, .envp = no_environment, .image = &shell };
    struct bh_err err;
    pid_t pid = 0;

    assert_int_equal(bh_process_start(&options, &pid, NULL, &err), BH_OK);
    assert_int_equal(WEXITSTATUS(bh_process_wait(pid)), 7);
    bh_fd_close(shell);
}

static void
a_script_is_read_by_its_name(void **state)
{
    char path[] = "/tmp/process-test-XXXXXX";
    const char *const words[] = { path, NULL };
    int script, fd = mkostemp(path, O_CLOEXEC);
    struct bh_process_options options = { .argv = words, .envp = no_environment, .image = &script };
    struct bh_err err;
    pid_t pid = 0;

    assert_int_equal(bh_fd_write_all(fd, "#!/bin/sh\nexit 9\n", 17, &err), BH_OK);
    assert_int_equal(fchmod(fd, 0700), 0);
    bh_fd_close(fd);
    script = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(bh_process_start(&options, &pid, NULL, &err), BH_OK);
    assert_int_equal(WEXITSTATUS(bh_process_wait(pid)), 9);
    bh_fd_close(script);
    unlink(path);
}

static void
a_name_is_looked_for(void **state)
{
    static const char *const words[] = { "true", NULL };
    struct bh_process_options options = { .argv = words, .envp = no_environment, .search = true };
    struct bh_err err;
    pid_t pid = 0;

    assert_int_equal(bh_process_start(&options, &pid, NULL, &err), BH_OK);
    assert_int_equal(bh_process_wait(pid), 0);
}

/* ---- descriptors ---- */

static int
count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void
starts_leak_nothing(void **state)
{
    static const char *const works[] = { "/bin/true", NULL }, *const fails[] = { "/nonexistent", NULL };
    int before = count_fds();

    for (int i = 0; i < 1000; i++) {
        bool good = i % 4 != 3;
        struct bh_process_options options = { .argv = good ? works : fails, .envp = no_environment };
        struct bh_err err;
        int pidfd = -1;
        pid_t pid = 0;
        bh_rc rc = bh_process_start(&options, &pid, &pidfd, &err);

        BH_CHECK_EQ("start", rc == BH_OK, good);
        if (rc != BH_OK)
            continue;
        BH_CHECK_EQ("close-on-exec", fcntl(pidfd, F_GETFD), FD_CLOEXEC);
        BH_CHECK_EQ("end", bh_process_wait(pid), 0);
        bh_fd_close(pidfd);
    }
    BH_CHECK_EQ("descriptors", count_fds(), before);
    BH_CHECK_DONE();
}

int
main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(child_sees_what_is_named),
        cmocka_unit_test(streams_may_be_closed),
        cmocka_unit_test(caller_keeps_its_mask),
        cmocka_unit_test(failures_are_the_callers),
        cmocka_unit_test(one_killed_before_its_program_has_ended),
        cmocka_unit_test(an_open_file_is_executed),
        cmocka_unit_test(a_script_is_read_by_its_name),
        cmocka_unit_test(a_name_is_looked_for),
        cmocka_unit_test(starts_leak_nothing),
    };

    if (argc > 0 && strcmp(argv[0], "child") == 0)
        return child_main();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
