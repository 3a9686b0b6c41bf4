#include "base/assert.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

static void
test_true_goes_on(void **state)
{
    int evaluated = 0;

    BH_ASSERT(++evaluated);
    BH_CHECK_EQ("once", evaluated, 1);
    BH_CHECK_DONE();
}

/* What a child that fails an assertion says on standard error, and how it ends. */
static int
failing_child(char *ret_output, size_t size)
{
    int ends[2], status = 0;
    ssize_t got;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        BH_ASSERT(2 + 2 == 5);
        _exit(0);
    }
    close(ends[1]);
    got = read(ends[0], ret_output, size - 1);
    ret_output[got < 0 ? 0 : got] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void
test_false_aborts_with_one_line(void **state)
{
    char output[256];
    int status = failing_child(output, sizeof output);

    BH_CHECK("ended by a signal", WIFSIGNALED(status));
    BH_CHECK_EQ("abort", WTERMSIG(status), SIGABRT);
    BH_CHECK("says what", strstr(output, "bulkhead: assertion failed: 2 + 2 == 5 ("));
    BH_CHECK("says where", strstr(output, "assert_test.c:"));
    BH_CHECK("one line", strchr(output, '\n') == output + strlen(output) - 1);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_true_goes_on),
    cmocka_unit_test(test_false_aborts_with_one_line),
};

BH_TEST_MAIN(tests)
