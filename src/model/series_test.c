#include "model/series.h"

#include "base/test.h"
#include "base/time.h"

/* Samples, a point for each of two intervals merged, and what comes of them. */
static void
points_keep_least_most_and_mean(void **state)
{
    static const struct {
        const char *name;
        uint64_t first[3], second[3]; /* up to a 0 that is not the first */
        uint32_t counts[2];
        uint32_t count, min, max, mean;
    } cases[] = {
        { "one sample", { 7 }, { 0 }, { 1, 0 }, 1, 7, 7, 7 },
        { "a sample of 0 is a sample", { 0 }, { 0 }, { 1, 0 }, 1, 0, 0, 0 },
        { "no sample at all", { 0 }, { 0 }, { 0, 0 }, 0, 0, 0, 0 },
        { "the mean is rounded down", { 1, 2 }, { 0 }, { 2, 0 }, 2, 1, 2, 1 },
        { "merged with nothing", { 5, 9 }, { 0 }, { 2, 0 }, 2, 5, 9, 7 },
        { "nothing, merged", { 0 }, { 4, 8, 3 }, { 0, 3 }, 3, 3, 8, 5 },
        { "of both", { 10, 20 }, { 0, 6 }, { 2, 2 }, 4, 0, 20, 9 },
        { "weighed by samples, not by intervals", { 100 }, { 1, 1, 1 }, { 1, 3 }, 4, 1, 100, 25 },
        { "too large for 32 bits", { UINT64_MAX }, { 1 }, { 1, 1 }, 2, 1, UINT32_MAX, 2147483648u },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_point a = { 0 }, b = { 0 }, merged[2];

        for (uint32_t n = 0; n < cases[i].counts[0]; n++)
            bh_point_add(&a, cases[i].first[n]);
        for (uint32_t n = 0; n < cases[i].counts[1]; n++)
            bh_point_add(&b, cases[i].second[n]);
        merged[0] = a;
        merged[1] = b;
        bh_point_merge(&merged[0], &b);
        bh_point_merge(&merged[1], &a);
        for (int way = 0; way < 2; way++) {
            BH_CHECK_EQ(cases[i].name, merged[way].count, cases[i].count);
            BH_CHECK_EQ(cases[i].name, merged[way].min, cases[i].min);
            BH_CHECK_EQ(cases[i].name, merged[way].max, cases[i].max);
            BH_CHECK_EQ(cases[i].name, bh_point_mean(&merged[way]), cases[i].mean);
        }
    }
    BH_CHECK_DONE();
}

static void
points_stay_at_their_bounds(void **state)
{
    struct bh_point full = { .count = UINT32_MAX, .min = 1, .max = 2, .sum = UINT64_MAX }, one = { 0 };

    bh_point_add(&one, 2);
    bh_point_merge(&full, &one);
    BH_CHECK_EQ("count", full.count, UINT32_MAX);
    BH_CHECK("sum", full.sum == UINT64_MAX);
    BH_CHECK_EQ("mean is no more than the most", bh_point_mean(&full), 2);
    BH_CHECK_DONE();
}

/* Whatever the order, 90 fine intervals come to the same coarse one. */
static void
coarse_points_are_those_of_their_parts(void **state)
{
    struct bh_point all = { 0 }, medium[15] = { 0 }, coarse = { 0 };

    for (uint32_t i = 0; i < 90; i++) {
        struct bh_point fine = { 0 };

        for (uint32_t n = 0; n < i % 4; n++) { /* some have none */
            bh_point_add(&fine, i * 37 % 101 + n);
            bh_point_add(&all, i * 37 % 101 + n);
        }
        bh_point_merge(&medium[14 - i / 6], &fine);
    }
    for (uint32_t i = 0; i < 15; i++)
        bh_point_merge(&coarse, &medium[i]);
    assert_memory_equal(&coarse, &all, sizeof all);
}

static void
blocks_hold_their_intervals(void **state)
{
    static const struct {
        const char *name;
        uint64_t interval;
        struct bh_point point;
    } cases[] = {
        { "the first", 64, { 1, 2, 3, 4 } },
        { "the last", 95, { 1, 0, 0, 0 } },
        { "the largest figures", 70, { UINT32_MAX, UINT32_MAX - 1, UINT32_MAX, UINT64_MAX } },
    };
    uint8_t block[BH_BLOCK_BYTES] = { 0 };
    struct bh_point got;

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        bh_block_merge(block, cases[i].interval, &cases[i].point);
    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        bh_block_get(block, cases[i].interval, &got);
        BH_CHECK(cases[i].name, memcmp(&got, &cases[i].point, sizeof got) == 0);
    }
    bh_block_get(block, 71, &got);
    BH_CHECK_EQ("a gap is a gap", got.count, 0);
    bh_block_merge(block, 64, &cases[0].point);
    bh_block_get(block, 64, &got);
    BH_CHECK_EQ("merged with what is there", got.count, 2);
    BH_CHECK_EQ("its sum", got.sum, 8);
    BH_CHECK_EQ("little-endian", block[0], 2);
    BH_CHECK_DONE();
}

