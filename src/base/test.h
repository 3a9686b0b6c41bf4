#ifndef BH_BASE_TEST_H
#define BH_BASE_TEST_H

/* Checks for table tests, on top of cmocka: a failed check names its row and the
 * test goes on, so that one run shows every bad row.  Tests only. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

static int bh_test_failures __attribute__((unused));

#define BH_CHECK_EQ(name, got, want)                                                                         \
    do {                                                                                                     \
        long long got_ = (long long)(got), want_ = (long long)(want);                                        \
        if (got_ != want_) {                                                                                 \
            fprintf(stderr, "%s:%d: %s: %s is %lld, want %lld\n", __FILE__, __LINE__, (name), #got, got_,    \
                    want_);                                                                                  \
            bh_test_failures++;                                                                              \
        }                                                                                                    \
    } while (0)

#define BH_CHECK_STR(name, got, want)                                                                        \
    do {                                                                                                     \
        const char *got_ = (got), *want_ = (want);                                                           \
        if (!got_ || !want_ || strcmp(got_, want_) != 0) {                                                   \
            fprintf(stderr, "%s:%d: %s: %s is \"%s\", want \"%s\"\n", __FILE__, __LINE__, (name), #got,      \
                    got_ ? got_ : "(null)", want_ ? want_ : "(null)");                                       \
            bh_test_failures++;                                                                              \
        }                                                                                                    \
    } while (0)

#define BH_CHECK(name, condition) BH_CHECK_EQ(name, !!(condition), 1)

/* Fails the test when any check since the last call failed. */
#define BH_CHECK_DONE()                                                                                      \
    do {                                                                                                     \
        int failures_ = bh_test_failures;                                                                    \
        bh_test_failures = 0;                                                                                \
        assert_int_equal(failures_, 0);                                                                      \
    } while (0)

/* So many times more of what a test waits for, and of what it has the product wait for, on a
 * machine that says it is slow (BULKHEAD_TEST_SLOW; tools/run-tests, tools/test-vm); a part of
 * one counts as one. */
static inline int __attribute__((unused)) bh_test_scaled(int time)
{
    const char *slow = getenv("BULKHEAD_TEST_SLOW");
    double exact = slow ? strtod(slow, NULL) : 1;
    int times = (int)exact < exact ? (int)exact + 1 : (int)exact;

    return times > 1 ? time * times : time;
}

/* The test program's main: TAP on standard output. */
#define BH_TEST_MAIN(tests)                                                                                  \
    int main(void)                                                                                           \
    {                                                                                                        \
        cmocka_set_message_output(CM_OUTPUT_TAP);                                                            \
        return cmocka_run_group_tests(tests, NULL, NULL);                                                    \
    }

#endif
