#include "engine/gpu/capacity.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

/* Do two tenants' small jobs come onto one GPU, onto one node? */
static void
boundaries_decide_which_jobs_are_neighbors(void **state)
{
    static const struct {
        const char *name;
        enum bh_boundary boundary;
        bool dedicated;
        bool same_gpu, same_node;
    } cases[] = {
        { "none", BH_BOUNDARY_NONE, false, true, true },
        { "soft", BH_BOUNDARY_SOFT, false, true, true },
        { "hard", BH_BOUNDARY_HARD, false, true, true },
        { "fortress", BH_BOUNDARY_FORTRESS, false, false, true },
        { "dedicated nodes", BH_BOUNDARY_HARD, true, false, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(2);
        uint64_t one, other;

        bh_fixture_h100s(fixture, 2, 11, 2);
        bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                          .parent = { 1 },
                                                          .kind = BH_TENANT_DEPARTMENT,
                                                          .boundary = cases[i].boundary,
                                                          .dedicated_nodes = cases[i].dedicated });
        one = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
        other = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1));
        BH_CHECK_EQ(cases[i].name,
                    bh_fixture_placement_of(fixture, one) / 100
                        == bh_fixture_placement_of(fixture, other) / 100,
                    cases[i].same_gpu);
        BH_CHECK_EQ(cases[i].name,
                    bh_same(bh_fixture_job(fixture, one).node, bh_fixture_job(fixture, other).node),
                    cases[i].same_node);
        BH_CHECK_EQ(cases[i].name, bh_fixture_job(fixture, other).grade,
                    cases[i].dedicated ? BH_GRADE_A : BH_GRADE_C);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
a_whole_gpu_is_grade_b(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));

    assert_int_equal(bh_fixture_job(fixture, job).grade, BH_GRADE_B);
    bh_fixture_close(fixture);
}

static void
a_sku_of_a_stronger_grade_is_not_served_by_mig(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event event = { .kind = BH_EV_SKU };
    uint64_t job;

    event.u.sku = (struct bh_ev_sku){ .sku = { 4 }, .grade = BH_GRADE_B, .model_count = 1 };
    event.u.sku.models[0].model = BH_GPU_H100_80GB;
    event.u.sku.models[0].profile = bh_profile_find(BH_GPU_H100_80GB, "3g.40gb")->id.v;
    bh_fixture_must_send(fixture, &event);
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 4, 1));
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_NEVER_SHAPE);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(boundaries_decide_which_jobs_are_neighbors),
    cmocka_unit_test(a_whole_gpu_is_grade_b),
    cmocka_unit_test(a_sku_of_a_stronger_grade_is_not_served_by_mig),
};
BH_TEST_MAIN(tests)
