#include "engine/standing.h"

#include "engine/slots.h"
#include "engine/story_test.h"

/* What shall stand on GPUs, as stories.  SKU 1 is 1g.10gb, 2 is 3g.40gb, 3 the whole GPU. */

struct spot {
    const char *profile;
    uint32_t start;
};

static struct bh_event
declared(uint32_t gpu, enum bh_standing_mode mode, uint32_t apply, const struct spot *spots)
{
    struct bh_event event = { .kind = BH_EV_STANDING };
    struct bh_ev_standing *standing = &event.u.standing;

    *standing = (struct bh_ev_standing){ .gpu = { gpu }, .mode = mode, .apply = apply };
    for (; spots && spots->profile; spots++)
        standing->pieces[standing->piece_count++] = (struct bh_standing_piece){
            bh_profile_find(BH_GPU_H100_80GB, spots->profile)->id.v, spots->start
        };
    return event;
}

static void
declare(struct bh_story *story, uint32_t gpu, uint32_t apply, const struct spot *spots)
{
    struct bh_event event = declared(gpu, BH_STANDING_DECLARED, apply, spots);

    bh_story_must(story, &event);
}

static struct bh_standing_view
view(const struct bh_story *story, uint32_t gpu)
{
    struct bh_standing_view view = { 0 };

    assert_true(bh_view_standing(story->engine, (bh_gpu_id){ gpu }, &view));
    return view;
}

/* "1g.10gb@0 3g.40gb@4 ": the pieces of a GPU that stand, by start; a lent one with '*'. */
static const char *
standing(const struct bh_story *story, uint32_t gpu)
{
    static char text[256];
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t start = 0; start < 8; start++) {
        struct bh_piece_view piece;
        uint32_t cursor = 0;

        while (bh_view_next_piece(story->engine, &cursor, &piece))
            if (piece.piece.gpu.v == gpu && piece.piece.start == start
                && (piece.state == BH_PIECE_IDLE || piece.state == BH_PIECE_LEASED))
                at += (size_t)snprintf(
                    text + at, sizeof text - at, "%s@%u%s ",
                    piece.piece.profile == BH_PROFILE_WHOLE.v
                        ? "whole"
                        : bh_profile_get((bh_profile_id){ piece.piece.profile })->name,
                    start, piece.state == BH_PIECE_LEASED ? "*" : "");
    }
    return text;
}

static const struct spot two[] = { { "3g.40gb", 0 }, { "3g.40gb", 4 }, { NULL, 0 } };
static const struct spot mixed[] = { { "1g.10gb", 0 }, { "1g.10gb", 1 }, { "3g.40gb", 4 },
                                     { NULL, 0 } };
static const struct spot none[] = { { NULL, 0 } };

static void
it_is_carved_and_stands(void **state)
{
    struct bh_story *story = bh_story_site(2);

    declare(story, 1, 1, mixed);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 3);
    assert_int_equal(view(story, 1).state, BH_STANDING_APPLYING);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "1g.10gb@0 1g.10gb@1 3g.40gb@4 ");
    assert_int_equal(view(story, 1).state, BH_STANDING_STANDS);
    assert_string_equal(standing(story, 2), ""); /* complaint 7: not named, left alone */
    declare(story, 1, 2, mixed); /* the same again changes nothing */
    assert_int_equal(story->step.effect_count, 0);
    bh_story_close(story);
}

/* The other layout's pieces go and new ones come, in one go. */
static void
another_layout_replaces_it(void **state)
{
    struct bh_story *story = bh_story_site(1);

    declare(story, 1, 1, mixed);
    bh_story_settle(story);
    declare(story, 1, 2, two);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 2);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    declare(story, 1, 3, none);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "");
    assert_int_equal(view(story, 1).state, BH_STANDING_STANDS);
    bh_story_close(story);
}

/* Complaint 3: a piece in use is not touched; what has room beside it changes meanwhile. */
static void
a_lease_is_never_touched(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job;

    declare(story, 1, 1, mixed);
    bh_story_settle(story);
    job = bh_story_run(story, bh_story_wants(21, 1, 1));
    declare(story, 1, 2, two);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "1g.10gb@0* 3g.40gb@4 ");
    assert_int_equal(view(story, 1).state, BH_STANDING_APPLYING);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    bh_story_exit(story, job, 0);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    assert_int_equal(view(story, 1).state, BH_STANDING_STANDS);
    bh_story_close(story);
}

