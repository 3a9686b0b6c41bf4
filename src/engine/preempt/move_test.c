#include "engine/preempt/move.h"

#include "base/attr.h"
#include "engine/state/slots.h"
#include "engine/step/fixture_test.h"

#define HOUR_NS UINT64_C(3600000000000)
#define MINUTE_NS UINT64_C(60000000000)

static void
move_test_configure(struct bh_fixture *fixture, struct bh_defrag defrag)
{
    struct bh_event event = { .kind = BH_EV_SETTINGS };

    bh_view_settings(fixture->engine, &event.u.settings);
    event.u.settings.defrag = defrag;
    bh_fixture_must_send(fixture, &event);
}

/* Two GPUs; a job of half a GPU runs on the first. */
static struct bh_fixture *
move_test_open_site(uint64_t *ret_job)
{
    struct bh_fixture *fixture = bh_fixture_site(2);

    move_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    *ret_job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 2, 1));
    return fixture;
}

/* The job to the start of a GPU. */
static struct bh_ev_move
move_to(const struct bh_fixture *fixture, uint64_t job, uint32_t gpu, uint32_t start)
{
    return (struct bh_ev_move){
        .moves = { { { job }, bh_fixture_job(fixture, job).lease } },
        .move_count = 1,
        .placements = { { { gpu }, bh_profile_find(BH_GPU_H100_80GB, "3g.40gb")->id.v, start } },
        .placement_count = 1,
        .gain_gpu_ms = 1000000,
        .cost_gpu_ms = 1000,
    };
}

static bh_rc
move_test_send(struct bh_fixture *fixture, const struct bh_ev_move *move)
{
    return bh_fixture_send(fixture, &(struct bh_event){ .kind = BH_EV_MOVE, .u.move = *move });
}

static void
contracts_say_who_may_be_moved(void **state)
{
    static const struct {
        const char *name;
        struct bh_ev_submit job;
        bool may;
    } cases[] = {
        { "requeue", { .contract = BH_CONTRACT_REQUEUE }, true },
        { "checkpoint", { .contract = BH_CONTRACT_CHECKPOINT }, true },
        { "suspend", { .contract = BH_CONTRACT_SUSPEND }, false },
        { "never", { .contract = BH_CONTRACT_NEVER }, false },
        { "a service by default", { .kind = BH_JOB_SERVICE }, false },
        { "a session by default", { .kind = BH_JOB_INTERACTIVE }, false },
        { "a service that writes checkpoints",
          { .kind = BH_JOB_SERVICE, .contract = BH_CONTRACT_CHECKPOINT },
          true },
        { "a deadline", { .deadline_ns = 10 * HOUR_NS }, false },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_fixture *fixture = bh_fixture_site(1);
        struct bh_ev_submit submit = cases[i].job;
        uint64_t job;

        move_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
        submit.tenant.v = 21;
        submit.sku.v = 2;
        job = bh_fixture_submit_running(fixture, submit);
        BH_CHECK_EQ(cases[i].name,
                    bh_move_allowed(fixture->engine, job_find(fixture->engine, job), fixture->now_ns),
                    cases[i].may);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

/* Half a GPU (2100 parts) for an hour, and a minute to start again. */
static void
what_is_lost_is_the_cost(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit wants = bh_fixture_submission(21, 2, 1);
    uint64_t requeued = bh_fixture_submit_running(fixture, wants), kept;
    const struct bh_engine *engine = fixture->engine;

    wants.contract = BH_CONTRACT_CHECKPOINT;
    wants.grace_ns = 30000000000;
    kept = bh_fixture_submit_running(fixture, wants);
    assert_true(bh_move_cost(engine, job_find(engine, requeued)) == (bh_part_ns)2100 * MINUTE_NS);
    bh_fixture_tick(fixture, HOUR_NS);
    assert_true(bh_move_cost(engine, job_find(engine, requeued)) == (bh_part_ns)2100 * (HOUR_NS + MINUTE_NS));
    assert_true(bh_move_cost(engine, job_find(engine, kept)) == (bh_part_ns)2100 * (30000000000 + MINUTE_NS));
    assert_int_equal(bh_move_gpu_ms((bh_part_ns)2100 * HOUR_NS), 1800000);
    bh_fixture_close(fixture);
}

static void
a_job_that_moves_begins_in_its_new_place(void **state)
{
    uint64_t job;
    struct bh_fixture *fixture = move_test_open_site(&job);
    struct bh_ev_move move = move_to(fixture, job, 2, 4);
    struct bh_reason why;

    assert_int_equal(bh_fixture_placement_of(fixture, job) / 100, 1);
    assert_int_equal(move_test_send(fixture, &move), BH_OK);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_STOPPING);
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_MOVING);
    assert_int_equal(why.gpu.v, 2);
    bh_fixture_finish_effects(fixture);
    assert_int_equal(bh_fixture_state(fixture, job), BH_JOB_RUNNING);
    assert_int_equal(bh_fixture_placement_of(fixture, job), 204);
    assert_int_equal(bh_fixture_job(fixture, job).restarts, 1);
    assert_int_equal(bh_fixture_why(fixture, job).moved_ns, 1000000000); /* the next second */
    bh_fixture_close(fixture);
}

