#include "base/test.h"

#include <stdlib.h>

static const struct {
    const char *slow; /* NULL: it is not said */
    int of_ten;
} rows[] = {
    { NULL, 10 },  { "", 10 },  { "1", 10 },   { "0.5", 10 },   { "1.0", 10 },
    { "1.9", 20 }, { "2", 20 }, { "2.1", 30 }, { "10.0", 100 },
};

/* A test in C waits no shorter than one in Python, which takes the number as it is. */
static void
test_patience(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].slow)
            setenv("BULKHEAD_TEST_SLOW", rows[i].slow, 1);
        else
            unsetenv("BULKHEAD_TEST_SLOW");
        BH_CHECK_EQ(rows[i].slow ? rows[i].slow : "not said", bh_test_scaled(10), rows[i].of_ten);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_patience),
};

BH_TEST_MAIN(tests)
