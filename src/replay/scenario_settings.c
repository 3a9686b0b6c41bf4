/* Statements on the settings of the whole site, and on what forecasts say. */
#include <string.h>

#include "base/num.h"
#include "replay/scenario_option.h"

static bh_rc
settings_read_half_life(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                        const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_settings *settings = into;

    if (strcmp(values[0], "never") != 0)
        return bh_parse_span(values[0], &settings->half_life_ns, err);
    settings->half_life_ns = BH_UNLIMITED;
    return BH_OK;
}

static const struct bh_choice orders = { "order", bh_queue_order_names, BH_ORDERS };
static const struct bh_choice lendings = { "lending", bh_lending_names, BH_LENDINGS };
static const struct bh_choice defrag_modes = { "mode", bh_defrag_mode_names, BH_DEFRAG_MODES };

#define FIELD(name) offsetof(struct bh_ev_settings, name)
static const struct bh_scenario_option settings_options[] = {
    { "order", 1, bh_scenario_read_word, FIELD(order), .choice = &orders },
    { "half-life", 1, settings_read_half_life },
    { "backfill", 1, bh_scenario_read_switch, FIELD(backfill) },
    { "assumed-run", 1, bh_scenario_read_span, FIELD(assumed_run_ns) },
    { "min-runtime", 1, bh_scenario_read_span, FIELD(min_runtime_ns) },
    { "lending", 1, bh_scenario_read_word, FIELD(lending), .choice = &lendings },
    { "burn-in", 1, bh_scenario_read_span, FIELD(burn_in_ns) },
    { "hotspots", 1, bh_scenario_read_switch, FIELD(hotspots) },
    { "spread-kinds", 1, bh_scenario_read_switch, FIELD(spread_kinds) },
    { "preshape", 1, bh_scenario_read_switch, FIELD(preshape) },
    { "defrag", 1, bh_scenario_read_word, FIELD(defrag.mode), .choice = &defrag_modes },
    { "defrag-moves", 1, bh_scenario_read_number, FIELD(defrag.moves), .least = 1, .most = UINT32_MAX },
    { "defrag-gain", 1, bh_scenario_read_number, FIELD(defrag.gain_percent), .least = 1,
      .most = BH_DEFRAG_PERCENT_MAX },
    { "defrag-gpu-hours", 1, bh_scenario_read_amount, FIELD(defrag.lost_gpu_s), .unit = 3600 },
    { "defrag-rest", 1, bh_scenario_read_span, FIELD(defrag.rest_ns) },
};

/* What is not said stays. */
static bh_rc
settings_play_settings(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 1, settings_options, BH_COUNT(settings_options) };
    struct bh_event event = { .kind = BH_EV_SETTINGS };
    bh_rc rc;

    bh_view_settings(bh_world_engine(run->world), &event.u.settings);
    rc = bh_scenario_options_read(run, words, &options, &event.u.settings, err);
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

/* forecast acme/vision wants 1.5 | forecast gpu1 hot | forecast H100-80GB=1g.10gb ready 2: what
 * forecasts say from now on. */
static bh_rc
settings_parse_advice(struct bh_scenario_run *run, const struct bh_words *words,
                      struct bh_ev_advice *ret_advice, struct bh_err *err)
{
    const char *about = words->at[1], *what = words->at[2], *value = words->count > 3 ? words->at[3] : "";
    struct bh_sku_model row;
    bh_rc rc;

    if (strcmp(what, "wants") == 0) {
        ret_advice->of = BH_ADVICE_TENANT;
        rc = bh_names_find(run->names, BH_NAMED_TENANT, about, &ret_advice->tenant.v, err);
        return rc == BH_OK ? bh_parse_parts(value, BH_GPU_PARTS, &ret_advice->expected, err) : rc;
    }
    if (strcmp(what, "ready") == 0) {
        ret_advice->of = BH_ADVICE_PARTITIONS;
        rc = bh_scenario_parse_sku_row(about, &row, err);
        if (rc != BH_OK)
            return rc;
        ret_advice->profile = row.profile;
        return bh_parse_u32(value, 0, BH_READY_MAX, &ret_advice->ready, err);
    }
    ret_advice->of = BH_ADVICE_NODE;
    ret_advice->hot = strcmp(what, "hot") == 0;
    if (!ret_advice->hot && strcmp(what, "cool") != 0)
        return bh_err_set(err, BH_INVALID, "%.40s: expected wants, ready, hot or cool", what);
    return bh_names_find(run->names, BH_NAMED_NODE, about, &ret_advice->node.v, err);
}

static bh_rc
settings_play_forecast(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_ADVICE };
    bh_rc rc = settings_parse_advice(run, words, &event.u.advice, err);

    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

const struct bh_statement bh_settings_statements[] = {
    { "settings", 2, 22,
      "[order fair_tree|drf|fifo] [half-life SPAN|never] "
      "[backfill on|off] [assumed-run SPAN] [burn-in SPAN] [min-runtime SPAN] [lending all|forecast] "
      "[hotspots on|off] [preshape on|off] [spread-kinds on|off] "
      "[defrag off|suggest|on] [defrag-moves N] [defrag-gain PERCENT] "
      "[defrag-gpu-hours HOURS] [defrag-rest SPAN]",
      settings_play_settings },
    { "forecast", 2, 3, "PATH wants GPUS, NODE hot|cool, or MODEL=PROFILE ready N", settings_play_forecast },
    { NULL, 0, 0, NULL, NULL },
};
