#include "lab/openb/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lab/common/chart.h"
#include "lab/openb/expected.h"

enum { AT_FULL = 100, AT_END = 130, NS_PER_US = 1000 };
static const double tolerance = 0.01, noise = 1e-6;

static double
report_seconds_of(const struct bh_openb_result *result)
{
    return (double)result->span_ns / 1e9;
}

static double
report_rate_of(const struct bh_openb_result *result)
{
    return (double)result->arrivals / report_seconds_of(result);
}

/* GPUs that are free in the end and of no use to what is expected. */
static double
report_unusable(const struct bh_openb_result *result)
{
    return (double)result->fragmented / BH_GPU_PARTS;
}

void
bh_openb_report_begin(const struct bh_openb_report *report)
{
    if (report->options->json)
        return;
    fprintf(report->out, "%-12s %-8s %5s %8s %8s %8s %10s %9s %9s", "variant", "policy", "seed", "at100",
            "at130", "unusable", "pods/s", "seconds", "cpu s");
    if (report->options->latency)
        fprintf(report->out, " %8s %8s %8s", "p50 us", "p99 us", "p99.9 us");
    if (report->options->check)
        fprintf(report->out, " %8s", "off by");
    fputc('\n', report->out);
}

static void
report_put_latency(FILE *out, const struct bh_openb_result *result)
{
    const uint64_t spans[] = { result->p50_ns, result->p99_ns, result->p999_ns };

    for (size_t i = 0; i < BH_COUNT(spans); i++)
        fprintf(out, " %8.2f", (double)spans[i] / NS_PER_US);
}

static void
report_put_row(const struct bh_openb_report *report, const struct bh_openb_row *row, double off)
{
    const struct bh_openb_result *result = &row->result;

    fprintf(report->out, "%-12s %-8s %5" PRIu64 " %8.2f %8.2f %8.2f %10.0f %9.6f %9.6f", row->name.variant,
            bh_pack_policy_names[row->name.policy], row->name.seed, result->point[AT_FULL],
            result->point[AT_END], report_unusable(result), report_rate_of(result), report_seconds_of(result),
            (double)result->cpu_ns / 1e9);
    if (report->options->latency)
        report_put_latency(report->out, result);
    if (off >= 0)
        fprintf(report->out, " %8.2f", off);
    fputc('\n', report->out);
}

static void
report_put_point(FILE *out, double point)
{
    if (point < 0)
        fputs("null", out);
    else
        fprintf(out, "%.4f", point);
}

/* Names are checked to be plain words, so nothing needs escaping. */
static void
report_put_json(const struct bh_openb_report *report, const struct bh_openb_row *row, double off)
{
    const struct bh_openb_result *result = &row->result;
    FILE *out = report->out;

    fprintf(out, "{\"variant\":\"%s\",\"policy\":\"%s\",\"seed\":%" PRIu64, row->name.variant,
            bh_pack_policy_names[row->name.policy], row->name.seed);
    fprintf(out, ",\"nodes\":%u,\"gpus\":%" PRIu64 ",\"at100\":", result->nodes, result->gpus);
    report_put_point(out, result->point[AT_FULL]);
    fputs(",\"at130\":", out);
    report_put_point(out, result->point[AT_END]);
    fputs(",\"points\":[", out);
    for (int i = 0; i < BH_OPENB_POINTS; i++) {
        fputs(i ? "," : "", out);
        report_put_point(out, result->point[i]);
    }
    fprintf(out, "],\"pods\":%" PRIu64 ",\"placed\":%" PRIu64 ",\"seconds\":%.6f", result->arrivals,
            result->placed, report_seconds_of(result));
    fprintf(out, ",\"cpu_seconds\":%.6f,\"tables_cpu_seconds\":%.6f,\"pods_per_s\":%.0f",
            (double)result->cpu_ns / 1e9, (double)result->tables_ns / 1e9, report_rate_of(result));
    fprintf(out, ",\"unusable_gpus\":%.3f", report_unusable(result));
    if (report->options->latency)
        fprintf(out, ",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 ",\"p999_ns\":%" PRIu64, result->p50_ns,
                result->p99_ns, result->p999_ns);
    if (off >= 0)
        fprintf(out, ",\"off_by\":%.2f", off);
    fputs("}\n", out);
}

/* The largest difference over all points, both rounded to hundredths. */
static bh_rc
report_compare(const struct bh_openb_report *report, const struct bh_openb_row *row, double *ret_off,
               struct bh_err *err)
{
    double point[BH_OPENB_POINTS], worst = 0;
    bh_rc rc = bh_openb_expected_read(report->options->data, &row->name, point, err);

    if (rc != BH_OK)
        return rc;
    for (int i = 0; i < BH_OPENB_POINTS; i++) {
        double got = nearbyint(row->result.point[i] * 100) / 100;

        worst = fmax(worst, fabs(got - point[i]));
    }
    *ret_off = worst;
    return BH_OK;
}

