#include "engine/placement/guarantee.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

#define NOTHING                                                                                              \
    {                                                                                                        \
        .limit = 0                                                                                           \
    } /* the story takes that for none */

/* Department 2 and its project 21, which has `used` whole H100s of four; a job of the
 * project that wants one more. */
static void
guarantees_cover_what_they_name(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_tenant department, project;
        uint32_t used;
        enum bh_cover cover;
        /* clang-format off */
    } cases[] = {
        { "no guarantee at all", NOTHING, NOTHING, 0, BH_COVER_NONE },
        { "its own", NOTHING, { .guarantee = 4200 }, 0, BH_COVER_ALL },
        { "its own, used up", NOTHING, { .guarantee = 4200 }, 1, BH_COVER_NONE },
        { "that of the department", { .guarantee = 8400 }, NOTHING, 1, BH_COVER_ALL },
        { "its own, but the department's is used up",
          { .guarantee = 4200 }, { .guarantee = 8400 }, 1, BH_COVER_WITHIN },
        { "that of the department is used up, and its own", { .guarantee = 4200 },
          { .guarantee = 4200 }, 1, BH_COVER_NONE },
        { "of the model", NOTHING,
          { .quota_count = 1,
            .quotas = { { BH_QUOTA_MODEL, BH_GPU_H100_80GB, BH_UNLIMITED, 4200 } } }, 0, BH_COVER_ALL },
        { "of another model", NOTHING,
          { .quota_count = 1,
            .quotas = { { BH_QUOTA_MODEL, BH_GPU_A30_24GB, BH_UNLIMITED, 4200 } } }, 0, BH_COVER_NONE },
        { "of the SKU, in pieces", NOTHING,
          { .quota_count = 1, .quotas = { { BH_QUOTA_SKU, 3, BH_UNLIMITED, 2 } } }, 1, BH_COVER_ALL },
        { "of the SKU, used up", NOTHING,
          { .quota_count = 1, .quotas = { { BH_QUOTA_SKU, 3, BH_UNLIMITED, 1 } } }, 1, BH_COVER_NONE },
        { "of the SKU, though that of all GPUs is used up", NOTHING,
          { .guarantee = 4200, .quota_count = 1,
            .quotas = { { BH_QUOTA_SKU, 3, BH_UNLIMITED, 2 } } }, 1, BH_COVER_ALL },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(4);
        struct bh_ev_tenant department = cases[i].department, project = cases[i].project;
        struct bh_wanted wanted = { .tenant = tenant_find(fixture->engine, 21),
                                    .sku = sku_find(fixture->engine, 3),
                                    .count = 1,
                                    .equivalent = 4200,
                                    .model = BH_GPU_H100_80GB };
        uint32_t within;

        department.tenant.v = 2;
        department.parent.v = 1;
        department.kind = BH_TENANT_DEPARTMENT;
        project.tenant.v = 21;
        project.parent.v = 2;
        project.kind = BH_TENANT_PROJECT;
        bh_fixture_tenant(fixture, department);
        bh_fixture_tenant(fixture, project);
        for (uint32_t k = 0; k < cases[i].used; k++)
            bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
        BH_CHECK_EQ(cases[i].name, bh_guarantee_cover(fixture->engine, &wanted, &within), cases[i].cover);
        BH_CHECK_EQ(cases[i].name, within,
                    cases[i].cover == BH_COVER_WITHIN ? tenant_find(fixture->engine, 2) : 0);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
what_is_not_lent_stays_free(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job;

    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                      .parent = { 1 },
                                                      .kind = BH_TENANT_DEPARTMENT,
                                                      .guarantee = 4200,
                                                      .withhold = 2100 });
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_KEPT);
    assert_int_equal(bh_fixture_why(fixture, job).tenant.v, 3);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1)); /* the half that is lent */
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 2, 1)); /* and the half that is not */
    bh_fixture_close(fixture);
}

/* Department 3 keeps a whole GPU back, in partitions of an unused SKU. */
static void
what_was_kept_of_a_sku_is_free_once_it_is_gone(void **state)
{
    struct bh_event gone = { .kind = BH_EV_SKU_REMOVE, .u.sku.sku = { 9 } };
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job;

    bh_fixture_sku(fixture, 9, NULL);
    bh_fixture_tenant(fixture,
                      (struct bh_ev_tenant){ .tenant = { 3 },
                                             .parent = { 1 },
                                             .kind = BH_TENANT_DEPARTMENT,
                                             .quota_count = 1,
                                             .quotas = { { BH_QUOTA_SKU, 9, BH_UNLIMITED, 1, 1 } } });
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_KEPT);
    bh_fixture_must_send(fixture, &gone);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* Department 3 is guaranteed one of two GPUs; 2 borrows. */
static void
what_is_expected_stays_free(void **state)
{
    static const struct {
        const char *name;
        enum bh_lending lending;
        uint64_t expected, withhold;
        enum bh_reason_code code; /* of a second whole GPU for 2 */
    } cases[] = {
        { "nothing is known", BH_LEND_FORECAST, 0, 0, BH_REASON_STARTING },
        { "all of it", BH_LEND_FORECAST, 4200, 0, BH_REASON_KEPT_FORECAST },
        { "a little of it", BH_LEND_FORECAST, 1, 0, BH_REASON_KEPT_FORECAST },
        { "more than it is guaranteed", BH_LEND_FORECAST, 42000, 0, BH_REASON_KEPT_FORECAST },
        { "but all is lent", BH_LEND_ALL, 4200, 0, BH_REASON_STARTING },
        { "less than it withholds anyway", BH_LEND_FORECAST, 600, 2100, BH_REASON_KEPT },
        { "more than it withholds", BH_LEND_FORECAST, 4200, 2100, BH_REASON_KEPT_FORECAST },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(2);
        struct bh_event settings = { .kind = BH_EV_SETTINGS }, advice = { .kind = BH_EV_ADVICE };
        uint64_t job;

        bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 3 },
                                                          .parent = { 1 },
                                                          .kind = BH_TENANT_DEPARTMENT,
                                                          .guarantee = 4200,
                                                          .withhold = cases[i].withhold });
        bh_view_settings(fixture->engine, &settings.u.settings);
        settings.u.settings.lending = cases[i].lending;
        bh_fixture_must_send(fixture, &settings);
        advice.u.advice.tenant.v = 3;
        advice.u.advice.expected = cases[i].expected;
        bh_fixture_must_send(fixture, &advice);
        bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
        job = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
        BH_CHECK_EQ(cases[i].name, bh_fixture_why(fixture, job).code, cases[i].code);
        if (cases[i].code == BH_REASON_KEPT_FORECAST)
            BH_CHECK_EQ(cases[i].name, bh_fixture_why(fixture, job).expected, cases[i].expected);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(guarantees_cover_what_they_name),
    cmocka_unit_test(what_is_not_lent_stays_free),
    cmocka_unit_test(what_was_kept_of_a_sku_is_free_once_it_is_gone),
    cmocka_unit_test(what_is_expected_stays_free),
};
BH_TEST_MAIN(tests)
