#include "lab/load/modes_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/json.h"
#include "base/time.h"
#include "lab/common/chart.h"
#include "lab/load/cost.h"
#include "lab/load/fair.h"
#include "lab/load/modes.h"

struct bh_compare
bh_compare_default(const char *mode)
{
    return (struct bh_compare){ .mode = mode,
                                .loads = { { 800, 1000, 1200 }, 3 },
                                .orders = { { BH_ORDER_FAIR_TREE, BH_ORDER_FIFO, BH_ORDER_DRF }, 3 },
                                .lending = { { BH_LEND_ALL }, 1 },
                                .guarantee = 1000,
                                .slot_min = 30 };
}

void
bh_compare_flags(struct bh_compare *compare, struct bh_flag ret_flags[BH_COMPARE_FLAGS])
{
    const struct bh_flag flags[BH_COMPARE_FLAGS] = {
        { "--load", BH_FLAG_THOUSANDTHS, &compare->loads, 10, 10000 },
        { "--order", BH_FLAG_CHOICES, &compare->orders, .names = bh_queue_order_names,
          .name_count = BH_ORDERS },
        { "--guarantee", BH_FLAG_NUMBER, &compare->guarantee, 0, 1000 },
        { "--lending", BH_FLAG_CHOICES, &compare->lending, .names = bh_lending_names,
          .name_count = BH_LENDINGS },
        { "--preshape", BH_FLAG_ON, &compare->preshape },
        { "--slot-min", BH_FLAG_NUMBER, &compare->slot_min, 1, 1440 },
        { "--carve-s", BH_FLAG_NUMBER, &compare->carve_s, 0, 3600 },
        { "--limits", BH_FLAG_ON, &compare->limits },
        { "--json", BH_FLAG_ON, &compare->json },
        { "-v", BH_FLAG_ON, &compare->verbose },
        { "--verbose", BH_FLAG_ON, &compare->verbose },
        { "--svg", BH_FLAG_TEXT, &compare->svg },
        { "--check", BH_FLAG_NUMBER, &compare->check, 1, UINT32_MAX },
    };

    for (int i = 0; i < BH_COMPARE_FLAGS; i++)
        ret_flags[i] = flags[i];
}

bh_rc
bh_compare_check(const struct bh_compare *compare, struct bh_err *err)
{
    if (compare->svg && compare->loads.count * compare->orders.count != 1)
        return bh_err_set(err, BH_INVALID, "--svg draws one load in one order");
    if (compare->lending.count != 1)
        return bh_err_set(err, BH_INVALID, "--lending takes one: all or forecast");
    return BH_OK;
}

/* ---- as text ---- */

static void
fair_print_heads(const struct bh_load *load)
{
    printf("%u jobs of %u tenants on %u GPUs, %" PRIu64 " GPU-hours of work\n\n", load->job_count,
           load->tenant_count, bh_load_gpus(load),
           (uint64_t)(bh_load_total_demand(load) / BH_NS_PER_S / 3600));
    puts("load order       wait mean s      p50 s      p95 s   Jain  share error p95  max  "
         "used %  lost GPU-h  makespan d  finish ratio p50    p95");
}

