#include "engine/alone.h"

#include "engine/slots.h"
#include "engine/story_test.h"

/* A GPU whose driver lacks the fix for CVE-2026-24197: nothing is carved or destroyed on it
 * beside another tenant's lease.  Tenants 21 and 31 are of two departments: MIG may
 * stand between them. */

static struct bh_story *
old_driver(void)
{
    struct bh_story *story = bh_story_site(1);

    bh_story_gpu(story, (struct bh_ev_gpu){ .gpu = { 1 }, .node = { 1 },
                                            .model = BH_GPU_H100_80GB, .managed = true,
                                            .mig_capable = true, .lone_carve = true });
    return story;
}

static uint64_t
run_one(struct bh_story *story, uint32_t tenant, uint32_t sku)
{
    uint64_t job = bh_story_submit(story, bh_story_wants(tenant, sku, 1));

    bh_story_settle(story);
    return job;
}

static void
another_tenant_waits(void **state)
{
    struct bh_story *story = old_driver();
    uint64_t first = run_one(story, 21, 1), other = run_one(story, 31, 1);
    struct bh_reason reason = bh_story_why(story, other);

    assert_int_equal(bh_story_state(story, first), BH_JOB_RUNNING);
    assert_int_equal(bh_story_state(story, other), BH_JOB_PENDING);
    assert_int_equal(reason.code, BH_REASON_REPARTITION);
    assert_int_equal(reason.job.v, first);
    assert_int_equal(reason.gpu.v, 1);
    bh_story_exit(story, first, 0);
    bh_story_settle(story);
    assert_int_equal(bh_story_state(story, other), BH_JOB_RUNNING);
    bh_story_close(story);
}

static void
the_same_tenant_does_not(void **state)
{
    struct bh_story *story = old_driver();
    uint64_t first = run_one(story, 21, 1), second = run_one(story, 21, 1);

    assert_int_equal(bh_story_state(story, first), BH_JOB_RUNNING);
    assert_int_equal(bh_story_state(story, second), BH_JOB_RUNNING);
    bh_story_close(story);
}

static void
a_fixed_driver_lets_both_run(void **state)
{
    struct bh_story *story = bh_story_site(1);
    uint64_t first = run_one(story, 21, 1), other = run_one(story, 31, 1);

    assert_int_equal(bh_story_state(story, first), BH_JOB_RUNNING);
    assert_int_equal(bh_story_state(story, other), BH_JOB_RUNNING);
    bh_story_close(story);
}

/* What was made while nobody ran may be used by anybody. */
static void
what_stands_ready_is_used(void **state)
{
    struct bh_story *story = old_driver();
    struct bh_event event = { .kind = BH_EV_STANDING };
    uint64_t first, other;

    event.u.standing = (struct bh_ev_standing){ .gpu = { 1 }, .mode = BH_STANDING_DECLARED,
                                                .apply = 1, .piece_count = 2 };
    for (uint32_t i = 0; i < 2; i++) {
        event.u.standing.pieces[i].profile = bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v;
        event.u.standing.pieces[i].start = 3 * i;
    }
    bh_story_must(story, &event);
    bh_story_settle(story);
    first = run_one(story, 21, 1);
    other = run_one(story, 31, 1);
    assert_int_equal(bh_story_state(story, first), BH_JOB_RUNNING);
    assert_int_equal(bh_story_state(story, other), BH_JOB_RUNNING);
    assert_int_equal(bh_story_why(story, run_one(story, 31, 1)).code, BH_REASON_REPARTITION);
    bh_story_close(story);
}

/* What could not be destroyed is not tried again while a tenant runs whom it is not for. */
static void
a_stuck_piece_waits_too(void **state)
{
    struct bh_story *story = old_driver();
    uint64_t first = run_one(story, 21, 1), second;

    bh_story_exit(story, first, 0);
    second = bh_story_submit(story, bh_story_wants(31, 2, 1)); /* 21's piece is in its way */
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    bh_story_next(story, BH_OUTCOME_FAILED);
    bh_story_settle(story);
    bh_story_exit(story, second, 0);
    first = run_one(story, 21, 1);
    assert_int_equal(bh_story_state(story, first), BH_JOB_RUNNING);
    bh_story_tick(story, 31000000000);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 0); /* it is for 31 */
    bh_story_exit(story, first, 0);
    bh_story_tick(story, 31000000000);
    assert_int_equal(bh_story_effects(story, BH_FX_DESTROY), 1);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(another_tenant_waits),
    cmocka_unit_test(the_same_tenant_does_not),
    cmocka_unit_test(a_fixed_driver_lets_both_run),
    cmocka_unit_test(what_stands_ready_is_used),
    cmocka_unit_test(a_stuck_piece_waits_too),
};
BH_TEST_MAIN(tests)
