#include "lab/load/fair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/time.h"
#include "lab/common/figures.h"

/* A half-life of 24 windows: 0.5^(1/24). */
static const double fade = 0.97153194115360586874;

static const uint32_t size_gpus[BH_FAIR_SIZES] = { 1, 2, 4, 8 };

/* ---- shares ---- */

/* One round: those whose demand is below the level get it and leave.  False when no tenant
 * does; `level` is then what the others get for each of weight. */
static bool
fair_satisfy(const double *demands, const double *weights, uint32_t count, double *left, double *ret_shares)
{
    double weight = 0, level;
    bool any = false;

    for (uint32_t i = 0; i < count; i++)
        weight += ret_shares[i] < 0 ? weights[i] : 0;
    level = weight > 0 ? *left / weight : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ret_shares[i] >= 0 || demands[i] > level * weights[i])
            continue;
        ret_shares[i] = demands[i];
        *left -= demands[i];
        any = true;
    }
    for (uint32_t i = 0; i < count && !any; i++)
        if (ret_shares[i] < 0)
            ret_shares[i] = level * weights[i];
    return any;
}

void
bh_fair_shares(const double *demands, const double *weights, uint32_t count, double capacity,
               double *ret_shares)
{
    double left = capacity;

    for (uint32_t i = 0; i < count; i++)
        ret_shares[i] = -1;
    while (fair_satisfy(demands, weights, count, &left, ret_shares))
        ;
}

/* ---- windows ---- */

struct judge {
    const struct bh_load *load;
    const struct bh_simulation_run *run;
    struct bh_fair *fair;
    uint32_t tenants;
    double *wanted, *weights, *used, *entitled; /* of this window */
    double *faded_used, *faded_entitled, *sum_entitled;
    struct bh_figures *errors; /* by tenant; the last: all */
    double jain;
};

static double *
fair_row_of(uint32_t count)
{
    double *row = calloc(count + 1u, sizeof *row);

    BH_ASSERT(row);
    return row;
}

static void
fair_open_judge(struct judge *judge)
{
    judge->tenants = judge->load->tenant_count;
    judge->wanted = fair_row_of(judge->tenants);
    judge->weights = fair_row_of(judge->tenants);
    judge->used = fair_row_of(judge->tenants);
    judge->entitled = fair_row_of(judge->tenants);
    judge->faded_used = fair_row_of(judge->tenants);
    judge->faded_entitled = fair_row_of(judge->tenants);
    judge->sum_entitled = fair_row_of(judge->tenants);
    judge->errors = calloc(judge->tenants + 1u, sizeof *judge->errors);
    BH_ASSERT(judge->errors);
    for (uint32_t i = 0; i < judge->tenants; i++)
        judge->weights[i] = judge->load->tenants[i].weight;
}

static void
fair_close_judge(struct judge *judge)
{
    for (uint32_t i = 0; i <= judge->tenants; i++)
        bh_figures_fini(&judge->errors[i]);
    free(judge->errors);
    free(judge->wanted);
    free(judge->weights);
    free(judge->used);
    free(judge->entitled);
    free(judge->faded_used);
    free(judge->faded_entitled);
    free(judge->sum_entitled);
}

static double
fair_sum_of(const double *values, uint32_t count)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* Jain's index of this window. */
static double
fair_evenness(const struct judge *judge)
{
    double sum = 0, squares = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < judge->tenants; i++) {
        double ratio;

        if (judge->entitled[i] <= 0)
            continue;
        ratio = judge->used[i] / judge->entitled[i];
        sum += ratio;
        squares += ratio * ratio;
        count++;
    }
    return squares > 0 ? sum * sum / (count * squares) : 0;
}

static void
fair_note_errors(struct judge *judge)
{
    double used, entitled;

    for (uint32_t i = 0; i < judge->tenants; i++) {
        judge->faded_used[i] = judge->faded_used[i] * fade + judge->used[i];
        judge->faded_entitled[i] = judge->faded_entitled[i] * fade + judge->entitled[i];
        judge->sum_entitled[i] += judge->entitled[i];
    }
    used = fair_sum_of(judge->faded_used, judge->tenants);
    entitled = fair_sum_of(judge->faded_entitled, judge->tenants);
    for (uint32_t i = 0; i < judge->tenants && used > 0 && entitled > 0; i++) {
        double error = judge->faded_used[i] / used - judge->faded_entitled[i] / entitled;
        uint64_t error_bp = (uint64_t)(fabs(error) * 10000 + 0.5);

        bh_figures_add(&judge->errors[i], error_bp);
        bh_figures_add(&judge->errors[judge->tenants], error_bp);
    }
}