static void
fair_print_row(uint32_t permille, uint32_t order, const struct bh_fair *fair)
{
    printf("%u.%u%u %-9s %13" PRIu64 "%11" PRIu64 "%11" PRIu64 "  %u.%03u", permille / 1000,
           permille / 100 % 10, permille / 10 % 10, bh_queue_order_names[order], fair->all.mean_ms / 1000,
           fair->all.p50_ms / 1000, fair->all.p95_ms / 1000, fair->jain_bp / 10000,
           fair->jain_bp / 10 % 1000);
    printf("%14u.%02u%3u.%02u%6u.%u%12" PRIu64 "%9" PRIu64 ".%" PRIu64, fair->error_p95_bp / 100,
           fair->error_p95_bp % 100, fair->error_max_bp / 100, fair->error_max_bp % 100, fair->used_bp / 100,
           fair->used_bp / 10 % 10, fair->lost_gpu_s / 3600, fair->makespan_s / 86400,
           fair->makespan_s / 8640 % 10);
    printf("%15" PRIu64 ".%02" PRIu64 "%7" PRIu64 ".%" PRIu64 "\n", fair->finish_p50_permille / 1000,
           fair->finish_p50_permille / 10 % 100, fair->finish_p95_permille / 1000,
           fair->finish_p95_permille / 100 % 10);
    for (int i = 0; i < BH_FAIR_SIZES; i++)
        printf("       %u GPU%s  %12" PRIu64 "%11" PRIu64 "%11" PRIu64 "   %u jobs\n", fair->sizes[i].gpus,
               fair->sizes[i].gpus == 1 ? " " : "s", fair->sizes[i].mean_ms / 1000,
               fair->sizes[i].p50_ms / 1000, fair->sizes[i].p95_ms / 1000, fair->sizes[i].jobs);
}

static void
fair_print_tenants(const struct bh_load *load, const struct bh_fair *fair)
{
    puts("       tenant         jobs  guarantee  used GPU-h  entitled  wait mean s      p95 s  "
         "share error p95    max  finish ratio");
    for (uint32_t i = 0; i < fair->tenant_count; i++) {
        const struct bh_fair_tenant *tenant = &fair->tenants[i];

        printf("       %-13s%6u%8" PRIu64 ".%02" PRIu64 "%12" PRIu64 "%10" PRIu64 "%13" PRIu64 "%11" PRIu64,
               load->names[i], tenant->jobs, tenant->guarantee_milli / 1000,
               tenant->guarantee_milli / 10 % 100, tenant->used_gpu_s / 3600, tenant->entitled_gpu_s / 3600,
               tenant->wait_mean_ms / 1000, tenant->wait_p95_ms / 1000);
        printf("%14u.%02u%4u.%02u%11" PRIu64 ".%02" PRIu64 "\n", tenant->error_p95_bp / 100,
               tenant->error_p95_bp % 100, tenant->error_max_bp / 100, tenant->error_max_bp % 100,
               tenant->finish_mean_permille / 1000, tenant->finish_mean_permille / 10 % 100);
    }
}

/* ---- as JSON ---- */

static void
fair_put_waits(struct bh_json_writer *writer, const char *key, const struct bh_fair_waits *waits)
{
    bh_json_open(writer, key, '{');
    bh_json_u64(writer, "gpus", waits->gpus);
    bh_json_u64(writer, "jobs", waits->jobs);
    bh_json_u64(writer, "wait_mean_ms", waits->mean_ms);
    bh_json_u64(writer, "wait_p50_ms", waits->p50_ms);
    bh_json_u64(writer, "wait_p95_ms", waits->p95_ms);
    bh_json_close(writer, '}');
}

static void
fair_put_tenant(struct bh_json_writer *writer, const char *name, const struct bh_fair_tenant *tenant)
{
    bh_json_open(writer, NULL, '{');
    bh_json_u64(writer, "entitled_gpu_s", tenant->entitled_gpu_s);
    bh_json_u64(writer, "error_max_bp", tenant->error_max_bp);
    bh_json_u64(writer, "error_p95_bp", tenant->error_p95_bp);
    bh_json_u64(writer, "finish_mean_permille", tenant->finish_mean_permille);
    bh_json_u64(writer, "guarantee_milli", tenant->guarantee_milli);
    bh_json_u64(writer, "jobs", tenant->jobs);
    bh_json_str(writer, "name", name);
    bh_json_u64(writer, "used_gpu_s", tenant->used_gpu_s);
    bh_json_u64(writer, "wait_mean_ms", tenant->wait_mean_ms);
    bh_json_u64(writer, "wait_p95_ms", tenant->wait_p95_ms);
    bh_json_close(writer, '}');
}

