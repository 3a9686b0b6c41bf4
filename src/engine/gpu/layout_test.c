#include "engine/gpu/layout.h"

#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

/* What shall stand on GPUs, as stories.  SKU 1 is 1g.10gb, 2 is 3g.40gb, 3 the whole GPU. */

struct assignment {
    const char *profile;
    uint32_t start;
};

static struct bh_event
layout_test_declared(uint32_t gpu, enum bh_layout_mode mode, uint32_t apply,
                     const struct assignment *assignments)
{
    struct bh_event event = { .kind = BH_EV_LAYOUT };
    struct bh_ev_layout *gpu_layout = &event.u.gpu_layout;

    *gpu_layout = (struct bh_ev_layout){ .gpu = { gpu }, .mode = mode, .apply = apply };
    for (; assignments && assignments->profile; assignments++)
        gpu_layout->partitions[gpu_layout->partition_count++] =
            (struct bh_ev_layout_partition){ bh_profile_find(BH_GPU_H100_80GB, assignments->profile)->id.v,
                                             assignments->start };
    return event;
}

static void
layout_test_declare(struct bh_fixture *fixture, uint32_t gpu, uint32_t apply,
                    const struct assignment *assignments)
{
    struct bh_event event = layout_test_declared(gpu, BH_LAYOUT_DECLARED, apply, assignments);

    bh_fixture_must_send(fixture, &event);
}

static struct bh_layout_view
view(const struct bh_fixture *fixture, uint32_t gpu)
{
    struct bh_layout_view view = { 0 };

    assert_true(bh_view_layout(fixture->engine, (bh_gpu_id){ gpu }, &view));
    return view;
}

/* "1g.10gb@0 3g.40gb@4 ": the partitions of a GPU that stand, by start; a lent one with '*'. */
static const char *
gpu_layout(const struct bh_fixture *fixture, uint32_t gpu)
{
    static char text[256];
    size_t at = 0;

    text[0] = '\0';
    for (uint32_t start = 0; start < 8; start++) {
        struct bh_partition_view partition;
        uint32_t cursor = 0;

        while (bh_view_next_partition(fixture->engine, &cursor, &partition))
            if (partition.partition.gpu.v == gpu && partition.partition.start == start
                && (partition.state == BH_PARTITION_IDLE || partition.state == BH_PARTITION_LEASED))
                at += (size_t)snprintf(
                    text + at, sizeof text - at, "%s@%u%s ",
                    partition.partition.profile == BH_PROFILE_WHOLE.v
                        ? "whole"
                        : bh_profile_get((bh_profile_id){ partition.partition.profile })->name,
                    start, partition.state == BH_PARTITION_LEASED ? "*" : "");
    }
    return text;
}

static const struct assignment two[] = { { "3g.40gb", 0 }, { "3g.40gb", 4 }, { NULL, 0 } };
static const struct assignment mixed[] = {
    { "1g.10gb", 0 }, { "1g.10gb", 1 }, { "3g.40gb", 4 }, { NULL, 0 }
};
static const struct assignment none[] = { { NULL, 0 } };

static void
it_is_carved_and_stands(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    layout_test_declare(fixture, 1, 1, mixed);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 3);
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_APPLYING);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "1g.10gb@0 1g.10gb@1 3g.40gb@4 ");
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_READY);
    assert_string_equal(gpu_layout(fixture, 2), ""); /* complaint 7: not named, left alone */
    layout_test_declare(fixture, 1, 2, mixed);       /* the same again changes nothing */
    assert_int_equal(fixture->step.effect_count, 0);
    bh_fixture_close(fixture);
}

/* The other layout's partitions go and new ones come, in one go. */
static void
another_layout_replaces_it(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    layout_test_declare(fixture, 1, 1, mixed);
    bh_fixture_finish_effects(fixture);
    layout_test_declare(fixture, 1, 2, two);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 2);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    layout_test_declare(fixture, 1, 3, none);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "");
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_READY);
    bh_fixture_close(fixture);
}

/* Complaint 3: a partition in use is not touched; what has room beside it changes meanwhile. */
static void
a_lease_is_never_touched(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job;

    layout_test_declare(fixture, 1, 1, mixed);
    bh_fixture_finish_effects(fixture);
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    layout_test_declare(fixture, 1, 2, two);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "1g.10gb@0* 3g.40gb@4 ");
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_APPLYING);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_READY);
    bh_fixture_close(fixture);
}

static void
it_is_made_again_after_another_shape(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    uint64_t job;

    layout_test_declare(fixture, 1, 1, mixed);
    bh_fixture_finish_effects(fixture);
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1)); /* the whole GPU */
    assert_string_equal(gpu_layout(fixture, 1), "whole@0* ");
    bh_fixture_exit_job(fixture, job, 0);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "1g.10gb@0 1g.10gb@1 3g.40gb@4 ");
    bh_fixture_close(fixture);
}

/* A declared partition is used before another one is broken for a new one. */
static void
what_stands_ready_goes_first(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    layout_test_declare(fixture, 2, 1, two);
    bh_fixture_finish_effects(fixture);
    bh_fixture_submit(fixture, bh_fixture_submission(21, 2, 1));
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_START), 1);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 0);
    bh_fixture_finish_effects(fixture);
    bh_fixture_submit(fixture, bh_fixture_submission(31, 1, 1)); /* there is another GPU for it */
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 2), "3g.40gb@0* 3g.40gb@4 ");
    bh_fixture_close(fixture);
}

