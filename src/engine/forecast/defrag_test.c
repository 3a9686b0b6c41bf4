/* Plans of moves, over random small sites.
 *
 *   - Beside a search of everything: for the job that waits first, no plan is cheaper than
 *     the cheapest there is, hardly any is dearer, and hardly any is missed.
 *   - No livelock: with nothing from outside, plans come to an end; after each either a job
 *     that waited runs, or more could begin than before.
 *
 *   defrag_test [rounds [seed]] */

#include "engine/forecast/defrag.h"

#include "base/attr.h"
#include "engine/forecast/defrag_join.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

enum { GPUS = 4, JOBS_MOST = 8, MOVES_MOST = 4, PLANS_MOST = 200 };

static uint64_t rounds_wanted = 800, seed_wanted = 1;

struct course {
    struct bh_fixture *fixture;
    uint64_t random;
    uint32_t compared, dearer, missed, plans, helped, joined;
};

static uint32_t
defrag_test_draw(struct course *course, uint32_t below)
{
    course->random ^= course->random << 13;
    course->random ^= course->random >> 7;
    course->random ^= course->random << 17;
    return (uint32_t)((course->random >> 33) % below);
}

static void
open_course(struct course *course)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    *course = (struct course){ .fixture = bh_fixture_site(GPUS / 2),
                               .random = seed_wanted * 0x9e3779b97f4a7c15ull + 1 };
    bh_fixture_h100s(course->fixture, 2, 11, GPUS / 2);
    bh_view_settings(course->fixture->engine, &event.u.settings);
    event.u.settings.defrag = (struct bh_defrag){ .mode = BH_DEFRAG_ON,
                                                  .moves = 1000000,
                                                  .gain_percent = 1,
                                                  .rest_ns = 1,
                                                  .lost_gpu_s = BH_DEFRAG_LOST_MAX_GPU_S };
    bh_fixture_must_send(course->fixture, &event);
}

/* Some jobs end, some come; then all that can happen has happened. */
static void
wake(struct course *course)
{
    struct bh_fixture *fixture = course->fixture;
    struct bh_job_view view;
    uint32_t cursor = 0, count = 0;
    uint64_t jobs[64];

    while (bh_view_next_job(fixture->engine, &cursor, &view) && count < BH_COUNT(jobs))
        if (view.state < BH_JOB_COMPLETED)
            jobs[count++] = view.job.v;
    for (uint32_t i = 0; i < count; i++)
        if (defrag_test_draw(course, count > 10 ? 2 : 3) == 0)
            assert_int_equal(bh_fixture_cancel(fixture, jobs[i]), BH_OK);
    bh_fixture_finish_effects(fixture);
    for (uint32_t i = defrag_test_draw(course, 6); i > 0; i--) {
        struct bh_ev_submit wants =
            bh_fixture_submission(defrag_test_draw(course, 2) ? 21 : 31, 1 + defrag_test_draw(course, 3), 1);

        wants.contract = defrag_test_draw(course, 5) ? BH_CONTRACT_CHECKPOINT : BH_CONTRACT_NEVER;
        wants.grace_ns = 1000000000 * (uint64_t)(1 + defrag_test_draw(course, 100));
        bh_fixture_submit(fixture, wants);
        bh_fixture_finish_effects(fixture);
        fixture->now_ns += 1000000000;
    }
    bh_fixture_tick(fixture, 1000000000);
    bh_fixture_finish_effects(fixture);
}

/* ---- a search of everything ---- */

struct piece {
    uint32_t profile, gpu, start;
    uint32_t job; /* slot */
};

struct board {
    const struct bh_engine *engine;
    struct piece partitions[JOBS_MOST];
    uint32_t count;
    bh_part_ns best;
    bool found;
};

static bool
defrag_test_stands(struct bh_occupancy *gpu, uint32_t profile_id, uint32_t start)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });

    if (!profile) {
        if (gpu->whole || gpu->units || start)
            return false;
        gpu->whole = true;
        return true;
    }
    if (start >= 32 || !(profile->starts >> start & 1) || !bh_occupancy_fits(gpu, profile, start))
        return false;
    bh_occupancy_add(gpu, profile, start);
    return true;
}

