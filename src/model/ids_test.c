#include "model/ids.h"

#include "base/attr.h"
#include "base/test.h"

static const struct {
    const char *name, *text;
    bool valid;
} cases[] = {
    { "a letter", "a", true },
    { "a digit", "7", true },
    { "with marks inside", "team-a_1.b", true },
    { "empty", "", false },
    { "begins with a mark", "-a", false },
    { "ends with a mark", "a.", false },
    { "upper case", "Team", false },
    { "a slash", "a/b", false },
    { "a space", "a b", false },
    { "a control character", "a\nb", false },
    { "not ASCII", "\xc3\xa4", false },
    { "63 characters", "a23456789012345678901234567890123456789012345678901234567890123", true },
    { "64 characters", "a234567890123456789012345678901234567890123456789012345678901234", false },
};

static void
names_are_plain(void **state)
{
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_name_valid(cases[i].text), cases[i].valid);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(names_are_plain) };
BH_TEST_MAIN(tests)
