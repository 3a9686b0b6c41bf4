#include "lab/mig/mig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/num.h"
#include "lab/common/chart.h"
#include "lab/common/flags.h"
#include "lab/mig/bound.h"

const struct bh_mig_mix bh_mig_mixes[BH_MIG_MIXES] = {
    { "uniform", { 1, 1, 1, 1, 1, 1 } },
    { "skew-small", { 40, 15, 20, 15, 5, 5 } },
    { "skew-big", { 5, 5, 15, 25, 20, 30 } },
    { "bimodal", { 35, 10, 5, 5, 10, 35 } },
};

enum { LOAD_ONE = 1000 };

/* ---- options ---- */

static bh_rc
mig_read_load(void *place, const char *word, struct bh_err *err)
{
    struct bh_mig_options *options = place;
    uint64_t thousandths;
    bh_rc rc;

    if (strcmp(word, "all") == 0) {
        static const double all[] = { 0.85, 1.0, 1.3 };

        memcpy(options->loads, all, sizeof(all));
        options->load_count = BH_COUNT(all);
        return BH_OK;
    }
    rc = bh_parse_parts(word, LOAD_ONE, &thousandths, err);
    if (rc != BH_OK)
        return rc;
    if (thousandths == 0 || thousandths > 100 * LOAD_ONE)
        return bh_err_set(err, BH_RANGE, "expected more than 0 and at most 100");
    options->loads[0] = (double)thousandths / LOAD_ONE;
    options->load_count = 1;
    return BH_OK;
}

bh_rc
bh_mig_options_parse(int count, char **words, struct bh_mig_options *ret_options, struct bh_err *err)
{
    const char *mixes[BH_MIG_MIXES];
    struct bh_mig_options options = { .mixes = (1u << BH_MIG_MIXES) - 1,
                                      .policies = (1u << BH_MIG_POLICIES) - 1,
                                      .loads = { 0.85, 1.0, 1.3 },
                                      .load_count = 3,
                                      .seeds = { 1, 20 },
                                      .gpus = 100,
                                      .arrivals = 6000 };
    const struct bh_flag flags[] = {
        { "--mix", BH_FLAG_SET, &options.mixes, .names = mixes, .name_count = BH_MIG_MIXES },
        { "--load", BH_FLAG_READ, &options, .read = mig_read_load },
        { "--policy", BH_FLAG_SET, &options.policies, .names = bh_mig_policy_names,
          .name_count = BH_MIG_POLICIES },
        { "--seeds", BH_FLAG_SEEDS, &options.seeds, .high = BH_MIG_SEEDS_MAX },
        { "--gpus", BH_FLAG_NUMBER, &options.gpus, 1, BH_MIG_FLEET_GPUS_MAX },
        { "--arrivals", BH_FLAG_NUMBER, &options.arrivals, 1, 10000000 },
        { "--json", BH_FLAG_ON, &options.json },
        { "--bounds", BH_FLAG_ON, &options.bounds },
        { "--svg", BH_FLAG_TEXT, &options.svg },
    };
    bh_rc rc;

    for (uint32_t i = 0; i < BH_MIG_MIXES; i++)
        mixes[i] = bh_mig_mixes[i].name;
    rc = bh_flags_parse(flags, BH_COUNT(flags), count, words, err);
    if (rc != BH_OK)
        return rc;
    if (options.bounds && options.gpus > BH_MIG_MOVING_GPUS_MAX)
        return bh_err_set(err, BH_INVALID, "bounds are worked out for at most %d GPUs",
                          BH_MIG_MOVING_GPUS_MAX);
    *ret_options = options;
    return BH_OK;
}

/* ---- the test ---- */

/* One mix at one load: acceptance in %, by policy and seed. */
struct cell {
    double by_seed[BH_MIG_POLICIES][BH_MIG_SEEDS_MAX];
    double means[BH_MIG_POLICIES];
};

/* What policies are measured by. */
enum { BOUND_OPTIMUM, BOUND_MOVING, BOUNDS };
static const struct bound {
    const char *name;
    uint32_t gpus_max;
    double (*find)(enum bh_gpu_model model, const struct bh_mig_mix *mix, double load, uint32_t gpus);
} bounds[BOUNDS] = {
    [BOUND_OPTIMUM] = { "optimum", BH_MIG_OPTIMUM_GPUS_MAX, bh_mig_optimum },
    [BOUND_MOVING] = { "moving", BH_MIG_MOVING_GPUS_MAX, bh_mig_moving },
};

