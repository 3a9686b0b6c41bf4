/* Forecasts on public demand: 14 tenants of Helios Earth, where that data is.
 *
 *     helios_test FOLDER     BULKHEAD_DATA names another one
 *
 * Expected are the figures of an independent program in floating point
 * (docs/performance/forecasts.md), to the room that its rounding leaves. */
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "lab/forecast/forecast.h"
#include "lab/forecast/mean.h"

static const char *folder;

/* Percent kept in the mean and by the worst tenant, room and scaled error: per mille. */
static const struct {
    const char *name;
    uint32_t horizon, quantile;
    int64_t kept, worst, room, scaled;
} rows[] = {
    { "1 h, 90 %", 0, 0, 921, 896, 180, 166 },
    { "1 h, 95 %", 0, 1, 961, 948, 360, 166 },
    { "1 h, 99 %", 0, 2, 991, 985, 840, 166 },
    { "3 h, 95 %", 1, 1, 959, 930, 630, 350 },
};

static void
check_near(const char *name, double got, double want, double room)
{
    bool near = got >= want - room && got <= want + room;

    if (!near)
        fprintf(stderr, "%s: %.4f is not within %.4f of %.4f\n", name, got, room, want);
    BH_CHECK(name, near);
}

static void
bounds_keep_what_they_promise(void **state)
{
    char path[4096];
    const char *words[] = { "--data", path, "--horizon", "1h,3h" };
    struct bh_forecast_options options;
    struct bh_forecast_report report;
    struct bh_err err = { 0 };

    snprintf(path, sizeof path, "%s/helios/earth_vc", folder);
    assert_int_equal(bh_forecast_options_parse(4, (char **)words, &options, &err), BH_OK);
    assert_int_equal(bh_forecast_try(&options, NULL, &report, &err), BH_OK);
    assert_int_equal(report.count, 14);
    assert_int_equal(report.left_out, 2);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_forecast_mean mean;

        bh_forecast_average(&report, &options, rows[i].horizon, &mean);
        check_near(rows[i].name, mean.kept[rows[i].quantile], rows[i].kept / 10.0, 0.2);
        check_near(rows[i].name, mean.worst[rows[i].quantile], rows[i].worst / 10.0, 0.2);
        check_near(rows[i].name, mean.headroom[rows[i].quantile], rows[i].room / 1000.0, 0.01);
        check_near(rows[i].name, mean.scaled, rows[i].scaled / 1000.0, 0.001);
    }
    bh_forecast_report_fini(&report);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bounds_keep_what_they_promise),
};

int
main(int argc, char **argv)
{
    char path[4096];

    folder = getenv("BULKHEAD_DATA") ? getenv("BULKHEAD_DATA") : argc > 1 ? argv[1] : ".";
    snprintf(path, sizeof path, "%s/helios/earth_vc", folder);
    if (access(path, R_OK) != 0) {
        printf("1..0 # SKIP there is no %s\n", path);
        return 0;
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
