#include "engine/forecast/defrag_join.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

#define HOUR_NS UINT64_C(3600000000000)

static uint64_t
defrag_join_test_potential(const struct bh_fixture *fixture, uint32_t node)
{
    struct bh_search search = { .engine = fixture->engine };

    return bh_defrag_potential(&search, node_find(fixture->engine, node));
}

static void
defrag_join_test_configure(struct bh_fixture *fixture, struct bh_defrag defrag)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.defrag = defrag;
    bh_fixture_must_send(fixture, &event);
}

/* Two GPUs; sizes 1g.10gb (600), 3g.40gb (2100), whole (4200; alone and two together). */
static void
what_could_begin_is_the_mean_over_the_sizes(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t a, b;

    /* 14 small, 4 halves, 2 wholes, 1 pair */
    assert_int_equal(defrag_join_test_potential(fixture, 1), 4 * 8400 / 4);
    a = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    /* beside a half 4 small (of 4 slices left) and a half: 11, 3, 1, 0 */
    assert_int_equal(defrag_join_test_potential(fixture, 1), (11 * 600 + 3 * 2100 + 4200 + 0) / 4);
    b = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    assert_int_equal(bh_fixture_placement_of(fixture, a) / 100, bh_fixture_placement_of(fixture, b) / 100);
    assert_int_equal(defrag_join_test_potential(fixture, 1), (7 * 600 + 2 * 2100 + 4200 + 0) / 4);
    bh_fixture_close(fixture);
}

/* Halves alone on two GPUs: one moves beside the other. */
static void
halves_are_joined(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    uint64_t a, b, c;
    struct bh_defrag_plan plan;
    uint64_t before;

    a = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    b = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    c = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    bh_fixture_exit_job(fixture, b, 0);
    bh_fixture_finish_effects(fixture);
    defrag_join_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    before = defrag_join_test_potential(fixture, 1);
    assert_true(bh_defrag_join(fixture->engine, &plan));
    assert_int_equal(plan.capacity.before, before);
    assert_int_equal(plan.move.move_count, 1);
    assert_int_equal(plan.move.for_job.v, 0);
    assert_int_equal(plan.move.gain_gpu_ms,
                     bh_move_gpu_ms((bh_part_ns)(plan.capacity.after - before) * HOUR_NS));
    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_MOVE, .u.move = plan.move });
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_placement_of(fixture, a) / 100, bh_fixture_placement_of(fixture, c) / 100);
    assert_int_equal(defrag_join_test_potential(fixture, 1), plan.capacity.after);
    assert_false(bh_defrag_join(fixture->engine, &plan));
    bh_fixture_close(fixture);
}

/* Nodes of 4 GPUs with 3 empty each: 4 together are worth a move of one, though no GPU is
 * broken up. */
static void
empty_gpus_are_joined_on_one_node(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(4);
    uint64_t a, b, c;
    struct bh_defrag_plan plan;

    bh_fixture_h100s(fixture, 2, 11, 4);
    a = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    b = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 3));
    c = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 3, 1));
    assert_true(bh_fixture_job(fixture, a).node.v != bh_fixture_job(fixture, c).node.v);
    bh_fixture_exit_job(fixture, b, 0);
    bh_fixture_finish_effects(fixture);
    defrag_join_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    assert_true(bh_defrag_join(fixture->engine, &plan));
    /* 3 + 3 empty GPUs: 6 alone, 2 pairs, no four; then 4 + 2: 6, 3 pairs, a four; beside
     * them 42 small and 12 halves: five sizes */
    assert_int_equal(plan.capacity.after - plan.capacity.before, (2 * 4200 + 4 * 4200) / 5);
    bh_fixture_close(fixture);
}

static void
there_must_be_a_gain_worth_its_cost(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_defrag_plan plan;
    uint64_t b;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    b = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    bh_fixture_exit_job(fixture, b, 0);
    bh_fixture_finish_effects(fixture);
    defrag_join_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    assert_true(bh_defrag_join(fixture->engine, &plan));
    bh_fixture_tick(fixture, HOUR_NS);
    assert_false(bh_defrag_join(fixture->engine, &plan));
    defrag_join_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST, .gain_percent = 10 });
    assert_true(bh_defrag_join(fixture->engine, &plan));
    assert_true(plan.move.gain_gpu_ms * 10 >= plan.move.cost_gpu_ms);
    bh_fixture_close(fixture);
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
