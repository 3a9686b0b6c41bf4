/* Under the filter, each in a child of its own: what answering takes works, what a thief of
 * the key would do does not. */
#include "signer/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

static bool
writes_a_file(void)
{
    char path[] = "/tmp/bh-signer-XXXXXX";
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd >= 0 && write(fd, "x", 1) == 1 && fchmod(fd, 0600) == 0 && fsync(fd) == 0
           && rename(path, path) == 0 && unlink(path) == 0 && close(fd) == 0;
}

static bool
filter_allocates(void)
{
    char *volatile bytes = malloc(1 << 20);
    bool got = bytes != NULL;

    free(bytes);
    return got;
}

static bool
runs_a_program(void)
{
    char *const argv[] = { (char *)(uintptr_t) "true", NULL };

    execv("/bin/true", argv);
    return errno != EPERM;
}

static bool
opens_a_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || errno != EPERM;
}

static bool
forks(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return pid > 0;
}

static bool
makes_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static bool
traces(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 || errno != EPERM;
}

static bool
dumps(void)
{
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static const struct {
    const char *name;
    bool (*try)(void);
    bool works;
    /* clang-format off */
} rows[] = {
    { "a file", writes_a_file, true },      { "memory", filter_allocates, true },
    { "a program", runs_a_program, false }, { "a socket", opens_a_socket, false },
    { "a child", forks, false },            { "code", makes_code, false },
    { "a debugger", traces, false },        { "a dump", dumps, false },
};
/* clang-format on */

static void
each(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        pid_t pid = fork();
        struct bh_err err;
        int status = 0;

        if (pid == 0) {
            if (bh_signer_drop(&err) != BH_OK || bh_signer_filter(&err) != BH_OK)
                _exit(2);
            _exit(rows[i].try() ? 1 : 0);
        }
        waitpid(pid, &status, 0);
        BH_CHECK(rows[i].name, WIFEXITED(status));
        BH_CHECK_EQ(rows[i].name, WEXITSTATUS(status), rows[i].works);
    }
    BH_CHECK_DONE();
}

static void
no_dump(void **state)
{
    pid_t pid = fork();
    struct rlimit limit;
    struct bh_err err;
    int status;

    if (pid == 0)
        _exit(bh_signer_drop(&err) == BH_OK && prctl(PR_GET_DUMPABLE) == 0
              && getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0);
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each),
    cmocka_unit_test(no_dump),
};

BH_TEST_MAIN(tests)
