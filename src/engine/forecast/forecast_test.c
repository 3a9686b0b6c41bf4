/* Forecasts: bounds by hand, bounds against a sorted list, gaps, promises kept. */
#include "engine/forecast/forecast.h"

#include <stdlib.h>

#include "base/test.h"

enum { MINUTE_30 = 1800, SERIES = 1500 };

static const bh_ns slot_ns = MINUTE_30 * BH_NS_PER_S;

/* The value at the `at`th slot after some Monday. */
static void
forecast_test_put(struct bh_forecast *forecast, uint64_t at, uint32_t value)
{
    bh_forecast_put(forecast, (900000 + at) * slot_ns + 17, value);
}

static const struct {
    const char *name;
    uint32_t window, count, values[12], steps, q_bp;
    uint32_t value, level, changes, rank;
    int64_t change;
    bool firm;
} bounds[] = {
    { "nothing yet", 8, 0, { 0 }, 1, 9000, 0, 0, 0, 1, 0, false },
    { "one value, no change", 8, 1, { 5 }, 1, 9000, 5, 5, 0, 1, 0, false },
    { "as many values as steps", 8, 2, { 5, 9 }, 2, 9000, 9, 9, 0, 1, 0, false },
    { "too few for 90 %: the largest stands in", 8, 3, { 1, 4, 5 }, 1, 9000, 8, 5, 2, 3, 3, false },
    { "the median of three", 8, 4, { 0, 1, 3, 9 }, 1, 5000, 11, 9, 3, 2, 2, true },
    { "rank is rounded up", 8, 4, { 0, 1, 3, 9 }, 1, 5001, 15, 9, 3, 3, 6, true },
    { "rank is at least 1", 8, 4, { 9, 8, 6, 1 }, 1, 1, 0, 1, 3, 1, -5, true },
    { "falling: the bound may lie below the level",
      8,
      4,
      { 90, 80, 70, 60 },
      1,
      5000,
      50,
      60,
      3,
      2,
      -10,
      true },
    { "two steps", 8, 5, { 1, 2, 4, 8, 16 }, 2, 5000, 22, 16, 3, 2, 6, true },
    { "only the window counts", 2, 6, { 0, 100, 0, 1, 2, 3 }, 1, 6000, 4, 3, 2, 2, 1, true },
    { "the window reaches back by the steps", 2, 6, { 0, 0, 50, 0, 0, 0 }, 3, 6000, 0, 0, 2, 2, 0, true },
    { "never over the largest value",
      8,
      4,
      { 0, 4000000000, 0, 4000000000 },
      1,
      6000,
      BH_FORECAST_VALUE_MAX,
      4000000000,
      3,
      3,
      4000000000,
      true },
    { "values above the largest are cut",
      8,
      1,
      { UINT32_MAX },
      1,
      5000,
      BH_FORECAST_VALUE_MAX,
      BH_FORECAST_VALUE_MAX,
      0,
      1,
      0,
      false },
    { "the largest fall",
      8,
      2,
      { BH_FORECAST_VALUE_MAX, 0 },
      1,
      5000,
      0,
      0,
      1,
      1,
      -(int64_t)BH_FORECAST_VALUE_MAX,
      true },
};

static void
bounds_by_hand(void **state)
{
    for (size_t i = 0; i < BH_COUNT(bounds); i++) {
        struct bh_forecast forecast;
        struct bh_forecast_bound bound;

        bh_forecast_init(&forecast, slot_ns, bounds[i].window);
        for (uint32_t k = 0; k < bounds[i].count; k++)
            forecast_test_put(&forecast, k, bounds[i].values[k]);
        bound = bh_forecast_bound(&forecast, bounds[i].steps, bounds[i].q_bp);
        BH_CHECK_EQ(bounds[i].name, bound.value, bounds[i].value);
        BH_CHECK_EQ(bounds[i].name, bound.level, bounds[i].level);
        BH_CHECK_EQ(bounds[i].name, bound.change, bounds[i].change);
        BH_CHECK_EQ(bounds[i].name, bound.changes, bounds[i].changes);
        BH_CHECK_EQ(bounds[i].name, bound.rank, bounds[i].rank);
        BH_CHECK_EQ(bounds[i].name, bound.firm, bounds[i].firm);
    }
    BH_CHECK_DONE();
}

