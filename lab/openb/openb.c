#include "lab/openb/openb.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/modes.h"
#include "base/num.h"
#include "lab/openb/report.h"

enum { MEMORY_MAX = 1 << 28 };

/* One list of pods, with the order of one seed at a time. */
struct play {
    const struct bh_openb_options *options;
    struct bh_openb_report *report;
    struct bh_arena *arena;
    struct bh_openb_trace trace;
    struct bh_openb_load load;
    const char *variant;
    struct bh_err *err;
};

static void
openb_show_progress(const struct play *play, uint64_t seed, const char *policy)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s %s, seed %" PRIu64 " (%u done)\r", play->variant, policy, seed,
                play->report->row_count);
}

static bh_rc
openb_read_order(struct play *play, struct bh_openb_order *order)
{
    const struct bh_openb_options *options = play->options;
    char path[BH_OPENB_PATH_MAX + BH_OPENB_NAME_MAX + 32];

    if (options->sequences)
        return bh_openb_order_read(options->sequences, &play->trace, play->arena, order, play->err);
    snprintf(path, sizeof path, "%s/sequences/%s.txt.gz", options->data, play->variant);
    if (access(path, F_OK) == 0)
        return bh_openb_order_read(path, &play->trace, play->arena, order, play->err);
    return bh_openb_order_draw(&play->trace, play->arena, order, play->err);
}

static bh_rc
openb_play_policy(struct play *play, const struct bh_openb_order *order, enum bh_pack_policy policy)
{
    struct bh_openb_row row = { .name = { play->variant, policy, order->seed } };
    struct bh_openb_plan plan = {
        .trace = &play->trace,
        .load = &play->load,
        .order = order,
        .policy = policy,
        .scale = play->options->scale,
        .latency = play->options->latency,
    };
    bh_rc rc;

    openb_show_progress(play, order->seed, bh_pack_policy_names[policy]);
    rc = bh_openb_run(&plan, &row.result, play->err);
    if (rc != BH_OK)
        return rc;
    return bh_openb_report_add(play->report, &row, play->err);
}

static bh_rc
openb_play_seed(struct play *play, uint64_t seed)
{
    struct bh_openb_order order = { .seed = seed };
    bh_rc rc = openb_read_order(play, &order);

    for (enum bh_pack_policy p = 0; p < BH_PACK_POLICIES && rc == BH_OK; p++)
        if (play->options->policies >> p & 1)
            rc = openb_play_policy(play, &order, p);
    return rc;
}

static bh_rc
openb_play_variant(struct bh_openb_report *report, const char *variant, struct bh_err *err)
{
    const struct bh_openb_options *options = report->options;
    BH_AUTO(bh_arena_free)
    struct bh_arena *arena = bh_arena_new(MEMORY_MAX);
    struct play play = {
        .options = options, .report = report, .arena = arena, .variant = variant, .err = err
    };
    char path[BH_OPENB_PATH_MAX + BH_OPENB_NAME_MAX + 32];
    bh_rc rc;

    snprintf(path, sizeof path, "%s/openb_node_list_gpu_node.csv", options->data);
    rc = bh_openb_read_nodes(path, arena, &play.trace, err);
    snprintf(path, sizeof path, "%s/openb_pod_list_%s.csv", options->data, variant);
    if (rc != BH_OK)
        return rc;
    rc = bh_openb_read_pods(path, arena, &play.trace, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_openb_load_read(&play.trace, arena, &play.load, err);
    if (rc != BH_OK)
        return rc;
    for (uint64_t i = 0; i <= options->seeds.last - options->seeds.first; i++) {
        rc = openb_play_seed(&play, options->seeds.first + i);
        if (rc != BH_OK)
            return rc;
    }
    return BH_OK;
}

static void
openb_free_rows_auto(struct bh_openb_row **rows)
{
    free(*rows);
}

static bh_rc
openb_play_all(const struct bh_openb_options *options, bool *ret_off, struct bh_err *err)
{
    uint64_t runs =
        options->variant_count * BH_PACK_POLICIES * (options->seeds.last - options->seeds.first + 1);
    BH_AUTO(openb_free_rows)
    struct bh_openb_row *rows = calloc(runs, sizeof *rows);
    struct bh_openb_report report = { .options = options, .out = stdout, .rows = rows };
    bh_rc rc = BH_OK;

    if (!rows)
        return bh_err_set(err, BH_FULL, "no memory for %" PRIu64 " runs", runs);
    bh_openb_report_begin(&report);
    for (uint32_t v = 0; v < options->variant_count && rc == BH_OK; v++)
        rc = openb_play_variant(&report, options->variants[v], err);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (rc == BH_OK)
        rc = bh_openb_report_end(&report, err);
    *ret_off = bh_openb_report_is_off(&report);
    return rc;
}

int
bh_openb_main(int count, char **words)
{
    static struct bh_openb_options options;
    struct bh_err err = { 0 };
    bool off = false;
    int status;
    bh_rc rc;

    if (bh_openb_options_read(count, words, &options, &err) != BH_OK)
        return bh_mode_refuse("bulkhead-lab", &err);
    if (options.help) {
        bh_openb_options_help(stdout);
        return bh_mode_report("bulkhead-lab", BH_OK, &err);
    }
    rc = openb_play_all(&options, &off, &err);
    status = bh_mode_report("bulkhead-lab", rc, &err);
    return off ? BH_MODE_FAILED : status;
}
