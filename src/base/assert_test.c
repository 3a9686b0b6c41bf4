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
    size_t length = 0;
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
    while ((got = read(ends[0], ret_output + length, size - 1 - length)) > 0)
        length += (size_t)got;
    ret_output[length] = '\0';
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

static void
write_line(const struct bh_assert_failure *failure)
{
    dprintf(STDERR_FILENO, "hook: %s at %d\n", failure->condition, failure->line > 0);
}

static void
fail_inside(const struct bh_assert_failure *failure)
{
    write_line(failure);
    BH_ASSERT(1 == 2);
}

static void
hang_up(const struct bh_assert_failure *failure)
{
    write_line(failure);
    raise(SIGALRM); /* as the alarm that bounds it */
}

static void
test_a_hook_runs_once_before_the_end(void **state)
{
    static const struct {
        const char *name, *says;
        void (*hook)(const struct bh_assert_failure *failure);
        int signal;
    } cases[] = {
        { "writes", "hook: 2 + 2 == 5 at 1\n", write_line, SIGABRT },
        { "fails itself", "assertion failed: 1 == 2", fail_inside, SIGABRT },
        { "does not end", "hook: 2 + 2 == 5 at 1\n", hang_up, SIGALRM },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char output[512];
        const char *hook;
        int status;

        bh_assert_on_failure(cases[i].hook);
        status = failing_child(output, sizeof output);
        BH_CHECK(cases[i].name, WIFSIGNALED(status));
        BH_CHECK_EQ(cases[i].name, WTERMSIG(status), cases[i].signal);
        BH_CHECK(cases[i].name, strstr(output, cases[i].says));
        hook = strstr(output, "hook: ");
        BH_CHECK("once", hook && !strstr(hook + 1, "hook: "));
    }
    bh_assert_on_failure(NULL);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_true_goes_on),
    cmocka_unit_test(test_false_aborts_with_one_line),
    cmocka_unit_test(test_a_hook_runs_once_before_the_end),
};

BH_TEST_MAIN(tests)
