#include "engine/defrag_join.h"

#include "base/attr.h"
#include "engine/slots.h"
#include "engine/story_test.h"

#define HOUR_NS UINT64_C(3600000000000)

static uint64_t
potential(const struct bh_story *story, uint32_t node)
{
    struct bh_search search = { .engine = story->engine };

    return bh_defrag_potential(&search, node_find(story->engine, node));
}

static void
configure(struct bh_story *story, struct bh_defrag defrag)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(story->engine, &event.u.settings);
    event.u.settings.defrag = defrag;
    bh_story_must(story, &event);
}

/* Two GPUs; sizes 1g.10gb (600), 3g.40gb (2100), whole (4200; alone and two together). */
static void
what_could_begin_is_the_mean_over_the_sizes(void **state)
{
    struct bh_story *story = bh_story_site(2);
    uint64_t a, b;

    /* 14 small, 4 halves, 2 wholes, 1 pair */
    assert_int_equal(potential(story, 1), 4 * 8400 / 4);
    a = bh_story_run(story, bh_story_wants(21, 2, 1));
    /* beside a half 4 small (of 4 slices left) and a half: 11, 3, 1, 0 */
    assert_int_equal(potential(story, 1), (11 * 600 + 3 * 2100 + 4200 + 0) / 4);
    b = bh_story_run(story, bh_story_wants(21, 2, 1));
    assert_int_equal(bh_story_where(story, a) / 100, bh_story_where(story, b) / 100);
    assert_int_equal(potential(story, 1), (7 * 600 + 2 * 2100 + 4200 + 0) / 4);
    bh_story_close(story);
}

/* Halves alone on two GPUs: one moves beside the other. */
static void
halves_are_joined(void **state)
{
    struct bh_story *story = bh_story_site(2);
    uint64_t a, b, c;
    struct bh_defrag_plan plan;
    uint64_t before;

    a = bh_story_run(story, bh_story_wants(21, 2, 1));
    b = bh_story_run(story, bh_story_wants(21, 2, 1));
    c = bh_story_run(story, bh_story_wants(21, 2, 1));
    bh_story_exit(story, b, 0);
    bh_story_settle(story);
    configure(story, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    before = potential(story, 1);
    assert_true(bh_defrag_join(story->engine, &plan));
    assert_int_equal(plan.room.before, before);
    assert_int_equal(plan.move.move_count, 1);
    assert_int_equal(plan.move.for_job.v, 0);
    assert_int_equal(plan.move.gain_gpu_ms,
                     bh_move_gpu_ms((bh_part_ns)(plan.room.after - before) * HOUR_NS));
    bh_story_must(story, &(struct bh_event){ .kind = BH_EV_MOVE, .u.move = plan.move });
    bh_story_settle(story);
    assert_int_equal(bh_story_where(story, a) / 100, bh_story_where(story, c) / 100);
    assert_int_equal(potential(story, 1), plan.room.after);
    assert_false(bh_defrag_join(story->engine, &plan));
    bh_story_close(story);
}

/* Nodes of 4 GPUs with 3 empty each: 4 together are worth a move of one, though no GPU is
 * broken up. */
static void
empty_gpus_are_joined_on_one_node(void **state)
{
    struct bh_story *story = bh_story_site(4);
    uint64_t a, b, c;
    struct bh_defrag_plan plan;

    bh_story_h100s(story, 2, 11, 4);
    a = bh_story_run(story, bh_story_wants(21, 3, 1));
    b = bh_story_run(story, bh_story_wants(21, 3, 3));
    c = bh_story_run(story, bh_story_wants(21, 3, 1));
    assert_true(bh_story_job(story, a).node.v != bh_story_job(story, c).node.v);
    bh_story_exit(story, b, 0);
    bh_story_settle(story);
    configure(story, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    assert_true(bh_defrag_join(story->engine, &plan));
    /* 3 + 3 empty GPUs: 6 alone, 2 pairs, no four; then 4 + 2: 6, 3 pairs, a four; beside
     * them 42 small and 12 halves: five sizes */
    assert_int_equal(plan.room.after - plan.room.before, (2 * 4200 + 4 * 4200) / 5);
    bh_story_close(story);
}

static void
there_must_be_a_gain_worth_its_cost(void **state)
{
    struct bh_story *story = bh_story_site(2);
    struct bh_defrag_plan plan;
    uint64_t b;

    bh_story_run(story, bh_story_wants(21, 2, 1));
    b = bh_story_run(story, bh_story_wants(21, 2, 1));
    bh_story_run(story, bh_story_wants(21, 2, 1));
    bh_story_exit(story, b, 0);
    bh_story_settle(story);
    configure(story, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    assert_true(bh_defrag_join(story->engine, &plan));
    bh_story_tick(story, HOUR_NS);
    assert_false(bh_defrag_join(story->engine, &plan));
    configure(story, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST, .gain_percent = 10 });
    assert_true(bh_defrag_join(story->engine, &plan));
    assert_true(plan.move.gain_gpu_ms * 10 >= plan.move.cost_gpu_ms);
    bh_story_close(story);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_could_begin_is_the_mean_over_the_sizes),
        cmocka_unit_test(halves_are_joined),
        cmocka_unit_test(empty_gpus_are_joined_on_one_node),
        cmocka_unit_test(there_must_be_a_gain_worth_its_cost),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
