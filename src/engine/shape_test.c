#include "engine/shape.h"

#include "engine/slots.h"
#include "engine/story_test.h"

static uint32_t
small(void)
{
    return bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
}

static void
set_preshape(struct bh_story *story, bool on)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(story->engine, &event.u.settings);
    event.u.settings.preshape = on;
    bh_story_must(story, &event);
}

static void
want_ready(struct bh_story *story, uint32_t profile, uint32_t ready)
{
    struct bh_event event = { .kind = BH_EV_OUTLOOK };

    event.u.outlook.of = BH_OUTLOOK_PIECES;
    event.u.outlook.profile = profile;
    event.u.outlook.ready = ready;
    bh_story_must(story, &event);
}

static uint32_t
unheld(const struct bh_story *story)
{
    return story->engine->core.shapes.unheld[small()];
}

static void
pieces_are_carved_before_a_job_comes(void **state)
{
    struct bh_story *story = bh_story_site(2);
    uint64_t job;

    want_ready(story, small(), 2);
    assert_int_equal(unheld(story), 0); /* off by default */
    set_preshape(story, true);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 2);
    bh_story_settle(story);
    job = bh_story_submit(story, bh_story_wants(21, 1, 1));
    assert_int_equal(bh_story_effects(story, BH_FX_START), 1); /* at once */
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 1); /* the next one for nobody */
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    assert_int_equal(unheld(story), 2);
    bh_story_close(story);
}

/* Tenants 21 and 31 stand apart hard: neither gets an idle piece of the other, both get one
 * of nobody. */
static void
any_tenant_takes_them(void **state)
{
    struct bh_story *story = bh_story_site(1);

    set_preshape(story, true);
    want_ready(story, small(), 1);
    bh_story_settle(story);
    bh_story_submit(story, bh_story_wants(21, 1, 1));
    assert_int_equal(bh_story_effects(story, BH_FX_START), 1);
    bh_story_settle(story);
    bh_story_submit(story, bh_story_wants(31, 1, 1));
    assert_int_equal(bh_story_effects(story, BH_FX_START), 1);
    bh_story_close(story);
}

static void
they_go_when_something_else_is_to_stand_there(void **state)
{
    struct bh_story *story = bh_story_site(1);

    set_preshape(story, true);
    want_ready(story, small(), 3);
    bh_story_settle(story);
    bh_story_run(story, bh_story_wants(21, 3, 1)); /* the whole GPU */
    assert_int_equal(unheld(story), 0);
    bh_story_close(story);
}

static void
room_for_jobs_comes_first(void **state)
{
    struct bh_story *story = bh_story_site(1);

    set_preshape(story, true);
    bh_story_run(story, bh_story_wants(21, 2, 2)); /* two halves: nothing is left */
    want_ready(story, small(), 4);
    assert_int_equal(unheld(story), 0);
    bh_story_close(story);
}

/* An idle piece stays for its tenant while that has a job, and goes when it has none. */
static void
idle_pieces_of_those_who_may_come_stay(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t jobs[7];

    set_preshape(story, true);
    for (uint32_t i = 0; i < 7; i++)
        jobs[i] = bh_story_run(story, bh_story_wants(21, 1, 1));
    for (uint32_t i = 1; i < 7; i++)
        bh_story_exit(story, jobs[i], 0);
    want_ready(story, small(), 2);
    assert_int_equal(unheld(story), 0);
    bh_story_exit(story, jobs[0], 0);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 2);
    assert_int_equal(unheld(story), 2);
    bh_story_close(story);
}

static void
a_carve_that_failed_is_tried_again_later(void **state)
{
    struct bh_story *story = bh_story_site(1);

    set_preshape(story, true);
    want_ready(story, small(), 1);
    assert_true(bh_story_next(story, BH_OUTCOME_FAILED));
    assert_int_equal(unheld(story), 0);
    bh_story_tick(story, 1000000000);
    assert_int_equal(unheld(story), 0);
    assert_true(bh_engine_next_tick_ns(story->engine) <= story->now_ns + 59000000000);
    bh_story_tick(story, 59000000000);
    assert_int_equal(unheld(story), 1);
    bh_story_close(story);
}

static void
what_is_recorded_must_fit(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct work work = { .engine = story->engine, .step = &story->step };
    struct bh_decision good = { .kind = BH_DO_SHAPE, .piece_count = 1 }, bad;

    good.pieces[0] = (struct bh_piece){ { 900 }, { 1 }, small(), 0, true };
    bh_story_run(story, bh_story_wants(21, 1, 1)); /* somewhere, but not everywhere */
    bad = good;
    bad.pieces[0].gpu.v = 99;
    assert_int_equal(bh_shape_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.pieces[0].carve = false;
    assert_int_equal(bh_shape_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.pieces[0].profile = BH_PROFILE_WHOLE.v;
    assert_int_equal(bh_shape_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.pieces[0].start = bh_story_where(story, 1) % 100;
    assert_int_equal(bh_shape_apply(&work, &bad), BH_CONFLICT);
    bad = good;
    bad.job.v = 1;
    assert_int_equal(bh_shape_apply(&work, &bad), BH_CONFLICT);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pieces_are_carved_before_a_job_comes),
    cmocka_unit_test(any_tenant_takes_them),
    cmocka_unit_test(they_go_when_something_else_is_to_stand_there),
    cmocka_unit_test(room_for_jobs_comes_first),
    cmocka_unit_test(idle_pieces_of_those_who_may_come_stay),
    cmocka_unit_test(a_carve_that_failed_is_tried_again_later),
    cmocka_unit_test(what_is_recorded_must_fit),
};
BH_TEST_MAIN(tests)
