#include "engine/account/separation.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

/* Organization 1 with departments 2 and 3 and projects 21 and 31; organization 9. */
static void
the_strongest_boundary_on_the_way_counts(void **state)
{
    static const struct {
        const char *name;
        uint32_t a, b;
        enum bh_boundary boundary;
    } cases[] = {
        { "itself", 21, 21, BH_BOUNDARY_NONE },
        { "a project and its department", 21, 2, BH_BOUNDARY_NONE },
        { "two projects of a department", 21, 22, BH_BOUNDARY_NONE },
        { "two departments", 21, 31, BH_BOUNDARY_HARD },
        { "the other way round", 31, 21, BH_BOUNDARY_HARD },
        { "two organizations", 21, 9, BH_BOUNDARY_FORTRESS },
        { "an unknown tenant", 21, 77, BH_BOUNDARY_FORTRESS },
    };
    static const struct bh_ev_tenant added[] = {
        { .tenant = { 9 }, .kind = BH_TENANT_ORGANIZATION, .limit = BH_UNLIMITED },
        { .tenant = { 22 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT, .limit = BH_UNLIMITED },
    };
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(added); i++)
        assert_int_equal(
            bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = added[i] }),
            BH_OK);
    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(
            cases[i].name,
            bh_view_boundary(fixture->engine, (bh_tenant_id){ cases[i].a }, (bh_tenant_id){ cases[i].b }),
            cases[i].boundary);
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_strongest_boundary_on_the_way_counts),
};
BH_TEST_MAIN(tests)
