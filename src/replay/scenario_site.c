/* Statements on what there is: nodes and GPUs, SKUs, tenants. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/num.h"
#include "replay/scenario_run.h"

static const struct bh_choice boundaries = { "boundary", bh_boundary_names, BH_BOUNDARIES };
static const struct bh_choice kinds = { "kind", bh_tenant_kind_names, BH_TENANT_KINDS };
static const struct bh_choice grades = { "grade", bh_grade_names, BH_GRADES };

/* ---- nodes and GPUs ---- */

static bh_rc
site_find_model(const char *name, uint32_t *ret_model, struct bh_err *err)
{
    enum bh_gpu_model model = bh_model_find(name);

    if (model == BH_GPU_MODEL_NONE && strcmp(name, "other") != 0)
        return bh_err_set(err, BH_INVALID, "unknown GPU model %.60s", name);
    *ret_model = model;
    return BH_OK;
}

static bh_rc
site_add_gpu(struct bh_scenario_run *run, const char *node, uint32_t index, struct bh_ev_gpu *gpu,
             struct bh_err *err)
{
    char name[BH_WORD_MAX];
    struct bh_event event = { .kind = BH_EV_GPU };
    bh_rc rc;

    snprintf(name, sizeof name, "%.100s/%u", node, index);
    rc = bh_names_add(run->names, BH_NAMED_GPU, name, &gpu->gpu.v, err);
    if (rc == BH_OK)
        rc = bh_node_model_add_gpu(bh_world_node_model(run->world), gpu, err);
    event.u.gpu = *gpu;
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

/* "8x H100-80GB": GPUs numbered from *index on. */
static bh_rc
site_add_gpus(struct bh_scenario_run *run, const struct bh_words *words, uint32_t at, uint32_t *index,
              struct bh_err *err)
{
    struct bh_ev_gpu gpu = { .managed = true };
    size_t length = strlen(words->at[at]);
    char count[8] = "";
    uint32_t wanted;
    bh_rc rc;

    if (length < 2 || length > 4 || words->at[at][length - 1] != 'x')
        return bh_err_set(err, BH_INVALID, "%.40s: expected a count like 8x", words->at[at]);
    memcpy(count, words->at[at], length - 1);
    rc = bh_parse_u32(count, 1, 256, &wanted, err);
    if (rc == BH_OK)
        rc = site_find_model(words->at[at + 1], &gpu.model, err);
    if (rc == BH_OK)
        rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &gpu.node.v, err);
    gpu.mig_capable = gpu.model != BH_GPU_MODEL_NONE;
    for (uint32_t i = 0; i < wanted && rc == BH_OK; i++)
        rc = site_add_gpu(run, words->at[1], (*index)++, &gpu, err);
    return rc;
}

static bh_rc
site_play_node(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    uint32_t id, index = 0;
    bh_rc rc = bh_names_add(run->names, BH_NAMED_NODE, words->at[1], &id, err);

    if (rc == BH_OK && words->count % 2 != 0)
        rc = bh_err_set(err, BH_INVALID, "expected COUNTx MODEL after the node's name");
    if (rc == BH_OK && id > BH_NODE_MODEL_NODES_MAX)
        rc = bh_err_set(err, BH_FULL, "more than %d nodes", BH_NODE_MODEL_NODES_MAX);
    if (rc == BH_OK)
        rc = bh_world_greet_node(run->world, (bh_node_id){ id }, err);
    for (uint32_t at = 2; at < words->count && rc == BH_OK; at += 2)
        rc = site_add_gpus(run, words, at, &index, err);
    return rc;
}

/* What a node has for jobs beside its GPUs. */
struct host {
    uint64_t cpu_milli, memory_bytes;
};

static bh_rc
site_take_cores(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_parts(values[0], 1000, &((struct host *)into)->cpu_milli, err);
}

static bh_rc
site_take_memory(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_bytes(values[0], &((struct host *)into)->memory_bytes, err);
}

static const struct bh_scenario_option host_options[] = { { "cpu", 1, site_take_cores },
                                                          { "memory", 1, site_take_memory } };

