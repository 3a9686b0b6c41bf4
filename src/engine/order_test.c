#include "engine/order.h"

#include "base/attr.h"
#include "engine/guarantee.h"
#include "engine/story_test.h"

static void
candidates_stand_in_order(void **state)
{
    static const struct {
        const char *name;
        struct bh_candidate a, b;
    } cases[] = {
        { "against all before against siblings", { .cover = BH_COVER_ALL, .priority = 1 },
          { .cover = BH_COVER_WITHIN, .priority = 4 } },
        { "guaranteed before priority", { .cover = BH_COVER_WITHIN, .priority = 1 }, { .priority = 4 } },
        { "priority before age", { .priority = 3, .sequence = 9 }, { .priority = 2, .sequence = 1 } },
        { "age before id", { .sequence = 1, .id = 9 }, { .sequence = 2, .id = 1 } },
        { "then the id", { .sequence = 1, .id = 1 }, { .sequence = 1, .id = 2 } },
    };
    struct bh_story *story = bh_story_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_candidate a = cases[i].a, b = cases[i].b;

        a.tenant = b.tenant = 1;
        BH_CHECK(cases[i].name, bh_order_before(story->engine, &a, &b));
        BH_CHECK(cases[i].name, !bh_order_before(story->engine, &b, &a));
    }
    BH_CHECK_DONE();
    bh_story_close(story);
}

/* One GPU, taken whole; who gets it next? */
static void
the_queue_is_served_in_order(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_event fifo = { .kind = BH_EV_SETTINGS };
    struct bh_ev_submit urgent = bh_story_wants(31, 3, 1);
    uint64_t now = bh_story_run(story, bh_story_wants(21, 3, 1)), expected[4];

    fifo.u.settings = (struct bh_ev_settings){ .order = BH_ORDER_FIFO, .backfill = true,
                                               .half_life_ns = BH_HALF_LIFE_DEFAULT_NS,
                                               .assumed_run_ns = 86400000000000 };
    bh_story_must(story, &fifo);
    urgent.priority = BH_PRIORITY_URGENT;
    urgent.contract = BH_CONTRACT_NEVER;
    bh_story_cancel(story, now); /* stopping: nobody is preempted for the urgent one */
    expected[1] = bh_story_submit(story, bh_story_wants(21, 3, 1));
    expected[2] = bh_story_submit(story, bh_story_wants(31, 3, 1));
    expected[3] = bh_story_submit(story, bh_story_wants(21, 3, 1));
    expected[0] = bh_story_submit(story, urgent);
    for (size_t i = 0; i < BH_COUNT(expected); i++) {
        bh_story_settle(story);
        BH_CHECK_EQ("runs", bh_story_state(story, expected[i]), BH_JOB_RUNNING);
        bh_story_exit(story, expected[i], 0);
    }
    BH_CHECK_DONE();
    bh_story_close(story);
}

static void
a_guarantee_comes_before_priority(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit high = bh_story_wants(31, 3, 1);
    uint64_t now = bh_story_run(story, bh_story_wants(31, 3, 1)), guaranteed, borrower;

    bh_story_tenant(story, (struct bh_ev_tenant){ .tenant = { 21 }, .parent = { 2 },
                                                  .kind = BH_TENANT_PROJECT,
                                                  .guarantee = 4200 });
    bh_story_cancel(story, now);
    high.priority = BH_PRIORITY_HIGH;
    borrower = bh_story_submit(story, high);
    guaranteed = bh_story_submit(story, bh_story_wants(21, 3, 1));
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, guaranteed), BH_JOB_RUNNING);
    /* and what the guarantee covers is not taken back by priority */
    assert_int_equal(bh_story_state(story, borrower), BH_JOB_PENDING);
    bh_story_close(story);
}

static void
cancelling_in_the_middle_keeps_the_list(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t jobs[7];

    bh_story_run(story, bh_story_wants(21, 3, 1));
    for (size_t i = 0; i < BH_COUNT(jobs); i++)
        jobs[i] = bh_story_submit(story, bh_story_wants(21, 3, 1));
    assert_int_equal(bh_story_cancel(story, jobs[3]), BH_OK); /* checked after each step */
    assert_int_equal(bh_story_cancel(story, jobs[0]), BH_OK);
    assert_int_equal(bh_story_cancel(story, jobs[6]), BH_OK);
    for (size_t i = 1; i < 6; i++)
        if (i != 3)
            assert_int_equal(bh_story_cancel(story, jobs[i]), BH_OK);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(candidates_stand_in_order),
    cmocka_unit_test(the_queue_is_served_in_order),
    cmocka_unit_test(a_guarantee_comes_before_priority),
    cmocka_unit_test(cancelling_in_the_middle_keeps_the_list),
};
BH_TEST_MAIN(tests)
