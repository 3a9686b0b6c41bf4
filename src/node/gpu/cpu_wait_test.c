#include "node/gpu/cpu_wait.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

/* What is made of two readings that are 1000 apart. */
static void
test_starved(void **state)
{
    static const struct {
        const char *name;
        struct bh_cpu_wait before, after;
        bool starved;
        /* clang-format off */
    } cases[] = {
        { "sleeps", { true, false, 50, 10 }, { true, false, 50, 10 }, false },
        { "ran a little, then slept", { true, false, 50, 10 }, { true, false, 90, 200 }, false },
        { "spins in the driver", { true, true, 50, 10 }, { true, true, 1040, 20 }, false },
        { "waited for a quarter", { true, false, 50, 10 }, { true, false, 90, 260 }, true },
        { "waits, and that is not counted yet", { true, false, 50, 10 }, { true, true, 90, 10 },
          true },
        { "nothing is known before", { false, false, 0, 0 }, { true, true, 50, 900 }, false },
        { "nor after", { true, true, 50, 10 }, { false, false, 0, 0 }, false },
        { "a thread has gone", { true, false, 50, 900 }, { true, false, 60, 10 }, false },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_cpu_wait_starved(&cases[i].before, &cases[i].after, 1000),
                    cases[i].starved);
    BH_CHECK_DONE();
}

static void
test_read(void **state)
{
    struct bh_cpu_wait own = bh_cpu_wait_read(getpid()), stopped, gone;
    pid_t child = fork();
    int status;

    if (child == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    stopped = bh_cpu_wait_read(child);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    gone = bh_cpu_wait_read(child);
    if (!own.known)
        skip(); /* a kernel that does not say */
    BH_CHECK("one that runs", own.runnable && own.ran > 0);
    BH_CHECK("one that is stopped", stopped.known && !stopped.runnable);
    BH_CHECK("one that has gone", !gone.known && !gone.runnable);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_starved),
    cmocka_unit_test(test_read),
};
BH_TEST_MAIN(tests)
