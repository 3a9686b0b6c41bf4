#include "fetch/cache_control.h"

#include "base/test.h"

static void
values(void **state)
{
    static const struct {
        const char *value;
        uint32_t max_age_s;
    } rows[] = {
        { "max-age=300", 300 },
        { "public, max-age=21600, must-revalidate, no-transform", 21600 },
        { "Max-Age=\"60\"", 60 },
        { " max-age=5 \r\n", 5 },
        { "max-age=300,max-age=200", 200 },
        { "max-age=300, no-store", 0 },
        { "no-cache=\"set-cookie\", max-age=300", 0 },
        { "s-maxage=300", 0 },
        { "x-max-age=300", 0 },
        { "max-age=4294967295", UINT32_MAX },
        { "max-age=4294967296", UINT32_MAX },
        { "max-age=99999999999999999999999999999999", UINT32_MAX },
        { "max-age=-1", 0 },
        { "max-age=1.5", 0 },
        { "max-age=", 0 },
        { "max-age", 0 },
        { "max-age =300", 0 },
        { ",,max-age=7,,", 7 },
        { "", 0 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        BH_CHECK_EQ(rows[i].value, bh_cache_control_max_age(rows[i].value, strlen(rows[i].value)),
                    rows[i].max_age_s);
    BH_CHECK_EQ("cut", bh_cache_control_max_age("max-age=300", 9), 3);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(values) };

BH_TEST_MAIN(tests)
