#include "engine/step/apply.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

/* A recorded placement with something wrong in it does not fit the state. */
static void
damaged_decisions_are_refused(void **state)
{
    static const struct {
        const char *name;
        struct bh_decision decision;
        bh_rc rc;
    } cases[] = {
        { "as it was",
          { BH_DO_PLACE,
            { 1 },
            { 1 },
            .partition_count = 1,
            .partitions = { { { 1 }, { 1 }, 21, 6, true } } },
          BH_OK },
        { "another job",
          { BH_DO_PLACE,
            { 7 },
            { 1 },
            .partition_count = 1,
            .partitions = { { { 1 }, { 1 }, 21, 6, true } } },
          BH_CONFLICT },
        { "too few partitions", { .kind = BH_DO_PLACE, .job = { 1 }, .lease = { 1 } }, BH_CONFLICT },
        { "no such GPU",
          { BH_DO_PLACE,
            { 1 },
            { 1 },
            .partition_count = 1,
            .partitions = { { { 1 }, { 9 }, 21, 6, true } } },
          BH_CONFLICT },
        { "an illegal start",
          { BH_DO_PLACE,
            { 1 },
            { 1 },
            .partition_count = 1,
            .partitions = { { { 1 }, { 1 }, 21, 7, true } } },
          BH_CONFLICT },
        { "a profile of another model",
          { BH_DO_PLACE, { 1 }, { 1 }, .partition_count = 1, .partitions = { { { 1 }, { 1 }, 2, 0, true } } },
          BH_CONFLICT },
        { "no profile at all",
          { BH_DO_PLACE, { 1 }, { 1 }, .partition_count = 1, .partitions = { { { 1 }, { 1 }, 0, 0, true } } },
          BH_CONFLICT },
        { "an idle partition that is not there",
          { BH_DO_PLACE, { 1 }, { 1 }, .partition_count = 1, .partitions = { { { 5 }, { 1 }, 21, 6 } } },
          BH_CONFLICT },
        { "too many partitions", { BH_DO_PLACE, { 1 }, { 1 }, .partition_count = 77 }, BH_CONFLICT },
        { "an unknown kind", { .kind = (enum bh_decision_kind)99 }, BH_CONFLICT },
        { "a lease that is not there", { BH_DO_SUSPEND, .lease = { 3 } }, BH_CONFLICT },
        { "a claim for nobody", { BH_DO_CLAIM, .job = { 3 }, .partition_count = 1 }, BH_CONFLICT },
        { "no claim to give up", { BH_DO_UNCLAIM, .job = { 1 } }, BH_CONFLICT },
        { "stop of a pending job", { BH_DO_STOP, .job = { 1 }, .cause = BH_END_TENANT_REMOVED }, BH_OK },
    };
    static struct bh_step step;

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_decision decision = cases[i].decision;
        struct bh_event event = { .kind = BH_EV_SUBMIT, .now_ns = fixture->now_ns, .seq = 99 };

        if (decision.partition_count == 1 && decision.partitions[0].profile == 21)
            decision.partitions[0].profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
        event.u.submit = bh_fixture_submission(21, 1, 1);
        event.u.submit.job.v = 1;
        event.u.submit.priority = BH_PRIORITY_NORMAL;
        BH_CHECK_EQ(cases[i].name, bh_engine_replay(fixture->replica, &event, &decision, 1, &step),
                    cases[i].rc);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* A job of two: numbers of partitions to carve are new and rise. */
static void
numbers_given_before_are_refused(void **state)
{
    static const struct {
        const char *name;
        uint64_t first, second;
        bh_rc rc;
    } cases[] = {
        { "as it was", 1, 2, BH_OK },
        { "with a gap", 3, 5, BH_OK },
        { "one number twice", 1, 1, BH_CONFLICT },
        { "none", 0, 1, BH_CONFLICT },
    };
    static struct bh_step step;

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        uint32_t profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
        struct bh_decision decision = { BH_DO_PLACE, { 1 }, { 1 }, .partition_count = 2 };
        struct bh_event event = { .kind = BH_EV_SUBMIT, .now_ns = fixture->now_ns, .seq = 99 };

        decision.partitions[0] = (struct bh_partition){ { cases[i].first }, { 1 }, profile, 6, true };
        decision.partitions[1] = (struct bh_partition){ { cases[i].second }, { 1 }, profile, 5, true };
        event.u.submit = bh_fixture_submission(21, 1, 2);
        event.u.submit.job.v = 1;
        event.u.submit.priority = BH_PRIORITY_NORMAL;
        BH_CHECK_EQ(cases[i].name, bh_engine_replay(fixture->replica, &event, &decision, 1, &step),
                    cases[i].rc);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = { cmocka_unit_test(damaged_decisions_are_refused),
                                           cmocka_unit_test(numbers_given_before_are_refused) };
BH_TEST_MAIN(tests)
