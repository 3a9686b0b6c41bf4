#include "lab/load/modes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/num.h"
#include "base/time.h"
#include "lab/common/chart.h"
#include "lab/load/cost.h"
#include "lab/common/figures.h"
#include "lab/common/flags.h"
#include "lab/load/kueue.h"
#include "lab/load/modes_internal.h"

struct kueue_options {
    bool json, together;
    const char *svg, *min_runtime;
    uint32_t check;
    struct bh_flag_list contract;
};

/* Workloads are admitted when their last member is, and end with it. */
struct class_report {
    uint64_t admission_ms, finish_ms, p95_ms; /* means, and one quantile */
    uint32_t workloads, evictions;
};

struct kueue_report {
    struct class_report classes[BH_KUEUE_CLASSES];
    uint64_t used_permille; /* of 600 GPUs until the makespan */
    uint64_t lost_unit_ms;
};

struct workload {
    uint32_t class;
    uint64_t submitted_ns, admitted_ns, ended_ns;
};

static struct workload *
kueue_join_members(const struct bh_load *load, const struct bh_simulation_run *run)
{
    struct workload *workloads = calloc(load->workload_count + 1u, sizeof *workloads);

    BH_ASSERT(workloads);
    for (uint32_t i = 0; i < load->job_count; i++) {
        struct workload *whole = &workloads[load->workloads[i]];
        const struct bh_simulation_end *end = &run->ends[i];

        whole->class = bh_kueue_class_of(&load->jobs[i]);
        whole->submitted_ns = load->jobs[i].submit_ns;
        if (end->last_start_ns > whole->admitted_ns)
            whole->admitted_ns = end->last_start_ns;
        if (end->end_ns > whole->ended_ns)
            whole->ended_ns = end->end_ns;
    }
    return workloads;
}

static void
kueue_report_class(const struct bh_load *load, const struct workload *workloads, uint32_t class,
                   struct class_report *ret_report)
{
    struct bh_figures admission = { 0 }, finish = { 0 };

    for (uint32_t i = 0; i < load->workload_count; i++) {
        if (workloads[i].class != class)
            continue;
        bh_figures_add(&admission, workloads[i].admitted_ns - workloads[i].submitted_ns);
        bh_figures_add(&finish, workloads[i].ended_ns - workloads[i].submitted_ns);
    }
    ret_report->workloads = admission.count;
    ret_report->admission_ms = bh_figures_mean(&admission) / BH_NS_PER_MS;
    ret_report->p95_ms = bh_figures_quantile(&admission, 950) / BH_NS_PER_MS;
    ret_report->finish_ms = bh_figures_mean(&finish) / BH_NS_PER_MS;
    bh_figures_fini(&admission);
    bh_figures_fini(&finish);
}

static void
kueue_make_report(const struct bh_load *load, const struct bh_simulation_run *run, struct kueue_report *ret)
{
    struct workload *workloads = kueue_join_members(load, run);
    bh_part_ns lost = 0;

    *ret = (struct kueue_report){ 0 };
    for (uint32_t c = 0; c < BH_KUEUE_CLASSES; c++)
        kueue_report_class(load, workloads, c, &ret->classes[c]);
    for (uint32_t i = 0; i < load->job_count; i++) {
        ret->classes[bh_kueue_class_of(&load->jobs[i])].evictions +=
            run->ends[i].preemptions + run->ends[i].suspensions;
        lost += run->ends[i].lost;
    }
    ret->lost_unit_ms = (uint64_t)(lost / BH_GPU_PARTS / BH_NS_PER_MS);
    if (run->makespan_ns)
        ret->used_permille =
            (uint64_t)(bh_load_total_demand(load) * 1000 / bh_load_gpus(load) / run->makespan_ns);
    free(workloads);
}

/* ---- as text ---- */

static void
kueue_print_seconds(const char *before, uint64_t ms, const char *behind)
{
    printf("%s%" PRIu64 ".%" PRIu64 "%s", before, ms / 1000, ms / 100 % 10, behind);
}

