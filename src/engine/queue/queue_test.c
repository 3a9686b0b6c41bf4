#include "engine/queue/queue.h"

#include "base/attr.h"
#include "engine/placement/guarantee.h"
#include "engine/step/fixture_test.h"

static void
candidates_stand_in_order(void **state)
{
    static const struct {
        const char *name;
        struct bh_queue_entry a, b;
        /* clang-format off */
    } cases[] = {
        { "against all before against siblings", { .cover = BH_COVER_ALL, .priority = 1 },
          { .cover = BH_COVER_WITHIN, .priority = 4 } },
        { "guaranteed before priority", { .cover = BH_COVER_WITHIN, .priority = 1 }, { .priority = 4 } },
        { "priority before age", { .priority = 3, .sequence = 9 }, { .priority = 2, .sequence = 1 } },
        { "age before id", { .sequence = 1, .id = 9 }, { .sequence = 2, .id = 1 } },
        { "then the id", { .sequence = 1, .id = 1 }, { .sequence = 1, .id = 2 } },
    };
    /* clang-format on */
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_queue_entry a = cases[i].a, b = cases[i].b;

        a.tenant = b.tenant = 1;
        BH_CHECK(cases[i].name, bh_queue_before(fixture->engine, &a, &b));
        BH_CHECK(cases[i].name, !bh_queue_before(fixture->engine, &b, &a));
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* One GPU, taken whole; who gets it next? */
static void
the_queue_is_served_in_order(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event fifo = { .kind = BH_EV_SETTINGS };
    struct bh_ev_submit urgent = bh_fixture_submission(31, 3, 1);
    uint64_t now = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1)), expected[4];

    fifo.u.settings = (struct bh_ev_settings){ .order = BH_ORDER_FIFO,
                                               .backfill = true,
                                               .half_life_ns = BH_HALF_LIFE_DEFAULT_NS,
                                               .assumed_run_ns = 86400000000000 };
    bh_fixture_must_send(fixture, &fifo);
    urgent.priority = BH_PRIORITY_URGENT;
    urgent.contract = BH_CONTRACT_NEVER;
    bh_fixture_cancel(fixture, now); /* stopping: no job is preempted for the urgent one */
    expected[1] = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    expected[2] = bh_fixture_submit(fixture, bh_fixture_submission(31, 3, 1));
    expected[3] = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    expected[0] = bh_fixture_submit(fixture, urgent);
    for (size_t i = 0; i < BH_COUNT(expected); i++) {
        bh_fixture_finish_effects(fixture);
        BH_CHECK_EQ("runs", bh_fixture_state(fixture, expected[i]), BH_JOB_RUNNING);
        bh_fixture_exit_job(fixture, expected[i], 0);
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static void
a_guarantee_comes_before_priority(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_ev_submit high = bh_fixture_submission(31, 3, 1);
    uint64_t now = bh_fixture_submit_running(fixture, bh_fixture_submission(31, 3, 1)), guaranteed, borrower;

    bh_fixture_tenant(fixture,
                      (struct bh_ev_tenant){
                          .tenant = { 21 }, .parent = { 2 }, .kind = BH_TENANT_PROJECT, .guarantee = 4200 });
    bh_fixture_cancel(fixture, now);
    high.priority = BH_PRIORITY_HIGH;
    borrower = bh_fixture_submit(fixture, high);
    guaranteed = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, guaranteed), BH_JOB_RUNNING);
    /* and what the guarantee covers is not taken back by priority */
    assert_int_equal(bh_fixture_state(fixture, borrower), BH_JOB_PENDING);
    bh_fixture_close(fixture);
}

static void
cancelling_in_the_middle_keeps_the_list(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t jobs[7];

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    for (size_t i = 0; i < BH_COUNT(jobs); i++)
        jobs[i] = bh_fixture_submit(fixture, bh_fixture_submission(21, 3, 1));
    assert_int_equal(bh_fixture_cancel(fixture, jobs[3]), BH_OK); /* checked after each step */
    assert_int_equal(bh_fixture_cancel(fixture, jobs[0]), BH_OK);
    assert_int_equal(bh_fixture_cancel(fixture, jobs[6]), BH_OK);
    for (size_t i = 1; i < 6; i++)
        if (i != 3)
            assert_int_equal(bh_fixture_cancel(fixture, jobs[i]), BH_OK);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(candidates_stand_in_order),
    cmocka_unit_test(the_queue_is_served_in_order),
    cmocka_unit_test(a_guarantee_comes_before_priority),
    cmocka_unit_test(cancelling_in_the_middle_keeps_the_list),
};
BH_TEST_MAIN(tests)
