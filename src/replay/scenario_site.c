/* Statements on what there is: nodes and GPUs, SKUs. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/num.h"
#include "replay/scenario_option.h"

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
    if (rc != BH_OK)
        return rc;
    rc = bh_node_model_add_gpu(bh_world_node_model(run->world), gpu, err);
    if (rc != BH_OK)
        return rc;
    event.u.gpu = *gpu;
    return bh_scenario_run_send(run, &event, err);
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
    if (rc != BH_OK)
        return rc;
    rc = site_find_model(words->at[at + 1], &gpu.model, err);
    if (rc != BH_OK)
        return rc;
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

    if (rc != BH_OK)
        return rc;
    if (words->count % 2 != 0)
        return bh_err_set(err, BH_INVALID, "expected COUNTx MODEL after the node's name");
    if (id > BH_NODE_MODEL_NODES_MAX)
        return bh_err_set(err, BH_FULL, "more than %d nodes", BH_NODE_MODEL_NODES_MAX);
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
site_read_memory(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                 const char *const *values, void *into, struct bh_err *err)
{
    return bh_parse_bytes(values[0], &((struct host *)into)->memory_bytes, err);
}

static const struct bh_scenario_option host_options[] = {
    { "cpu", 1, bh_scenario_read_amount, offsetof(struct host, cpu_milli), .unit = 1000 },
    { "memory", 1, site_read_memory },
};

static bh_rc
site_play_host(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 2, host_options, BH_COUNT(host_options) };
    struct host host = { 0 };
    bh_node_id node;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &node.v, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_options_read(run, words, &options, &host, err);
    if (rc != BH_OK)
        return rc;
    bh_world_set_host(run->world, node, (uint32_t)host.cpu_milli, (uint32_t)(host.memory_bytes >> 20));
    return bh_world_greet_node(run->world, node, err);
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

    if (rc != BH_OK)
        return rc;
    rc = bh_word_choose(&layouts, words->at[2], &layout, err);
    while (rc == BH_OK && bh_view_next_gpu(bh_world_engine(run->world), &cursor, &view)) {
        struct bh_event event = { .kind = BH_EV_GPU, .u.gpu = bh_view_gpu_report(&view) };

        event.u.gpu.layout = (enum bh_pool_layout)layout;
        if (bh_same(view.node, node))
            rc = bh_scenario_run_send(run, &event, err);
    }
    return rc;
}

static bh_rc
site_play_node_down(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bh_node_id node;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &node.v, err);

    return rc == BH_OK ? bh_world_lose_node(run->world, node, err) : rc;
}

/* node-up gpu1, node-reboot gpu1 */
static bh_rc
site_play_node_up(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    bh_node_id node;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_NODE, words->at[1], &node.v, err);

    if (rc != BH_OK)
        return rc;
    if (strcmp(words->at[0], "node-reboot") == 0)
        bh_node_model_reboot(bh_world_node_model(run->world), node);
    return bh_world_greet_node(run->world, node, err);
}

/* gpu gpu1/0 cordoned */
static bh_rc
site_play_gpu(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    enum { CORDONED, UNCORDONED, LOST, MENDED, MANAGED, UNMANAGED, CHANGES };
    static const char *const changes[CHANGES] = { "cordoned", "uncordoned", "lost",
                                                  "mended",   "managed",    "unmanaged" };
    static const struct bh_choice choice = { "GPU state", changes, CHANGES };
    struct bh_event event;
    struct bh_ev_gpu *gpu = &event.u.gpu;
    uint32_t change;
    bh_rc rc = bh_scenario_run_report(run, words->at[1], &event, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_word_choose(&choice, words->at[2], &change, err);
    if (rc != BH_OK)
        return rc;
    gpu->cordoned = change == CORDONED || (gpu->cordoned && change != UNCORDONED);
    gpu->fenced = change == LOST || (gpu->fenced && change != MENDED);
    gpu->managed = change == MANAGED || (gpu->managed && change != UNMANAGED);
    return bh_scenario_run_send(run, &event, err);
}

/* near gpu1/0 link 1 numa 1 */
static bh_rc
site_play_near(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_option rows[] = {
        { "link", 1, bh_scenario_read_number, offsetof(struct bh_ev_gpu, link), .most = 255 },
        { "numa", 1, bh_scenario_read_number, offsetof(struct bh_ev_gpu, numa), .most = 255 },
    };
    static const struct bh_scenario_options options = { 2, rows, BH_COUNT(rows) };
    struct bh_event event;
    bh_rc rc = bh_scenario_run_report(run, words->at[1], &event, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_options_read(run, words, &options, &event.u.gpu, err);
    return rc == BH_OK ? bh_scenario_run_send(run, &event, err) : rc;
}

/* ---- SKUs ---- */

bh_rc
bh_scenario_parse_sku_row(const char *word, struct bh_sku_model *ret_row, struct bh_err *err)
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

    if (rc != BH_OK)
        return rc;
    if (bh_names_find(run->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err) != BH_OK)
        rc = bh_names_add(run->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err);
    for (uint32_t at = 3; at < words->count && rc == BH_OK; at++)
        rc = bh_scenario_parse_sku_row(words->at[at], &sku->models[sku->model_count++], err);
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

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_parts(words->at[2], BH_MONEY_UNIT, &price, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_view_sku(bh_world_engine(run->world), sku->sku, sku))
        return bh_err_set(err, BH_NOT_FOUND, "no SKU \"%s\"", words->at[1]);
    sku->price = price;
    return bh_scenario_run_send(run, &event, err);
}

static bh_rc
site_play_remove_sku(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SKU_REMOVE };
    bh_rc rc = bh_names_find(run->names, BH_NAMED_SKU, words->at[1], &event.u.sku.sku.v, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_run_send(run, &event, err);
    if (rc == BH_OK)
        bh_names_drop(run->names, BH_NAMED_SKU, event.u.sku.sku.v);
    return rc;
}

const struct bh_statement bh_site_statements[] = {
    { "node", 3, 17, "NAME COUNTx MODEL [COUNTx MODEL]...", site_play_node },
    { "host", 3, 5, "NODE [cpu CORES] [memory SIZE]", site_play_host },
    { "layout", 2, 2, "NODE on-demand|development|production|balanced", site_play_layout },
    { "node-down", 1, 1, "NODE", site_play_node_down },
    { "node-up", 1, 1, "NODE", site_play_node_up },
    { "node-reboot", 1, 1, "NODE", site_play_node_up },
    { "gpu", 2, 2, "GPU cordoned|uncordoned|lost|mended|managed|unmanaged", site_play_gpu },
    { "near", 3, 5, "GPU [link N] [numa N]", site_play_near },
    { "sku", 3, 2 + BH_SKU_MODELS_MAX, "NAME GRADE MODEL=PROFILE...", site_play_sku },
    { "price", 2, 2, "SKU AMOUNT", site_play_price },
    { "remove-sku", 1, 1, "SKU", site_play_remove_sku },
    { NULL, 0, 0, NULL, NULL },
};
