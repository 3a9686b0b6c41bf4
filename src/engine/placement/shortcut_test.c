#include "engine/placement/shortcut.h"

#include <string.h>

#include "base/attr.h"
#include "engine/gpu/candidates.h"
#include "engine/gpu/node_index.h"
#include "engine/preempt/reserve.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

enum { NODES = 9, EACH = 4, SKUS = 6, FIRST_SKU = 10 };

static const uint32_t models[] = { BH_GPU_H100_80GB, BH_GPU_A100_80GB, BH_GPU_A30_24GB };

/* What each SKU takes of each of the models. */
/* clang-format off */
static const char *const rows[SKUS][3] = {
    { "whole", "whole", "whole" }, { NULL, "whole", "whole" }, { "whole", NULL, NULL },
    { "1g.10gb", "1g.10gb", NULL }, { "3g.40gb", "3g.40gb", "2g.12gb" },
    { "2g.20gb", NULL, "whole" },
};
/* clang-format on */

static void
say_sku(struct bh_fixture *fixture, uint32_t number)
{
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;

    sku->sku.v = FIRST_SKU + number;
    sku->grade = BH_GRADE_C;
    for (uint32_t i = 0; i < BH_COUNT(models); i++) {
        const struct bh_profile *profile =
            rows[number][i] ? bh_profile_find(models[i], rows[number][i]) : NULL;

        if (rows[number][i])
            sku->models[sku->model_count++] =
                (struct bh_sku_model){ models[i], profile ? profile->id.v : BH_PROFILE_WHOLE.v };
    }
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
                                                .mig_capable = true,
                                                .link = node % 2 ? 1 + at / 2 : 0 });
}

/* Nodes 2 and up; some have no limit of cores. */
static struct bh_fixture *
fleet(void)
{
    struct bh_fixture *fixture = bh_fixture_site(0);

    for (uint32_t node = 2; node < 2 + NODES; node++) {
        bh_fixture_must_send(
            fixture, &(struct bh_event){
                         .kind = BH_EV_NODE,
                         .u.node = { { node }, true, node % 4 ? 8000 * node : 0, node % 5 ? 64000 : 0 } });
        for (uint32_t i = 0; i < EACH; i++)
            say_gpu(fixture, node, i, false);
    }
    for (uint32_t i = 0; i < SKUS; i++)
        say_sku(fixture, i);
    return fixture;
}

static uint32_t
shortcut_test_draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

static struct bh_ev_submit
some_job(uint64_t *random)
{
    struct bh_ev_submit submit =
        bh_fixture_submission(21, FIRST_SKU + shortcut_test_draw(random, SKUS),
                              shortcut_test_draw(random, 2) ? 1 : 1 + shortcut_test_draw(random, EACH));

    submit.cpu_milli = shortcut_test_draw(random, 3) ? 1000 * shortcut_test_draw(random, 12) : 0;
    submit.memory_mib = shortcut_test_draw(random, 3) ? 1000 * shortcut_test_draw(random, 20) : 0;
    submit.gang = shortcut_test_draw(random, 8) ? 0 : 2;
    submit.time_limit_ns =
        shortcut_test_draw(random, 2) ? 0 : 1000000000 * (1 + (uint64_t)shortcut_test_draw(random, 9));
    return submit;
}

static bool
is_same_plan(const struct bh_plan *a, const struct bh_plan *b)
{
    return a->count == b->count
           && memcmp(a->assignments, b->assignments, a->count * sizeof a->assignments[0]) == 0;
}

/* What a partition costs where a plan puts it. */
static int64_t
cost_of(const struct bh_fixture *fixture, const struct bh_assignment *assignment)
{
    const struct gpu *gpu = gpu_at(fixture->engine, assignment->gpu);
    struct bh_occupancy after = gpu->occupancy;
    const struct bh_candidate_starts *best;
    struct bh_candidates starts;

    bh_candidates_init(&starts, gpu->model, assignment->profile);
    bh_candidates_price(&starts, fixture->engine, gpu->model);
    best = bh_candidates_find(&starts, &after);
    assert_true(best->starts >> assignment->start & 1);
    return best->growth;
}