static void
it_is_made_again_after_another_shape(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job;

    declare(story, 1, 1, mixed);
    bh_story_settle(story);
    job = bh_story_run(story, bh_story_wants(21, 3, 1)); /* the whole GPU */
    assert_string_equal(standing(story, 1), "whole@0* ");
    bh_story_exit(story, job, 0);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "1g.10gb@0 1g.10gb@1 3g.40gb@4 ");
    bh_story_close(story);
}

/* A declared piece is used before another one is broken for a new one. */
static void
what_stands_ready_goes_first(void **state)
{
    struct bh_story *story = bh_story_site(2);

    declare(story, 2, 1, two);
    bh_story_settle(story);
    bh_story_submit(story, bh_story_wants(21, 2, 1));
    assert_int_equal(bh_story_effects(story, BH_FX_START), 1);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 0);
    bh_story_settle(story);
    bh_story_submit(story, bh_story_wants(31, 1, 1)); /* there is another GPU for it */
    bh_story_settle(story);
    assert_string_equal(standing(story, 2), "3g.40gb@0* 3g.40gb@4 ");
    bh_story_close(story);
}

/* A carve in the middle fails: both GPUs of the change go back to what stood before. */
static void
a_failure_takes_all_of_it_back(void **state)
{
    struct bh_story *story = bh_story_site(3);
    struct bh_event second = declared(2, BH_STANDING_DECLARED, 2, two);
    struct bh_event third = declared(3, BH_STANDING_DECLARED, 2, two);

    declare(story, 1, 1, mixed);
    bh_story_settle(story);
    bh_story_run(story, bh_story_wants(21, 1, 1)); /* one of them is in use meanwhile */
    declare(story, 1, 2, two);
    bh_story_settle(story);
    bh_story_must(story, &third);
    bh_story_settle(story);
    assert_int_equal(view(story, 3).state, BH_STANDING_STANDS);
    bh_story_must(story, &second);
    assert_true(bh_story_next(story, BH_OUTCOME_OK));
    assert_true(bh_story_next(story, BH_OUTCOME_FAILED));
    assert_int_equal(view(story, 1).state, BH_STANDING_UNDOING);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "1g.10gb@0* 1g.10gb@1 3g.40gb@4 ");
    assert_string_equal(standing(story, 2), "");
    assert_string_equal(standing(story, 3), "");
    assert_int_equal(view(story, 3).state, BH_STANDING_UNDONE);
    assert_int_equal(view(story, 1).state, BH_STANDING_UNDONE);
    assert_int_equal(view(story, 2).state, BH_STANDING_UNDONE);
    assert_int_equal(view(story, 1).rc, 0);
    assert_int_equal(view(story, 2).rc, BH_IO);
    assert_int_equal(view(story, 1).wanted.mode, BH_STANDING_DECLARED); /* the older one */
    assert_int_equal(view(story, 2).wanted.mode, BH_STANDING_NOT_SAID);
    bh_story_close(story);
}

static void
a_destroy_that_fails_takes_it_back_too(void **state)
{
    struct bh_story *story = bh_story_site(1);

    declare(story, 1, 1, two);
    bh_story_settle(story);
    declare(story, 1, 2, mixed);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    assert_true(bh_story_next(story, BH_OUTCOME_FAILED));
    assert_int_equal(view(story, 1).state, BH_STANDING_UNDOING);
    bh_story_settle(story);
    bh_story_tick(story, 31000000000); /* what would not go is tried again */
    bh_story_settle(story);
    bh_story_tick(story, 61000000000);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    assert_int_equal(view(story, 1).state, BH_STANDING_UNDONE);
    bh_story_close(story);
}