static bh_rc
site_play_host(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 2, host_options, BH_COUNT(host_options) };
    struct host host = { 0 };
    bh_node_id node;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &node.v, err);

    if (rc == BH_OK)
        rc = bh_scenario_options_read(run, words, &options, &host, err);
    if (rc != BH_OK)
        return rc;
    bh_world_set_host(run->world, node, (uint32_t)host.cpu_milli, (uint32_t)(host.memory_bytes >> 20));
    return bh_world_greet_node(run->world, node, err);
}

enum node_turn { NODE_DOWN, NODE_UP, NODE_REBOOT };

static bh_rc
site_turn_node(struct bh_scenario_run *run, const char *name, enum node_turn turn, struct bh_err *err)
{
    bh_node_id node;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_NODE, name, &node.v, err);

    if (rc == BH_OK && turn == NODE_REBOOT)
        bh_node_model_reboot(bh_world_node_model(run->world), node);
    if (rc == BH_OK)
        rc = turn == NODE_DOWN ? bh_world_lose_node(run->world, node, err)
                               : bh_world_greet_node(run->world, node, err);
    return rc;
}

/* What the GPU says of itself now. */
static struct bh_ev_gpu
site_report_of(const struct bh_gpu_view *view)
{
    return (struct bh_ev_gpu){ .gpu = view->gpu,
                               .node = view->node,
                               .model = view->model,
                               .mig_capable = view->model != BH_GPU_MODEL_NONE,
                               .managed = view->managed,
                               .cordoned = view->cordoned,
                               .fenced = view->fenced,
                               .keeps = view->keeps,
                               .link = view->link,
                               .numa = view->numa,
                               .layout = view->layout,
                               .lone_carve = view->lone_carve,
                               .share_limit = view->share_limit };
}

/* layout gpu1 development: all its GPUs */
static bh_rc
site_play_layout(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_choice layouts = { "layout", bh_pool_layout_names, BH_POOL_LAYOUTS };
    struct bh_gpu_view view;
    uint32_t cursor = 0, layout;
    bh_node_id node;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &node.v, err);

    if (rc == BH_OK)
        rc = bh_word_choose(&layouts, words->at[2], &layout, err);
    while (rc == BH_OK && bh_view_next_gpu(bh_world_engine(run->world), &cursor, &view)) {
        struct bh_event event = { .kind = BH_EV_GPU, .u.gpu = site_report_of(&view) };

        event.u.gpu.layout = (enum bh_pool_layout)layout;
        if (bh_same(view.node, node))
            rc = bh_scenario_run_send(run, &event, err);
    }
    return rc;
}

static bh_rc
site_play_node_down(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    return site_turn_node(run, words->at[1], NODE_DOWN, err);
}

static bh_rc
site_play_node_up(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    return site_turn_node(run, words->at[1], NODE_UP, err);
}

static bh_rc
site_play_node_reboot(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    return site_turn_node(run, words->at[1], NODE_REBOOT, err);
}

/* gpu gpu1/0 cordoned */
static bh_rc
site_play_gpu(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    enum { CORDONED, UNCORDONED, LOST, MENDED, MANAGED, UNMANAGED, TURNS };
    static const char *const turns[TURNS] = { "cordoned", "uncordoned", "lost",
                                              "mended",   "managed",    "unmanaged" };
    static const struct bh_choice choice = { "GPU state", turns, TURNS };
    struct bh_event event = { .kind = BH_EV_GPU };
    struct bh_gpu_view view;
    uint32_t turn;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    if (rc == BH_OK)
        rc = bh_word_choose(&choice, words->at[2], &turn, err);
    if (rc != BH_OK)
        return rc;
    event.u.gpu = site_report_of(&view);
    event.u.gpu.cordoned = turn == CORDONED || (view.cordoned && turn != UNCORDONED);
    event.u.gpu.fenced = turn == LOST || (view.fenced && turn != MENDED);
    event.u.gpu.managed = turn == MANAGED || (view.managed && turn != UNMANAGED);
    return bh_scenario_run_send(run, &event, err);
}

static bh_rc
site_take_link(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_u32(values[0], 0, 255, &((struct bh_ev_gpu *)into)->link, err);
}

