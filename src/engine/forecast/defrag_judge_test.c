#include "engine/forecast/defrag_judge.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

#define HOUR_NS UINT64_C(3600000000000)

/* Job 2 waits for half a GPU, job 3 for a whole one; both in two futures. */
static struct bh_fixture *
defrag_judge_test_open_site(void)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event event = { .kind = BH_EV_SETTINGS };
    struct bh_ev_submit held = bh_fixture_submission(21, 3, 1);

    bh_fixture_submit_running(fixture, held);
    held.hold = true;
    held.sku.v = 2;
    bh_fixture_submit(fixture, held);
    held.sku.v = 3;
    bh_fixture_submit(fixture, held);
    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.defrag = (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST };
    bh_fixture_must_send(fixture, &event);
    return fixture;
}

static void
waiting_that_is_saved_must_be_worth_it(void **state)
{
    /* starts of jobs 2 and 3 in hours after the begin, 0: not as far as was played (12) */
    static const struct {
        const char *name;
        uint64_t before[2], after[2];
        uint64_t for_job, gain_gpu_ms, cost_gpu_ms;
        int64_t saved_gpu_ms;
        uint32_t sooner, later;
        bool sound;
        /* clang-format off */
    } cases[] = {
        { "nothing changes", { 1, 2 }, { 1, 2 }, 3, 9000000, 1, 0, 0, 0, false },
        { "a whole GPU an hour sooner", { 1, 3 }, { 1, 2 }, 3, 0, 1800000, 3600000, 1, 0, true },
        { "not worth the cost", { 1, 3 }, { 1, 2 }, 3, 0, 1800001, 3600000, 1, 0, false },
        { "another waits as long", { 1, 3 }, { 3, 2 }, 3, 0, 1, 0, 1, 1, false },
        { "half as much is left", { 1, 3 }, { 2, 2 }, 3, 0, 900000, 1800000, 1, 1, true },
        { "it starts at all", { 1, 0 }, { 1, 10 }, 3, 0, 1000, 7200000, 1, 0, true },
        { "it does not any more", { 1, 10 }, { 1, 0 }, 3, 0, 1, -7200000, 0, 1, false },
        { "joined room counts", { 1, 2 }, { 1, 2 }, 0, 2000, 1000, 0, 0, 0, true },
        { "less who waits for it", { 1, 2 }, { 2, 2 }, 0, 2000, 1000, -1800000, 0, 1, false },
    };
    /* clang-format on */
    struct bh_fixture *fixture = defrag_judge_test_open_site();

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_job_forecast rows[2][2];
        struct bh_job_forecasts futures[2];
        struct bh_ev_move move = { .for_job = { cases[i].for_job },
                                   .move_count = 1,
                                   .gain_gpu_ms = cases[i].gain_gpu_ms,
                                   .cost_gpu_ms = cases[i].cost_gpu_ms };
        struct bh_defrag_verdict verdict;

        for (int k = 0; k < 2; k++) {
            const uint64_t *starts = k ? cases[i].after : cases[i].before;

            for (uint64_t job = 2; job <= 3; job++)
                rows[k][job - 2] = (struct bh_job_forecast){ .job = { job },
                                                             .state = BH_JOB_PENDING,
                                                             .start_ns = starts[job - 2] * HOUR_NS };
            futures[k] =
                (struct bh_job_forecasts){ .rows = rows[k], .count = 2, .max = 2, .until_ns = 12 * HOUR_NS };
        }
        bh_defrag_judge(fixture->engine, &move, &futures[0], &futures[1], &verdict);
        BH_CHECK_EQ(cases[i].name, verdict.saved_gpu_ms, cases[i].saved_gpu_ms);
        BH_CHECK_EQ(cases[i].name, verdict.sooner, cases[i].sooner);
        BH_CHECK_EQ(cases[i].name, verdict.later, cases[i].later);
        BH_CHECK_EQ(cases[i].name, verdict.sound, cases[i].sound);
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(waiting_that_is_saved_must_be_worth_it),
};
BH_TEST_MAIN(tests)
