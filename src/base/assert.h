#ifndef BH_BASE_ASSERT_H
#define BH_BASE_ASSERT_H

/* Asserts catch our own bugs, stay on in release builds and never judge outside
 * input.  A failed one prints one line and aborts: the store is the truth and
 * the supervisor starts the program again. */
#define BH_ASSERT(condition)                                                                                 \
    (__builtin_expect(!!(condition), 1) ? (void)0 : bh_assert_fail(#condition, __FILE__, __LINE__))

_Noreturn void bh_assert_fail(const char *condition, const char *file, int line);

/* Which one failed; the texts are constants of the program. */
struct bh_assert_failure {
    const char *condition, *file;
    int line;
};

/* Have `write` called once before a failed assert aborts, in the thread that failed; NULL: nothing is.
 *
 * The state of the program is wrong and its locks may be held: `write` takes none, allocates
 * nothing and uses memory that was set aside before.  A second assert that fails inside it aborts at once;
 * one of a different thread waits for the end.  A write that hangs is ended by SIGALRM after 10 seconds. */
void bh_assert_on_failure(void (*write)(const struct bh_assert_failure *failure));

#endif
