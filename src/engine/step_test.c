#include "engine/step.h"

#include "base/attr.h"
#include "engine/story_test.h"

static void
a_job_runs_from_submit_to_end(void **state)
{
    struct bh_story *story = bh_story_site(8);
    uint64_t job = bh_story_submit(story, (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 } });

    assert_int_equal(bh_story_state(story, job), BH_JOB_STARTING);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 1);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, job), BH_JOB_RUNNING);
    assert_int_equal(bh_story_job(story, job).grade, BH_GRADE_C);
    bh_story_exit(story, job, 0);
    assert_int_equal(bh_story_state(story, job), BH_JOB_COMPLETED);
    bh_story_tick(story, 1);
    assert_int_equal(bh_story_state(story, job), BH_JOB_STATES);
    bh_story_close(story);
}

static void
a_second_job_of_the_tenant_uses_the_carved_piece(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit submit = { .tenant = { 21 }, .sku = { 1 } };
    uint64_t job = bh_story_submit(story, submit);

    bh_story_settle(story);
    bh_story_exit(story, job, 3);
    assert_int_equal(bh_story_state(story, job), BH_JOB_FAILED);
    bh_story_submit(story, submit);
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 0);
    assert_int_equal(bh_story_effects(story, BH_FX_START), 1);
    bh_story_close(story);
}

static void
another_tenants_piece_is_destroyed_and_carved_anew(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t job = bh_story_submit(story, (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 } });

    bh_story_settle(story);
    bh_story_exit(story, job, 0);
    bh_story_submit(story, (struct bh_ev_submit){ .tenant = { 31 }, .sku = { 1 } });
    assert_int_equal(bh_story_effects(story, BH_FX_CARVE), 1);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    assert_int_equal(story->step.effects[0].kind, BH_FX_JOB);
    bh_story_settle(story);
    bh_story_close(story);
}

static void
cancel_works_in_every_state(void **state)
{
    struct bh_story *story = bh_story_site(1);
    struct bh_ev_submit whole = { .tenant = { 21 }, .sku = { 3 } };
    uint64_t running = bh_story_submit(story, whole), waiting, carving;

    bh_story_settle(story);
    waiting = bh_story_submit(story, whole);
    assert_int_equal(bh_story_state(story, waiting), BH_JOB_PENDING);
    assert_int_equal(bh_story_cancel(story, waiting), BH_OK);
    assert_int_equal(bh_story_state(story, waiting), BH_JOB_CANCELLED);
    assert_int_equal(bh_story_cancel(story, waiting), BH_CONFLICT);
    assert_int_equal(bh_story_cancel(story, running), BH_OK);
    assert_int_equal(bh_story_state(story, running), BH_JOB_STOPPING);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, running), BH_JOB_CANCELLED);
    carving = bh_story_submit(story, (struct bh_ev_submit){ .tenant = { 21 }, .sku = { 1 } });
    assert_int_equal(bh_story_cancel(story, carving), BH_OK);
    assert_int_equal(bh_story_state(story, carving), BH_JOB_CANCELLED);
    bh_story_settle(story);
    assert_int_equal(bh_story_cancel(story, 999), BH_NOT_FOUND);
    bh_story_close(story);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_from_submit_to_end),
        cmocka_unit_test(a_second_job_of_the_tenant_uses_the_carved_piece),
        cmocka_unit_test(another_tenants_piece_is_destroyed_and_carved_anew),
        cmocka_unit_test(cancel_works_in_every_state),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
