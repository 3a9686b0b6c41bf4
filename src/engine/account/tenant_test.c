#include "engine/account/tenant.h"

#include "engine/step/fixture_test.h"

/* Organization 1 with departments 2 and 3 and projects 21 and 31. */
static void
a_tenant_is_within_itself_and_all_above(void **state)
{
    static const struct {
        const char *name;
        uint32_t above, tenant;
        bool within;
    } cases[] = {
        { "itself", 21, 21, true },          { "its department", 2, 21, true },
        { "its organization", 1, 21, true }, { "a different department", 3, 21, false },
        { "below it", 21, 2, false },
    };
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name,
                    bh_view_within(fixture->engine, (bh_tenant_id){ cases[i].above },
                                   (bh_tenant_id){ cases[i].tenant }),
                    cases[i].within);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_tenant_is_within_itself_and_all_above),
};
BH_TEST_MAIN(tests)
