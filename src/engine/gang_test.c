/* A job of several members: placed, run and ended all or none. */
#include "engine/gang.h"

#include "base/attr.h"
#include "engine/story_test.h"

/* Two nodes of `gpus` H100s each. */
static struct bh_story *
two_nodes(uint32_t gpus)
{
    struct bh_story *story = bh_story_site(gpus);

    bh_story_h100s(story, 2, 1 + gpus, gpus);
    return story;
}

static struct bh_ev_submit
gang_of(uint32_t members, uint32_t sku, uint32_t count)
{
    struct bh_ev_submit submit = bh_story_wants(21, sku, count);

    submit.gang = members;
    return submit;
}

static struct bh_member_view
member(const struct bh_story *story, uint64_t job, uint32_t number)
{
    struct bh_member_view view = { 0 };

    assert_true(bh_view_member(story->engine, (bh_job_id){ job }, number, &view));
    return view;
}

static void
ended(struct bh_story *story, uint64_t job, uint32_t number, int32_t status)
{
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended = (struct bh_ev_ended){ .lease = member(story, job, number).lease,
                                          .cause = BH_END_EXITED, .exit_status = status };
    bh_story_must(story, &event);
}

static void
a_gang_is_placed_in_one_record(void **state)
{
    struct bh_story *story = two_nodes(2);
    uint64_t job = bh_story_submit(story, gang_of(3, 3, 1));

    assert_int_equal(story->step.decision_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(story->step.decisions[i].kind, BH_DO_PLACE);
        assert_int_equal(story->step.decisions[i].member, i);
        assert_int_equal(member(story, job, i).lease.v, 1 + i);
    }
    assert_int_equal(member(story, job, 0).node.v, 1);
    assert_int_equal(member(story, job, 1).node.v, 1);
    assert_int_equal(member(story, job, 2).node.v, 2);
    assert_false(bh_view_member(story->engine, (bh_job_id){ job }, 3,
                                &(struct bh_member_view){ 0 }));
    bh_story_close(story);
}

static void
no_member_starts_before_all_pieces_are_there(void **state)
{
    struct bh_story *story = two_nodes(1);
    uint64_t job = bh_story_submit(story, gang_of(2, 3, 1));

    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 2);
    assert_true(bh_story_next(story, BH_OUTCOME_OK));
    assert_int_equal(bh_story_effects(story, BH_FX_START), 0);
    assert_true(bh_story_next(story, BH_OUTCOME_OK));
    assert_int_equal(bh_story_effects(story, BH_FX_START), 2);
    assert_true(bh_story_next(story, BH_OUTCOME_OK));
    assert_int_equal(bh_story_state(story, job), BH_JOB_STARTING);
    assert_true(bh_story_next(story, BH_OUTCOME_OK));
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    bh_story_close(story);
}

static void
a_member_that_ends_well_waits_for_the_others(void **state)
{
    struct bh_story *story = two_nodes(1);
    uint64_t job = bh_story_run(story, gang_of(2, 3, 1));

    ended(story, job, 0, 0);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    assert_true(member(story, job, 0).done);
    assert_int_equal(member(story, job, 0).piece_count, 0);
    ended(story, job, 1, 0);
    assert_int_equal(bh_story_state(story, job), BH_JOB_COMPLETED);
    bh_story_close(story);
}

static void
the_first_that_fails_says_how_the_job_ended(void **state)
{
    struct bh_story *story = two_nodes(2);
    uint64_t job = bh_story_run(story, gang_of(4, 3, 1));
    struct bh_job_view view;

    ended(story, job, 2, 0);
    ended(story, job, 1, 7);
    assert_int_equal(bh_story_effects(story, BH_FX_STOP), 2);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STOPPING);
    bh_story_settle(story);
    view = bh_story_job(story, job);
    assert_int_equal(view.state, BH_JOB_FAILED);
    assert_int_equal(view.cause, BH_END_EXITED);
    assert_int_equal(view.exit_status, 7);
    bh_story_close(story);
}

static void
a_lost_node_queues_the_gang_again_once(void **state)
{
    struct bh_story *story = two_nodes(1);
    uint64_t job = bh_story_run(story, gang_of(2, 3, 1));
    struct bh_event event = { .kind = BH_EV_ENDED };

    event.u.ended = (struct bh_ev_ended){ .lease = member(story, job, 1).lease,
                                          .cause = BH_END_NODE_LOST };
    bh_story_must(story, &event);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STOPPING);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    assert_int_equal(bh_story_job(story, job).restarts, 1);
    bh_story_close(story);
}