static void
a_checkpoint_is_asked_for(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(2);
    struct bh_ev_submit wants = bh_fixture_submission(21, 2, 1);
    struct bh_effect effect;
    struct bh_ev_move move;
    uint64_t job;

    move_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_SUGGEST });
    wants.contract = BH_CONTRACT_CHECKPOINT;
    job = bh_fixture_submit_running(fixture, wants);
    move = move_to(fixture, job, 2, 0);
    assert_int_equal(move_test_send(fixture, &move), BH_OK);
    assert_true(bh_fixture_next_effect(fixture, &effect));
    assert_int_equal(effect.kind, BH_FX_STOP);
    assert_int_equal(effect.signal, BH_CHECKPOINT_SIGNAL);
    bh_fixture_close(fixture);
}

/* ---- what is refused ---- */

static void
never(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_OFF });
}

static void
no_gain(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->gain_gpu_ms = 1999; /* of 1000 at 200 % */
}

static void
no_moves(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    struct bh_ev_move other = *move;

    move_test_configure(fixture, (struct bh_defrag){ .mode = BH_DEFRAG_ON, .moves = 1, .rest_ns = 1 });
    assert_int_equal(move_test_send(fixture, &other), BH_OK);
    bh_fixture_finish_effects(fixture);
    fixture->now_ns += 2;
    move->moves[0].lease = bh_fixture_job(fixture, move->moves[0].job.v).lease;
    move->placements[0].gpu.v = 1;
}

static void
no_work_left_to_lose(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->cost_gpu_ms = BH_DEFRAG_LOST_DEFAULT_GPU_S * 1000ull + 1;
    move->gain_gpu_ms = move->cost_gpu_ms * 2;
}

static void
rests(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    struct bh_ev_move other = *move;

    assert_int_equal(move_test_send(fixture, &other), BH_OK);
    bh_fixture_finish_effects(fixture);
    fixture->now_ns += BH_DEFRAG_REST_DEFAULT_NS - 1;
    move->moves[0].lease = bh_fixture_job(fixture, move->moves[0].job.v).lease;
    move->placements[0].gpu.v = 1;
}

static void
other_lease(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->moves[0].lease.v++;
}

static void
no_such_job(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->moves[0].job.v = 99;
}

static void
twice(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->moves[move->move_count++] = move->moves[0];
    move->placements[move->placement_count++] =
        (struct bh_move_placement){ { 2 }, move->placements[0].profile, 0 };
}

static void
taken(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    struct bh_ev_submit whole = bh_fixture_submission(21, 3, 1);

    bh_fixture_submit_running(fixture, whole);
}

static void
other_profile(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->placements[0].profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
}