static bh_rc
site_take_numa(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_u32(values[0], 0, 255, &((struct bh_ev_gpu *)into)->numa, err);
}

/* near gpu1/0 link 1 numa 1 */
static bh_rc
site_play_near(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_option rows[] = { { "link", 1, site_take_link },
                                                      { "numa", 1, site_take_numa } };
    static const struct bh_scenario_options options = { 2, rows, BH_COUNT(rows) };
    struct bh_event event = { .kind = BH_EV_GPU };
    struct bh_gpu_view view;
    bh_rc rc = bh_scenario_run_gpu(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    event.u.gpu = site_report_of(&view);
    rc = bh_scenario_options_read(run, words, &options, &event.u.gpu, err);
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

/* ---- SKUs ---- */

/* "H100-80GB=1g.10gb", "H100-80GB=1/4,18Gi+hard" or "H100-80GB=whole" */
static bh_rc
site_parse_row(const char *word, struct bh_sku_model *ret_row, struct bh_err *err)
{
    const char *equals = strchr(word, '=');
    const struct bh_profile *profile;
    char model[60];
    bh_rc rc;

    if (!equals || (size_t)(equals - word) >= sizeof model)
        return bh_err_set(err, BH_INVALID, "%.60s: expected MODEL=PROFILE or MODEL=whole", word);
    memcpy(model, word, (size_t)(equals - word));
    model[equals - word] = '\0';
    rc = site_find_model(model, &ret_row->model, err);
    if (rc != BH_OK)
        return rc;
    profile = bh_profile_find((enum bh_gpu_model)ret_row->model, equals + 1);
    ret_row->profile = profile ? profile->id.v : BH_PROFILE_WHOLE.v;
    if (profile || strcmp(equals + 1, "whole") == 0)
        return BH_OK;
    return bh_scenario_parse_share((enum bh_gpu_model)ret_row->model, equals + 1, &ret_row->profile, err);
}

static bh_rc
site_play_sku(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;
    uint32_t grade;
    bh_rc rc = bh_word_choose(&grades, words->at[2], &grade, err);

    if (rc == BH_OK && bh_names_find(run->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err) != BH_OK)
        rc = bh_names_add(run->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err);
    for (uint32_t at = 3; at < words->count && rc == BH_OK; at++)
        rc = site_parse_row(words->at[at], &sku->models[sku->model_count++], err);
    if (rc != BH_OK)
        return rc;
    sku->grade = (enum bh_grade)grade;
    return bh_scenario_run_send(run, &event, err);
}

/* price small 2.50: money for one partition and hour */
static bh_rc
site_play_price(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;
    uint64_t price;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err);

    if (rc == BH_OK)
        rc = bh_parse_parts(words->at[2], BH_MONEY_UNIT, &price, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_view_sku(bh_world_engine(run->world), sku->sku, sku))
        return bh_err_set(err, BH_NOT_FOUND, "no SKU \"%s\"", words->at[1]);
    sku->price = price;
    return bh_scenario_run_send(run, &event, err);
}

static bh_rc
site_take_order(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    static const struct bh_choice orders = { "order", bh_queue_order_names, BH_ORDERS };
    uint32_t order;
    bh_rc rc = bh_word_choose(&orders, values[0], &order, err);

    if (rc == BH_OK)
        ((struct bh_ev_settings *)into)->order = (enum bh_queue_order)order;
    return rc;
}

static bh_rc
site_take_half_life(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_settings *settings = into;

    if (strcmp(values[0], "never") != 0)
        return bh_parse_span(values[0], &settings->half_life_ns, err);
    settings->half_life_ns = BH_UNLIMITED;
    return BH_OK;
}

static bh_rc
site_parse_switch(const char *word, bool *ret_on, struct bh_err *err)
{
    *ret_on = strcmp(word, "on") == 0;
    if (!*ret_on && strcmp(word, "off") != 0)
        return bh_err_set(err, BH_INVALID, "%.40s: expected on or off", word);
    return BH_OK;
}

static bh_rc
site_take_backfill(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return site_parse_switch(values[0], &((struct bh_ev_settings *)into)->backfill, err);
}

static bh_rc
site_take_spread_kinds(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return site_parse_switch(values[0], &((struct bh_ev_settings *)into)->spread_kinds, err);
}

static bh_rc
site_take_hotspots(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return site_parse_switch(values[0], &((struct bh_ev_settings *)into)->hotspots, err);
}

static bh_rc
site_take_preshape(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return site_parse_switch(values[0], &((struct bh_ev_settings *)into)->preshape, err);
}

static bh_rc
site_take_lending(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    static const struct bh_choice lendings = { "lending", bh_lending_names, BH_LENDINGS };
    uint32_t lending;
    bh_rc rc = bh_word_choose(&lendings, values[0], &lending, err);

    if (rc == BH_OK)
        ((struct bh_ev_settings *)into)->lending = (enum bh_lending)lending;
    return rc;
}

static bh_rc
site_take_assumed_run(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_settings *)into)->assumed_run_ns, err);
}

