#include "api/metrics/exposition.h"

#include <ctype.h>
#include <string.h>

#include "base/test.h"

static char memory[4096];
static struct bh_buf out;
static struct bh_exposition x;

static void
exposition_begin(bool open_metrics)
{
    bh_buf_init_fixed(&out, memory, sizeof memory);
    x = (struct bh_exposition){ .out = &out, .open_metrics = open_metrics };
}

/* ---- the table ---- */

static bool
ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);

    return length > size && strcmp(text + length - size, end) == 0;
}

static bool
is_name(const char *text)
{
    if (!isalpha((unsigned char)*text) && *text != '_')
        return false;
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return *text == '\0';
}

static void
exposition_check_labels(const struct bh_metric_row *row)
{
    char label[40];
    uint32_t count = 0;

    for (const char *at = row->labels; sscanf(at, "%39s", label) == 1; count++) {
        BH_CHECK(row->name, is_name(label) && strcmp(label, "le") != 0);
        at = strstr(at, label) + strlen(label);
    }
    BH_CHECK(row->name, count <= BH_METRIC_LABELS_MAX);
    BH_CHECK(row->name, row->type != BH_METRIC_HISTOGRAM || count == 0);
    if (row->sees == BH_METRIC_SEES_TENANT)
        BH_CHECK(row->name, strncmp(row->labels, "tenant", strlen("tenant")) == 0);
    BH_CHECK_EQ(row->name, row->sees == BH_METRIC_SEES_HOLDER,
                strncmp(row->labels, BH_DEVICE_LABELS, strlen(BH_DEVICE_LABELS)) == 0);
}

static void
rows_keep_their_rules(void **state)
{
    for (int metric = 0; metric < BH_METRICS; metric++) {
        const struct bh_metric_row *row = bh_metric_get((enum bh_metric)metric);
        bool ours = strncmp(row->name, "bulkhead_", strlen("bulkhead_")) == 0;
        char wanted[160];

        BH_CHECK(row->name, is_name(row->name));
        BH_CHECK(row->name, row->help[0] && !strchr(row->help, '\n'));
        BH_CHECK_EQ(row->name, !ours, row->sees == BH_METRIC_SEES_HOLDER);
        BH_CHECK(row->name, ours || strncmp(row->name, "DCGM_", strlen("DCGM_")) == 0);
        BH_CHECK_EQ(row->name, ours && row->type == BH_METRIC_COUNTER, ours && ends_in(row->name, "_total"));
        BH_CHECK_EQ(row->name, row->type == BH_METRIC_INFO, ends_in(row->name, "_info"));
        snprintf(wanted, sizeof wanted, "_%s%s", row->unit, row->type == BH_METRIC_COUNTER ? "_total" : "");
        if (ours && strcmp(row->unit, "seconds") == 0)
            BH_CHECK(row->name, ends_in(row->name, wanted));
        if (ours && strcmp(row->unit, "bytes") == 0)
            BH_CHECK(row->name, ends_in(row->name, wanted));
        exposition_check_labels(row);
        for (int other = 0; other < metric; other++)
            BH_CHECK(row->name, strcmp(row->name, bh_metric_get((enum bh_metric)other)->name) != 0);
    }
    BH_CHECK_DONE();
}

/* ---- what is written ---- */

static void
values_are_escaped(void **state)
{
    static const char *const values[] = { "a\\b\"c\nd", "running" };

    exposition_begin(false);
    bh_exposition_family(&x, BH_METRIC_JOBS);
    bh_exposition_u64(&x, values, UINT64_MAX);
    BH_CHECK_STR("escaped", bh_buf_text(&out),
                 "# HELP bulkhead_jobs Jobs that have not ended, by state.\n"
                 "# TYPE bulkhead_jobs gauge\n"
                 "bulkhead_jobs{tenant=\"a\\\\b\\\"c\\nd\",state=\"running\"} "
                 "18446744073709551615\n");
    BH_CHECK_DONE();
}