static void
kueue_print_report(const struct bh_load *load, const struct bh_simulation_run *run,
                   const struct kueue_report *report)
{
    uint64_t makespan_ms = run->makespan_ns / BH_NS_PER_MS;

    printf("load     %u workloads, %" PRIu64 " unit-seconds, %u units; %u ended, %u refused\n",
           load->workload_count, (uint64_t)(bh_load_total_demand(load) / BH_NS_PER_S), bh_load_gpus(load),
           run->ended, run->refused);
    kueue_print_seconds("makespan ", makespan_ms, " s");
    kueue_print_seconds("; ideal ", BH_KUEUE_IDEAL_MS, " s");
    printf(" (%" PRIu64 ".%03" PRIu64 " of it)", makespan_ms / BH_KUEUE_IDEAL_MS,
           makespan_ms * 1000 / BH_KUEUE_IDEAL_MS % 1000);
    kueue_print_seconds("; Kueue's CI ", BH_KUEUE_WALL_MS, " s of real time\n");
    printf("usage    %" PRIu64 ".%" PRIu64 " %%; Kueue's CI 58.7 %%\n", report->used_permille / 10,
           report->used_permille % 10);
    kueue_print_seconds("evicted  ", report->lost_unit_ms, " unit-seconds of work lost\n");
    puts("\nclass   workloads  evictions  admission mean s   p95 s  finish mean s  Kueue's "
         "admission mean s");
    for (uint32_t c = 0; c < BH_KUEUE_CLASSES; c++) {
        const struct class_report *class = &report->classes[c];

        printf("%-8s%9u%11u", bh_kueue_classes[c].name, class->workloads, class->evictions);
        printf("%14" PRIu64 ".%03" PRIu64, class->admission_ms / 1000, class->admission_ms % 1000);
        printf("%8" PRIu64 ".%" PRIu64 "%13" PRIu64 ".%" PRIu64, class->p95_ms / 1000,
               class->p95_ms / 100 % 10, class->finish_ms / 1000, class->finish_ms / 100 % 10);
        kueue_print_seconds("             ", bh_kueue_classes[c].kueue_admission_ms, "\n");
    }
    putchar('\n');
    bh_cost_print(stdout, run);
}

/* ---- as JSON ---- */

static void
kueue_put_class(struct bh_json_writer *writer, uint32_t c, const struct class_report *class)
{
    bh_json_open(writer, NULL, '{');
    bh_json_u64(writer, "admission_mean_ms", class->admission_ms);
    bh_json_u64(writer, "admission_p95_ms", class->p95_ms);
    bh_json_u64(writer, "evictions", class->evictions);
    bh_json_u64(writer, "finish_mean_ms", class->finish_ms);
    bh_json_u64(writer, "kueue_admission_mean_ms", bh_kueue_classes[c].kueue_admission_ms);
    bh_json_str(writer, "name", bh_kueue_classes[c].name);
    bh_json_u64(writer, "workloads", class->workloads);
    bh_json_close(writer, '}');
}

static void
kueue_put_report(struct bh_buf *out, const struct bh_load *load, const struct bh_simulation_run *run,
                 const struct kueue_report *report)
{
    struct bh_json_writer writer = bh_json_begin(out);

    bh_json_open(&writer, NULL, '{');
    bh_json_open(&writer, "classes", '[');
    for (uint32_t c = 0; c < BH_KUEUE_CLASSES; c++)
        kueue_put_class(&writer, c, &report->classes[c]);
    bh_json_close(&writer, ']');
    bh_json_open(&writer, "cost", '{');
    bh_cost_put(&writer, run);
    bh_json_close(&writer, '}');
    bh_json_u64(&writer, "ended_jobs", run->ended);
    bh_json_u64(&writer, "ideal_ms", BH_KUEUE_IDEAL_MS);
    bh_json_u64(&writer, "lost_unit_ms", report->lost_unit_ms);
    bh_json_u64(&writer, "makespan_ms", run->makespan_ns / BH_NS_PER_MS);
    bh_json_u64(&writer, "refused_jobs", run->refused);
    bh_json_u64(&writer, "used_permille", report->used_permille);
    bh_json_u64(&writer, "workloads", load->workload_count);
    bh_json_close(&writer, '}');
}

/* ---- the mode ---- */

static bh_rc
kueue_parse(int count, char **words, struct kueue_options *ret_options, struct bh_err *err)
{
    struct kueue_options *options = ret_options;
    const struct bh_flag flags[] = {
        { "--json", BH_FLAG_ON, &options->json },
        { "--together", BH_FLAG_ON, &options->together },
        { "--svg", BH_FLAG_TEXT, &options->svg },
        { "--min-runtime", BH_FLAG_TEXT, &options->min_runtime },
        { "--check", BH_FLAG_NUMBER, &options->check, 1, UINT32_MAX },
        { "--contract", BH_FLAG_CHOICES, &options->contract, .names = bh_contract_names,
          .name_count = BH_CONTRACTS },
    };

    *options = (struct kueue_options){ .contract = { { BH_CONTRACT_REQUEUE }, 1 } };
    return bh_flags_parse(flags, BH_COUNT(flags), count, words, err);
}