static void
fair_judge_window(struct judge *judge, uint32_t window)
{
    const struct bh_meter *meter = judge->run->meter;
    uint64_t length_ns = bh_meter_window_ns(meter);
    uint64_t rest_ns = bh_meter_span_ns(meter) - window * length_ns;
    double capacity = (double)bh_load_gpus(judge->load) * BH_GPU_PARTS
                      * (double)(rest_ns < length_ns ? rest_ns : length_ns);

    for (uint32_t i = 0; i < judge->tenants; i++) {
        const struct bh_meter_window *row = bh_meter_at(meter, i, window);

        judge->wanted[i] = (double)row->wanted;
        judge->used[i] = (double)row->used;
    }
    bh_fair_shares(judge->wanted, judge->weights, judge->tenants, capacity, judge->entitled);
    fair_note_errors(judge);
    if (fair_sum_of(judge->wanted, judge->tenants) <= capacity)
        return;
    judge->fair->contended++;
    judge->jain += fair_evenness(judge);
}

static void
fair_judge_windows(struct judge *judge)
{
    struct bh_fair *fair = judge->fair;
    struct bh_figures *all = &judge->errors[judge->tenants];

    fair->windows = bh_meter_windows(judge->run->meter);
    for (uint32_t window = 0; window < fair->windows; window++)
        fair_judge_window(judge, window);
    if (fair->contended)
        fair->jain_bp = (uint32_t)(judge->jain / fair->contended * 10000 + 0.5);
    fair->error_max_bp = (uint32_t)bh_figures_quantile(all, 1000);
    fair->error_p95_bp = (uint32_t)bh_figures_quantile(all, 950);
}

/* ---- jobs ---- */

static uint64_t
fair_finish_permille(const struct bh_simulation_job *job, const struct bh_simulation_end *end)
{
    uint64_t span_ns = end->end_ns - job->submit_ns;

    return job->work_ns ? (uint64_t)((unsigned __int128)span_ns * 1000 / job->work_ns) : 1000;
}

/* Waits of the jobs of one tenant (0: all) and one size (0: all). */
static void
fair_collect(const struct judge *judge, uint32_t tenant, uint32_t gpus, struct bh_figures *waits,
             struct bh_figures *ratios)
{
    for (uint32_t i = 0; i < judge->load->job_count; i++) {
        const struct bh_simulation_job *job = &judge->load->jobs[i];
        const struct bh_simulation_end *end = &judge->run->ends[i];

        if ((tenant && job->tenant.v != tenant) || (gpus && job->count != gpus))
            continue;
        if (end->first_start_ns == UINT64_MAX || end->end_ns == UINT64_MAX)
            continue;
        bh_figures_add(waits, (end->first_start_ns - job->submit_ns) / BH_NS_PER_MS);
        if (job->work_ns >= BH_NS_PER_S)
            bh_figures_add(ratios, fair_finish_permille(job, end));
    }
}

static void
fair_judge_waits(const struct judge *judge, uint32_t gpus, struct bh_fair_waits *ret_waits)
{
    struct bh_figures waits = { 0 }, ratios = { 0 };

    fair_collect(judge, 0, gpus, &waits, &ratios);
    *ret_waits = (struct bh_fair_waits){ .gpus = gpus,
                                         .jobs = waits.count,
                                         .mean_ms = bh_figures_mean(&waits),
                                         .p50_ms = bh_figures_quantile(&waits, 500),
                                         .p95_ms = bh_figures_quantile(&waits, 950) };
    if (gpus == 0) {
        judge->fair->finish_p50_permille = bh_figures_quantile(&ratios, 500);
        judge->fair->finish_p95_permille = bh_figures_quantile(&ratios, 950);
    }
    bh_figures_fini(&waits);
    bh_figures_fini(&ratios);
}