/* Slots at which values are put, and the ring that must follow. */
static const struct {
    const char *name;
    uint32_t count, at[6], values[6];
    uint32_t slots, ring[12]; /* the newest last */
    /* clang-format off */
} gaps[] = {
    { "no gap", 3, { 0, 1, 2 }, { 4, 5, 6 }, 3, { 4, 5, 6 } },
    { "the last of a slot counts", 4, { 0, 1, 1, 1 }, { 4, 5, 6, 7 }, 2, { 4, 7 } },
    { "a missed slot repeats", 2, { 0, 2 }, { 4, 6 }, 3, { 4, 4, 6 } },
    { "many missed slots repeat", 3, { 0, 1, 6 }, { 4, 5, 6 }, 7, { 4, 5, 5, 5, 5, 5, 6 } },
    { "time may begin anywhere", 2, { 7, 9 }, { 1, 2 }, 3, { 1, 1, 2 } },
};
/* clang-format on */

static void
gaps_repeat_the_last_value(void **state)
{
    for (size_t i = 0; i < BH_COUNT(gaps); i++) {
        struct bh_forecast forecast;

        bh_forecast_init(&forecast, slot_ns, 8);
        for (uint32_t k = 0; k < gaps[i].count; k++)
            forecast_test_put(&forecast, gaps[i].at[k], gaps[i].values[k]);
        BH_CHECK_EQ(gaps[i].name, forecast.count, gaps[i].slots);
        for (uint32_t k = 0; k < gaps[i].slots; k++)
            BH_CHECK_EQ(gaps[i].name, forecast.values[(forecast.slot - k) % BH_FORECAST_SLOTS],
                        gaps[i].ring[gaps[i].slots - 1 - k]);
    }
    BH_CHECK_DONE();
}

/* A gap is worth what putting the last value in each of its slots would be worth, but for
 * the judging; one of years costs no more than one of a week. */
static void
a_long_gap_leaves_a_flat_past(void **state)
{
    struct bh_forecast forecast;
    struct bh_forecast_bound bound;
    uint32_t promise;

    bh_forecast_init(&forecast, slot_ns, BH_FORECAST_WINDOW_MAX);
    promise = bh_forecast_promise(&forecast, 2, 9000);
    for (uint32_t i = 0; i < 100; i++)
        forecast_test_put(&forecast, i, i * i);
    assert_int_not_equal(bh_forecast_coverage(&forecast, promise).judged, 0);
    forecast_test_put(&forecast, UINT64_C(100000000), 7);
    assert_int_equal(bh_forecast_coverage(&forecast, promise).judged, 0);
    bound = bh_forecast_bound(&forecast, 2, 9000);
    assert_int_equal(bound.level, 7);
    assert_int_equal(bound.change, 0);
    assert_int_equal(bound.changes, BH_FORECAST_WINDOW_MAX);
}

static uint32_t
step_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33);
}

/* Demand that wanders, jumps and rests, as demand does. */
static void
make_series(uint32_t *values, uint32_t count, uint64_t seed)
{
    uint32_t value = 50 * 4200;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t kind = step_random(&seed) % 10;

        if (kind == 0)
            value = step_random(&seed) % (100 * 4200);
        else if (kind < 4)
            value += step_random(&seed) % 8400;
        else if (kind < 7)
            value -= value < 8400 ? value : step_random(&seed) % 8400;
        values[i] = value;
    }
}

