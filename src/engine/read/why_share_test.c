#include "engine/read/why_share.h"

#include "engine/step/fixture_test.h"

enum { QUARTER = 5, FAT = 6, MIXED = 7 };

static void
why_share_test_put_sku(struct bh_fixture *fixture, uint32_t id, uint32_t compute, uint32_t memory, bool mixed)
{
    struct bh_share share = { compute, memory, BH_SHARE_WORK_CONSERVING };
    struct bh_event event = { .kind = BH_EV_SKU };

    event.u.sku = (struct bh_ev_sku){ .sku = { id }, .grade = BH_GRADE_F, .model_count = mixed ? 2 : 1 };
    event.u.sku.models[0] = (struct bh_sku_model){ BH_GPU_H100_80GB, bh_share_profile(&share).v };
    event.u.sku.models[1] = (struct bh_sku_model){ BH_GPU_H100_80GB, BH_PROFILE_WHOLE.v };
    bh_fixture_must_send(fixture, &event);
}

static void
why_share_test_put_gpu(struct bh_fixture *fixture, uint32_t share_limit)
{
    bh_fixture_gpu(fixture, (struct bh_ev_gpu){ .gpu = { 1 },
                                                .node = { 1 },
                                                .model = BH_GPU_H100_80GB,
                                                .managed = true,
                                                .mig_capable = true,
                                                .share_limit = share_limit });
}

static struct bh_fixture *
why_share_test_site(uint32_t share_limit)
{
    struct bh_fixture *fixture = bh_fixture_site(1);

    why_share_test_put_sku(fixture, QUARTER, 1050, 300, false);
    why_share_test_put_sku(fixture, FAT, 420, 2000, false);
    why_share_test_put_sku(fixture, MIXED, 1050, 300, true);
    why_share_test_put_gpu(fixture, share_limit);
    return fixture;
}

static void
a_gpu_that_must_not_be_shared_is_the_reason(void **state)
{
    struct bh_fixture *fixture = why_share_test_site(0);
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, QUARTER, 1));

    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_NOT_SHARED);
    assert_int_equal(bh_fixture_why(fixture, job).sku.v, QUARTER);
    bh_fixture_submit_running(fixture, bh_fixture_submission(21, MIXED, 1)); /* the whole keeps it, too */
    why_share_test_put_gpu(fixture, BH_GPU_PARTS);
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_SHARE_MODE);
    bh_fixture_close(fixture);
}

static void
missing_memory_names_the_gpu_and_what_is_left(void **state)
{
    struct bh_fixture *fixture = why_share_test_site(BH_GPU_PARTS);
    uint64_t holder, job;
    struct bh_reason why;

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, FAT, 1));
    holder = bh_fixture_submit_running(fixture, bh_fixture_submission(21, FAT, 1));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, QUARTER, 1));
    why = bh_fixture_why(fixture, job);
    assert_int_equal(why.code, BH_REASON_SHARE_MEMORY);
    assert_int_equal(why.gpu.v, 1);
    assert_int_equal(why.wanted, 300);
    assert_int_equal(why.limit, BH_GPU_PARTS - 2 * (2000 + 31) - 22 - 31);
    assert_int_equal(why.job.v, holder);
    bh_fixture_close(fixture);
}

static void
another_mode_names_who_is_in_the_way(void **state)
{
    struct bh_fixture *fixture = why_share_test_site(BH_GPU_PARTS);
    uint64_t holder = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    uint64_t job = bh_fixture_submit(fixture, bh_fixture_submission(21, QUARTER, 1));
    struct bh_reason why = bh_fixture_why(fixture, job);

    assert_int_equal(why.code, BH_REASON_SHARE_MODE);
    assert_int_equal(why.gpu.v, 1);
    assert_int_equal(why.job.v, holder);
    bh_fixture_close(fixture);
}

static void
missing_compute_is_an_ordinary_lack(void **state)
{
    struct bh_fixture *fixture = why_share_test_site(BH_GPU_PARTS);
    uint64_t job;

    for (int i = 0; i < 4; i++)
        bh_fixture_submit_running(fixture, bh_fixture_submission(21, QUARTER, 1));
    job = bh_fixture_submit(fixture, bh_fixture_submission(21, QUARTER, 1));
    assert_int_equal(bh_fixture_why(fixture, job).code, BH_REASON_NO_CAPACITY);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gpu_that_must_not_be_shared_is_the_reason),
    cmocka_unit_test(missing_memory_names_the_gpu_and_what_is_left),
    cmocka_unit_test(another_mode_names_who_is_in_the_way),
    cmocka_unit_test(missing_compute_is_an_ordinary_lack),
};
BH_TEST_MAIN(tests)
