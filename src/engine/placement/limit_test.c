#include "engine/placement/limit.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static void
limit_department_2(struct bh_fixture *fixture, struct bh_ev_tenant settings)
{
    settings.tenant.v = 2;
    settings.parent.v = 1;
    settings.kind = BH_TENANT_DEPARTMENT;
    bh_fixture_tenant(fixture, settings);
}

static void
a_limit_above_holds_back_and_lets_go(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t first, second;

    limit_department_2(fixture, (struct bh_ev_tenant){ .limit = 1000 });
    first = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    second = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_PENDING);
    assert_int_equal(bh_fixture_why(fixture, second).code, BH_REASON_QUOTA_GPU);
    assert_int_equal(bh_fixture_why(fixture, second).tenant.v, 2);
    bh_fixture_submit_running(fixture, bh_fixture_submission(31, 1, 1)); /* others do not suffer */
    bh_fixture_exit_job(fixture, first, 0);
    assert_int_equal(bh_fixture_state(fixture, second), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

static void
a_limit_of_a_sku_counts_partitions(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job;

    limit_department_2(
        fixture, (struct bh_ev_tenant){ .quota_count = 1, .quotas = { { BH_QUOTA_SKU, 1, .limit = 3 } } });
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 2));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 2));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_QUOTA_SKU);
    assert_int_equal(bh_fixture_why(fixture, job).used, 2);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1)); /* another SKU is free */
    bh_fixture_close(fixture);
}

/* Two limits hold a job back, one after another: while a job leaves, the use of others decides which limit is
 * met first, and so whether the end of that job helps. */
static void
a_second_limit_is_news_while_somebody_leaves(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(3);
    struct bh_ev_submit whole = bh_fixture_submission(21, 3, 1), small = bh_fixture_submission(21, 1, 1),
                        medium = bh_fixture_submission(21, 2, 1);
    uint64_t leaving, waiting;

    limit_department_2(fixture, (struct bh_ev_tenant){ .limit = 7000,
                                                       .quota_count = 1,
                                                       .quotas = { { BH_QUOTA_SKU, 1, .limit = 1 } } });
    whole.contract = small.contract = medium.contract = BH_CONTRACT_NEVER; /* no job may be preempted */
    leaving = bh_fixture_submit_running(fixture, whole);
    bh_fixture_submit_running(fixture, small);
    assert_int_equal(bh_fixture_cancel(fixture, leaving), BH_OK);
    waiting = bh_fixture_submit(fixture, small);
    assert_int_equal(bh_fixture_why(fixture, waiting).code, BH_REASON_QUOTA_SKU);
    bh_fixture_submit(fixture, medium); /* the story checks what is passed over */
    assert_int_equal(bh_fixture_why(fixture, waiting).code, BH_REASON_QUOTA_GPU);
    bh_fixture_close(fixture);
}

static void
what_no_limit_would_ever_allow_is_refused(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_tenant limits;
        uint32_t sku, count;
        bh_rc rc;
        /* clang-format off */
    } cases[] = {
        { "just within", { .limit = 1200 }, 1, 2, BH_OK },
        { "one too many", { .limit = 1200 }, 1, 3, BH_QUOTA },
        { "a whole GPU", { .limit = 4199 }, 3, 1, BH_QUOTA },
        { "pieces of the SKU", { .quota_count = 1, .quotas = { { BH_QUOTA_SKU, 1, .limit = 2 } } }, 1, 3, BH_QUOTA },
        { "another SKU", { .quota_count = 1, .quotas = { { BH_QUOTA_SKU, 1, .limit = 2 } } }, 2, 3, BH_OK },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);

        limit_department_2(fixture, cases[i].limits);
        BH_CHECK_EQ(cases[i].name,
                    bh_fixture_try_submit(fixture, bh_fixture_submission(21, cases[i].sku, cases[i].count)),
                    cases[i].rc);
        if (cases[i].rc == BH_QUOTA)
            BH_CHECK_EQ(cases[i].name, fixture->step.verdict.code, BH_REASON_NEVER_QUOTA);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* The one who is over its limit of a model may still have another model. */
static void
a_limit_of_a_model_counts_parts(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t job;

    limit_department_2(
        fixture, (struct bh_ev_tenant){ .quota_count = 1,
                                        .quotas = { { BH_QUOTA_MODEL, BH_GPU_H100_80GB, .limit = 1200 } } });
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 2));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, 1, 1));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_QUOTA_MODEL);
    assert_int_equal(bh_fixture_why(fixture, job).model, BH_GPU_H100_80GB);
    assert_int_equal(bh_fixture_why(fixture, job).used, 1200);
    bh_fixture_close(fixture);
}

static void
a_limit_of_a_user_counts_all_below(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit own = bh_fixture_submission(21, 1, 1), other = own;
    uint64_t job;

    limit_department_2(fixture, (struct bh_ev_tenant){ .user_limit = 600 });
    own.principal.v = 7;
    other.principal.v = 8;
    bh_fixture_submit_running(fixture, own);
    job = bh_fixture_submit(fixture, own);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_QUOTA_USER);
    bh_fixture_submit_running(fixture, other);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_limit_above_holds_back_and_lets_go),
    cmocka_unit_test(a_limit_of_a_sku_counts_partitions),
    cmocka_unit_test(a_limit_of_a_model_counts_parts),
    cmocka_unit_test(a_limit_of_a_user_counts_all_below),
    cmocka_unit_test(a_second_limit_is_news_while_somebody_leaves),
    cmocka_unit_test(what_no_limit_would_ever_allow_is_refused),
};
BH_TEST_MAIN(tests)
