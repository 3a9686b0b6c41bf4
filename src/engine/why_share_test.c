#include "engine/why_share.h"

#include "engine/story_test.h"

enum { QUARTER = 5, FAT = 6, MIXED = 7 };

static void
put_sku(struct bh_story *story, uint32_t id, uint32_t compute, uint32_t memory, bool mixed)
{
    struct bh_share share = { compute, memory, BH_SHARE_WORK_CONSERVING };
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { id }, .grade = BH_GRADE_F,
                                      .model_count = mixed ? 2 : 1 };
    event.u.sku.models[0] = (struct bh_sku_model){ BH_GPU_H100_80GB, bh_share_profile(&share).v };
    event.u.sku.models[1] = (struct bh_sku_model){ BH_GPU_H100_80GB, BH_PROFILE_WHOLE.v };
    bh_story_must(story, &event);
}

static void
put_gpu(struct bh_story *story, uint32_t share_limit)
{
    bh_story_gpu(story, (struct bh_ev_gpu){ .gpu = { 1 }, .node = { 1 },
                                            .model = BH_GPU_H100_80GB, .managed = true,
                                            .mig_capable = true, .share_limit = share_limit });
}

static struct bh_story *
site(uint32_t share_limit)
{
    struct bh_story *story = bh_story_site(1);

    put_sku(story, QUARTER, 1050, 300, false);
    put_sku(story, FAT, 420, 2000, false);
    put_sku(story, MIXED, 1050, 300, true);
    put_gpu(story, share_limit);
    return story;
}

static void
a_gpu_that_must_not_be_shared_is_the_reason(void **state)
{
    struct bh_story *story = site(0);
    uint64_t job = bh_story_submit(story, bh_story_wants(21, QUARTER, 1));

    assert_int_equal(bh_story_why(story, job).code, BH_REASON_NOT_SHARED);
    assert_int_equal(bh_story_why(story, job).sku.v, QUARTER);
    bh_story_run(story, bh_story_wants(21, MIXED, 1)); /* the whole keeps it, too */
    put_gpu(story, BH_GPU_PARTS);
    assert_int_equal(bh_story_why(story, job).code, BH_REASON_SHARE_MODE);
    bh_story_close(story);
}

static void
missing_memory_names_the_gpu_and_what_is_left(void **state)
{
    struct bh_story *story = site(BH_GPU_PARTS);
    uint64_t holder, job;
    struct bh_reason why;

    bh_story_run(story, bh_story_wants(21, FAT, 1));
    holder = bh_story_run(story, bh_story_wants(21, FAT, 1));
    job = bh_story_submit(story, bh_story_wants(21, QUARTER, 1));
    why = bh_story_why(story, job);
    assert_int_equal(why.code, BH_REASON_SHARE_MEMORY);
    assert_int_equal(why.gpu.v, 1);
    assert_int_equal(why.wanted, 300);
    assert_int_equal(why.limit, BH_GPU_PARTS - 2 * (2000 + 31) - 22 - 31);
    assert_int_equal(why.job.v, holder);
    bh_story_close(story);
}

static void
another_mode_names_who_is_in_the_way(void **state)
{
    struct bh_story *story = site(BH_GPU_PARTS);
    uint64_t holder = bh_story_run(story, bh_story_wants(21, 1, 1));
    uint64_t job = bh_story_submit(story, bh_story_wants(21, QUARTER, 1));
    struct bh_reason why = bh_story_why(story, job);

    assert_int_equal(why.code, BH_REASON_SHARE_MODE);
    assert_int_equal(why.gpu.v, 1);
    assert_int_equal(why.job.v, holder);
    bh_story_close(story);
}

static void
missing_compute_is_an_ordinary_lack(void **state)
{
    struct bh_story *story = site(BH_GPU_PARTS);
    uint64_t job;

    for (int i = 0; i < 4; i++)
        bh_story_run(story, bh_story_wants(21, QUARTER, 1));
    job = bh_story_submit(story, bh_story_wants(21, QUARTER, 1));
    assert_int_equal(bh_story_why(story, job).code, BH_REASON_NO_CAPACITY);
    bh_story_close(story);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gpu_that_must_not_be_shared_is_the_reason),
    cmocka_unit_test(missing_memory_names_the_gpu_and_what_is_left),
    cmocka_unit_test(another_mode_names_who_is_in_the_way),
    cmocka_unit_test(missing_compute_is_an_ordinary_lack),
};
BH_TEST_MAIN(tests)
