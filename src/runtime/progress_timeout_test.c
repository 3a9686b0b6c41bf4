#include "runtime/progress_timeout.h"

#include "base/test.h"

enum { CHECKS = 4 };

/* When it is looked at, in seconds after the beginning, what was reached by then, and whether the
 * last look says to wait on. */
static const struct {
    const char *name;
    struct {
        unsigned seconds, reached;
    } checks[CHECKS];
    bool left;
    /* clang-format off */
} cases[] = {
    { "at once",              { { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } }, true },
    { "stands for a while",   { { 0, 0 }, { 1, 0 }, { 1, 0 }, { 2, 0 } }, true },
    { "stands",               { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 } }, false },
    { "gets on",              { { 1, 5 }, { 3, 9 }, { 5, 12 }, { 7, 12 } }, true },
    { "got on, then stands",  { { 1, 5 }, { 3, 9 }, { 5, 9 }, { 6, 9 } }, false },
    { "stood too long first", { { 0, 0 }, { 3, 0 }, { 4, 0 }, { 5, 0 } }, false },
    { "gets on to the last",  { { 4, 1 }, { 6, 2 }, { 8, 3 }, { 10, 4 } }, true },
    { "gets on for ever",     { { 4, 1 }, { 8, 2 }, { 10, 3 }, { 11, 4 } }, false },
    { "goes back",            { { 1, 9 }, { 3, 5 }, { 5, 9 }, { 7, 5 } }, true },
};
/* clang-format on */

static void
waits_while_there_is_progress(void **state)
{
    const bh_ns begin = 77 * BH_NS_PER_S;

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_progress_timeout timeout = bh_progress_timeout_begin(begin);
        bool left = false;

        for (int k = 0; k < CHECKS; k++)
            left = bh_progress_timeout_is_left(&timeout, begin + cases[i].checks[k].seconds * BH_NS_PER_S,
                                               cases[i].checks[k].reached);
        BH_CHECK_EQ(cases[i].name, left, cases[i].left);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(waits_while_there_is_progress) };
BH_TEST_MAIN(tests)