static void
no_such_gpu(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->placements[0].gpu.v = 9;
}

static void
no_such_start(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->placements[0].start = 3;
}

static void
too_few_places(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->placement_count = 0;
}

static void
nobody(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->move_count = 0;
}

static void
huge(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->placements[0].start = 65536;
}

static void
above_normal(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    struct bh_ev_submit wants = bh_fixture_submission(21, 2, 1);
    uint64_t job;

    wants.priority = BH_PRIORITY_HIGH;
    job = bh_fixture_submit_running(fixture, wants);
    move->moves[0] = (struct bh_moved){ { job }, bh_fixture_job(fixture, job).lease };
}

static void
for_one_who_runs(struct bh_fixture *fixture, struct bh_ev_move *move)
{
    move->for_job = move->moves[0].job;
}

static void
what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(struct bh_fixture *fixture, struct bh_ev_move *move);
        bh_rc rc;
        enum bh_reason_code code;
    } cases[] = {
        { "off", never, BH_CONFLICT, BH_REASON_DEFRAG_OFF },
        { "no gain", no_gain, BH_CONFLICT, BH_REASON_DEFRAG_GAIN },
        { "no moves left", no_moves, BH_CONFLICT, BH_REASON_DEFRAG_BUDGET },
        { "too much lost", no_work_left_to_lose, BH_CONFLICT, BH_REASON_DEFRAG_BUDGET },
        { "moved lately", rests, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "another incarnation", other_lease, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "no such job", no_such_job, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "one job twice", twice, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "place taken", taken, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "another size", other_profile, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "no such GPU", no_such_gpu, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "no such start", no_such_start, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "too few places", too_few_places, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "nobody", nobody, BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "a start out of range", huge, BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "a high one to join room", above_normal, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
        { "for one who runs", for_one_who_runs, BH_CONFLICT, BH_REASON_DEFRAG_STALE },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        uint64_t job;
        struct bh_fixture *fixture = move_test_open_site(&job);
        struct bh_ev_move move = move_to(fixture, job, 2, 0);

        cases[i].spoil(fixture, &move);
        BH_CHECK_EQ(cases[i].name, move_test_send(fixture, &move), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, fixture->step.verdict.code, cases[i].code);
        bh_fixture_close(fixture);
    }
    BH_CHECK_DONE();
}

static void
an_hour_begins_with_its_first_move(void **state)
{
    uint64_t job;
    struct bh_fixture *fixture = move_test_open_site(&job);
    struct bh_ev_move move = move_to(fixture, job, 2, 0);
    struct bh_move_budget left = bh_move_left(fixture->engine, fixture->now_ns);

    assert_int_equal(left.moves, BH_DEFRAG_MOVES_DEFAULT);
    assert_int_equal(left.ends_ns, 0);
    fixture->now_ns += 5 * MINUTE_NS;
    assert_int_equal(move_test_send(fixture, &move), BH_OK);
    left = bh_move_left(fixture->engine, fixture->now_ns);
    assert_int_equal(left.moves, BH_DEFRAG_MOVES_DEFAULT - 1);
    assert_int_equal(left.lost_gpu_ms, BH_DEFRAG_LOST_DEFAULT_GPU_S * 1000ull - 1000);
    assert_true(left.ends_ns == fixture->now_ns + HOUR_NS);
    left = bh_move_left(fixture->engine, fixture->now_ns + HOUR_NS);
    assert_int_equal(left.moves, BH_DEFRAG_MOVES_DEFAULT);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(contracts_say_who_may_be_moved),
    cmocka_unit_test(what_is_lost_is_the_cost),
    cmocka_unit_test(a_job_that_moves_begins_in_its_new_place),
    cmocka_unit_test(a_checkpoint_is_asked_for),
    cmocka_unit_test(what_does_not_fit_is_refused),
    cmocka_unit_test(an_hour_begins_with_its_first_move),
};
BH_TEST_MAIN(tests)