struct mig_test {
    const struct bh_mig_options *options;
    FILE *out;
    uint32_t seeds, cells;
    struct cell cell;                                  /* the present one */
    double sums[BH_MIG_POLICIES];                      /* of means, over cells */
    double ahead;                                      /* sum over cells */
    double bounds[BOUNDS];                             /* the same */
    double by_load[BH_MIG_POLICIES][BH_MIG_LOADS_MAX]; /* sums over mixes, for the chart */
};

static bool
mig_runs(const struct mig_test *test, uint32_t policy)
{
    return test->options->policies >> policy & 1;
}

/* Bulkhead's policy and at least one to compare with. */
static bool
mig_compares(const struct mig_test *test)
{
    return mig_runs(test, BH_MIG_BULKHEAD) && test->options->policies != 1u << BH_MIG_BULKHEAD;
}

static void
mig_print_kinds(FILE *out, const char *key, const uint64_t counts[BH_MIG_FLEET_PROFILES])
{
    fprintf(out, ",\"%s\":[", key);
    for (uint32_t kind = 0; kind < BH_MIG_FLEET_PROFILES; kind++)
        fprintf(out, "%s%" PRIu64, kind ? "," : "", counts[kind]);
    fputc(']', out);
}

static void
mig_print_run(FILE *out, const struct bh_mig_run *run, const struct bh_mig_outcome *outcome)
{
    fprintf(out,
            "{\"mix\":\"%s\",\"load\":%.3f,\"policy\":\"%s\",\"seed\":%" PRIu64
            ",\"gpus\":%u,\"arrivals\":%u,\"acceptance\":%.6f,\"utilisation\":%.6f",
            run->mix->name, run->load, bh_mig_policy_names[run->policy], run->seed, run->gpus, run->arrivals,
            outcome->acceptance, outcome->utilisation);
    mig_print_kinds(out, "asked", outcome->asked);
    mig_print_kinds(out, "refused", outcome->refused);
    fputs("}\n", out);
}

static void
mig_run_policy(struct mig_test *test, const struct bh_mig_mix *mix, double load, uint32_t policy)
{
    struct bh_mig_run run = { .model = BH_GPU_H100_80GB,
                              .mix = mix,
                              .load = load,
                              .policy = (enum bh_mig_policy)policy,
                              .gpus = test->options->gpus,
                              .arrivals = test->options->arrivals };
    double sum = 0;

    for (uint32_t i = 0; i < test->seeds; i++) {
        struct bh_mig_outcome outcome;

        run.seed = test->options->seeds.first + i;
        outcome = bh_mig_run_play(&run);
        if (test->options->json)
            mig_print_run(test->out, &run, &outcome);
        test->cell.by_seed[policy][i] = 100 * outcome.acceptance;
        sum += 100 * outcome.acceptance;
    }
    test->cell.means[policy] = sum / test->seeds;
    test->sums[policy] += test->cell.means[policy];
}

static uint32_t
mig_best_other(const struct mig_test *test)
{
    uint32_t best = BH_MIG_BULKHEAD;

    for (uint32_t policy = 0; policy < BH_MIG_BULKHEAD; policy++)
        if (mig_runs(test, policy)
            && (best == BH_MIG_BULKHEAD || test->cell.means[policy] > test->cell.means[best]))
            best = policy;
    return best;
}

/* How far Bulkhead's policy is ahead of the best other, and the standard error of that over seeds. */
static void
mig_print_ahead(struct mig_test *test)
{
    uint32_t other = mig_best_other(test);
    double ahead = test->cell.means[BH_MIG_BULKHEAD] - test->cell.means[other], squares = 0;

    for (uint32_t i = 0; i < test->seeds; i++) {
        double off = test->cell.by_seed[BH_MIG_BULKHEAD][i] - test->cell.by_seed[other][i];

        squares += (off - ahead) * (off - ahead);
    }
    test->ahead += ahead;
    fprintf(test->out, "  %+6.2f", ahead);
    if (test->seeds > 1)
        fprintf(test->out, " ±%.2f", sqrt(squares / (test->seeds - 1) / test->seeds));
    fprintf(test->out, " of %s", bh_mig_policy_names[other]);
}

static bool
mig_finds(const struct mig_test *test, uint32_t bound)
{
    return test->options->bounds && test->options->gpus <= bounds[bound].gpus_max;
}

static void
mig_find_bounds(struct mig_test *test, const struct bh_mig_mix *mix, double load)
{
    for (uint32_t bound = 0; bound < BOUNDS; bound++) {
        double acceptance;

        if (!mig_finds(test, bound))
            continue;
        acceptance = bounds[bound].find(BH_GPU_H100_80GB, mix, load, test->options->gpus);
        test->bounds[bound] += 100 * acceptance;
        if (test->options->json)
            fprintf(test->out,
                    "{\"mix\":\"%s\",\"load\":%.3f,\"bound\":\"%s\",\"gpus\":%u,"
                    "\"acceptance\":%.6f}\n",
                    mix->name, load, bounds[bound].name, test->options->gpus, acceptance);
        else
            fprintf(test->out, " %10.2f", 100 * acceptance);
    }
}