static void
resolutions_reach_back(void **state)
{
    static const struct {
        const char *name;
        uint64_t span_s;
        enum bh_resolution resolution;
    } cases[] = {
        { "nothing", 0, BH_RESOLUTION_FINE },
        { "an hour", 3600, BH_RESOLUTION_FINE },
        { "a second more", 3601, BH_RESOLUTION_MEDIUM },
        { "a day", 86400, BH_RESOLUTION_MEDIUM },
        { "a second more", 86401, BH_RESOLUTION_COARSE },
        { "a year", 31536000, BH_RESOLUTION_COARSE },
    };
    uint64_t now_ns = 1800000000 * BH_NS_PER_S, month_ns = 2678400 * BH_NS_PER_S;

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        enum bh_resolution got = bh_series_resolution_for(cases[i].span_s * BH_NS_PER_S);
        uint64_t then_ns = now_ns - cases[i].span_s * BH_NS_PER_S;

        BH_CHECK_EQ(cases[i].name, got, cases[i].resolution);
        if (cases[i].span_s < 31536000)
            BH_CHECK(cases[i].name, bh_series_interval(got, then_ns) / BH_BLOCK_POINTS
                                        >= bh_block_oldest(got, now_ns, month_ns));
    }
    BH_CHECK_EQ("a day of the month is kept no longer than the setting",
                bh_block_oldest(BH_RESOLUTION_MEDIUM, now_ns, 3600 * BH_NS_PER_S),
                bh_series_interval(BH_RESOLUTION_MEDIUM, now_ns - 3600 * BH_NS_PER_S) / BH_BLOCK_POINTS);
    BH_CHECK_EQ("soon after the epoch", bh_block_oldest(BH_RESOLUTION_COARSE, 5, month_ns), 0);
    BH_CHECK_DONE();
}

static void
rows_have_positions(void **state)
{
    BH_CHECK_EQ("the first of its kind", bh_series_position(BH_SERIES_GPU_TEMPERATURE), 0);
    BH_CHECK_EQ("the fifth", bh_series_position(BH_SERIES_GPU_SM), 4);
    BH_CHECK_EQ("of the next kind", bh_series_position(BH_SERIES_NODE_TEMPERATURE), 0);
    BH_CHECK_EQ("found", bh_series_find(BH_SERIES_KIND_JOB, "gpu_busy"), BH_SERIES_JOB_BUSY);
    BH_CHECK_EQ("of another kind", bh_series_find(BH_SERIES_KIND_SITE, "gpu_busy"), BH_SERIES_ROWS);
    for (enum bh_series_row row = 0; row < BH_SERIES_ROWS; row++) {
        const struct bh_series_facts *series = &bh_series_rows[row];

        BH_CHECK_EQ(series->name, bh_series_find(series->kind, series->name), row);
        BH_CHECK("rows of a kind stand together",
                 bh_series_position(row) > 0 || row == 0 || series->kind > series[-1].kind);
    }
    BH_CHECK_DONE();
}

static void
values_are_shown_in_their_unit(void **state)
{
    static const struct {
        enum bh_series_unit unit;
        uint64_t value;
        const char *text;
    } cases[] = {
        { BH_UNIT_CELSIUS, 41, "41 \302\260C" },
        { BH_UNIT_MILLIWATTS, 70125, "70.1 W" },
        { BH_UNIT_MILLIWATTS, 9999949, "9999.9 W" },
        { BH_UNIT_MILLIWATTS, 10000000, "10.0 kW" },
        { BH_UNIT_MIB, 1023, "1023 MiB" },
        { BH_UNIT_MIB, 10035, "9.8 GiB" },
        { BH_UNIT_MIB, 10239, "10.0 GiB" },
        { BH_UNIT_BASIS_POINTS, 10000, "100.0 %" },
        { BH_UNIT_BASIS_POINTS, 5, "0.1 %" },
        { BH_UNIT_BASIS_POINTS, 4, "0.0 %" },
        { BH_UNIT_MILLI, 1250, "1.25 CPUs" },
        { BH_UNIT_PARTS, 2100, "0.50 GPUs" },
        { BH_UNIT_PARTS, 1200, "0.29 GPUs" }, /* 2/7, as bh_show_parts has it */
        { BH_UNIT_COUNT, UINT64_MAX, "18446744073709551615" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        char memory[40];
        struct bh_buf text;

        bh_buf_init_fixed(&text, memory, sizeof memory);
        bh_series_put_value(&text, cases[i].unit, cases[i].value);
        BH_CHECK_STR(cases[i].text, bh_buf_text(&text), cases[i].text);
        BH_CHECK_EQ(cases[i].text, bh_series_unit_find(bh_series_unit_names[cases[i].unit]), cases[i].unit);
    }
    BH_CHECK_EQ("no unit", bh_series_unit_find("furlongs"), BH_UNITS);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(points_keep_least_most_and_mean),
    cmocka_unit_test(points_stay_at_their_bounds),
    cmocka_unit_test(coarse_points_are_those_of_their_parts),
    cmocka_unit_test(blocks_hold_their_intervals),
    cmocka_unit_test(resolutions_reach_back),
    cmocka_unit_test(rows_have_positions),
    cmocka_unit_test(values_are_shown_in_their_unit),
};

BH_TEST_MAIN(tests)