/* A carve in the middle fails: both GPUs of the change go back to what stood before. */
static void
a_failure_takes_all_of_it_back(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(3);
    struct bh_event second = layout_test_declared(2, BH_LAYOUT_DECLARED, 2, two);
    struct bh_event third = layout_test_declared(3, BH_LAYOUT_DECLARED, 2, two);

    layout_test_declare(fixture, 1, 1, mixed);
    bh_fixture_finish_effects(fixture);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1)); /* one of them is in use meanwhile */
    layout_test_declare(fixture, 1, 2, two);
    bh_fixture_finish_effects(fixture);
    bh_fixture_must_send(fixture, &third);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(view(fixture, 3).state, BH_LAYOUT_READY);
    bh_fixture_must_send(fixture, &second);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK));
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED));
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_UNDOING);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "1g.10gb@0* 1g.10gb@1 3g.40gb@4 ");
    assert_string_equal(gpu_layout(fixture, 2), "");
    assert_string_equal(gpu_layout(fixture, 3), "");
    assert_int_equal(view(fixture, 3).state, BH_LAYOUT_UNDONE);
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_UNDONE);
    assert_int_equal(view(fixture, 2).state, BH_LAYOUT_UNDONE);
    assert_int_equal(view(fixture, 1).rc, 0);
    assert_int_equal(view(fixture, 2).rc, BH_IO);
    assert_int_equal(view(fixture, 1).wanted.mode, BH_LAYOUT_DECLARED); /* the older one */
    assert_int_equal(view(fixture, 2).wanted.mode, BH_LAYOUT_UNDECLARED);
    bh_fixture_close(fixture);
}

static void
a_destroy_that_fails_takes_it_back_too(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    layout_test_declare(fixture, 1, 1, two);
    bh_fixture_finish_effects(fixture);
    layout_test_declare(fixture, 1, 2, mixed);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_DESTROY), 1);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED));
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_UNDOING);
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, 31000000000); /* what would not go is tried again */
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, 61000000000);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_UNDONE);
    bh_fixture_close(fixture);
}

/* When not even the old state can be made, it ends there and says so. */
static void
a_failure_of_that_ends_it(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    layout_test_declare(fixture, 1, 1, two);
    bh_fixture_finish_effects(fixture);
    layout_test_declare(fixture, 1, 2, mixed);
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_OK)); /* destroyed */
    assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED));
    while (view(fixture, 1).state == BH_LAYOUT_UNDOING)
        assert_true(bh_fixture_answer_next(fixture, BH_OUTCOME_FAILED));
    bh_fixture_finish_effects(fixture);
    assert_int_equal(view(fixture, 1).state, BH_LAYOUT_FAILED);
    assert_int_equal(view(fixture, 1).wanted.mode, BH_LAYOUT_UNDECLARED);
    bh_fixture_close(fixture);
}

static void
once_leaves_nothing_declared(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event once = layout_test_declared(1, BH_LAYOUT_ONCE, 1, two);
    struct bh_event forget = layout_test_declared(1, BH_LAYOUT_UNDECLARED, 2, NULL);

    bh_fixture_must_send(fixture, &once);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    assert_int_equal(view(fixture, 1).wanted.mode, BH_LAYOUT_UNDECLARED);
    bh_fixture_must_send(fixture, &forget);
    assert_int_equal(fixture->step.effect_count, 0);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    bh_fixture_close(fixture);
}

static void
a_cordoned_gpu_is_prepared(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 1 },
                                                .node = { 1 },
                                                .managed = true,
                                                .model = BH_GPU_H100_80GB,
                                                .mig_capable = true,
                                                .cordoned = true });
    layout_test_declare(fixture, 1, 1, two);
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    bh_fixture_close(fixture);
}

static void
what_cannot_stand_is_refused(void **state)
{
    static const struct assignment overlap[] = { { "3g.40gb", 0 }, { "1g.10gb", 2 }, { NULL, 0 } };
    static const struct assignment nowhere[] = { { "3g.40gb", 2 }, { NULL, 0 } };
    static const struct assignment slices[] = { { "4g.40gb", 0 }, { "4g.40gb", 4 }, { NULL, 0 } };
    static const struct {
        const char *name;
        uint32_t gpu, apply;
        const struct assignment *assignments;
        bh_rc rc;
    } cases[] = {
        { "two at one place", 1, 1, overlap, BH_RANGE },
        { "no such start", 1, 1, nowhere, BH_RANGE },
        { "more slices than there are", 1, 1, slices, BH_RANGE },
        { "no such GPU", 9, 1, two, BH_NOT_FOUND },
        { "a number that does not follow", 1, 2, two, BH_RANGE },
        { "no number", 1, 0, two, BH_RANGE },
    };
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_event event =
            layout_test_declared(cases[i].gpu, BH_LAYOUT_DECLARED, cases[i].apply, cases[i].assignments);

        BH_CHECK_EQ(cases[i].name, bh_fixture_send(fixture, &event), cases[i].rc);
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

/* What is carved while the GPU is being reset would go with it unseen. */
static void
a_faulty_gpu_is_left_alone_until_it_is_well(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event fault = { .kind = BH_EV_HEALTH,
                              .u.health = { .gpu = { 1 }, .then = BH_THEN_RESET, .xid = 48 } };

    bh_fixture_must_send(fixture, &fault);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_RESET), 1);
    layout_test_declare(fixture, 1, 1, two);
    assert_int_equal(bh_fixture_effects(fixture, BH_FX_CARVE), 0);
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, 3600 * UINT64_C(1000000000)); /* past the burn-in */
    bh_fixture_finish_effects(fixture);
    assert_string_equal(gpu_layout(fixture, 1), "3g.40gb@0 3g.40gb@4 ");
    bh_fixture_close(fixture);
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
