#include "base/assert.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void (*assert_hook)(const struct bh_assert_failure *failure);

enum { HOOK_SECONDS = 10 };

static _Atomic(assert_hook) hook;
static atomic_bool failing;
static _Thread_local bool in_hook;

void
bh_assert_on_failure(assert_hook write)
{
    atomic_store(&hook, write);
}

/* SIGALRM ends the process, whatever the program did with it. */
static void
assert_bound_hook(void)
{
    sigset_t set;

    signal(SIGALRM, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(HOOK_SECONDS);
}

void
bh_assert_fail(const char *condition, const char *file, int line)
{
    const struct bh_assert_failure failure = { condition, file, line };
    assert_hook write = atomic_load(&hook);

    fprintf(stderr, "bulkhead: assertion failed: %s (%s:%d)\n", condition, file, line);
    if (write && !in_hook) {
        in_hook = true;
        while (atomic_exchange(&failing, true))
            pause(); /* the first to fail ends the process */
        assert_bound_hook();
        write(&failure);
    }
    abort();
}