/* When not even the old state can be made, it ends there and says so. */
static void
a_failure_of_that_ends_it(void **state)
{
    struct bh_story *story = bh_story_site(1);

    declare(story, 1, 1, two);
    bh_story_settle(story);
    declare(story, 1, 2, mixed);
    assert_true(bh_story_next(story, BH_OUTCOME_OK)); /* destroyed */
    assert_true(bh_story_next(story, BH_OUTCOME_FAILED));
    while (view(story, 1).state == BH_STANDING_UNDOING)
        assert_true(bh_story_next(story, BH_OUTCOME_FAILED));
    bh_story_settle(story);
    assert_int_equal(view(story, 1).state, BH_STANDING_FAILED);
    assert_int_equal(view(story, 1).wanted.mode, BH_STANDING_NOT_SAID);
    bh_story_close(story);
}

static void
once_leaves_nothing_declared(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_event once = declared(1, BH_STANDING_ONCE, 1, two);
    struct bh_event forget = declared(1, BH_STANDING_NOT_SAID, 2, NULL);

    bh_story_must(story, &once);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    assert_int_equal(view(story, 1).wanted.mode, BH_STANDING_NOT_SAID);
    bh_story_must(story, &forget);
    assert_int_equal(story->step.effect_count, 0);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    bh_story_close(story);
}

static void
a_cordoned_gpu_is_prepared(void **state)
{
    struct bh_story *story = bh_story_site(1);

    bh_story_gpu(story, (struct bh_ev_gpu){ .gpu = { 1 }, .node = { 1 }, .managed = true,
                                            .model = BH_GPU_H100_80GB, .mig_capable = true,
                                            .cordoned = true });
    declare(story, 1, 1, two);
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    bh_story_close(story);
}

static void
what_cannot_stand_is_refused(void **state)
{
    static const struct spot overlap[] = { { "3g.40gb", 0 }, { "1g.10gb", 2 }, { NULL, 0 } };
    static const struct spot nowhere[] = { { "3g.40gb", 2 }, { NULL, 0 } };
    static const struct spot slices[] = { { "4g.40gb", 0 }, { "4g.40gb", 4 }, { NULL, 0 } };
    static const struct {
        const char *name;
        uint32_t gpu, apply;
        const struct spot *spots;
        bh_rc rc;
    } cases[] = {
        { "two at one place", 1, 1, overlap, BH_RANGE },
        { "no such start", 1, 1, nowhere, BH_RANGE },
        { "more slices than there are", 1, 1, slices, BH_RANGE },
        { "no such GPU", 9, 1, two, BH_NOT_FOUND },
        { "a number that does not follow", 1, 2, two, BH_RANGE },
        { "no number", 1, 0, two, BH_RANGE },
    };
    struct bh_story *story = bh_story_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_event event = declared(cases[i].gpu, BH_STANDING_DECLARED, cases[i].apply,
                                         cases[i].spots);

        BH_CHECK_EQ(cases[i].name, bh_story_send(story, &event), cases[i].rc);
    }
    BH_CHECK_DONE();
    bh_story_close(story);
}

/* What is carved while the GPU is being reset would go with it unseen. */
static void
a_faulty_gpu_is_left_alone_until_it_is_well(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_event fault = { .kind = BH_EV_HEALTH,
                              .u.health = { .gpu = { 1 }, .then = BH_THEN_RESET, .xid = 48 } };

    bh_story_must(story, &fault);
    assert_int_equal(bh_story_effects(story, BH_FX_RESET), 1);
    declare(story, 1, 1, two);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 0);
    bh_story_settle(story);
    bh_story_tick(story, 3600 * UINT64_C(1000000000)); /* past the burn-in */
    bh_story_settle(story);
    assert_string_equal(standing(story, 1), "3g.40gb@0 3g.40gb@4 ");
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_is_carved_and_stands),
    cmocka_unit_test(another_layout_replaces_it),
    cmocka_unit_test(a_lease_is_never_touched),
    cmocka_unit_test(it_is_made_again_after_another_shape),
    cmocka_unit_test(what_stands_ready_goes_first),
    cmocka_unit_test(a_failure_takes_all_of_it_back),
    cmocka_unit_test(a_destroy_that_fails_takes_it_back_too),
    cmocka_unit_test(a_failure_of_that_ends_it),
    cmocka_unit_test(once_leaves_nothing_declared),
    cmocka_unit_test(a_cordoned_gpu_is_prepared),
    cmocka_unit_test(what_cannot_stand_is_refused),
    cmocka_unit_test(a_faulty_gpu_is_left_alone_until_it_is_well),
};
BH_TEST_MAIN(tests)