static void
fair_judge_tenant(const struct judge *judge, uint32_t tenant, struct bh_fair_tenant *ret_tenant)
{
    const double gpu_s = (double)BH_GPU_PARTS * (double)BH_NS_PER_S;
    struct bh_figures waits = { 0 }, ratios = { 0 };

    fair_collect(judge, tenant + 1, 0, &waits, &ratios);
    *ret_tenant = (struct bh_fair_tenant){
        .jobs = waits.count,
        .guarantee_milli = judge->load->tenants[tenant].guarantee * 1000 / BH_GPU_PARTS,
        .used_gpu_s = (uint64_t)(bh_meter_total(judge->run->meter, tenant).used / BH_GPU_PARTS / BH_NS_PER_S),
        .entitled_gpu_s = (uint64_t)(judge->sum_entitled[tenant] / gpu_s),
        .wait_mean_ms = bh_figures_mean(&waits),
        .wait_p95_ms = bh_figures_quantile(&waits, 950),
        .error_max_bp = (uint32_t)bh_figures_quantile(&judge->errors[tenant], 1000),
        .error_p95_bp = (uint32_t)bh_figures_quantile(&judge->errors[tenant], 950),
        .finish_mean_permille = bh_figures_mean(&ratios),
    };
    bh_figures_fini(&waits);
    bh_figures_fini(&ratios);
}

/* Used up to the window in which the last job came, of what there was: basis points. */
static uint32_t
fair_used_bp(const struct judge *judge, uint64_t until_ns)
{
    const struct bh_meter *meter = judge->run->meter;
    uint64_t length_ns = bh_meter_window_ns(meter);
    uint32_t windows = (uint32_t)((until_ns + length_ns - 1) / length_ns);
    bh_part_ns used = 0, whole;

    for (uint32_t w = 0; w < windows && w < bh_meter_windows(meter); w++)
        for (uint32_t i = 0; i < judge->tenants; i++)
            used += bh_meter_at(meter, i, w)->used;
    if (windows * length_ns < until_ns || windows * length_ns > bh_meter_span_ns(meter))
        whole = bh_meter_span_ns(meter);
    else
        whole = windows * length_ns;
    whole *= (bh_part_ns)bh_load_gpus(judge->load) * BH_GPU_PARTS;
    return whole ? (uint32_t)(used * 10000 / whole) : 0;
}

static void
fair_judge_fleet(const struct judge *judge)
{
    const struct bh_load *load = judge->load;
    struct bh_fair *fair = judge->fair;
    bh_part_ns lost = 0;

    for (uint32_t i = 0; i < load->job_count; i++)
        lost += judge->run->ends[i].lost;
    fair->lost_gpu_s = (uint64_t)(lost / BH_GPU_PARTS / BH_NS_PER_S);
    fair->makespan_s = judge->run->makespan_ns / BH_NS_PER_S;
    fair->preemptions = (uint32_t)judge->run->preemptions;
    if (load->job_count)
        fair->used_bp = fair_used_bp(judge, load->jobs[load->job_count - 1].submit_ns);
    fair->used_whole_bp = fair_used_bp(judge, judge->run->makespan_ns);
}

void
bh_fair_judge(const struct bh_load *load, const struct bh_simulation_run *run, struct bh_fair *ret_fair)
{
    struct judge judge = { .load = load, .run = run, .fair = ret_fair };

    *ret_fair = (struct bh_fair){ .tenant_count = load->tenant_count };
    ret_fair->tenants = calloc(load->tenant_count + 1u, sizeof *ret_fair->tenants);
    BH_ASSERT(ret_fair->tenants);
    fair_open_judge(&judge);
    fair_judge_windows(&judge);
    fair_judge_waits(&judge, 0, &ret_fair->all);
    for (int i = 0; i < BH_FAIR_SIZES; i++)
        fair_judge_waits(&judge, size_gpus[i], &ret_fair->sizes[i]);
    for (uint32_t i = 0; i < load->tenant_count; i++)
        fair_judge_tenant(&judge, i, &ret_fair->tenants[i]);
    fair_judge_fleet(&judge);
    fair_close_judge(&judge);
}

void
bh_fair_fini(struct bh_fair *fair)
{
    free(fair->tenants);
    *fair = (struct bh_fair){ 0 };
}