/* Whether all of these sizes find places, whatever they are. */
static bool
all_fit(const struct bh_occupancy gpus[GPUS], const uint32_t *profiles, uint32_t count)
{
    if (count == 0)
        return true;
    for (uint32_t gpu = 0; gpu < GPUS; gpu++)
        for (uint32_t start = 0; start < 8; start++) {
            struct bh_occupancy next[GPUS];

            memcpy(next, gpus, sizeof(next));
            if (defrag_test_stands(&next[gpu], profiles[0], start) && all_fit(next, profiles + 1, count - 1))
                return true;
        }
    return false;
}

/* With the set of partitions taken up, they and the job that waits find places. */
static void
try_set(struct board *board, uint32_t set, uint32_t profile)
{
    struct bh_occupancy gpus[GPUS] = { { 0 } };
    uint32_t profiles[JOBS_MOST + 1] = { profile }, count = 1;
    bh_part_ns cost = 0;

    for (uint32_t i = 0; i < board->count; i++) {
        const struct piece *piece = &board->partitions[i];

        if (!(set >> i & 1)) {
            assert_true(defrag_test_stands(&gpus[piece->gpu], piece->profile, piece->start));
            continue;
        }
        if (!bh_move_allowed(board->engine, piece->job, board->engine->core.now_ns))
            return;
        profiles[count++] = piece->profile;
        cost += bh_move_cost(board->engine, piece->job);
    }
    if ((board->found && cost >= board->best) || !all_fit(gpus, profiles, count))
        return;
    board->found = true;
    board->best = cost;
}

static bool
set_board(const struct bh_engine *engine, struct board *board)
{
    *board = (struct board){ .engine = engine };
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct placement *placement = &lease_at(engine, slot)->placements[0];

        if (board->count == JOBS_MOST || lease_at(engine, slot)->state != LEASE_RUNNING)
            return false;
        board->partitions[board->count++] =
            (struct piece){ placement->profile, placement->gpu < 10 ? placement->gpu - 1 : placement->gpu - 9,
                            placement->start, lease_at(engine, slot)->job };
    }
    return true;
}

static void
search_all(struct board *board, uint32_t profile)
{
    for (uint32_t set = 1; set < 1u << board->count; set++)
        if (__builtin_popcount(set) <= MOVES_MOST)
            try_set(board, set, profile);
}

/* The only reservation's holder, or 0: it is the first that waits. */
static uint32_t
first_waiting(const struct bh_engine *engine)
{
    uint32_t job = 0;

    if (engine->core.claim_count != 1 || engine->core.reserved != 1 || engine->core.leaving)
        return 0;
    for (uint32_t i = 0; i < CLAIMS_MAX; i++)
        job = engine->core.claims[i].job ? engine->core.claims[i].job : job;
    return job;
}

static void
defrag_test_compare(struct course *course)
{
    const struct bh_engine *engine = course->fixture->engine;
    uint32_t job = first_waiting(engine);
    struct bh_defrag_plan plan;
    struct board board;
    bool planned;

    if (!job || !set_board(engine, &board))
        return;
    search_all(&board, sku_at(engine, job_at(engine, job)->sku)->profiles[0]);
    planned = bh_defrag_find(engine, &plan) && plan.move.for_job.v == job_at(engine, job)->id;
    assert_true(!planned || board.found);
    if (!board.found)
        return;
    course->compared++;
    course->missed += !planned;
    if (!planned)
        return;
    assert_true(plan.move.cost_gpu_ms >= bh_move_gpu_ms(board.best));
    course->dearer += plan.move.cost_gpu_ms > bh_move_gpu_ms(board.best) + 1;
}