static void
labels_without_value_are_left_out(void **state)
{
    static const struct {
        const char *name, *values[3], *wanted;
        /* clang-format off */
    } cases[] = {
        { "all",    { "unusable", "fault", "memory" }, "{use=\"unusable\",cause=\"fault\",dimension=\"memory\"} 1\n" },
        { "middle", { "idle", "", "memory" },          "{use=\"idle\",dimension=\"memory\"} 1\n" },
        { "first",  { NULL, "fault", NULL },           "{cause=\"fault\"} 1\n" },
        { "none",   { "", "", "" },                    "bulkhead_parts 1\n" },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        exposition_begin(false);
        bh_exposition_family(&x, BH_METRIC_PARTS);
        bh_exposition_u64(&x, cases[i].values, 1);
        BH_CHECK(cases[i].name, ends_in(bh_buf_text(&out), cases[i].wanted));
    }
    BH_CHECK_DONE();
}

static void
the_host_label_is_spelled_as_set(void **state)
{
    static const char *const values[] = { "GPU-a", "n1" };

    exposition_begin(false);
    x.host_label = "Hostname";
    bh_exposition_family(&x, BH_METRIC_GPU_FENCED);
    bh_exposition_u64(&x, values, 0);
    BH_CHECK("spelled", ends_in(bh_buf_text(&out), "{UUID=\"GPU-a\",Hostname=\"n1\"} 0\n"));
    BH_CHECK_DONE();
}

static void
fractions_are_exact(void **state)
{
    static const struct {
        const char *name;
        bh_part_ns nanos;
        const char *wanted;
    } cases[] = {
        { "zero", 0, " 0.0\n" },
        { "one nano", 1, " 0.000000001\n" },
        { "a second", 1000000000, " 1.0\n" },
        { "trailing", 1500000000, " 1.5\n" },
        { "beyond 64", ((bh_part_ns)1 << 64) * 10, " 184467440737.09551616\n" },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        exposition_begin(false);
        bh_exposition_family(&x, BH_METRIC_CHECKPOINT_AGE);
        bh_exposition_nano(&x, NULL, cases[i].nanos);
        BH_CHECK(cases[i].name, ends_in(bh_buf_text(&out), cases[i].wanted));
    }
    exposition_begin(false);
    bh_exposition_family(&x, BH_METRIC_CHECKPOINT_AGE);
    bh_exposition_milli(&x, NULL, 70125);
    BH_CHECK("thousandths", ends_in(bh_buf_text(&out), " 70.125\n"));
    BH_CHECK_DONE();
}

static void
nothing_is_written_of_an_empty_family(void **state)
{
    exposition_begin(false);
    bh_exposition_family(&x, BH_METRIC_JOBS);
    bh_exposition_family(&x, BH_METRIC_QUEUE);
    bh_exposition_end(&x);
    BH_CHECK_EQ("bytes", out.length, 0);
    BH_CHECK_DONE();
}

