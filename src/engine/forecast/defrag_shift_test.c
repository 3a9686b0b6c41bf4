#include "engine/forecast/defrag_shift.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* Three GPUs, a half, a small and one that never moves; on GPUs of their own by the third. */
struct site {
    struct bh_fixture *fixture;
    uint32_t half, small, never; /* slots of jobs */
};

static struct site
defrag_shift_test_open_site(struct bh_defrag defrag)
{
    struct site site = { .fixture = bh_fixture_site(3) };
    struct bh_event event = { .kind = BH_EV_SETTINGS };
    struct bh_ev_submit never = bh_fixture_submission(21, 3, 1);
    const struct bh_engine *engine = site.fixture->engine;

    bh_view_settings(engine, &event.u.settings);
    event.u.settings.defrag = defrag;
    bh_fixture_must_send(site.fixture, &event);
    never.contract = BH_CONTRACT_NEVER;
    site.half = job_find(engine, bh_fixture_submit_running(site.fixture, bh_fixture_submission(21, 2, 1)));
    site.small = job_find(engine, bh_fixture_submit_running(site.fixture, bh_fixture_submission(21, 1, 1)));
    site.never = job_find(engine, bh_fixture_submit_running(site.fixture, never));
    return site;
}

static void
jobs_are_added_within_the_budget(void **state)
{
    struct site site = defrag_shift_test_open_site((struct bh_defrag){ .mode = BH_DEFRAG_ON, .moves = 2 });
    const struct bh_engine *engine = site.fixture->engine;
    struct bh_shift shift;

    bh_shift_init(&shift, engine);
    assert_int_equal(shift.most_jobs, 2);
    assert_false(bh_shift_add(&shift, site.never));
    assert_true(bh_shift_add(&shift, site.half));
    assert_true(bh_shift_add(&shift, site.half)); /* it does already */
    assert_int_equal(shift.job_count, 1);
    assert_true(shift.cost == bh_move_cost(engine, site.half));
    assert_true(bh_shift_add(&shift, site.small));
    assert_int_equal(shift.partitions, 2);
    bh_shift_drop(&shift, 0);
    assert_int_equal(shift.jobs[0], site.small);
    assert_true(shift.cost == bh_move_cost(engine, site.small));
    shift.most_jobs = 1;
    assert_false(bh_shift_add(&shift, site.half));
    bh_fixture_close(site.fixture);
}

static void
work_lost_is_bounded(void **state)
{
    struct site site =
        defrag_shift_test_open_site((struct bh_defrag){ .mode = BH_DEFRAG_ON, .lost_gpu_s = 31 });
    struct bh_shift shift;

    bh_shift_init(&shift, site.fixture->engine);
    assert_true(bh_shift_add(&shift, site.half));   /* half a GPU for a minute: 30 */
    assert_false(bh_shift_add(&shift, site.small)); /* a seventh: 8.6 more */
    bh_fixture_close(site.fixture);
}

/* The largest job gets its placement first; no job moves to where another is to move. */
static void
all_find_places_of_their_own(void **state)
{
    struct site site = defrag_shift_test_open_site((struct bh_defrag){ .mode = BH_DEFRAG_ON });
    const struct bh_engine *engine = site.fixture->engine;
    uint32_t first = lease_at(engine, job_at(engine, site.half)->lease)->placements[0].gpu;
    struct bh_shift shift;
    struct bh_ev_move move;

    bh_shift_init(&shift, engine);
    shift.avoid_gpu = first;
    assert_true(bh_shift_add(&shift, site.small));
    assert_true(bh_shift_add(&shift, site.half));
    assert_true(bh_shift_place(&shift));
    assert_int_equal(shift.jobs[0], site.half);
    assert_int_equal(shift.taking_count, 2);
    for (uint32_t i = 0; i < shift.taking_count; i++)
        assert_int_not_equal(shift.taking[i].placement.gpu, first);
    assert_true(bh_shift_write(&shift, (bh_part_ns)4200 * 3600000000000, &move));
    assert_int_equal(move.gain_gpu_ms, 3600000);
    assert_int_equal(move.placement_count, 2);
    assert_int_equal(move.moves[0].job.v, job_at(engine, site.half)->id);
    /* it may be sent as it is */
    bh_fixture_must_send(site.fixture, &(struct bh_event){ .kind = BH_EV_MOVE, .u.move = move });
    bh_fixture_finish_effects(site.fixture);
    assert_true(bh_fixture_placement_of(site.fixture, move.moves[0].job.v) / 100 != first);
    bh_fixture_close(site.fixture);
}

static void
who_has_nowhere_to_go_stays(void **state)
{
    struct site site = defrag_shift_test_open_site((struct bh_defrag){ .mode = BH_DEFRAG_ON });
    struct bh_shift shift;

    bh_fixture_submit_running(site.fixture, bh_fixture_submission(21, 3, 1));
    bh_shift_init(&shift, site.fixture->engine);
    shift.avoid_gpu =
        lease_at(site.fixture->engine, job_at(site.fixture->engine, site.half)->lease)->placements[0].gpu;
    assert_true(bh_shift_add(&shift, site.half));
    assert_false(bh_shift_place(&shift));
    bh_fixture_close(site.fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_added_within_the_budget),
        cmocka_unit_test(work_lost_is_bounded),
        cmocka_unit_test(all_find_places_of_their_own),
        cmocka_unit_test(who_has_nowhere_to_go_stays),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