/* Units used by each cohort over time. */
static bh_rc
kueue_draw(const char *path, const struct bh_load *load, const struct bh_simulation_run *run,
           struct bh_err *err)
{
    uint32_t windows = bh_meter_windows(run->meter), cohort = UINT32_MAX;
    double *points = calloc((size_t)2 * load->tenant_count * windows + 1, sizeof *points);
    struct bh_chart_line lines[BH_KUEUE_COHORTS] = { { 0 } };
    double unit = (double)BH_GPU_PARTS * (double)bh_meter_window_ns(run->meter);
    bh_rc rc;

    BH_ASSERT(points);
    for (uint32_t i = 0; i < load->tenant_count; i++) {
        double *x, *y;

        cohort += load->tenants[i].parent.v == 0;
        x = &points[(size_t)2 * cohort * windows];
        y = x + windows;
        lines[cohort].x = x;
        lines[cohort].y = y;
        lines[cohort].count = windows;
        if (load->tenants[i].parent.v == 0)
            lines[cohort].name = load->names[i];
        for (uint32_t w = 0; w < windows; w++) {
            x[w] = w * (double)bh_meter_window_ns(run->meter) / (double)BH_NS_PER_S;
            y[w] += (double)bh_meter_at(run->meter, i, w)->used / unit;
        }
    }
    rc = bh_chart_save(path,
                       &(struct bh_chart){ .title = "Kueue's baseline load on Bulkhead",
                                           .x_label = "seconds",
                                           .y_label = "units used",
                                           .lines = lines,
                                           .line_count = BH_KUEUE_COHORTS },
                       err);
    free(points);
    return rc;
}

static void
kueue_write_report(const struct kueue_options *options, const struct bh_load *load,
                   const struct bh_simulation_run *run)
{
    struct kueue_report report;
    struct bh_buf out;

    kueue_make_report(load, run, &report);
    if (!options->json) {
        kueue_print_report(load, run, &report);
        return;
    }
    bh_buf_init(&out, BH_JSON_BYTES_MAX);
    kueue_put_report(&out, load, run, &report);
    puts(bh_buf_text(&out));
    bh_buf_fini(&out);
}

static bh_rc
kueue_run(const struct kueue_options *options, struct bh_load *load, struct bh_err *err)
{
    struct bh_cost_progress progress = { "kueue", 0 };
    struct bh_simulation_plan plan;
    struct bh_simulation_run run;
    uint64_t min_runtime_ns = 0;
    bh_rc rc = BH_OK;

    if (options->min_runtime)
        rc = bh_parse_span(options->min_runtime, &min_runtime_ns, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "--min-runtime");
    bh_kueue_make(&(struct bh_kueue){ (enum bh_contract)options->contract.values[0], options->together },
                  load);
    plan = bh_load_plan(load);
    plan.settings.backfill = false; /* as Kueue's, which orders and does not look ahead */
    plan.settings.min_runtime_ns = min_runtime_ns;
    progress.jobs = plan.job_count;
    plan.encode = true;
    plan.check_every = options->check;
    plan.window_ns = BH_NS_PER_S / 4;
    plan.progress = bh_cost_progress;
    plan.self = &progress;
    rc = bh_simulation_run_play(&plan, &run, err);
    if (rc == BH_OK)
        kueue_write_report(options, load, &run);
    if (rc == BH_OK && options->svg)
        rc = kueue_draw(options->svg, load, &run, err);
    bh_simulation_run_fini(&run);
    return rc;
}

int
bh_mode_kueue(int count, char **words)
{
    struct kueue_options options;
    struct bh_load load = { 0 };
    struct bh_err err = { 0 };
    bh_rc rc;

    if (kueue_parse(count, words, &options, &err) != BH_OK)
        return bh_mode_refuse("bulkhead-lab", &err);
    rc = kueue_run(&options, &load, &err);
    bh_load_fini(&load);
    return bh_mode_report("bulkhead-lab", rc, &err);
}