static void
plans_are_the_cheapest_nearly_always(void **state)
{
    struct course course;

    open_course(&course);
    for (uint64_t i = 0; i < rounds_wanted; i++) {
        wake(&course);
        defrag_test_compare(&course);
    }
    fprintf(stderr, "# %u compared: %u dearer than the cheapest, %u missed\n", course.compared, course.dearer,
            course.missed);
    assert_true(course.compared >= rounds_wanted / 20);
    assert_true(course.missed * 10 <= course.compared);
    assert_true(course.dearer * 10 <= course.compared);
    bh_fixture_close(course.fixture);
}

/* ---- no livelock ---- */

static uint64_t
defrag_test_potential(const struct bh_engine *engine)
{
    struct bh_search search = { .engine = engine };
    uint64_t sum = 0;

    for (uint32_t node = 0; bh_slot_next(engine, TABLE_NODE, &node);)
        sum += bh_defrag_potential(&search, node);
    return sum;
}

static void
defrag_test_carry_out(struct course *course, const struct bh_defrag_plan *plan)
{
    struct bh_fixture *fixture = course->fixture;
    uint64_t before = defrag_test_potential(fixture->engine);
    uint32_t pending = fixture->engine->core.pending;

    bh_fixture_must_send(fixture, &(struct bh_event){ .kind = BH_EV_MOVE, .u.move = plan->move });
    bh_fixture_finish_effects(fixture);
    bh_fixture_tick(fixture, 1000000000);
    bh_fixture_finish_effects(fixture);
    for (uint32_t i = 0; i < plan->move.move_count; i++)
        assert_int_equal(bh_fixture_state(fixture, plan->move.moves[i].job.v), BH_JOB_RUNNING);
    if (plan->move.for_job.v) {
        assert_int_equal(bh_fixture_state(fixture, plan->move.for_job.v), BH_JOB_RUNNING);
        course->helped++;
    } else {
        assert_true(fixture->engine->core.pending < pending
                    || defrag_test_potential(fixture->engine) > before);
        course->joined++;
    }
    assert_true(fixture->engine->core.pending <= pending);
}

static void
plans_come_to_an_end(void **state)
{
    struct course course;
    struct bh_defrag_plan plan;

    open_course(&course);
    for (uint64_t i = 0; i < rounds_wanted; i++) {
        uint32_t plans = 0;

        wake(&course);
        while (bh_defrag_find(course.fixture->engine, &plan)) {
            assert_true(++plans < PLANS_MOST);
            defrag_test_carry_out(&course, &plan);
        }
        course.plans = plans > course.plans ? plans : course.plans;
        for (uint32_t tick = 0; tick < 3; tick++) {
            bh_fixture_tick(course.fixture, 60000000000);
            assert_false(bh_defrag_find(course.fixture->engine, &plan));
        }
    }
    fprintf(stderr, "# %u plans for a job, %u for room; at most %u in a row\n", course.helped, course.joined,
            course.plans);
    assert_true(course.helped > 0 && course.joined > 0);
    bh_fixture_close(course.fixture);
}

/* ---- what a plan is called ---- */

static void
a_token_names_what_is_done(void **state)
{
    struct bh_ev_move move = { .for_job = { 3 },
                               .moves = { { { 1 }, { 7 } } },
                               .move_count = 1,
                               .placements = { { { 1 }, 2, 4 }, { { 2 }, 0, 0 } },
                               .placement_count = 2 };
    struct bh_ev_move other = move;
    uint64_t token = bh_defrag_token(&move);

    assert_true(token != 0);
    other.gain_gpu_ms = 9;
    assert_true(bh_defrag_token(&other) == token);
    other.placements[1].start = 4;
    assert_true(bh_defrag_token(&other) != token);
    other = move;
    other.moves[0].lease.v = 8;
    assert_true(bh_defrag_token(&other) != token);
    other = move;
    other.for_job.v = 0;
    assert_true(bh_defrag_token(&other) != token);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_the_cheapest_nearly_always),
        cmocka_unit_test(plans_come_to_an_end),
        cmocka_unit_test(a_token_names_what_is_done),
    };

    if (argc > 1)
        rounds_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        seed_wanted = strtoull(argv[2], NULL, 10);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
