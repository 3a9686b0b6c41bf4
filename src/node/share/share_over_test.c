#include "node/share/share_over.h"

#include <string.h>

#include "base/test.h"

enum { SECONDS = 16 };

/* A character a second: '+' it is over its cap, '.' it is not; and what is done then: Warn,
 * Throttle, Stop, Release, - nothing. */
static const struct {
    const char *name;
    enum bh_over_cap policy;
    const char *over, *done;
} cases[] = {
    { "within", BH_OVER_CAP_STOP, "......", "------" },
    { "for a moment", BH_OVER_CAP_STOP, "+++...", "------" },
    { "three seconds", BH_OVER_CAP_WARN, "++++", "---W" },
    { "said once", BH_OVER_CAP_WARN, "++++++", "---W--" },
    { "with breaks", BH_OVER_CAP_STOP, "+++.+++.++++", "-----------S" },
    { "stopped once", BH_OVER_CAP_STOP, "++++++", "---S--" },
    { "throttled, back", BH_OVER_CAP_THROTTLE, "+++++....", "---T----R" },
    { "not for a moment", BH_OVER_CAP_THROTTLE, "++++..++....", "---T-------R" },
    { "over once more", BH_OVER_CAP_THROTTLE, "++++....++++", "---T---R---T" },
    { "warned again", BH_OVER_CAP_WARN, "++++....++++", "---W-------W" },
};

static void
test_deeds(void **state)
{
    static const char letters[BH_SHARE_ACTIONS + 1] = "-WTSR";

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_share_over at = { 0 };
        char done[SECONDS + 1] = "";
        size_t count = strlen(cases[i].over);

        assert_true(count <= SECONDS && strlen(cases[i].done) == count);
        for (size_t s = 0; s < count; s++)
            done[s] = letters[bh_share_over_check(&at, cases[i].policy, cases[i].over[s] == '+',
                                                  (s + 100) * BH_NS_PER_S)];
        BH_CHECK_STR(cases[i].name, done, cases[i].done);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(test_deeds) };
BH_TEST_MAIN(tests)