/* One member is lost, the job is cancelled while the other has its grace, and that one ends. */
static void
a_cancel_outranks_what_would_queue_it_again(void **state)
{
    static const struct {
        const char *name;
        enum bh_end_cause lost, cancel;
        bool elsewhere;
        enum bh_job_state becomes;
    } cases[] = {
        { "node", BH_END_NODE_LOST, BH_END_CANCELLED, false, BH_JOB_CANCELLED },
        { "keeper", BH_END_KEEPER_LOST, BH_END_CANCELLED, true, BH_JOB_CANCELLED },
        { "start", BH_END_START_FAILED, BH_END_CANCELLED, true, BH_JOB_CANCELLED },
        { "keeper, its grant", BH_END_KEEPER_LOST, BH_END_DATASET, true, BH_JOB_FAILED },
        { "keeper, by a record of before", BH_END_KEEPER_LOST, BH_END_CANCELLED, false,
          BH_JOB_FAILED },
        { "start, for good", BH_END_START_FAILED, BH_END_CANCELLED, false, BH_JOB_FAILED },
        { "a fault of its own", BH_END_SIGNALLED, BH_END_CANCELLED, false, BH_JOB_FAILED },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_story *story = two_nodes(1);
        uint64_t job = bh_story_run(story, gang_of(2, 3, 1));
        struct bh_event event = { .kind = BH_EV_ENDED };
        struct bh_event cancel = { .kind = BH_EV_CANCEL };

        event.u.ended = (struct bh_ev_ended){ .lease = member(story, job, 1).lease,
                                              .cause = cases[i].lost,
                                              .elsewhere = cases[i].elsewhere };
        cancel.u.job = (struct bh_ev_job){ .job = { job }, .cause = cases[i].cancel };
        bh_story_must(story, &event);
        BH_CHECK_EQ(cases[i].name, bh_story_state(story, job), BH_JOB_STOPPING);
        BH_CHECK_EQ(cases[i].name, bh_story_send(story, &cancel), BH_OK);
        bh_story_settle(story);
        BH_CHECK_EQ(cases[i].name, bh_story_state(story, job), cases[i].becomes);
        bh_story_close(story);
    }
    BH_CHECK_DONE();
}

static void
a_suspended_gang_resumes_all_together(void **state)
{
    struct bh_story *story = two_nodes(1);
    struct bh_ev_submit low = gang_of(2, 3, 1), high = bh_story_wants(21, 3, 1);
    uint64_t job, urgent;

    low.priority = BH_PRIORITY_LOW;
    low.contract = BH_CONTRACT_SUSPEND;
    high.priority = BH_PRIORITY_HIGH;
    job = bh_story_run(story, low);
    urgent = bh_story_submit(story, high);
    assert_int_equal(bh_story_effects(story, BH_FX_SUSPEND), 2);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, urgent), BH_JOB_RUNNING);
    assert_int_equal(bh_story_state(story, job), BH_JOB_SUSPENDED);
    assert_int_equal(bh_story_job(story, job).suspensions, 1);
    bh_story_exit(story, urgent, 0);
    assert_int_equal(story->step.decision_count, 2);
    assert_int_equal(story->step.decisions[1].kind, BH_DO_RESUME);
    assert_int_equal(story->step.decisions[1].member, 1);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    bh_story_close(story);
}

static void
a_claim_covers_all_members(void **state)
{
    struct bh_story *story = two_nodes(1);
    struct bh_ev_submit low = bh_story_wants(21, 3, 1), high = gang_of(2, 3, 1);
    uint64_t gang;

    low.priority = BH_PRIORITY_LOW;
    high.priority = BH_PRIORITY_HIGH;
    bh_story_run(story, low);
    bh_story_run(story, low);
    gang = bh_story_submit(story, high);
    assert_int_equal(story->step.decision_count, 4);
    assert_int_equal(story->step.decisions[0].kind, BH_DO_CLAIM);
    assert_int_equal(story->step.decisions[1].kind, BH_DO_CLAIM);
    assert_int_equal(story->step.decisions[2].kind, BH_DO_STOP);
    assert_int_equal(story->step.decisions[3].kind, BH_DO_STOP);
    assert_true(bh_story_next(story, BH_OUTCOME_OK));
    assert_int_equal(bh_story_state(story, gang), BH_JOB_PENDING);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, gang), BH_JOB_RUNNING);
    bh_story_close(story);
}

/* The largest gang, on GPUs that are full of idle pieces of others: every one is cleared
 * and carved in one record. */