static void
mig_print_head(const struct mig_test *test)
{
    if (test->options->json)
        return;
    fprintf(test->out,
            "Slice-weighted acceptance in %%, means of %u seeds; %u GPUs, %u arrivals.\n"
            "%-10s  load",
            test->seeds, test->options->gpus, test->options->arrivals, "mix");
    for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++)
        if (mig_runs(test, policy))
            fprintf(test->out, " %10s", bh_mig_policy_names[policy]);
    for (uint32_t bound = 0; bound < BOUNDS; bound++)
        if (mig_finds(test, bound))
            fprintf(test->out, " %10s", bounds[bound].name);
    fprintf(test->out, "%s\n", mig_compares(test) ? "   ahead" : "");
}

static void
mig_print_row(struct mig_test *test, const struct bh_mig_mix *mix, double load)
{
    if (test->options->json) {
        mig_find_bounds(test, mix, load);
        return;
    }
    fprintf(test->out, "%-10s %5.2f", mix->name, load);
    for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++)
        if (mig_runs(test, policy))
            fprintf(test->out, " %10.2f", test->cell.means[policy]);
    mig_find_bounds(test, mix, load);
    if (mig_compares(test))
        mig_print_ahead(test);
    fputc('\n', test->out);
}

static void
mig_print_means(const struct mig_test *test)
{
    if (test->options->json)
        return;
    fprintf(test->out, "%-16s", "mean");
    for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++)
        if (mig_runs(test, policy))
            fprintf(test->out, " %10.2f", test->sums[policy] / test->cells);
    for (uint32_t bound = 0; bound < BOUNDS; bound++)
        if (mig_finds(test, bound))
            fprintf(test->out, " %10.2f", test->bounds[bound] / test->cells);
    if (mig_compares(test))
        fprintf(test->out, "  %+6.2f", test->ahead / test->cells);
    fputc('\n', test->out);
}

static void
mig_run_cell(struct mig_test *test, const struct bh_mig_mix *mix, uint32_t load)
{
    for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++) {
        if (!mig_runs(test, policy))
            continue;
        mig_run_policy(test, mix, test->options->loads[load], policy);
        test->by_load[policy][load] += test->cell.means[policy];
    }
    test->cells++;
    mig_print_row(test, mix, test->options->loads[load]);
    fflush(test->out);
}

/* ---- the chart ---- */

static bh_rc
mig_draw_chart(struct mig_test *test, struct bh_err *err)
{
    struct bh_chart_line lines[BH_MIG_POLICIES];
    struct bh_chart chart = { .title = "Acceptance of MIG placement policies",
                              .x_label = "offered load",
                              .lines = lines,
                              .y_label = "slice-weighted acceptance, %" };
    uint32_t mixes = test->cells / test->options->load_count;

    for (uint32_t policy = 0; policy < BH_MIG_POLICIES; policy++) {
        if (!mig_runs(test, policy))
            continue;
        for (uint32_t load = 0; load < test->options->load_count; load++)
            test->by_load[policy][load] /= mixes;
        lines[chart.line_count++] = (struct bh_chart_line){ .name = bh_mig_policy_names[policy],
                                                            .x = test->options->loads,
                                                            .y = test->by_load[policy],
                                                            .count = test->options->load_count };
    }
    return bh_chart_save(test->options->svg, &chart, err);
}

bh_rc
bh_mig_test(const struct bh_mig_options *options, FILE *out, struct bh_err *err)
{
    struct mig_test *test = calloc(1, sizeof(*test));
    bh_rc rc = BH_OK;

    BH_ASSERT(test);
    test->options = options;
    test->out = out;
    test->seeds = (uint32_t)(options->seeds.last - options->seeds.first) + 1;
    mig_print_head(test);
    for (uint32_t mix = 0; mix < BH_MIG_MIXES; mix++)
        for (uint32_t load = 0; (options->mixes >> mix & 1) && load < options->load_count; load++)
            mig_run_cell(test, &bh_mig_mixes[mix], load);
    mig_print_means(test);
    if (options->svg)
        rc = mig_draw_chart(test, err);
    if (rc == BH_OK && ferror(out))
        rc = bh_err_set(err, BH_IO, "cannot write the results");
    free(test);
    return rc;
}