static bool
is_hot(const struct bh_fixture *fixture, const struct bh_plan *plan)
{
    return node_at(fixture->engine, gpu_at(fixture->engine, plan->assignments[0].gpu)->node)->hot;
}

/* Whole GPUs are the same; a partition stands as well, and neither on a hot node if one does not. */
static void
must_match(const struct bh_fixture *fixture, const struct bh_plan *one, const struct bh_plan *other)
{
    bool whole = one->assignments[0].profile == BH_PROFILE_WHOLE.v;

    if (whole || one->count > 1)
        assert_true(is_same_plan(one, other));
    else
        assert_int_equal(cost_of(fixture, &one->assignments[0]), cost_of(fixture, &other->assignments[0]));
    if (fixture->engine->core.settings.hotspots)
        assert_int_equal(is_hot(fixture, one), is_hot(fixture, other));
}

/* What the index says of each class of jobs that wait, and of the same with others' eyes. */
static void
shortcut_test_compare(struct bh_fixture *fixture, uint32_t *asked)
{
    bh_node_index_update(fixture->engine);
    for (uint32_t slot = 0; bh_slot_next(fixture->engine, TABLE_CLASS, &slot);) {
        struct bh_need need = bh_placement_need(fixture->engine, slot);
        struct bh_queue_entry entry;
        struct bh_search search;
        struct bh_plan one, other;
        bool found, known;

        bh_queue_entry_of_class(fixture->engine, slot, &entry);
        search = bh_reserve_search(fixture->engine, &entry, need.job);
        found = bh_placement_find(&search, &need, &one, NULL);
        known = bh_shortcut_find(fixture->engine, &search, &need, &other);
        assert_int_equal(found, known);
        if (found)
            must_match(fixture, &one, &other);
        ++*asked;
    }
}

static void
avoid_hot_nodes(struct bh_fixture *fixture)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.hotspots = true;
    bh_fixture_must_send(fixture, &event);
}

static void
say_heat(struct bh_fixture *fixture, uint32_t node, bool hot)
{
    struct bh_event event = { .kind = BH_EV_ADVICE };

    event.u.advice.of = BH_ADVICE_NODE;
    event.u.advice.node.v = node;
    event.u.advice.hot = hot;
    bh_fixture_must_send(fixture, &event);
}

/* Jobs are submitted held, so that they can be asked for before they are let go. */
static void
a_shortcut_finds_what_the_search_finds(void **state)
{
    uint32_t asked = 0;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct bh_fixture *fixture = fleet();
        uint64_t random = seed, jobs[400];
        uint32_t count = 0, ended = 0;

        if (seed % 2)
            avoid_hot_nodes(fixture);
        for (uint32_t i = 0; i < BH_COUNT(jobs); i++) {
            struct bh_ev_submit submit = some_job(&random);

            submit.hold = true;
            jobs[count++] = bh_fixture_submit(fixture, submit);
            shortcut_test_compare(fixture, &asked);
            bh_fixture_must_send(
                fixture, &(struct bh_event){ .kind = BH_EV_RELEASE, .u.job = { { jobs[count - 1] } } });
            bh_fixture_finish_effects(fixture);
            while (ended + 14 < count && shortcut_test_draw(&random, 3)) {
                assert_int_equal(bh_fixture_cancel(fixture, jobs[ended++]), BH_OK);
                bh_fixture_finish_effects(fixture);
            }
            if (shortcut_test_draw(&random, 4) == 0)
                say_heat(fixture, 2 + shortcut_test_draw(&random, NODES), shortcut_test_draw(&random, 2));
            if (shortcut_test_draw(&random, 6) == 0)
                say_gpu(fixture, 2 + shortcut_test_draw(&random, NODES), shortcut_test_draw(&random, EACH),
                        shortcut_test_draw(&random, 2));
        }
        bh_fixture_close(fixture);
    }
    assert_true(asked > 2000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_shortcut_finds_what_the_search_finds),
};
BH_TEST_MAIN(tests)
