#include "engine/gpu/node_index.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

enum { EACH = 4, WHOLE_SKUS = 3, FIRST_SKU = 10 };

static const uint32_t models[] = { BH_GPU_H100_80GB, BH_GPU_A100_80GB, BH_GPU_A30_24GB };

/* SKU FIRST_SKU takes any model, the next all but the first, the last the first alone. */
static void
say_sku(struct bh_fixture *fixture, uint32_t number)
{
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;

    sku->sku.v = FIRST_SKU + number;
    sku->grade = BH_GRADE_B;
    for (uint32_t i = 0; i < BH_COUNT(models); i++)
        if (number == 0 || (number == 1) == (i > 0))
            sku->models[sku->model_count++] = (struct bh_sku_model){ models[i], BH_PROFILE_WHOLE.v };
    bh_fixture_must_send(fixture, &event);
}

static void
say_gpu(struct bh_fixture *fixture, uint32_t node, uint32_t at, bool cordoned)
{
    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { node * 100 + at },
                                                .node = { node },
                                                .model = models[node % BH_COUNT(models)],
                                                .managed = true,
                                                .cordoned = cordoned,
                                                .link = node % 2 ? 1 + at / 2 : 0 });
}

/* GPUs of a model that some must have are left to them. */
static void
scarce_models_are_taken_last(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(0);
    uint64_t job;

    for (uint32_t i = 0; i < WHOLE_SKUS; i++)
        say_sku(fixture, i);
    for (uint32_t node = 3; node < 6; node++) { /* 3 is of the first model */
        bh_fixture_node(fixture, node, true);
        for (uint32_t i = 0; i < EACH; i++)
            say_gpu(fixture, node, i, false);
    }
    for (uint32_t i = 0; i < 3 * EACH; i++) { /* who must have the first model */
        job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FIRST_SKU + 2, 1));
        assert_int_equal(bh_fixture_job(fixture, job).node.v, 3);
        assert_int_equal(bh_fixture_cancel(fixture, job), BH_OK);
        bh_fixture_finish_effects(fixture);
    }
    for (uint32_t i = 0; i < 2 * EACH; i++) { /* and who may have any */
        job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FIRST_SKU, 1));
        assert_int_not_equal(bh_fixture_job(fixture, job).node.v, 3);
    }
    job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FIRST_SKU, 1));
    assert_int_equal(bh_fixture_job(fixture, job).node.v, 3);
    bh_fixture_close(fixture);
}

/* The fuller of two nodes with cores for it, and of those the one whose cores fit best. */
static void
what_is_left_is_kept_usable(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(0);
    struct bh_ev_submit wide = bh_fixture_submission(21, FIRST_SKU, EACH), one = wide;
    uint64_t first, second;

    say_sku(fixture, 0);
    for (uint32_t node = 3; node <= 6; node += 3) { /* of one model */
        bh_fixture_must_send(
            fixture, &(struct bh_event){ .kind = BH_EV_NODE, .u.node = { { node }, true, 32000, 0 } });
        for (uint32_t i = 0; i < EACH; i++)
            say_gpu(fixture, node, i, false);
    }
    one.count = 1;
    one.cpu_milli = wide.cpu_milli = 4000;
    first = bh_fixture_submit_running(fixture, one);
    second = bh_fixture_submit_running(fixture, one);
    assert_int_equal(bh_fixture_job(fixture, first).node.v, bh_fixture_job(fixture, second).node.v);
    assert_int_equal(bh_fixture_state(fixture, bh_fixture_submit_running(fixture, wide)), BH_JOB_RUNNING);
    bh_fixture_close(fixture);
}

/* More kinds of jobs than are remembered, and more jobs than are counted. */
static void
demand_is_forgotten_in_time(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    const struct demand *demand = &fixture->engine->core.demand;

    fixture->quick = true;
    for (uint32_t i = 0; i < 20000; i++) {
        struct bh_ev_submit submit = bh_fixture_submission(21, 3, 1);

        submit.cpu_milli = 1 + i % (2 * WANTS_MAX);
        submit.hold = true;
        assert_int_equal(bh_fixture_cancel(fixture, bh_fixture_submit(fixture, submit)), BH_OK);
        assert_true(demand->count <= WANTS_MAX && demand->sum <= 4096);
        assert_true(demand->expected_count <= WANTS_MAX);
    }
    bh_fixture_check(fixture);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_left_is_kept_usable),
    cmocka_unit_test(demand_is_forgotten_in_time),
    cmocka_unit_test(scarce_models_are_taken_last),
};
BH_TEST_MAIN(tests)
