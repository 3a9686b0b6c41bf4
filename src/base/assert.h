#ifndef BH_BASE_ASSERT_H
#define BH_BASE_ASSERT_H

/* Asserts catch our own bugs, stay on in release builds and never judge outside
 * input.  A failed one prints one line and aborts: the store is the truth and
 * the supervisor starts the program again. */
#define BH_ASSERT(condition)                                                                                 \
    (__builtin_expect(!!(condition), 1) ? (void)0 : bh_assert_fail(#condition, __FILE__, __LINE__))

_Noreturn void bh_assert_fail(const char *condition, const char *file, int line);

#endif
