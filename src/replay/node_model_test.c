/* The modelled node must refuse what no good engine orders: else it proves nothing. */
#include "replay/node_model.h"

#include <stdlib.h>

#include "base/test.h"
#include "model/geometry.h"

static struct bh_effect
effect_on_partition(enum bh_effect_kind kind, uint64_t order, struct bh_partition partition)
{
    return (struct bh_effect){ .kind = kind, .order = order, .node = { 1 }, .partition = partition };
}

static struct bh_partition
partition_at(uint64_t partition, const char *profile, uint32_t start)
{
    const struct bh_profile *known = bh_profile_find(BH_GPU_H100_80GB, profile);

    return (struct bh_partition){ .partition = { partition },
                                  .gpu = { 1 },
                                  .profile = known ? known->id.v : BH_PROFILE_WHOLE.v,
                                  .start = start };
}

static struct bh_node_model *
nodes_with_gpu(void)
{
    struct bh_node_model *nodes = bh_node_model_new();
    struct bh_err err;

    assert_int_equal(
        bh_node_model_add_gpu(
            nodes, &(struct bh_ev_gpu){ .gpu = { 1 }, .node = { 1 }, .model = BH_GPU_H100_80GB }, &err),
        BH_OK);
    return nodes;
}

/* Take an order and carry it out at once. */
static bh_rc
perform(struct bh_node_model *nodes, struct bh_effect effect, const struct bh_partition *partition,
        struct bh_event *ret_event)
{
    struct bh_node_model_order order = { .effect = &effect,
                                         .partitions = partition,
                                         .partition_count = partition ? 1 : 0 };
    struct bh_node_model_answer answer;
    struct bh_err err;
    bh_rc rc = bh_node_model_order(nodes, &order, &err);

    if (rc == BH_OK && bh_node_model_next_due_ns(nodes) != UINT64_MAX)
        rc = bh_node_model_finish_next(nodes, &answer, &err);
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
partitions_do_not_overlap(void **state)
{
    struct bh_node_model *nodes = nodes_with_gpu();
    struct bh_event event;

    assert_int_equal(
        perform(nodes, effect_on_partition(BH_FX_CARVE, 1, partition_at(1, "3g.40gb", 0)), NULL, &event),
        BH_OK);
    assert_int_equal(event.kind, BH_EV_CARVED);
    assert_int_equal(
        perform(nodes, effect_on_partition(BH_FX_CARVE, 2, partition_at(2, "1g.10gb", 3)), NULL, NULL),
        BH_BUG);
    assert_int_equal(perform(nodes, effect_on_partition(BH_FX_CARVE, 3, partition_at(3, "", 0)), NULL, NULL),
                     BH_BUG);
    assert_int_equal(
        perform(nodes, effect_on_partition(BH_FX_CARVE, 4, partition_at(4, "1g.10gb", 4)), NULL, NULL),
        BH_OK);
    bh_node_model_free(nodes);
}

static void
a_partition_has_one_user(void **state)
{
    struct bh_node_model *nodes = nodes_with_gpu();
    struct bh_partition partition = partition_at(1, "3g.40gb", 0), elsewhere = partition_at(2, "3g.40gb", 4);

    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_START, 1, 7), &partition, NULL), BH_BUG);
    assert_int_equal(perform(nodes, effect_on_partition(BH_FX_CARVE, 2, partition), NULL, NULL), BH_OK);
    assert_int_equal(perform(nodes, effect_on_partition(BH_FX_CARVE, 3, elsewhere), NULL, NULL), BH_OK);
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_START, 4, 7), &partition, NULL), BH_OK);
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_START, 5, 8), &partition, NULL), BH_BUG);
    assert_int_equal(perform(nodes, effect_on_partition(BH_FX_DESTROY, 6, partition), NULL, NULL), BH_BUG);
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_SUSPEND, 7, 7), NULL, NULL), BH_OK);
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_RESUME, 8, 7), &elsewhere, NULL), BH_BUG);
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_START, 9, 8), &partition, NULL), BH_OK);
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_RESUME, 10, 7), &partition, NULL), BH_BUG);
    bh_node_model_free(nodes);
}

static void
a_repeat_is_answered_and_not_done_again(void **state)
{
    struct bh_node_model *nodes = nodes_with_gpu();
    struct bh_effect carve = effect_on_partition(BH_FX_CARVE, 1, partition_at(1, "1g.10gb", 0));
    struct bh_event event = { .kind = BH_EV_TICK };
    struct bh_err err;

    assert_int_equal(
        bh_node_model_fail(nodes, &(struct bh_node_model_fault){ .kind = BH_FX_CARVE, .times = 1 }, &err),
        BH_OK);
    assert_int_equal(perform(nodes, carve, NULL, &event), BH_OK);
    assert_int_equal(event.u.partition.outcome, BH_OUTCOME_FAILED);
    event = (struct bh_event){ .kind = BH_EV_TICK };
    assert_int_equal(perform(nodes, carve, NULL, &event), BH_OK);
    assert_int_equal(event.kind, BH_EV_CARVED);
    assert_int_equal(event.u.partition.outcome, BH_OUTCOME_FAILED);
    assert_false(bh_node_model_has_partition(nodes, (bh_partition_id){ 1 }));
    assert_int_equal(perform(nodes, effect_on_lease(BH_FX_STOP, 1, 7), NULL, NULL), BH_BUG);
    bh_node_model_free(nodes);
}

static void
one_gpu_does_one_thing_after_the_other(void **state)
{
    struct bh_node_model *nodes = nodes_with_gpu();
    struct bh_effect first = effect_on_partition(BH_FX_CARVE, 1, partition_at(1, "1g.10gb", 0));
    struct bh_effect second = effect_on_partition(BH_FX_CARVE, 2, partition_at(2, "1g.10gb", 1));
    struct bh_node_model_answer answer;
    struct bh_err err;

    bh_node_model_delay(nodes, BH_FX_CARVE, 10);
    assert_int_equal(bh_node_model_order(nodes, &(struct bh_node_model_order){ .effect = &first }, &err),
                     BH_OK);
    assert_int_equal(bh_node_model_order(nodes, &(struct bh_node_model_order){ .effect = &second }, &err),
                     BH_OK);
    assert_int_equal(bh_node_model_next_due_ns(nodes), 10);
    assert_int_equal(bh_node_model_finish_next(nodes, &answer, &err), BH_OK);
    assert_int_equal(bh_node_model_next_due_ns(nodes), 20);
    bh_node_model_free(nodes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(partitions_do_not_overlap),
    cmocka_unit_test(a_partition_has_one_user),
    cmocka_unit_test(a_repeat_is_answered_and_not_done_again),
    cmocka_unit_test(one_gpu_does_one_thing_after_the_other),
};
BH_TEST_MAIN(tests)
