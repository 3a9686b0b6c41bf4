/* Trials: measures by hand on short series; only what was known counts. */
#include "lab/forecast/trial.h"

#include "base/test.h"

#define NONE BH_SERIES_NONE
#define HOUR (3600 * BH_NS_PER_S)

enum { LONG = 400 };

static struct bh_series
series_of(uint32_t *values, uint32_t count)
{
    return (struct bh_series){ .slot_ns = HOUR, .first = 1000, .values = values, .count = count };
}

/* Ten slots: the last four are judged.  Values in thousandths; floats as permille. */
static const struct {
    const char *name;
    uint32_t values[10], steps, q_bp;
    uint32_t judged, kept;
    int64_t mean, error, smape, headroom;
} rows[] = {
    { "flat", { 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000 }, 1, 5000, 4, 4, 5000, 0, 0, 0 },
    { "nothing at all", { 0 }, 1, 5000, 4, 4, 0, 0, 0, 0 },
    { "a jump is missed once",
      { 0, 0, 0, 0, 0, 0, 0, 4000, 4000, 4000 },
      1,
      5000,
      4,
      3,
      3000,
      1000,
      50000,
      0 },
    { "a jump is missed for each step",
      { 0, 0, 0, 0, 0, 0, 0, 4000, 4000, 4000 },
      2,
      5000,
      4,
      2,
      3000,
      2000,
      100000,
      0 },
    { "steady growth is foreseen",
      { 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000 },
      1,
      5000,
      4,
      4,
      8500,
      1000,
      12752,
      0 },
    { "too short a history for 90 %",
      { 0, 2000, 0, 2000, 0, 2000, 0, 2000, 0, 2000 },
      1,
      9000,
      0,
      0,
      1000,
      2000,
      200000,
      0 },
    { "room in units of the mean",
      { 0, 2000, 0, 2000, 0, 2000, 0, 2000, 0, 2000 },
      1,
      8000,
      4,
      4,
      1000,
      2000,
      200000,
      2000 },
    { "a missed slot is not judged",
      { 5000, 5000, 5000, 5000, 5000, 5000, 5000, NONE, 5000, 5000 },
      1,
      5000,
      2,
      2,
      5000,
      0,
      0,
      0 },
};

static void
measures_by_hand(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_trial_question question = { rows[i].steps, 8, { rows[i].q_bp }, 1 };
        uint32_t values[10];
        struct bh_series series = series_of(values, 10);
        struct bh_trial trial;

        memcpy(values, rows[i].values, sizeof values);
        bh_trial_run(&series, &question, &trial, NULL, NULL);
        BH_CHECK_EQ(rows[i].name, trial.bounds[0].judged, rows[i].judged);
        BH_CHECK_EQ(rows[i].name, trial.bounds[0].kept, rows[i].kept);
        BH_CHECK_EQ(rows[i].name, trial.mean * 1000 + 0.5, rows[i].mean);
        BH_CHECK_EQ(rows[i].name, trial.error * 1000 + 0.5, rows[i].error);
        BH_CHECK_EQ(rows[i].name, trial.smape * 1000 + 0.5, rows[i].smape);
        BH_CHECK_EQ(rows[i].name, trial.bounds[0].headroom * 1000 + 0.5, rows[i].headroom);
        BH_CHECK(rows[i].name, trial.scaled < 0);
    }
    BH_CHECK_DONE();
}

struct seen {
    const struct bh_series *series;
    uint32_t count, steps;
};

/* A bound was made of the level `steps` before, and of nothing later. */
static void
see_moment(void *self, const struct bh_trial_moment *moment)
{
    struct seen *seen = self;
    uint64_t at = moment->slot - seen->series->first;

    seen->count++;
    BH_CHECK_EQ("came", moment->came, seen->series->values[at]);
    BH_CHECK_EQ("level", moment->bounds[0].level, seen->series->values[at - seen->steps]);
}

/* A day of 24 slots: even hours 1 unit, odd hours 3, day k adds k units. */
static void
make_days(uint32_t *values)
{
    for (uint32_t i = 0; i < LONG; i++)
        values[i] = (i % 2 ? 3000 : 1000) + i / 24 * 1000;
}

static void
errors_are_scaled_by_yesterday(void **state)
{
    struct bh_trial_question question = { 24, 48, { 5000, 9000 }, 2 };
    uint32_t values[LONG];
    struct bh_series series = series_of(values, LONG);
    struct seen seen = { .series = &series, .steps = 24 };
    struct bh_trial trial;

    make_days(values);
    bh_trial_run(&series, &question, &trial, see_moment, &seen);
    assert_int_equal(seen.count, LONG - LONG * 6 / 10);
    assert_int_equal(trial.judged, seen.count);
    assert_true(trial.error == 1 && trial.scaled == 1); /* last value a day ahead is yesterday's */
    assert_int_equal(trial.bounds[1].kept, trial.judged);
    assert_int_equal(trial.bounds[1].next.value, values[LONG - 1] + 1000);
    BH_CHECK_DONE();
}

/* The engine counts its promises itself; over the same slots it must agree. */
static void
the_engine_counts_the_same(void **state)
{
    struct bh_trial_question question = { 3, 160, { 6000, 9000 }, 2 };
    uint32_t values[LONG], seed = 1;
    struct bh_series series = series_of(values, LONG);
    struct bh_trial trial;

    for (uint32_t i = 0; i < LONG; i++) {
        seed = seed * 1664525 + 1013904223;
        values[i] = seed >> 16;
    }
    bh_trial_run(&series, &question, &trial, NULL, NULL);
    for (uint32_t i = 0; i < 2; i++) { /* its window also has the slot that closed before */
        assert_int_equal(trial.bounds[i].judged, 160);
        assert_int_equal(trial.bounds[i].coverage.judged, 160);
        assert_in_range(trial.bounds[i].coverage.kept, trial.bounds[i].kept - 1, trial.bounds[i].kept + 1);
    }
}

static void
short_series_have_no_trial(void **state)
{
    struct bh_trial_question question = { 4, 8, { 5000 }, 1 };
    uint32_t values[] = { 1, 2, 3, 4 };
    struct bh_series series = series_of(values, 4);
    struct bh_trial trial;

    bh_trial_run(&series, &question, &trial, NULL, NULL);
    assert_int_equal(trial.judged, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(measures_by_hand),
    cmocka_unit_test(errors_are_scaled_by_yesterday),
    cmocka_unit_test(the_engine_counts_the_same),
    cmocka_unit_test(short_series_have_no_trial),
};

BH_TEST_MAIN(tests)