static bh_rc
take_site_min_runtime(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_settings *)into)->min_runtime_ns, err);
}

static bh_rc
site_take_defrag(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    static const struct bh_choice modes = { "mode", bh_defrag_mode_names, BH_DEFRAG_MODES };
    uint32_t mode;
    bh_rc rc = bh_word_choose(&modes, values[0], &mode, err);

    if (rc == BH_OK)
        ((struct bh_ev_settings *)into)->defrag.mode = (enum bh_defrag_mode)mode;
    return rc;
}

static bh_rc
site_take_defrag_moves(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_u32(values[0], 1, UINT32_MAX, &((struct bh_ev_settings *)into)->defrag.moves, err);
}

static bh_rc
site_take_defrag_gain(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_u32(values[0], 1, BH_DEFRAG_PERCENT_MAX,
                        &((struct bh_ev_settings *)into)->defrag.gain_percent, err);
}

static bh_rc
site_take_defrag_lost(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_parts(values[0], 3600, &((struct bh_ev_settings *)into)->defrag.lost_gpu_s, err);
}

static bh_rc
site_take_defrag_rest(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_settings *)into)->defrag.rest_ns, err);
}

static const struct bh_scenario_option settings_options[] = {
    { "order", 1, site_take_order },
    { "half-life", 1, site_take_half_life },
    { "backfill", 1, site_take_backfill },
    { "assumed-run", 1, site_take_assumed_run },
    { "min-runtime", 1, take_site_min_runtime },
    { "lending", 1, site_take_lending },
    { "burn-in", 1, bh_scenario_read_burn_in },
    { "hotspots", 1, site_take_hotspots },
    { "spread-kinds", 1, site_take_spread_kinds },
    { "preshape", 1, site_take_preshape },
    { "defrag", 1, site_take_defrag },
    { "defrag-moves", 1, site_take_defrag_moves },
    { "defrag-gain", 1, site_take_defrag_gain },
    { "defrag-gpu-hours", 1, site_take_defrag_lost },
    { "defrag-rest", 1, site_take_defrag_rest },
};

/* What is not said stays. */
static bh_rc
site_play_settings(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 1, settings_options, BH_COUNT(settings_options) };
    struct bh_event event = { .kind = BH_EV_SETTINGS };
    bh_rc rc;

    bh_view_settings(bh_world_engine(run->world), &event.u.settings);
    rc = bh_scenario_options_read(run, words, &options, &event.u.settings, err);
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

/* outlook acme/vision wants 1.5 | outlook gpu1 hot | outlook H100-80GB=1g.10gb ready 2: what
 * forecasts say from now on. */
