#include "api/state/submission.h"

#include "base/test.h"

/* What a member takes of its node: what the job says, else the SKU for each of its partitions. */
static void
the_sku_says_what_the_job_does_not(void **state)
{
    static const struct {
        const char *name, *cpu, *memory;
        struct bh_job_numbers numbers;
        uint32_t cpu_milli, memory_mib;
    } cases[] = {
        { "nobody says anything", NULL, NULL, { .count = 1 }, 0, 0 },
        { "the job does", "4", "8Gi", { .count = 2, .cpu_milli = 500, .memory_bytes = 1 << 30 }, 500, 1024 },
        { "the SKU does, for each piece", "1.5", "8Gi", { .count = 2 }, 3000, 16384 },
        { "one each", "2", "8Gi", { .count = 1, .memory_bytes = 1 << 20 }, 2000, 1 },
        { "a part of a MiB counts as one", NULL, NULL, { .count = 1, .memory_bytes = 1 }, 0, 1 },
        { "more than fits is as much as does", NULL, "9000Ti", { .count = 16 }, 0, UINT32_MAX },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_dir_sku sku = { .id = { 7 }, .cpu = cases[i].cpu, .memory = cases[i].memory };
        struct bh_job_spec spec = { .sku = "s" };
        struct bh_ev_submit submit = { .job = { 1 } };

        bh_submission_fill(&spec, &cases[i].numbers, &sku, 0, &submit);
        BH_CHECK_EQ(cases[i].name, submit.cpu_milli, cases[i].cpu_milli);
        BH_CHECK_EQ(cases[i].name, submit.memory_mib, cases[i].memory_mib);
        BH_CHECK_EQ(cases[i].name, submit.sku.v, 7);
    }
    BH_CHECK_DONE();
}

static void
what_is_not_said_takes_the_usual_value(void **state)
{
    struct bh_job_numbers numbers = { .count = 1, .gang = 1, .grace_ns = 0 };
    struct bh_job_spec spec = { .sku = "s" };
    struct bh_dir_sku sku = { .id = { 7 } };
    struct bh_ev_submit submit = { .job = { 1 } };

    bh_submission_fill(&spec, &numbers, &sku, 50, &submit);
    assert_int_equal(submit.gang, 0);
    assert_int_equal(submit.priority, BH_PRIORITY_NORMAL);
    assert_int_equal(submit.grace_ns, 0); /* "0s" kills at once */
    assert_int_equal(submit.deadline_ns, 0);
    numbers.deadline_ns = 100;
    bh_submission_fill(&spec, &numbers, &sku, 50, &submit);
    assert_int_equal(submit.deadline_ns, 100);
    numbers.deadline_after = true;
    bh_submission_fill(&spec, &numbers, &sku, 50, &submit);
    assert_int_equal(submit.deadline_ns, 150);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_sku_says_what_the_job_does_not),
    cmocka_unit_test(what_is_not_said_takes_the_usual_value),
};
BH_TEST_MAIN(tests)