bh_rc
bh_openb_report_add(struct bh_openb_report *report, const struct bh_openb_row *row, struct bh_err *err)
{
    double off = -1;
    bh_rc rc = BH_OK;

    if (report->options->check && bh_openb_expected_has(row->name.policy))
        rc = report_compare(report, row, &off, err);
    if (rc != BH_OK)
        return rc;
    report->worst = fmax(report->worst, off);
    report->rows[report->row_count++] = *row;
    if (report->options->json)
        report_put_json(report, row, off);
    else
        report_put_row(report, row, off);
    return BH_OK;
}

bool
bh_openb_report_is_off(const struct bh_openb_report *report)
{
    return report->worst > tolerance + noise;
}

/* Rows of a policy, and of a variant unless that is NULL. */
static bool
report_is_of(const struct bh_openb_row *row, enum bh_pack_policy policy, const char *variant)
{
    return row->name.policy == policy && (!variant || strcmp(row->name.variant, variant) == 0);
}

static void
report_put_mean(const struct bh_openb_report *report, enum bh_pack_policy policy, const char *variant)
{
    double full = 0, end = 0, seconds = 0, pods = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->row_count; i++) {
        const struct bh_openb_row *row = &report->rows[i];

        if (!report_is_of(row, policy, variant))
            continue;
        full += row->result.point[AT_FULL];
        end += row->result.point[AT_END];
        seconds += report_seconds_of(&row->result);
        pods += (double)row->result.arrivals;
        count++;
    }
    if (count > 0)
        fprintf(report->out, "%-12s %-8s  mean %8.2f %8.2f %10.0f %9.6f\n", variant ? variant : "(all)",
                bh_pack_policy_names[policy], full / count, end / count, pods / seconds, seconds / count);
}

static void
report_put_means(const struct bh_openb_report *report)
{
    const struct bh_openb_options *options = report->options;

    for (enum bh_pack_policy p = 0; p < BH_PACK_POLICIES; p++) {
        for (uint32_t v = 0; v < options->variant_count; v++)
            report_put_mean(report, p, options->variants[v]);
        if (options->variant_count > 1)
            report_put_mean(report, p, NULL);
    }
    if (options->check)
        fprintf(report->out, "%s: at most %.2f off the artifact in any point\n",
                bh_openb_report_is_off(report) ? "differs" : "as expected", report->worst);
}

/* One line of the chart: means over the seeds. */
struct curve {
    char name[BH_OPENB_NAME_MAX + 16];
    double x[BH_OPENB_POINTS], y[BH_OPENB_POINTS];
};

static bool
report_draw_curve(const struct bh_openb_report *report, enum bh_pack_policy policy, const char *variant,
                  struct curve *curve)
{
    uint32_t count = 0;

    snprintf(curve->name, sizeof curve->name, "%s %s", bh_pack_policy_names[policy], variant);
    for (uint32_t i = 0; i < report->row_count; i++) {
        if (!report_is_of(&report->rows[i], policy, variant))
            continue;
        count++;
        for (int p = 0; p < BH_OPENB_POINTS; p++)
            curve->y[p] += fmax(report->rows[i].result.point[p], 0);
    }
    for (int p = 0; p < BH_OPENB_POINTS && count; p++) {
        curve->x[p] = p;
        curve->y[p] /= count;
    }
    return count > 0;
}

static void
report_free_curves_auto(struct curve **curves)
{
    free(*curves);
}

static bh_rc
report_draw(const struct bh_openb_report *report, struct bh_err *err)
{
    const struct bh_openb_options *options = report->options;
    struct bh_chart_line lines[BH_OPENB_VARIANTS_MAX * BH_PACK_POLICIES];
    BH_AUTO(report_free_curves)
    struct curve *curves = calloc(BH_COUNT(lines), sizeof *curves);
    uint32_t count = 0;

    if (!curves)
        return bh_err_set(err, BH_FULL, "no memory for a chart");
    for (enum bh_pack_policy p = 0; p < BH_PACK_POLICIES; p++) {
        for (uint32_t v = 0; v < options->variant_count; v++) {
            struct curve *curve = &curves[count];

            if (!report_draw_curve(report, p, options->variants[v], curve))
                continue;
            lines[count++] = (struct bh_chart_line){ curve->name, curve->x, curve->y, BH_OPENB_POINTS };
        }
    }
    return bh_chart_save(options->svg,
                         &(struct bh_chart){ .title = "GPUs allocated as load arrives",
                                             .x_label = "GPUs asked for so far, % of the cluster",
                                             .y_label = "GPUs allocated, %",
                                             .lines = lines,
                                             .line_count = count },
                         err);
}

bh_rc
bh_openb_report_end(const struct bh_openb_report *report, struct bh_err *err)
{
    if (!report->options->json)
        report_put_means(report);
    return report->options->svg ? report_draw(report, err) : BH_OK;
}