static int
compare_changes(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* The same from the whole series and a sorted list. */
static int64_t
plain_bound(const uint32_t *values, uint32_t last, const struct bh_forecast_bound *asked, uint32_t window)
{
    int64_t changes[BH_FORECAST_WINDOW_MAX], sum;
    uint32_t count = 0, rank;

    for (uint32_t i = last; count < window && i >= asked->steps && i <= last; i--)
        changes[count++] = (int64_t)values[i] - values[i - asked->steps];
    if (count == 0)
        return values[last];
    qsort(changes, count, sizeof *changes, compare_changes);
    rank = ((count + 1) * asked->q_bp + 9999) / 10000;
    sum = values[last] + changes[rank > count ? count - 1 : rank - 1];
    return sum < 0 ? 0 : sum;
}

static void
bounds_are_those_of_a_sorted_list(void **state)
{
    static const uint32_t steps[] = { 1, 2, 6, 48 }, quantiles[] = { 1, 5000, 9500, 9999, 10000 };
    static uint32_t values[SERIES];
    struct bh_forecast forecast;

    make_series(values, SERIES, 20261120);
    bh_forecast_init(&forecast, slot_ns, 300);
    for (uint32_t i = 0; i < SERIES; i++) {
        struct bh_forecast_bound bound;

        forecast_test_put(&forecast, i, values[i]);
        bound = bh_forecast_bound(&forecast, steps[i % 4], quantiles[i % 5]);
        BH_CHECK_EQ("bound", bound.value, plain_bound(values, i, &bound, 300));
    }
    BH_CHECK_DONE();
}

/* Coverage is what a reader of all forecasts would count, slot by slot. */
static void
coverage_is_counted_over_the_window(void **state)
{
    enum { WINDOW = 100, STEPS = 3 };
    static uint32_t values[SERIES];
    static int64_t said[SERIES + STEPS];
    struct bh_forecast forecast;
    uint32_t promise;

    make_series(values, SERIES, 4);
    bh_forecast_init(&forecast, slot_ns, WINDOW);
    bh_forecast_promise(&forecast, 1, 9900);
    promise = bh_forecast_promise(&forecast, STEPS, 8000);
    for (uint32_t i = 0; i < SERIES; i++) {
        struct bh_forecast_bound bound;
        struct bh_forecast_coverage coverage;
        uint32_t kept = 0, judged = 0;

        forecast_test_put(&forecast, i, values[i]);
        bound = bh_forecast_bound(&forecast, STEPS, 8000);
        said[i + STEPS] = bound.firm ? (int64_t)bound.value : -1;
        coverage = bh_forecast_coverage(&forecast, promise);
        for (uint32_t k = i < WINDOW ? 0 : i - WINDOW; k < i; k++) {
            judged += k >= STEPS && said[k] >= 0;
            kept += k >= STEPS && said[k] >= values[k];
        }
        BH_CHECK_EQ("judged", coverage.judged, judged);
        BH_CHECK_EQ("kept", coverage.kept, kept);
    }
    BH_CHECK_DONE();
}

/* Forecasts are judged only where a value was put, and made only there. */
static void
missed_slots_are_not_judged(void **state)
{
    struct bh_forecast forecast;
    uint32_t promise;

    bh_forecast_init(&forecast, slot_ns, 64);
    promise = bh_forecast_promise(&forecast, 1, 5000);
    for (uint32_t i = 0; i < 10; i++)
        forecast_test_put(&forecast, i, 5);
    assert_int_equal(bh_forecast_coverage(&forecast, promise).judged, 7); /* slots 2 .. 8 */
    forecast_test_put(&forecast, 15, 5);                                  /* closes 9 and misses 10 .. 14 */
    assert_int_equal(bh_forecast_coverage(&forecast, promise).judged, 8);
    forecast_test_put(&forecast, 16, 5); /* nothing was said of 15 */
    assert_int_equal(bh_forecast_coverage(&forecast, promise).judged, 8);
    forecast_test_put(&forecast, 17, 5);
    assert_int_equal(bh_forecast_coverage(&forecast, promise).judged, 9);
    assert_int_equal(bh_forecast_coverage(&forecast, promise).kept, 9);
}

/* A plain value: a copy goes on as the original does, byte for byte. */
static void
a_copy_is_a_twin(void **state)
{
    static uint32_t values[SERIES];
    struct bh_forecast one, two;

    make_series(values, SERIES, 9);
    memset(&two, 0xa5, sizeof two);
    bh_forecast_init(&one, slot_ns, BH_FORECAST_WINDOW_MAX);
    bh_forecast_promise(&one, 2, 9500);
    for (uint32_t i = 0; i < SERIES; i++) {
        forecast_test_put(&one, 2 * i, values[i]);
        if (i == SERIES / 2)
            memcpy(&two, &one, sizeof two);
        else if (i > SERIES / 2)
            forecast_test_put(&two, 2 * i, values[i]);
    }
    assert_memory_equal(&one, &two, sizeof one);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bounds_by_hand),
    cmocka_unit_test(gaps_repeat_the_last_value),
    cmocka_unit_test(a_long_gap_leaves_a_flat_past),
    cmocka_unit_test(bounds_are_those_of_a_sorted_list),
    cmocka_unit_test(coverage_is_counted_over_the_window),
    cmocka_unit_test(missed_slots_are_not_judged),
    cmocka_unit_test(a_copy_is_a_twin),
};

BH_TEST_MAIN(tests)