static void
the_largest_gang_fits_in_a_record(void **state)
{
    enum { SMALL = 7 };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_story *story;
    uint64_t jobs[32], gang;

    caps.nodes = 64;
    caps.gpus = BH_JOB_PIECES_MAX;
    caps.partitions = 16384;
    story = bh_story_open_with(&caps);
    story->quick = true;
    bh_story_tenant(story, (struct bh_ev_tenant){ .tenant = { 1 },
                                                  .kind = BH_TENANT_ORGANIZATION });
    for (uint32_t i = 2; i <= 3; i++)
        bh_story_tenant(story, (struct bh_ev_tenant){ .tenant = { i }, .parent = { 1 },
                                                      .kind = BH_TENANT_PROJECT });
    bh_story_sku(story, 1, "1g.10gb");
    bh_story_sku(story, 3, NULL);
    for (uint32_t node = 0; node < 64; node++)
        bh_story_h100s(story, 1 + node, 1 + node * 4, 4);
    for (uint32_t i = 0; i < BH_COUNT(jobs); i++) {
        struct bh_ev_submit fill = { .tenant = { 2 }, .sku = { 1 }, .count = SMALL,
                                     .gang = 8 };

        jobs[i] = bh_story_run(story, fill);
    }
    for (uint32_t i = 0; i < BH_COUNT(jobs); i++)
        assert_int_equal(bh_story_cancel(story, jobs[i]), BH_OK);
    bh_story_settle(story);
    story->quick = false;
    free(story->twin);
    story->twin = bh_engine_grow(story->engine, bh_story_engine(&caps), &caps);
    gang = bh_story_submit(story, (struct bh_ev_submit){ .tenant = { 3 }, .sku = { 3 },
                                                         .count = 4, .gang = 64 });
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), BH_JOB_PIECES_MAX);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), BH_JOB_PIECES_MAX * SMALL);
    story->quick = true;
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, gang), BH_JOB_RUNNING);
    bh_story_close(story);
}

/* Many jobs of many pieces at once go into several records, each of which can be written. */
static void
a_record_has_so_many_pieces(void **state)
{
    enum { JOBS = 60, COUNT = 16 };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_ev_tenant tenant = { .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION,
                                   .limit = 600 * COUNT };
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_story *story;
    uint32_t placed = 0;

    caps.nodes = JOBS;
    story = bh_story_open_with(&caps);
    bh_story_tenant(story, tenant);
    bh_story_sku(story, 1, "1g.10gb");
    for (uint32_t node = 0; node < JOBS; node++)
        bh_story_h100s(story, 1 + node, 1 + node * 3, 3);
    for (uint32_t i = 0; i < JOBS; i++)
        bh_story_submit(story, bh_story_wants(1, 1, COUNT));
    event.u.tenant = tenant;
    event.u.tenant.limit = BH_UNLIMITED;
    for (bh_story_must(story, &event); story->step.decision_count;
         bh_story_must(story, &(struct bh_event){ .kind = BH_EV_TICK })) {
        assert_true(story->step.decision_count * COUNT <= BH_DECIDED_PIECES_MAX);
        placed += story->step.decision_count;
    }
    assert_int_equal(placed, JOBS - 1);
    bh_story_close(story);
}

/* A record that was cut in the middle of a gang does not replay. */
static void
half_a_gang_is_a_damaged_journal(void **state)
{
    static struct bh_step step;
    struct bh_story *story = two_nodes(1);
    struct bh_event event = { .kind = BH_EV_SUBMIT };
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT;
    struct bh_engine *before;

    before = bh_engine_grow(story->engine, bh_story_engine(&caps), &caps);
    event.u.submit = gang_of(2, 3, 1);
    event.u.submit.job.v = 1;
    event.u.submit.priority = BH_PRIORITY_NORMAL;
    bh_story_must(story, &event);
    assert_int_equal(bh_engine_replay(before, &event, story->step.decisions, 1, &step),
                     BH_CONFLICT);
    free(before);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gang_is_placed_in_one_record),
    cmocka_unit_test(no_member_starts_before_all_pieces_are_there),
    cmocka_unit_test(a_member_that_ends_well_waits_for_the_others),
    cmocka_unit_test(the_first_that_fails_says_how_the_job_ended),
    cmocka_unit_test(a_lost_node_queues_the_gang_again_once),
    cmocka_unit_test(a_cancel_outranks_what_would_queue_it_again),
    cmocka_unit_test(a_suspended_gang_resumes_all_together),
    cmocka_unit_test(a_claim_covers_all_members),
    cmocka_unit_test(the_largest_gang_fits_in_a_record),
    cmocka_unit_test(a_record_has_so_many_pieces),
    cmocka_unit_test(half_a_gang_is_a_damaged_journal),
};
BH_TEST_MAIN(tests)