static void
put_fair(struct bh_json_writer *writer, const struct bh_load *load, const struct bh_fair *fair)
{
    fair_put_waits(writer, "all", &fair->all);
    bh_json_open(writer, "by_gpus", '[');
    for (int i = 0; i < BH_FAIR_SIZES; i++)
        fair_put_waits(writer, NULL, &fair->sizes[i]);
    bh_json_close(writer, ']');
    bh_json_u64(writer, "contended_windows", fair->contended);
    bh_json_u64(writer, "error_max_bp", fair->error_max_bp);
    bh_json_u64(writer, "error_p95_bp", fair->error_p95_bp);
    bh_json_u64(writer, "finish_p50_permille", fair->finish_p50_permille);
    bh_json_u64(writer, "finish_p95_permille", fair->finish_p95_permille);
    bh_json_u64(writer, "jain_bp", fair->jain_bp);
    bh_json_u64(writer, "lost_gpu_s", fair->lost_gpu_s);
    bh_json_u64(writer, "makespan_s", fair->makespan_s);
    bh_json_u64(writer, "preemptions", fair->preemptions);
    bh_json_open(writer, "tenants", '[');
    for (uint32_t i = 0; i < fair->tenant_count; i++)
        fair_put_tenant(writer, load->names[i], &fair->tenants[i]);
    bh_json_close(writer, ']');
    bh_json_u64(writer, "used_bp", fair->used_bp);
    bh_json_u64(writer, "used_whole_bp", fair->used_whole_bp);
    bh_json_u64(writer, "windows", fair->windows);
}

/* ---- as a chart ---- */

/* Each tenant's share of all GPUs, in hundredths, by day: a day's windows together. */
static void
fair_draw_tenant(const struct bh_load *load, const struct bh_simulation_run *run, uint32_t tenant, double *x,
                 double *y)
{
    uint32_t windows = bh_meter_windows(run->meter);
    double day =
        (double)bh_load_gpus(load) * BH_GPU_PARTS * 24 * (double)bh_meter_window_ns(run->meter) / 100;

    for (uint32_t first = 0; first + 24 <= windows; first += 24) {
        double used = 0;

        for (uint32_t w = first; w < first + 24; w++)
            used += (double)bh_meter_at(run->meter, tenant, w)->used;
        x[first / 24] = first / 24;
        y[first / 24] = used / day;
    }
}

static bh_rc
fair_draw(const char *path, const struct bh_load *load, const struct bh_simulation_run *run,
          struct bh_err *err)
{
    uint32_t days = bh_meter_windows(run->meter) / 24, count = load->tenant_count;
    double *points = calloc((size_t)2 * count * days + 1, sizeof *points);
    struct bh_chart_line *lines = calloc(count + 1u, sizeof *lines);
    bh_rc rc;

    BH_ASSERT(points && lines);
    for (uint32_t i = 0; i < count; i++) {
        double *x = &points[(size_t)2 * i * days], *y = x + days;

        fair_draw_tenant(load, run, i, x, y);
        lines[i] = (struct bh_chart_line){ load->names[i], x, y, days };
    }
    rc = bh_chart_save(path,
                       &(struct bh_chart){ .title = "Share of all GPUs by tenant",
                                           .x_label = "day",
                                           .y_label = "% of all GPUs",
                                           .lines = lines,
                                           .line_count = count },
                       err);
    free(points);
    free(lines);
    return rc;
}

/* ---- runs ---- */

struct fair_runs {
    const struct bh_compare *compare;
    struct bh_load *load;
    struct bh_json_writer *writer; /* NULL: text */
};