static void
open_metrics_names_families_its_own_way(void **state)
{
    static const char *const version[] = { "1\"", "sqlite" };
    static const char *const none[BH_METRIC_LABELS_MAX] = { NULL };

    exposition_begin(true);
    bh_exposition_family(&x, BH_METRIC_RECORDS);
    bh_exposition_u64(&x, NULL, 3);
    bh_exposition_family(&x, BH_METRIC_CHECKPOINT_AGE);
    bh_exposition_nano(&x, NULL, 1);
    bh_exposition_family(&x, BH_METRIC_BUILD);
    bh_exposition_u64(&x, version, 1);
    bh_exposition_family(&x, BH_METRIC_DEV_ECC_DBE);
    bh_exposition_u64(&x, none, 0);
    bh_exposition_end(&x);
    BH_CHECK_STR("text", bh_buf_text(&out),
                 "# HELP bulkhead_audit_records Records of the audit log, ever.\n"
                 "# TYPE bulkhead_audit_records counter\n"
                 "# UNIT bulkhead_audit_records records\n"
                 "bulkhead_audit_records_total 3\n"
                 "# HELP bulkhead_audit_checkpoint_age_seconds Age of the newest checkpoint that "
                 "was signed since bulkheadd started.\n"
                 "# TYPE bulkhead_audit_checkpoint_age_seconds gauge\n"
                 "# UNIT bulkhead_audit_checkpoint_age_seconds seconds\n"
                 "bulkhead_audit_checkpoint_age_seconds 0.000000001\n"
                 "# HELP bulkhead_build 1, labeled with the running versions.\n"
                 "# TYPE bulkhead_build info\n"
                 "bulkhead_build_info{version=\"1\\\"\",store=\"sqlite\"} 1\n"
                 "# HELP DCGM_FI_DEV_ECC_DBE_VOL_TOTAL Total number of double-bit volatile ECC "
                 "errors.\n"
                 "# TYPE DCGM_FI_DEV_ECC_DBE_VOL_TOTAL unknown\n"
                 "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL 0\n"
                 "# EOF\n");
    BH_CHECK_DONE();
}

static void
buckets_are_cumulative(void **state)
{
    static const uint64_t bounds[] = { 250000, 1000000000 }, counts[] = { 2, 0, 5 };

    exposition_begin(false);
    bh_exposition_family(&x, BH_METRIC_COMMIT);
    bh_exposition_put_histogram(
        &x, &(struct bh_exposition_histogram){
                .bounds_ns = bounds, .counts = counts, .bound_count = 2, .sum_ns = 12000000000 });
    BH_CHECK("text", ends_in(bh_buf_text(&out), "bulkhead_commit_seconds_bucket{le=\"0.00025\"} 2\n"
                                                "bulkhead_commit_seconds_bucket{le=\"1.0\"} 2\n"
                                                "bulkhead_commit_seconds_bucket{le=\"+Inf\"} 7\n"
                                                "bulkhead_commit_seconds_sum 12.0\n"
                                                "bulkhead_commit_seconds_count 7\n"));
    BH_CHECK_DONE();
}

static void
accept_chooses(void **state)
{
    static const struct {
        const char *accept;
        bool open_metrics;
    } cases[] = {
        { NULL, false },
        { "", false },
        { "*/*", false },
        { "text/plain", false },
        { "application/openmetrics-text", true },
        { "application/openmetrics-text; version=1.0.0; charset=utf-8", true },
        { "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;"
          "version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
          true },
        { "text/plain;q=0.9, application/openmetrics-text;q=0.8", false },
        { "text/plain;q=0.25 , application/openmetrics-text ;q=0.3", true },
        { "application/openmetrics-text;q=0", false },
        { "application/openmetrics-text;q=0.0, */*", false },
        { "application/openmetrics-text;q=0.001", true },
        { "application/openmetrics-textual", false },
        { "text/html,text/plainer;q=1,application/openmetrics-text;q=0.1", true },
        { ",, ,;;q=", false },
        { "application/openmetrics-text;q", true },
        { "application/openmetrics-text;", true },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].accept ? cases[i].accept : "(absent)",
                    bh_exposition_wants_open_metrics(cases[i].accept), cases[i].open_metrics);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rows_keep_their_rules),
    cmocka_unit_test(values_are_escaped),
    cmocka_unit_test(labels_without_value_are_left_out),
    cmocka_unit_test(the_host_label_is_spelled_as_set),
    cmocka_unit_test(fractions_are_exact),
    cmocka_unit_test(nothing_is_written_of_an_empty_family),
    cmocka_unit_test(open_metrics_names_families_its_own_way),
    cmocka_unit_test(buckets_are_cumulative),
    cmocka_unit_test(accept_chooses),
};
BH_TEST_MAIN(tests)