static bh_rc
site_play_outlook(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_ADVICE };
    struct bh_ev_advice *advice = &event.u.advice;
    const char *what = words->at[2], *value = words->count > 3 ? words->at[3] : "";
    struct bh_sku_model row;
    bh_rc rc;

    advice->hot = strcmp(what, "hot") == 0;
    if (strcmp(what, "wants") == 0) {
        advice->of = BH_ADVICE_TENANT;
        rc = bh_names_find(run->names, BH_NAMED_TENANT, words->at[1], &advice->tenant.v, err);
        if (rc == BH_OK)
            rc = bh_parse_parts(value, BH_GPU_PARTS, &advice->expected, err);
    } else if (strcmp(what, "ready") == 0) {
        advice->of = BH_ADVICE_PARTITIONS;
        rc = site_parse_row(words->at[1], &row, err);
        if (rc == BH_OK)
            rc = bh_parse_u32(value, 0, BH_READY_MAX, &advice->ready, err);
        advice->profile = rc == BH_OK ? row.profile : 0;
    } else if (advice->hot || strcmp(what, "cool") == 0) {
        advice->of = BH_ADVICE_NODE;
        rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &advice->node.v, err);
    } else {
        rc = bh_err_set(err, BH_INVALID, "%.40s: expected wants, ready, hot or cool", what);
    }
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

static bh_rc
site_play_remove_sku(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SKU_REMOVE };
    bh_rc rc = bh_names_find(run->names, BH_NAMED_SKU, words->at[1], &event.u.sku.sku.v, err);

    if (rc == BH_OK)
        rc = bh_scenario_run_send(run, &event, err);
    if (rc == BH_OK)
        bh_names_drop(run->names, BH_NAMED_SKU, event.u.sku.sku.v);
    return rc;
}

/* ---- tenants ---- */

static bh_rc
site_take_boundary(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    uint32_t boundary;
    bh_rc rc = bh_word_choose(&boundaries, values[0], &boundary, err);

    if (rc == BH_OK)
        ((struct bh_ev_tenant *)into)->boundary = (enum bh_boundary)boundary;
    return rc;
}

static bh_rc
site_take_dedicated(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    ((struct bh_ev_tenant *)into)->dedicated_nodes = true;
    return BH_OK;
}

static bh_rc
site_take_limit(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_tenant *tenant = into;

    if (strcmp(values[0], "none") == 0) {
        tenant->limit = BH_UNLIMITED;
        return BH_OK;
    }
    return bh_parse_parts(values[0], BH_GPU_PARTS, &tenant->limit, err);
}

static bh_rc
site_take_guarantee(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_parts(values[0], BH_GPU_PARTS, &((struct bh_ev_tenant *)into)->guarantee, err);
}

static bh_rc
site_take_min_runtime(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_tenant *)into)->min_runtime_ns, err);
}

/* sku small 2; said again, the later number holds */
/* lends 0.5: so much of the guarantee, which is said before */
static bh_rc
site_take_lends(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_tenant *tenant = into;
    uint64_t lent;
    bh_rc rc = bh_parse_parts(values[0], BH_GPU_PARTS, &lent, err);

    if (rc == BH_OK && lent > tenant->guarantee)
        return bh_err_set(err, BH_INVALID, "lends more than its guarantee");
    if (rc == BH_OK)
        tenant->withhold = tenant->guarantee - lent;
    return rc;
}

static bh_rc
site_take_user_limit(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_parts(values[0], BH_GPU_PARTS, &((struct bh_ev_tenant *)into)->user_limit, err);
}

static bh_rc
site_take_weight(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_u32(values[0], 1, BH_WEIGHT_MAX, &((struct bh_ev_tenant *)into)->weight, err);
}

/* budget day 2.5 none: GPU-hours and money in each period */
static bh_rc
site_take_budget(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    static const struct bh_choice periods = { "period", bh_period_names, BH_PERIODS };
    struct bh_budget *budget = &((struct bh_ev_tenant *)into)->budget;
    uint32_t period;
    bh_rc rc = bh_word_choose(&periods, values[0], &period, err);

    *budget = (struct bh_budget){ .gpu_s = BH_UNLIMITED, .money = BH_UNLIMITED };
    budget->period = rc == BH_OK ? (enum bh_period)period : BH_PERIOD_NONE;
    if (rc == BH_OK && strcmp(values[1], "none") != 0)
        rc = bh_parse_parts(values[1], 3600, &budget->gpu_s, err);
    if (rc == BH_OK && strcmp(values[2], "none") != 0)
        rc = bh_parse_parts(values[2], BH_MONEY_UNIT, &budget->money, err);
    return rc;
}