static void
fair_report(const struct fair_runs *runs, uint32_t permille, uint32_t order,
            const struct bh_simulation_run *run)
{
    struct bh_fair fair;

    bh_fair_judge(runs->load, run, &fair);
    if (runs->writer) {
        bh_json_open(runs->writer, NULL, '{');
        bh_json_u64(runs->writer, "load_permille", permille);
        bh_json_str(runs->writer, "order", bh_queue_order_names[order]);
        put_fair(runs->writer, runs->load, &fair);
        bh_cost_put(runs->writer, run);
        bh_json_close(runs->writer, '}');
    } else {
        fair_print_row(permille, order, &fair);
        if (runs->compare->verbose)
            fair_print_tenants(runs->load, &fair);
        if (runs->compare->verbose)
            bh_cost_print(stdout, run);
    }
    bh_fair_fini(&fair);
}

static bh_rc
fair_run_one(const struct fair_runs *runs, uint32_t permille, uint32_t order, struct bh_err *err)
{
    struct bh_simulation_plan plan = bh_load_plan(runs->load);
    struct bh_cost_progress progress = { runs->compare->mode, plan.job_count };
    struct bh_simulation_run run;
    bh_rc rc;

    plan.settings.order = (enum bh_queue_order)order;
    plan.settings.lending = (enum bh_lending)runs->compare->lending.values[0];
    plan.settings.preshape = runs->compare->preshape;
    if (plan.settings.preshape || plan.settings.lending == BH_LEND_FORECAST)
        plan.slot_ns = runs->compare->slot_min * 60 * BH_NS_PER_S;
    plan.delays_ns[BH_FX_CARVE] = runs->compare->carve_s * BH_NS_PER_S;
    plan.delays_ns[BH_FX_DESTROY] = runs->compare->carve_s * BH_NS_PER_S;
    plan.check_every = runs->compare->check;
    plan.encode = true;
    plan.progress = bh_cost_progress;
    plan.self = &progress;
    rc = bh_simulation_run_play(&plan, &run, err);
    if (rc == BH_OK)
        fair_report(runs, permille, order, &run);
    if (rc == BH_OK && runs->compare->svg)
        rc = fair_draw(runs->compare->svg, runs->load, &run, err);
    bh_simulation_run_fini(&run);
    return rc;
}

static bh_rc
fair_run_all(const struct fair_runs *runs, struct bh_err *err)
{
    const struct bh_compare *compare = runs->compare;
    bh_rc rc = BH_OK;

    for (uint32_t l = 0; l < compare->loads.count && rc == BH_OK; l++) {
        rc = bh_load_scale(runs->load, compare->loads.values[l], err);
        for (uint32_t o = 0; o < compare->orders.count && rc == BH_OK; o++)
            rc = fair_run_one(runs, compare->loads.values[l], compare->orders.values[o], err);
    }
    return rc;
}

static bh_rc
fair_run_as_json(struct fair_runs *runs, struct bh_err *err)
{
    struct bh_json_writer writer;
    struct bh_buf out;
    bh_rc rc;

    bh_buf_init(&out, 16 * BH_JSON_BYTES_MAX);
    writer = bh_json_begin(&out);
    runs->writer = &writer;
    bh_json_open(&writer, NULL, '{');
    bh_json_u64(&writer, "gpus", bh_load_gpus(runs->load));
    bh_json_u64(&writer, "jobs", runs->load->job_count);
    bh_json_open(&writer, "runs", '[');
    rc = fair_run_all(runs, err);
    bh_json_close(&writer, ']');
    bh_json_close(&writer, '}');
    if (rc == BH_OK)
        puts(bh_buf_text(&out));
    bh_buf_fini(&out);
    return rc;
}

bh_rc
bh_compare_run(const struct bh_compare *compare, struct bh_load *load, struct bh_err *err)
{
    struct fair_runs runs = { .compare = compare, .load = load };

    bh_load_guarantee(load, compare->guarantee);
    for (uint32_t i = 0; i < load->job_count && compare->limits; i++)
        load->jobs[i].time_limit_ns = 2 * load->jobs[i].work_ns + BH_NS_PER_S;
    if (compare->json)
        return fair_run_as_json(&runs, err);
    fair_print_heads(load);
    return fair_run_all(&runs, err);
}
