#include "engine/part.h"

#include "engine/story_test.h"

static uint32_t
pieces_in(const struct bh_story *story, enum bh_piece_state wanted)
{
    struct bh_piece_view view;
    uint32_t cursor = 0, count = 0;

    while (bh_view_next_piece(story->engine, &cursor, &view))
        count += view.state == wanted;
    return count;
}

static void
a_piece_goes_from_carving_to_leased_to_idle(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, 1, 1));

    assert_int_equal(pieces_in(story, BH_PIECE_CARVING), 1);
    bh_story_next(story, BH_OUTCOME_OK);
    assert_int_equal(pieces_in(story, BH_PIECE_LEASED), 1);
    bh_story_settle(story);
    bh_story_exit(story, job, 0);
    assert_int_equal(pieces_in(story, BH_PIECE_IDLE), 1);
    bh_story_close(story);
}

static void
a_whole_gpu_destroys_all_idle_pieces_first(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_run(story, bh_story_wants(21, 1, 3));
    uint64_t last_destroy = 0, carve = 0;

    bh_story_exit(story, job, 0);
    bh_story_submit(story, bh_story_wants(21, 3, 1));
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 3);
    for (uint32_t i = 0; i < story->step.effect_count; i++) {
        if (story->step.effects[i].kind == BH_FX_DESTROY)
            last_destroy = story->step.effects[i].order;
        if (story->step.effects[i].kind == BH_FX_CARVE)
            carve = story->step.effects[i].order;
    }
    assert_true(last_destroy < carve);
    bh_story_settle(story);
    assert_int_equal(pieces_in(story, BH_PIECE_CLEARING), 0);
    bh_story_close(story);
}

static void
a_carve_outlives_its_cancelled_job(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, 1, 1));

    assert_int_equal(bh_story_cancel(story, job), BH_OK);
    assert_int_equal(pieces_in(story, BH_PIECE_CARVING), 1);
    bh_story_settle(story);
    assert_int_equal(pieces_in(story, BH_PIECE_IDLE), 1);
    bh_story_close(story);
}

static void
what_cannot_be_destroyed_stands_in_the_way(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_run(story, bh_story_wants(21, 1, 1)), whole;

    bh_story_exit(story, job, 0);
    whole = bh_story_submit(story, bh_story_wants(31, 3, 1));
    assert_int_equal(story->effects[0].kind, BH_FX_DESTROY);
    bh_story_next(story, BH_OUTCOME_FAILED); /* destroy */
    bh_story_next(story, BH_OUTCOME_FAILED); /* so the carve fails, too */
    assert_int_equal(bh_story_state(story, whole), BH_JOB_PENDING);
    bh_story_tick(story, 6000000000ull);
    assert_int_equal(bh_story_state(story, whole), BH_JOB_PENDING);
    bh_story_node(story, 1, true); /* the node came back: try again */
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, whole), BH_JOB_RUNNING);
    bh_story_close(story);
}

static void
what_cannot_be_destroyed_is_tried_again_after_a_while(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_run(story, bh_story_wants(21, 1, 1)), whole;

    bh_story_exit(story, job, 0);
    whole = bh_story_submit(story, bh_story_wants(31, 3, 1));
    bh_story_next(story, BH_OUTCOME_FAILED); /* destroy */
    bh_story_next(story, BH_OUTCOME_FAILED); /* so the carve fails, too */
    bh_story_tick(story, 6000000000ull);
    assert_int_equal(bh_engine_next_tick_ns(story->engine),
                     story->now_ns - 6000000000ull + 30000000000ull);
    bh_story_tick(story, 24000000000ull);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    bh_story_next(story, BH_OUTCOME_FAILED);
    bh_story_tick(story, 30000000000ull);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, whole), BH_JOB_RUNNING);
    assert_true(bh_engine_next_tick_ns(story->engine) == UINT64_MAX);
    bh_story_close(story);
}

/* Memory of a piece that could not be scrubbed: its place is nobody's. */
static void
an_unclean_piece_is_kept_from_everybody(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(31, 3, 1)), pause = 30000000000ull;

    bh_story_next(story, BH_OUTCOME_UNCLEAN);
    assert_int_equal(pieces_in(story, BH_PIECE_QUARANTINED), 1);
    bh_story_tick(story, 1000000000ull);
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    for (uint32_t tries = 1; tries < BH_UNCLEAN_TRIES; tries++, pause *= 2) {
        bh_story_tick(story, pause);
        assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
        bh_story_next(story, BH_OUTCOME_UNCLEAN);
    }
    bh_story_node(story, 1, true);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 0);
    bh_story_tick(story, 100 * pause);
    assert_int_equal(story->effect_count, 0); /* given up */
    assert_int_equal(bh_story_state(story, job), BH_JOB_PENDING);
    for (uint32_t cordoned = 2; cordoned-- > 0;) /* until an operator asks for it */
        bh_story_gpu(story, (struct bh_ev_gpu){ .gpu = { 1 }, .node = { 1 },
                                                .model = BH_GPU_H100_80GB, .managed = true,
                                                .mig_capable = true, .cordoned = cordoned });
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    bh_story_settle(story);
    assert_int_equal(pieces_in(story, BH_PIECE_QUARANTINED), 0);
    bh_story_close(story);
}

static void
a_clean_end_frees_the_place_of_an_unclean_piece(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, bh_story_wants(31, 3, 1));

    bh_story_next(story, BH_OUTCOME_UNCLEAN);
    bh_story_tick(story, 31000000000ull);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    bh_story_settle(story);
    bh_story_tick(story, 31000000000ull);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    assert_int_equal(pieces_in(story, BH_PIECE_QUARANTINED), 0);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_unclean_piece_is_kept_from_everybody),
    cmocka_unit_test(a_clean_end_frees_the_place_of_an_unclean_piece),
    cmocka_unit_test(a_piece_goes_from_carving_to_leased_to_idle),
    cmocka_unit_test(a_whole_gpu_destroys_all_idle_pieces_first),
    cmocka_unit_test(a_carve_outlives_its_cancelled_job),
    cmocka_unit_test(what_cannot_be_destroyed_stands_in_the_way),
    cmocka_unit_test(what_cannot_be_destroyed_is_tried_again_after_a_while),
};
BH_TEST_MAIN(tests)
