#include "engine/step/admit.h"

#include "base/attr.h"
#include "engine/step/fixture_test.h"

static void
what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *name;
        struct bh_event event;
        bh_rc rc;
        enum bh_reason_code why;
        /* clang-format off */
    } cases[] = {
        { "unknown kind", { .kind = BH_EVENT_KINDS }, BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "no job number", { .kind = BH_EV_SUBMIT, .u.submit = { .count = 1, .priority = 1 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "no pieces", { .kind = BH_EV_SUBMIT, .u.submit = { .job = { 1 }, .priority = 1 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "17 pieces",
          { .kind = BH_EV_SUBMIT, .u.submit = { .job = { 1 }, .priority = 1, .count = 17 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "no priority", { .kind = BH_EV_SUBMIT, .u.submit = { .job = { 1 }, .count = 1 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "unknown tenant",
          { .kind = BH_EV_SUBMIT,
            .u.submit = { .job = { 1 }, .count = 1, .priority = 1, .tenant = { 77 } } },
          BH_NOT_FOUND, BH_REASON_UNKNOWN_TENANT },
        { "unknown SKU",
          { .kind = BH_EV_SUBMIT,
            .u.submit = { .job = { 1 }, .count = 1, .priority = 1, .tenant = { 21 },
                          .sku = { 77 } } },
          BH_NOT_FOUND, BH_REASON_UNKNOWN_SKU },
        { "cancel of nothing", { .kind = BH_EV_CANCEL, .u.job = { { 77 } } }, BH_NOT_FOUND,
          BH_REASON_UNKNOWN_JOB },
        { "cancel for no cause of one", { .kind = BH_EV_CANCEL,
                                          .u.job = { { 1 }, BH_END_EXITED } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "release of nothing", { .kind = BH_EV_RELEASE, .u.job = { { 77 } } }, BH_NOT_FOUND,
          BH_REASON_UNKNOWN_JOB },
        { "carved nothing", { .kind = BH_EV_CARVED, .u.partition = { { 77 } } }, BH_NOT_FOUND,
          BH_REASON_WRONG_STATE },
        { "started nothing", { .kind = BH_EV_STARTED, .u.lease = { { 77 } } }, BH_NOT_FOUND,
          BH_REASON_WRONG_STATE },
        { "a SKU row of two models",
          { .kind = BH_EV_SKU,
            .u.sku = { .sku = { 9 }, .model_count = 1,
                       .models = { { BH_GPU_A30_24GB, 40 } } } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "too many SKU rows",
          { .kind = BH_EV_SKU, .u.sku = { .sku = { 9 }, .model_count = 17 } }, BH_RANGE,
          BH_REASON_OUT_OF_RANGE },
        { "a GPU of no node",
          { .kind = BH_EV_GPU, .u.gpu = { .gpu = { 9 }, .node = { 77 } } }, BH_NOT_FOUND,
          BH_REASON_WRONG_STATE },
        { "a GPU that moved",
          { .kind = BH_EV_GPU, .u.gpu = { .gpu = { 1 }, .node = { 1 }, .model = 1 } },
          BH_CONFLICT, BH_REASON_WRONG_STATE },
        { "a GPU of no model with MIG",
          { .kind = BH_EV_GPU, .u.gpu = { .gpu = { 9 }, .node = { 1 }, .mig_capable = true } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
    };
    /* clang-format on */
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_event event = cases[i].event;

        BH_CHECK_EQ(cases[i].name, bh_fixture_send(fixture, &event), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, fixture->step.verdict.code, cases[i].why);
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static void
outlooks_that_are_wrong_are_refused(void **state)
{
    static const struct {
        const char *name;
        struct bh_event event;
        bh_rc rc;
        enum bh_reason_code why;
        /* clang-format off */
    } cases[] = {
        { "an outlook of a tenant that is not there",
          { .kind = BH_EV_ADVICE, .u.advice = { .tenant = { 77 } } }, BH_NOT_FOUND,
          BH_REASON_UNKNOWN_TENANT },
        { "an outlook of more than there can be",
          { .kind = BH_EV_ADVICE,
            .u.advice = { .tenant = { 2 }, .expected = BH_AMOUNT_MAX + 1 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "an outlook of a node that is not there",
          { .kind = BH_EV_ADVICE,
            .u.advice = { .of = BH_ADVICE_NODE, .node = { 77 } } },
          BH_NOT_FOUND, BH_REASON_WRONG_STATE },
        { "whole GPUs carved ahead",
          { .kind = BH_EV_ADVICE,
            .u.advice = { .of = BH_ADVICE_PARTITIONS, .profile = 1, .ready = 1 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "too many pieces ahead",
          { .kind = BH_EV_ADVICE,
            .u.advice = { .of = BH_ADVICE_PARTITIONS, .profile = 2, .ready = BH_READY_MAX + 1 } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "an outlook of nothing",
          { .kind = BH_EV_ADVICE, .u.advice = { .of = BH_ADVICE_OFS } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
        { "lending of no kind",
          { .kind = BH_EV_SETTINGS,
            .u.settings = { .half_life_ns = BH_UNLIMITED, .lending = BH_LENDINGS } },
          BH_RANGE, BH_REASON_OUT_OF_RANGE },
    };
    /* clang-format on */
    struct bh_fixture *fixture = bh_fixture_site(1);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_event event = cases[i].event;

        BH_CHECK_EQ(cases[i].name, bh_fixture_send(fixture, &event), cases[i].rc);
        BH_CHECK_EQ(cases[i].name, fixture->step.verdict.code, cases[i].why);
    }
    BH_CHECK_DONE();
    bh_fixture_close(fixture);
}

static void
unexpected_answers_are_refused(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event carved = { .kind = BH_EV_CARVED }, started = { .kind = BH_EV_STARTED };

    bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));
    carved.u.partition.partition.v = 1;
    started.u.lease.lease.v = 1;
    assert_int_equal(bh_fixture_send(fixture, &carved), BH_CONFLICT);
    assert_int_equal(bh_fixture_send(fixture, &started), BH_CONFLICT);
    bh_fixture_close(fixture);
}

static void
a_sku_that_jobs_want_stays(void **state)
{
    struct bh_fixture *fixture = bh_fixture_site(1);
    struct bh_event removal = { .kind = BH_EV_SKU_REMOVE };
    uint64_t job = bh_fixture_submit_running(fixture, bh_fixture_submission(21, 1, 1));

    removal.u.sku.sku.v = 1;
    assert_int_equal(bh_fixture_send(fixture, &removal), BH_CONFLICT);
    assert_int_equal(fixture->step.verdict.code, BH_REASON_SKU_BUSY);
    assert_int_equal(fixture->step.verdict.used, 1);
    bh_fixture_exit_job(fixture, job, 0);
    assert_int_equal(bh_fixture_send(fixture, &removal), BH_OK);
    assert_int_equal(bh_fixture_send(fixture, &removal), BH_NOT_FOUND);
    bh_fixture_close(fixture);
}

/* Seven jobs of seven classes are being carved for, and other classes fill the table:
 * the fence that would queue them all again needs more room first. */
static void
a_fence_has_room_for_all_it_queues_again(void **state)
{
    struct bh_engine_caps caps = BH_ENGINE_CAPS_DEFAULT, wanted;
    struct bh_ev_gpu fenced = { .gpu = { 1 },
                                .node = { 1 },
                                .model = BH_GPU_H100_80GB,
                                .managed = true,
                                .fenced = true,
                                .mig_capable = true };
    struct bh_event event = { .kind = BH_EV_GPU, .u.gpu = fenced };
    struct bh_fixture *fixture;
    uint64_t jobs[7];

    caps.classes = 10;
    fixture = bh_fixture_open_with(&caps);
    bh_fixture_tenant(fixture, (struct bh_ev_tenant){ .tenant = { 1 }, .kind = BH_TENANT_ORGANIZATION });
    bh_fixture_sku(fixture, 1, "1g.10gb");
    bh_fixture_h100s(fixture, 1, 1, 1);
    for (uint32_t i = 0; i < 7; i++) {
        bh_fixture_tenant(fixture, (struct bh_ev_tenant){
                                       .tenant = { 2 + i }, .parent = { 1 }, .kind = BH_TENANT_PROJECT });
        jobs[i] = bh_fixture_submit(fixture, bh_fixture_submission(2 + i, 1, 1));
        assert_int_equal(bh_fixture_state(fixture, jobs[i]), BH_JOB_STARTING);
    }
    for (uint32_t i = 0; i < 7; i++) {
        struct bh_ev_submit waits = bh_fixture_submission(2 + i, 1, 2);

        waits.hold = true;
        bh_fixture_submit(fixture, waits);
    }
    assert_int_equal(bh_fixture_send(fixture, &event), BH_FULL);
    assert_int_equal(fixture->step.verdict.code, BH_REASON_TABLE_FULL);
    wanted = bh_engine_wanted(fixture->engine);
    assert_int_equal(wanted.classes, 20);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_equal(bh_fixture_state(fixture, jobs[i]), BH_JOB_STARTING);
    bh_fixture_close(fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_wrong_is_named),
    cmocka_unit_test(outlooks_that_are_wrong_are_refused),
    cmocka_unit_test(unexpected_answers_are_refused),
    cmocka_unit_test(a_sku_that_jobs_want_stays),
    cmocka_unit_test(a_fence_has_room_for_all_it_queues_again),
};
BH_TEST_MAIN(tests)
