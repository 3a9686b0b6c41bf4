#include "model/role.h"

#include "base/test.h"

static void
every_role_is_found_by_its_name(void **state)
{
    for (int role = BH_ROLE_VIEWER; role < BH_ROLES; role++)
        BH_CHECK_EQ(bh_role_names[role], bh_role_find(bh_role_names[role]), role);
    BH_CHECK_EQ("none grants nothing", bh_role_find("none"), BH_ROLE_NONE);
    BH_CHECK_EQ("unknown", bh_role_find("root"), BH_ROLE_NONE);
    BH_CHECK_EQ("case", bh_role_find("Admin"), BH_ROLE_NONE);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(every_role_is_found_by_its_name) };
BH_TEST_MAIN(tests)
