#include "runtime/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"

enum { PROGRAM_MAX = 4 << 20 };

static char folder[] = "/tmp/sealed-test-XXXXXX", program[64];

/* Put a copy of the machine's program there. */
static void
install(const char *path)
{
    struct bh_buf text;
    struct bh_err err;

    bh_buf_init(&text, PROGRAM_MAX);
    assert_int_equal(bh_file_read(path, PROGRAM_MAX, &text, &err), BH_OK);
    assert_int_equal(bh_file_replace(program, text.bytes, text.length, 0755, &err), BH_OK);
    bh_buf_fini(&text);
}

/* The status that what the descriptor leads to ends with. */
static int
sealed_test_run(int fd)
{
    char *argv[] = { program, NULL };
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        fexecve(fd, argv, environ);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
test_copy(void **state)
{
    struct bh_sealed_program sealed = { 0 };
    int fd = -1, again = -1;
    struct bh_err err;

    install("/bin/true");
    BH_CHECK_EQ("made", bh_sealed_open(&sealed, program, &fd, &err), BH_OK);
    BH_CHECK_EQ("it runs", sealed_test_run(fd), 0);
    BH_CHECK_EQ("its seals are crun's", fcntl(fd, F_GET_SEALS),
                F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    BH_CHECK("nobody writes it", write(fd, "x", 1) < 0 && errno == EPERM);
    BH_CHECK_EQ("asked again", bh_sealed_open(&sealed, program, &again, &err), BH_OK);
    BH_CHECK_EQ("one copy serves", again, fd);
    install("/bin/false");
    BH_CHECK_EQ("another program", bh_sealed_open(&sealed, program, &fd, &err), BH_OK);
    BH_CHECK_EQ("is copied anew", sealed_test_run(fd), 1);
    unlink(program);
    BH_CHECK_EQ("gone", bh_sealed_open(&sealed, program, &fd, &err), BH_NOT_FOUND);
    bh_sealed_close(&sealed);
    BH_CHECK_DONE();
}

static int
set_up(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(program, sizeof program, "%s/program", folder);
    return 0;
}

static int
tear_down(void **state)
{
    return rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_copy) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
