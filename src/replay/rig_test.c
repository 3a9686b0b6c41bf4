/* The modelled node must refuse what no good engine orders: else it proves nothing. */
#include "replay/rig.h"

#include <stdlib.h>

#include "base/test.h"
#include "model/geometry.h"

static struct bh_effect
effect_on_piece(enum bh_effect_kind kind, uint64_t order, struct bh_partition partition)
{
    return (struct bh_effect){ .kind = kind, .order = order, .node = { 1 }, .partition = partition };
}

static struct bh_partition
piece_at(uint64_t partition, const char *profile, uint32_t start)
{
    const struct bh_profile *known = bh_profile_find(BH_GPU_H100_80GB, profile);

    return (struct bh_partition){ .partition = { partition },
                                  .gpu = { 1 },
                                  .profile = known ? known->id.v : BH_PROFILE_WHOLE.v,
                                  .start = start };
}

static struct bh_rig *
rig_with_gpu(void)
{
    struct bh_rig *rig = bh_rig_new();
    struct bh_err err;

    assert_int_equal(
        bh_rig_add_gpu(rig, &(struct bh_ev_gpu){ .gpu = { 1 }, .node = { 1 }, .model = BH_GPU_H100_80GB },
                       &err),
        BH_OK);
    return rig;
}

/* Take an order and carry it out at once. */
static bh_rc
perform(struct bh_rig *rig, struct bh_effect effect, const struct bh_partition *partition,
        struct bh_event *ret_event)
{
    struct bh_rig_order order = { .effect = &effect,
                                  .partitions = partition,
                                  .partition_count = partition ? 1 : 0 };
    struct bh_rig_answer answer;
    struct bh_err err;
    bh_rc rc = bh_rig_order(rig, &order, &err);

    if (rc == BH_OK && bh_rig_next_due_ns(rig) != UINT64_MAX)
        rc = bh_rig_finish_next(rig, &answer, &err);
    if (rc == BH_OK && ret_event)
        *ret_event = answer.event;
    return rc;
}

static struct bh_effect
effect_on_lease(enum bh_effect_kind kind, uint64_t order, uint64_t lease)
{
    return (struct bh_effect){ .kind = kind, .order = order, .node = { 1 }, .lease = { lease } };
}

static void
pieces_do_not_overlap(void **state)
{
    struct bh_rig *rig = rig_with_gpu();
    struct bh_event event;

    (void)state;
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_CARVE, 1, piece_at(1, "3g.40gb", 0)), NULL, &event),
                     BH_OK);
    assert_int_equal(event.kind, BH_EV_CARVED);
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_CARVE, 2, piece_at(2, "1g.10gb", 3)), NULL, NULL),
                     BH_BUG);
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_CARVE, 3, piece_at(3, "", 0)), NULL, NULL), BH_BUG);
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_CARVE, 4, piece_at(4, "1g.10gb", 4)), NULL, NULL),
                     BH_OK);
    bh_rig_free(rig);
}

static void
a_piece_has_one_user(void **state)
{
    struct bh_rig *rig = rig_with_gpu();
    struct bh_partition partition = piece_at(1, "3g.40gb", 0), elsewhere = piece_at(2, "3g.40gb", 4);

    (void)state;
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_START, 1, 7), &partition, NULL), BH_BUG);
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_CARVE, 2, partition), NULL, NULL), BH_OK);
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_CARVE, 3, elsewhere), NULL, NULL), BH_OK);
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_START, 4, 7), &partition, NULL), BH_OK);
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_START, 5, 8), &partition, NULL), BH_BUG);
    assert_int_equal(perform(rig, effect_on_piece(BH_FX_DESTROY, 6, partition), NULL, NULL), BH_BUG);
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_SUSPEND, 7, 7), NULL, NULL), BH_OK);
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_RESUME, 8, 7), &elsewhere, NULL), BH_BUG);
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_START, 9, 8), &partition, NULL), BH_OK);
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_RESUME, 10, 7), &partition, NULL), BH_BUG);
    bh_rig_free(rig);
}

static void
a_repeat_is_answered_and_not_done_again(void **state)
{
    struct bh_rig *rig = rig_with_gpu();
    struct bh_effect carve = effect_on_piece(BH_FX_CARVE, 1, piece_at(1, "1g.10gb", 0));
    struct bh_event event = { .kind = BH_EV_TICK };
    struct bh_err err;

    (void)state;
    assert_int_equal(bh_rig_fail(rig, &(struct bh_rig_fault){ .kind = BH_FX_CARVE, .times = 1 }, &err),
                     BH_OK);
    assert_int_equal(perform(rig, carve, NULL, &event), BH_OK);
    assert_int_equal(event.u.partition.outcome, BH_OUTCOME_FAILED);
    event = (struct bh_event){ .kind = BH_EV_TICK };
    assert_int_equal(perform(rig, carve, NULL, &event), BH_OK);
    assert_int_equal(event.kind, BH_EV_CARVED);
    assert_int_equal(event.u.partition.outcome, BH_OUTCOME_FAILED);
    assert_false(bh_rig_has_piece(rig, (bh_partition_id){ 1 }));
    assert_int_equal(perform(rig, effect_on_lease(BH_FX_STOP, 1, 7), NULL, NULL), BH_BUG);
    bh_rig_free(rig);
}

static void
one_gpu_does_one_thing_after_the_other(void **state)
{
    struct bh_rig *rig = rig_with_gpu();
    struct bh_effect first = effect_on_piece(BH_FX_CARVE, 1, piece_at(1, "1g.10gb", 0));
    struct bh_effect second = effect_on_piece(BH_FX_CARVE, 2, piece_at(2, "1g.10gb", 1));
    struct bh_rig_answer answer;
    struct bh_err err;

    (void)state;
    bh_rig_delay(rig, BH_FX_CARVE, 10);
    assert_int_equal(bh_rig_order(rig, &(struct bh_rig_order){ .effect = &first }, &err), BH_OK);
    assert_int_equal(bh_rig_order(rig, &(struct bh_rig_order){ .effect = &second }, &err), BH_OK);
    assert_int_equal(bh_rig_next_due_ns(rig), 10);
    assert_int_equal(bh_rig_finish_next(rig, &answer, &err), BH_OK);
    assert_int_equal(bh_rig_next_due_ns(rig), 20);
    bh_rig_free(rig);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pieces_do_not_overlap),
    cmocka_unit_test(a_piece_has_one_user),
    cmocka_unit_test(a_repeat_is_answered_and_not_done_again),
    cmocka_unit_test(one_gpu_does_one_thing_after_the_other),
};
BH_TEST_MAIN(tests)
