/* Series from files of comma separated values: what they become, and what is refused. */
#include "lab/forecast/series.h"

#include "base/test.h"

#define HELIOS "time,running_gpujobs,pending_gpujobs,total_gpus,running_gpus,pending_gpus\n"
#define NONE BH_SERIES_NONE

static const struct {
    const char *name, *text;
    enum bh_series_take take;
    uint32_t count, values[6]; /* slots of 30 min */
} reads[] = {
    { "one row", "time,value\n0,5\n", BH_SERIES_MEAN, 1, { 5000 } },
    { "no newline at the end, CR LF", "time,value\r\n0,5\r\n1800,6", BH_SERIES_MEAN, 2, { 5000, 6000 } },
    { "places", "value,time\n1.5,0\n0.25,1800\n7.125,3600\n", BH_SERIES_MEAN, 3, { 1500, 250, 7125 } },
    { "the mean of a slot, rounded", "time,value\n0,1\n600,1\n1200,3\n", BH_SERIES_MEAN, 1, { 1667 } },
    { "the last of a slot", "time,value\n0,1\n600,9\n1200,3\n1800,4\n", BH_SERIES_LAST, 2, { 3000, 4000 } },
    { "the largest of a slot", "time,value\n0,1\n600,9\n1200,3\n1800,4\n", BH_SERIES_MAX, 2, { 9000, 4000 } },
    { "missed slots have none", "time,value\n0,1\n5400,2\n", BH_SERIES_MEAN, 4, { 1000, NONE, NONE, 2000 } },
    { "running and pending",
      HELIOS "2020-05-01 00:00:00,1,2,64,10,5\n2020-05-01 00:10:00,1,2,64,10,8\n",
      BH_SERIES_MEAN,
      1,
      { 16500 } },
    { "times in other forms",
      "time,value\n2020-02-29T00:00Z,1\n2020-02-29 00:30:00Z,2\n",
      BH_SERIES_MEAN,
      2,
      { 1000, 2000 } },
    { "the largest number", "time,value\n0,4000000\n", BH_SERIES_MAX, 1, { 4000000000 } },
};

static void
files_become_slots(void **state)
{
    for (size_t i = 0; i < BH_COUNT(reads); i++) {
        struct bh_series_source source = { "dir/acme.10min.csv", reads[i].text, strlen(reads[i].text),
                                           1800 * BH_NS_PER_S, reads[i].take };
        struct bh_series series = { 0 };
        struct bh_err err = { 0 };

        BH_CHECK_EQ(reads[i].name, bh_series_parse(&source, &series, &err), BH_OK);
        BH_CHECK_STR(reads[i].name, err.msg, "");
        BH_CHECK_STR(reads[i].name, series.name, "acme");
        BH_CHECK_EQ(reads[i].name, series.count, reads[i].count);
        for (uint32_t k = 0; k < series.count && k < 6; k++)
            BH_CHECK_EQ(reads[i].name, series.values[k], reads[i].values[k]);
        bh_series_fini(&series);
    }
    BH_CHECK_DONE();
}

static const struct {
    const char *name, *text;
    bh_rc rc;
    const char *says;
} refusals[] = {
    { "empty", "", BH_INVALID, "f.csv:0: there are no rows" },
    { "only a head", "time,value\n", BH_INVALID, "f.csv:1: there are no rows" },
    { "no time", "when,value\n0,1\n", BH_INVALID, "f.csv:1: there is no column time" },
    { "no value", "time,gpus\n0,1\n", BH_INVALID,
      "f.csv:1: there is neither a column value nor running_gpus and pending_gpus" },
    { "a field too few", "time,value\n0,1\n1\n", BH_INVALID, "f.csv:3: the line has not as many" },
    { "a field too many", "time,value\n0,1,2\n", BH_INVALID, "f.csv:2: the line has not as many" },
    { "an empty line", "time,value\n0,1\n\n", BH_INVALID, "f.csv:3: the line has not as many" },
    { "no number", "time,value\n0,x\n", BH_INVALID, "f.csv:2: x: expected a number" },
    { "an empty field", "time,value\n0,\n", BH_INVALID, "f.csv:2: expected a number" },
    { "a sign", "time,value\n0,-1\n", BH_INVALID, "f.csv:2: -1: expected a number" },
    { "four places", "time,value\n0,1.2345\n", BH_INVALID, "f.csv:2: 1.2345: expected" },
    { "a point at the end", "time,value\n0,1.\n", BH_INVALID, "f.csv:2: 1.: expected" },
    { "an exponent", "time,value\n0,1e3\n", BH_INVALID, "f.csv:2: 1e3: expected" },
    { "a blank", "time,value\n0, 1\n", BH_INVALID, "f.csv:2:  1: expected" },
    { "too large", "time,value\n0,4000001\n", BH_RANGE, "f.csv:2: 4000001: a number may be" },
    { "a sum too large", HELIOS "0,0,0,0,3000000,3000000\n", BH_RANGE, "f.csv:2: 3000000: a n" },
    { "far too large", "time,value\n0,99999999999\n", BH_INVALID, "f.csv:2: 99999999999: exp" },
    { "no time of day", "time,value\nnoon,1\n", BH_INVALID, "f.csv:2: noon: expected a time" },
    { "no such day", "time,value\n2021-02-29 00:00:00,1\n", BH_INVALID, "expected a time" },
    { "no such hour", "time,value\n2021-02-28 24:00:00,1\n", BH_INVALID, "expected a time" },
    { "before 1970", "time,value\n1969-12-31 23:00:00,1\n", BH_INVALID, "expected a time" },
    { "more behind the time", "time,value\n2021-02-28 00:00:00x,1\n", BH_INVALID, "expected a" },
    { "beyond all time", "time,value\n99999999999999,1\n", BH_RANGE, "the time is too far away" },
    { "time stands", "time,value\n10,1\n10,1\n", BH_INVALID, "f.csv:3: 10: the time does not" },
    { "time goes back over a slot", "time,value\n9999,1\n0,1\n", BH_INVALID, "f.csv:3: 0: the t" },
    { "too many slots", "time,value\n0,1\n9999999999,1\n", BH_RANGE, "more than 1,048,576 slots" },
    { "quotes", "time,value\n0,\"1\"\n", BH_INVALID, "f.csv:2: quotes and NULs" },
};

static void
mistakes_are_named_with_their_line(void **state)
{
    for (size_t i = 0; i < BH_COUNT(refusals); i++) {
        struct bh_series_source source = { "f.csv", refusals[i].text, strlen(refusals[i].text),
                                           1800 * BH_NS_PER_S, BH_SERIES_MEAN };
        struct bh_series series;
        struct bh_err err = { 0 };

        BH_CHECK_EQ(refusals[i].name, bh_series_parse(&source, &series, &err), refusals[i].rc);
        if (!strstr(err.msg, refusals[i].says))
            BH_CHECK_STR(refusals[i].name, err.msg, refusals[i].says);
    }
    BH_CHECK_DONE();
}

static void
the_mean_leaves_out_what_is_missing(void **state)
{
    uint32_t values[] = { 1000, NONE, 3000, NONE };
    struct bh_series series = { .values = values, .count = 4 };

    assert_true(bh_series_mean(&series) == 2);
    series.count = 0;
    assert_true(bh_series_mean(&series) == 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_become_slots),
    cmocka_unit_test(mistakes_are_named_with_their_line),
    cmocka_unit_test(the_mean_leaves_out_what_is_missing),
};

BH_TEST_MAIN(tests)
