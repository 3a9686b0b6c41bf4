#include "model/quantity.h"

#include "base/attr.h"
#include "base/test.h"

static void
parts_divide_by_all_that_gpus_divide_by(void **state)
{
    static const int divisors[] = { 4, 7, 8, 12, 100 };

    for (size_t i = 0; i < BH_COUNT(divisors); i++)
        BH_CHECK_EQ("remainder", BH_GPU_PARTS % divisors[i], 0);
    BH_CHECK_DONE();
}

static void
equivalent_is_the_larger_dimension(void **state)
{
    BH_CHECK_EQ("compute", bh_parts_equivalent((struct bh_parts){ 600, 525 }), 600);
    BH_CHECK_EQ("memory", bh_parts_equivalent((struct bh_parts){ 600, 1050 }), 1050);
    BH_CHECK_DONE();
}

static void
sums_keep_both_dimensions(void **state)
{
    struct bh_parts sum = bh_parts_add((struct bh_parts){ 1, 2 }, (struct bh_parts){ 30, 40 });
    struct bh_parts rest = bh_parts_sub(sum, (struct bh_parts){ 1, 2 });

    BH_CHECK_EQ("add", sum.compute * 100 + sum.memory, 3142);
    BH_CHECK_EQ("sub", rest.compute * 100 + rest.memory, 3040);
    BH_CHECK_DONE();
}

static void
part_nanoseconds_are_written_in_full(void **state)
{
    static const struct {
        const char *name;
        bh_part_ns value;
        const char *text;
    } cases[] = {
        { "zero", 0, "0" },
        { "one digit", 7, "7" },
        { "64 bits", UINT64_MAX, "18446744073709551615" },
        { "one more", (bh_part_ns)UINT64_MAX + 1, "18446744073709551616" },
        { "all bits", ~(bh_part_ns)0, "340282366920938463463374607431768211455" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char text[40];

        bh_part_ns_format(cases[i].value, text);
        BH_CHECK_STR(cases[i].name, text, cases[i].text);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_divide_by_all_that_gpus_divide_by),
    cmocka_unit_test(equivalent_is_the_larger_dimension),
    cmocka_unit_test(sums_keep_both_dimensions),
    cmocka_unit_test(part_nanoseconds_are_written_in_full),
};
BH_TEST_MAIN(tests)
