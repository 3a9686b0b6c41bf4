#include "engine/way.h"

#include "base/attr.h"
#include "engine/slots.h"
#include "engine/story_test.h"

/* The tenant's list as ids: first, second, ... */
static void
must_list(const char *name, const struct bh_engine *engine, uint32_t tenant,
          const uint64_t *jobs, uint32_t count)
{
    uint32_t job = bh_way_first(engine, tenant_find(engine, tenant));

    for (uint32_t i = 0; i < count; i++) {
        BH_CHECK_EQ(name, job ? job_at(engine, job)->id : 0, jobs[i]);
        job = job ? bh_way_next(engine, job) : 0;
    }
    BH_CHECK_EQ(name, job, 0);
}

static uint64_t
submit(struct bh_story *story, uint32_t tenant, enum bh_contract contract)
{
    struct bh_ev_submit wants = bh_story_wants(tenant, 3, 1);

    wants.contract = contract;
    return bh_story_submit(story, wants);
}

/* Jobs stand by when they began, not by when they were placed, and only those of the tenant
 * that may make way. */
static void
who_began_first_stands_first(void **state)
{
    struct bh_story *story = bh_story_site(8);
    uint64_t a = submit(story, 21, BH_CONTRACT_REQUEUE);
    uint64_t b = submit(story, 21, BH_CONTRACT_SUSPEND);
    uint64_t firm = submit(story, 21, BH_CONTRACT_NEVER);
    uint64_t other = submit(story, 31, BH_CONTRACT_REQUEUE);
    struct bh_effect carve[4], start[4];
    struct bh_event event;

    must_list("as placed", story->engine, 21, (uint64_t[]){ a, b }, 2);
    must_list("the other", story->engine, 31, (uint64_t[]){ other }, 1);
    for (uint32_t i = 0; i < 4; i++)
        assert_true(bh_story_take(story, &carve[i]));
    for (uint32_t i = 0; i < 4; i++) {
        event = bh_story_answer(&carve[i], BH_OUTCOME_OK);
        bh_story_must(story, &event);
        assert_true(bh_story_take(story, &start[i]));
    }
    for (uint32_t i = 4; i-- > 0;) { /* the last placed begins first */
        story->now_ns += 1000;
        event = bh_story_answer(&start[i], BH_OUTCOME_OK);
        bh_story_must(story, &event);
    }
    must_list("as begun", story->engine, 21, (uint64_t[]){ b, a }, 2);
    assert_int_equal(bh_way_since_ns(story->engine, job_find(story->engine, a)), story->now_ns);
    bh_story_exit(story, b, 0);
    must_list("one ended", story->engine, 21, (uint64_t[]){ a }, 1);
    assert_int_equal(bh_story_state(story, firm), BH_JOB_RUNNING);
    bh_story_close(story);
    BH_CHECK_DONE();
}

static void
a_larger_block_takes_the_lists_over(void **state)
{
    struct bh_story *story = bh_story_site(8);
    uint64_t a = bh_story_run(story, bh_story_wants(21, 3, 1));
    uint64_t b = bh_story_run(story, bh_story_wants(21, 3, 1));
    struct bh_engine_caps caps = bh_engine_caps(story->engine);
    struct bh_engine *grown;

    caps.leases *= 2;
    caps.tenants *= 2;
    grown = aligned_alloc(16, (bh_engine_size(&caps) + 15) & ~(size_t)15);
    assert_non_null(grown);
    bh_engine_grow(story->engine, grown, &caps);
    must_list("grown", grown, 21, (uint64_t[]){ a, b }, 2);
    free(grown);
    bh_story_close(story);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_began_first_stands_first),
    cmocka_unit_test(a_larger_block_takes_the_lists_over),
};
BH_TEST_MAIN(tests)
