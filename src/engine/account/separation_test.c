#include "engine/account/separation.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static bh_rc
separation_test_set(struct bh_fixture *fixture, struct bh_ev_tenant tenant)
{
    tenant.limit = tenant.limit ? tenant.limit : BH_UNLIMITED;
    return bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = tenant });
}

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
    struct bh_fixture *fixture = bh_fixture_site(1);

    separation_test_set(fixture, (struct bh_ev_tenant){ .tenant = { 9 }, .kind = BH_TENANT_ORGANIZATION });
    separation_test_set(
        fixture, (struct bh_ev_tenant){ .tenant = { 22 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT });
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
