#include "model/boundary.h"

#include "base/attr.h"
#include "base/test.h"

static void
kinds_have_default_boundaries(void **state)
{
    BH_CHECK_EQ("organization", bh_boundary_default(BH_TENANT_ORGANIZATION), BH_BOUNDARY_FORTRESS);
    BH_CHECK_EQ("department", bh_boundary_default(BH_TENANT_DEPARTMENT), BH_BOUNDARY_HARD);
    BH_CHECK_EQ("team", bh_boundary_default(BH_TENANT_TEAM), BH_BOUNDARY_SOFT);
    BH_CHECK_EQ("project", bh_boundary_default(BH_TENANT_PROJECT), BH_BOUNDARY_NONE);
    BH_CHECK_DONE();
}

static void
boundaries_ask_for_grades(void **state)
{
    static const struct {
        const char *name;
        enum bh_boundary boundary;
        enum bh_grade grade;
        bool keeps;
    } cases[] = {
        { "MIG beside a project", BH_BOUNDARY_NONE, BH_GRADE_C, true },
        { "shim beside a project", BH_BOUNDARY_NONE, BH_GRADE_F, true },
        { "advisory beside a project", BH_BOUNDARY_NONE, BH_GRADE_G, false },
        { "shim beside a team", BH_BOUNDARY_SOFT, BH_GRADE_F, true },
        { "shim beside a department", BH_BOUNDARY_HARD, BH_GRADE_F, false },
        { "MIG beside a department", BH_BOUNDARY_HARD, BH_GRADE_C, true },
        { "MIG beside a fortress", BH_BOUNDARY_FORTRESS, BH_GRADE_C, false },
        { "whole GPU beside a fortress", BH_BOUNDARY_FORTRESS, BH_GRADE_B, true },
        { "no grade at all", BH_BOUNDARY_NONE, BH_GRADE_NONE, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, bh_grade_meets(cases[i].grade, bh_boundary_grade(cases[i].boundary)),
                    cases[i].keeps);
    BH_CHECK_DONE();
}

static void
the_stronger_boundary_counts(void **state)
{
    BH_CHECK_EQ("left", bh_boundary_max(BH_BOUNDARY_HARD, BH_BOUNDARY_SOFT), BH_BOUNDARY_HARD);
    BH_CHECK_EQ("right", bh_boundary_max(BH_BOUNDARY_NONE, BH_BOUNDARY_FORTRESS), BH_BOUNDARY_FORTRESS);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(kinds_have_default_boundaries),
    cmocka_unit_test(boundaries_ask_for_grades),
    cmocka_unit_test(the_stronger_boundary_counts),
};
BH_TEST_MAIN(tests)