/* The tenant's row for a SKU or a model, found or new. */
static bh_rc
site_find_quota(struct bh_ev_tenant *tenant, const struct bh_tenant_quota *like,
                struct bh_tenant_quota **ret_quota, struct bh_err *err)
{
    uint32_t row = 0;

    while (row < tenant->quota_count
           && (tenant->quotas[row].scope != like->scope || tenant->quotas[row].of != like->of))
        row++;
    if (row == BH_TENANT_QUOTAS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d quotas", BH_TENANT_QUOTAS_MAX);
    if (row == tenant->quota_count) {
        tenant->quotas[row] = *like;
        tenant->quota_count++;
    }
    *ret_quota = &tenant->quotas[row];
    return BH_OK;
}

/* sku small 2; said again, the later number holds */
static bh_rc
site_take_sku_limit(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    struct bh_tenant_quota like = { .scope = BH_QUOTA_SKU }, *quota = NULL;
    uint32_t count = 0;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_SKU, values[0], &like.of, err);

    if (rc == BH_OK)
        rc = bh_parse_u32(values[1], 0, 1000000, &count, err);
    if (rc == BH_OK)
        rc = site_find_quota(into, &like, &quota, err);
    if (rc == BH_OK)
        quota->limit = count;
    return rc;
}

/* model H100-80GB 2 1: limit and guarantee in GPUs; "none" and 0 are no limit and none */
static bh_rc
site_take_model(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err)
{
    struct bh_tenant_quota like = { .scope = BH_QUOTA_MODEL, .of = bh_model_find(values[0]) };
    struct bh_tenant_quota *quota = NULL;
    uint64_t limit = BH_UNLIMITED, guarantee = 0;
    bh_rc rc = BH_OK;

    if (like.of == BH_GPU_MODEL_NONE)
        return bh_err_set(err, BH_NOT_FOUND, "no GPU model \"%s\"", values[0]);
    if (strcmp(values[1], "none") != 0)
        rc = bh_parse_parts(values[1], BH_GPU_PARTS, &limit, err);
    if (rc == BH_OK)
        rc = bh_parse_parts(values[2], BH_GPU_PARTS, &guarantee, err);
    if (rc == BH_OK)
        rc = site_find_quota(into, &like, &quota, err);
    if (rc == BH_OK) {
        quota->limit = limit;
        quota->guarantee = guarantee;
    }
    return rc;
}

/* clang-format off */
static const struct bh_scenario_option tenant_options[] = {
    { "boundary", 1, site_take_boundary }, { "dedicated-nodes", 0, site_take_dedicated },
    { "limit", 1, site_take_limit },       { "guarantee", 1, site_take_guarantee },
    { "lends", 1, site_take_lends },       { "user-limit", 1, site_take_user_limit },
    { "weight", 1, site_take_weight },     { "budget", 3, site_take_budget },
    { "sku", 2, site_take_sku_limit },     { "model", 3, site_take_model },
    { "min-runtime", 1, site_take_min_runtime },
};
/* clang-format on */

/* ---- settings ---- */

/* The tenant above a path, 0 for none. */
static bh_rc
site_find_parent(struct bh_scenario_run *run, const char *path, bh_tenant_id *ret_parent, struct bh_err *err)
{
    const char *slash = strrchr(path, '/');
    char parent[BH_WORD_MAX];

    ret_parent->v = 0;
    if (!slash)
        return BH_OK;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return bh_names_find(run->names, BH_NAMED_TENANT, parent, &ret_parent->v, err);
}

static bh_rc
site_play_tenant(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 3, tenant_options, BH_COUNT(tenant_options) };
    struct bh_event event = { .kind = BH_EV_TENANT, .u.tenant = { .limit = BH_UNLIMITED } };
    struct bh_ev_tenant *tenant = &event.u.tenant;
    uint32_t kind;
    bh_rc rc = bh_word_choose(&kinds, words->at[2], &kind, err);

    if (rc == BH_OK)
        rc = site_find_parent(run, words->at[1], &tenant->parent, err);
    if (rc == BH_OK)
        rc = bh_scenario_options_read(run, words, &options, tenant, err);
    if (rc == BH_OK)
        rc = bh_names_add(run->names, BH_NAMED_TENANT, words->at[1], &tenant->tenant.v, err);
    if (rc != BH_OK)
        return rc;
    tenant->kind = (enum bh_tenant_kind)kind;
    return bh_scenario_run_send(run, &event, err);
}

static bh_rc
site_play_change(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 2, tenant_options, BH_COUNT(tenant_options) };
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_tenant_view view;
    bh_rc rc = bh_scenario_run_tenant(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    event.u.tenant = view.settings;
    rc = bh_scenario_options_read(run, words, &options, &event.u.tenant, err);
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

/* move acme/vision/train acme/speech: it is acme/speech/train then, with its jobs */
static bh_rc
site_play_move(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_TENANT };
    const char *slash = strrchr(words->at[1], '/');
    char path[BH_WORD_MAX * 2];
    struct bh_tenant_view view;
    bh_rc rc = bh_scenario_run_tenant(run, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    event.u.tenant = view.settings;
    rc = bh_names_find(run->names, BH_NAMED_TENANT, words->at[2], &event.u.tenant.parent.v, err);
    if (rc == BH_OK)
        rc = bh_scenario_run_send(run, &event, err);
    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%.120s/%.120s", words->at[2], slash ? slash + 1 : words->at[1]);
    return bh_names_change(run->names, BH_NAMED_TENANT, view.settings.tenant.v, path, err);
}

static bh_rc
site_play_remove_tenant(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };
    bh_tenant_id *tenant = &event.u.tenant.tenant;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_TENANT, words->at[1], &tenant->v, err);

    if (rc == BH_OK)
        rc = bh_scenario_run_send(run, &event, err);
    if (rc == BH_OK)
        bh_names_drop(run->names, BH_NAMED_TENANT, tenant->v);
    return rc;
}

const struct bh_statement bh_site_statements[] = {
    { "node", 3, 17, "NAME COUNTx MODEL [COUNTx MODEL]...", site_play_node },
    { "host", 3, 5, "NODE [cpu CORES] [memory SIZE]", site_play_host },
    { "layout", 2, 2, "NODE on-demand|development|production|balanced", site_play_layout },
    { "node-down", 1, 1, "NODE", site_play_node_down },
    { "node-up", 1, 1, "NODE", site_play_node_up },
    { "node-reboot", 1, 1, "NODE", site_play_node_reboot },
    { "gpu", 2, 2, "GPU cordoned|uncordoned|lost|mended|managed|unmanaged", site_play_gpu },
    { "near", 3, 5, "GPU [link N] [numa N]", site_play_near },
    { "sku", 3, 2 + BH_SKU_MODELS_MAX, "NAME GRADE MODEL=PROFILE...", site_play_sku },
    { "price", 2, 2, "SKU AMOUNT", site_play_price },
    { "remove-sku", 1, 1, "SKU", site_play_remove_sku },
    { "settings", 2, 22,
      "[order fair_tree|drf|fifo] [half-life SPAN|never] "
      "[backfill on|off] [assumed-run SPAN] [burn-in SPAN] [min-runtime SPAN] [lending all|forecast] "
      "[hotspots on|off] [preshape on|off] [spread-kinds on|off] "
      "[defrag off|suggest|on] [defrag-moves N] [defrag-gain PERCENT] "
      "[defrag-gpu-hours HOURS] [defrag-rest SPAN]",
      site_play_settings },
    { "outlook", 2, 3, "PATH wants GPUS, NODE hot|cool, or MODEL=PROFILE ready N", site_play_outlook },
    { "tenant", 2, 30,
      "PATH KIND [boundary B] [dedicated-nodes] [limit GPUS] [guarantee GPUS] [lends GPUS] "
      "[user-limit GPUS] [weight N] [budget PERIOD GPU-HOURS MONEY] [min-runtime SPAN] "
      "[sku SKU N]... [model MODEL LIMIT GUARANTEE]...",
      site_play_tenant },
    { "change", 2, 30, "PATH, and what a tenant takes; what is not said stays", site_play_change },
    { "move", 2, 2, "PATH NEW-PARENT", site_play_move },
    { "remove-tenant", 1, 1, "PATH", site_play_remove_tenant },
    { NULL, 0, 0, NULL, NULL },
};
