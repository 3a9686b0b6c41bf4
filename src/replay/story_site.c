/* Statements on what there is: nodes and GPUs, SKUs, tenants. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/num.h"
#include "replay/story.h"

static const struct bh_choice boundaries = { "boundary", bh_boundary_names, BH_BOUNDARIES };
static const struct bh_choice kinds = { "kind", bh_tenant_kind_names, BH_TENANT_KINDS };
static const struct bh_choice grades = { "grade", bh_grade_names, BH_GRADES };

/* ---- nodes and GPUs ---- */

static bh_rc
find_model(const char *name, uint32_t *ret_model, struct bh_err *err)
{
    enum bh_gpu_model model = bh_model_find(name);

    if (model == BH_GPU_MODEL_NONE && strcmp(name, "other") != 0)
        return bh_err_set(err, BH_INVALID, "unknown GPU model %.60s", name);
    *ret_model = model;
    return BH_OK;
}

static bh_rc
add_gpu(struct bh_story *story, const char *node, uint32_t index, struct bh_ev_gpu *gpu,
        struct bh_err *err)
{
    char name[BH_WORD_MAX];
    struct bh_event event = { .kind = BH_EV_GPU };
    bh_rc rc;

    snprintf(name, sizeof name, "%.100s/%u", node, index);
    rc = bh_names_add(story->names, BH_NAMED_GPU, name, &gpu->gpu.v, err);
    if (rc == BH_OK)
        rc = bh_rig_add_gpu(bh_world_rig(story->world), gpu, err);
    event.u.gpu = *gpu;
    return rc == BH_OK ? bh_story_ask(story, &event, err) : rc;
}

/* "8x H100-80GB": GPUs numbered from *index on. */
static bh_rc
add_gpus(struct bh_story *story, const struct bh_words *words, uint32_t at,
         uint32_t *index, struct bh_err *err)
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
        rc = find_model(words->at[at + 1], &gpu.model, err);
    if (rc == BH_OK)
        rc = bh_names_find(story->names, BH_NAMED_NODE, words->at[1], &gpu.node.v, err);
    gpu.mig_capable = gpu.model != BH_GPU_MODEL_NONE;
    for (uint32_t i = 0; i < wanted && rc == BH_OK; i++)
        rc = add_gpu(story, words->at[1], (*index)++, &gpu, err);
    return rc;
}

static bh_rc
play_node(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    uint32_t id, index = 0;
    bh_rc rc = bh_names_add(story->names, BH_NAMED_NODE, words->at[1], &id, err);

    if (rc == BH_OK && words->count % 2 != 0)
        rc = bh_err_set(err, BH_INVALID, "expected COUNTx MODEL after the node's name");
    if (rc == BH_OK && id > BH_RIG_NODES_MAX)
        rc = bh_err_set(err, BH_FULL, "more than %d nodes", BH_RIG_NODES_MAX);
    if (rc == BH_OK)
        rc = bh_world_greet_node(story->world, (bh_node_id){ id }, err);
    for (uint32_t at = 2; at < words->count && rc == BH_OK; at += 2)
        rc = add_gpus(story, words, at, &index, err);
    return rc;
}

enum node_turn { NODE_DOWN, NODE_UP, NODE_REBOOT };

static bh_rc
turn_node(struct bh_story *story, const char *name, enum node_turn turn, struct bh_err *err)
{
    bh_node_id node;
    bh_rc rc = bh_names_find(story->names, BH_NAMED_NODE, name, &node.v, err);

    if (rc == BH_OK && turn == NODE_REBOOT)
        bh_rig_reboot(bh_world_rig(story->world), node);
    if (rc == BH_OK)
        rc = turn == NODE_DOWN ? bh_world_lose_node(story->world, node, err)
                               : bh_world_greet_node(story->world, node, err);
    return rc;
}

static bh_rc
play_node_down(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    return turn_node(story, words->at[1], NODE_DOWN, err);
}

static bh_rc
play_node_up(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    return turn_node(story, words->at[1], NODE_UP, err);
}

static bh_rc
play_node_reboot(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    return turn_node(story, words->at[1], NODE_REBOOT, err);
}

/* gpu gpu1/0 cordoned */
static bh_rc
play_gpu(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    enum { CORDONED, UNCORDONED, LOST, MENDED, MANAGED, UNMANAGED, TURNS };
    static const char *const turns[TURNS] = { "cordoned", "uncordoned", "lost",
                                              "mended",   "managed",    "unmanaged" };
    static const struct bh_choice choice = { "GPU state", turns, TURNS };
    struct bh_event event = { .kind = BH_EV_GPU };
    struct bh_gpu_view view;
    uint32_t turn;
    bh_rc rc = bh_story_gpu(story, words->at[1], &view, err);

    if (rc == BH_OK)
        rc = bh_word_choose(&choice, words->at[2], &turn, err);
    if (rc != BH_OK)
        return rc;
    event.u.gpu = (struct bh_ev_gpu){
        .gpu = view.gpu,
        .node = view.node,
        .model = view.model,
        .mig_capable = view.model != BH_GPU_MODEL_NONE,
        .cordoned = turn == CORDONED || (view.cordoned && turn != UNCORDONED),
        .fenced = turn == LOST || (view.fenced && turn != MENDED),
        .managed = turn == MANAGED || (view.managed && turn != UNMANAGED),
    };
    return bh_story_ask(story, &event, err);
}

/* ---- SKUs ---- */

/* "H100-80GB=1g.10gb" or "H100-80GB=whole" */
static bh_rc
parse_row(const char *word, struct bh_sku_model *ret_row, struct bh_err *err)
{
    const char *equals = strchr(word, '=');
    const struct bh_profile *profile;
    char model[60];
    bh_rc rc;

    if (!equals || (size_t)(equals - word) >= sizeof model)
        return bh_err_set(err, BH_INVALID, "%.60s: expected MODEL=PROFILE or MODEL=whole", word);
    memcpy(model, word, (size_t)(equals - word));
    model[equals - word] = '\0';
    rc = find_model(model, &ret_row->model, err);
    if (rc != BH_OK)
        return rc;
    profile = bh_profile_find((enum bh_gpu_model)ret_row->model, equals + 1);
    if (!profile && strcmp(equals + 1, "whole") != 0)
        return bh_err_set(err, BH_INVALID, "%s has no profile %.40s", model, equals + 1);
    ret_row->profile = profile ? profile->id.v : BH_PROFILE_WHOLE.v;
    return BH_OK;
}

static bh_rc
play_sku(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SKU };
    struct bh_ev_sku *sku = &event.u.sku;
    uint32_t grade;
    bh_rc rc = bh_word_choose(&grades, words->at[2], &grade, err);

    if (rc == BH_OK
        && bh_names_find(story->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err) != BH_OK)
        rc = bh_names_add(story->names, BH_NAMED_SKU, words->at[1], &sku->sku.v, err);
    for (uint32_t at = 3; at < words->count && rc == BH_OK; at++)
        rc = parse_row(words->at[at], &sku->models[sku->model_count++], err);
    if (rc != BH_OK)
        return rc;
    sku->grade = (enum bh_grade)grade;
    return bh_story_ask(story, &event, err);
}

static bh_rc
play_remove_sku(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_SKU_REMOVE };
    bh_rc rc = bh_names_find(story->names, BH_NAMED_SKU, words->at[1], &event.u.sku.sku.v, err);

    if (rc == BH_OK)
        rc = bh_story_ask(story, &event, err);
    if (rc == BH_OK)
        bh_names_drop(story->names, BH_NAMED_SKU, event.u.sku.sku.v);
    return rc;
}

/* ---- tenants ---- */

static bh_rc
take_boundary(struct bh_story *story, const char *const *values, void *into,
              struct bh_err *err)
{
    uint32_t boundary;
    bh_rc rc = bh_word_choose(&boundaries, values[0], &boundary, err);

    if (rc == BH_OK)
        ((struct bh_ev_tenant *)into)->boundary = (enum bh_boundary)boundary;
    return rc;
}

static bh_rc
take_dedicated(struct bh_story *story, const char *const *values, void *into,
               struct bh_err *err)
{
    ((struct bh_ev_tenant *)into)->dedicated_nodes = true;
    return BH_OK;
}

static bh_rc
take_limit(struct bh_story *story, const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_tenant *tenant = into;

    if (strcmp(values[0], "none") == 0) {
        tenant->limit = BH_UNLIMITED;
        return BH_OK;
    }
    return bh_parse_parts(values[0], BH_GPU_PARTS, &tenant->limit, err);
}

static bh_rc
take_guarantee(struct bh_story *story, const char *const *values, void *into,
               struct bh_err *err)
{
    return bh_parse_parts(values[0], BH_GPU_PARTS, &((struct bh_ev_tenant *)into)->guarantee,
                          err);
}

static bh_rc
take_min_runtime(struct bh_story *story, const char *const *values, void *into,
                 struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_tenant *)into)->min_runtime_ns, err);
}

/* sku small 2; said again, the later number holds */
static bh_rc
take_sku_limit(struct bh_story *story, const char *const *values, void *into,
               struct bh_err *err)
{
    struct bh_ev_tenant *tenant = into;
    struct bh_sku_limit limit;
    uint32_t row = 0;
    bh_rc rc = bh_names_find(story->names, BH_NAMED_SKU, values[0], &limit.sku.v, err);

    if (rc == BH_OK)
        rc = bh_parse_u32(values[1], 0, 1000000, &limit.count, err);
    if (rc != BH_OK)
        return rc;
    while (row < tenant->sku_count && !bh_same(tenant->skus[row].sku, limit.sku))
        row++;
    if (row == BH_TENANT_SKUS_MAX)
        return bh_err_set(err, BH_FULL, "more than %d SKU limits", BH_TENANT_SKUS_MAX);
    tenant->skus[row] = limit;
    tenant->sku_count += row == tenant->sku_count;
    return BH_OK;
}

static const struct bh_option tenant_options[] = {
    { "boundary", 1, take_boundary }, { "dedicated-nodes", 0, take_dedicated },
    { "limit", 1, take_limit },       { "guarantee", 1, take_guarantee },
    { "sku", 2, take_sku_limit },     { "min-runtime", 1, take_min_runtime },
};

/* ---- settings ---- */

static bh_rc
take_backfill(struct bh_story *story, const char *const *values, void *into,
              struct bh_err *err)
{
    bool on = strcmp(values[0], "on") == 0;

    if (!on && strcmp(values[0], "off") != 0)
        return bh_err_set(err, BH_INVALID, "expected: backfill on or off");
    ((struct bh_ev_settings *)into)->backfill = on;
    return BH_OK;
}

static bh_rc
take_assumed_run(struct bh_story *story, const char *const *values, void *into,
                 struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_settings *)into)->assumed_run_ns, err);
}

static bh_rc
take_site_min_runtime(struct bh_story *story, const char *const *values, void *into,
                      struct bh_err *err)
{
    return bh_parse_span(values[0], &((struct bh_ev_settings *)into)->min_runtime_ns, err);
}

/* settings backfill off assumed-run 2h min-runtime 10m: what is not said stays */
static bh_rc
play_settings(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_option rows[] = {
        { "backfill", 1, take_backfill },
        { "assumed-run", 1, take_assumed_run },
        { "min-runtime", 1, take_site_min_runtime },
    };
    static const struct bh_options options = { 1, rows, BH_COUNT(rows) };
    struct bh_event event = { .kind = BH_EV_SETTINGS };
    bh_rc rc;

    event.u.settings = bh_view_settings(bh_world_engine(story->world));
    rc = bh_options_take(story, words, &options, &event.u.settings, err);
    return rc == BH_OK ? bh_story_ask(story, &event, err) : rc;
}

/* The tenant above a path, 0 for none. */
static bh_rc
find_parent(struct bh_story *story, const char *path, bh_tenant_id *ret_parent,
            struct bh_err *err)
{
    const char *slash = strrchr(path, '/');
    char parent[BH_WORD_MAX];

    ret_parent->v = 0;
    if (!slash)
        return BH_OK;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    return bh_names_find(story->names, BH_NAMED_TENANT, parent, &ret_parent->v, err);
}

static bh_rc
play_tenant(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_options options = { 3, tenant_options, BH_COUNT(tenant_options) };
    struct bh_event event = { .kind = BH_EV_TENANT, .u.tenant = { .limit = BH_UNLIMITED } };
    struct bh_ev_tenant *tenant = &event.u.tenant;
    uint32_t kind;
    bh_rc rc = bh_word_choose(&kinds, words->at[2], &kind, err);

    if (rc == BH_OK)
        rc = find_parent(story, words->at[1], &tenant->parent, err);
    if (rc == BH_OK)
        rc = bh_options_take(story, words, &options, tenant, err);
    if (rc == BH_OK)
        rc = bh_names_add(story->names, BH_NAMED_TENANT, words->at[1], &tenant->tenant.v, err);
    if (rc != BH_OK)
        return rc;
    tenant->kind = (enum bh_tenant_kind)kind;
    return bh_story_ask(story, &event, err);
}

static bh_rc
play_change(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_options options = { 2, tenant_options, BH_COUNT(tenant_options) };
    struct bh_event event = { .kind = BH_EV_TENANT };
    struct bh_tenant_view view;
    bh_rc rc = bh_story_tenant(story, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    event.u.tenant = view.settings;
    rc = bh_options_take(story, words, &options, &event.u.tenant, err);
    return rc == BH_OK ? bh_story_ask(story, &event, err) : rc;
}

/* move acme/vision/train acme/speech: it is acme/speech/train then, with its jobs */
static bh_rc
play_move(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_TENANT };
    const char *slash = strrchr(words->at[1], '/');
    char path[BH_WORD_MAX * 2];
    struct bh_tenant_view view;
    bh_rc rc = bh_story_tenant(story, words->at[1], &view, err);

    if (rc != BH_OK)
        return rc;
    event.u.tenant = view.settings;
    rc = bh_names_find(story->names, BH_NAMED_TENANT, words->at[2], &event.u.tenant.parent.v,
                       err);
    if (rc == BH_OK)
        rc = bh_story_ask(story, &event, err);
    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%.120s/%.120s", words->at[2], slash ? slash + 1 : words->at[1]);
    return bh_names_change(story->names, BH_NAMED_TENANT, view.settings.tenant.v, path, err);
}

static bh_rc
play_remove_tenant(struct bh_story *story, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };
    bh_tenant_id *tenant = &event.u.tenant.tenant;
    bh_rc rc = bh_names_find(story->names, BH_NAMED_TENANT, words->at[1], &tenant->v, err);

    if (rc == BH_OK)
        rc = bh_story_ask(story, &event, err);
    if (rc == BH_OK)
        bh_names_drop(story->names, BH_NAMED_TENANT, tenant->v);
    return rc;
}

const struct bh_statement bh_site_statements[] = {
    { "node", 3, 17, "NAME COUNTx MODEL [COUNTx MODEL]...", play_node },
    { "node-down", 1, 1, "NODE", play_node_down },
    { "node-up", 1, 1, "NODE", play_node_up },
    { "node-reboot", 1, 1, "NODE", play_node_reboot },
    { "gpu", 2, 2, "GPU cordoned|uncordoned|lost|mended|managed|unmanaged", play_gpu },
    { "sku", 3, 2 + BH_SKU_MODELS_MAX, "NAME GRADE MODEL=PROFILE...", play_sku },
    { "remove-sku", 1, 1, "SKU", play_remove_sku },
    { "tenant", 2, 30,
      "PATH KIND [boundary B] [dedicated-nodes] [limit GPUS] [guarantee GPUS] "
      "[min-runtime SPAN] [sku SKU N]...",
      play_tenant },
    { "change", 2, 30, "PATH [boundary B] [dedicated-nodes] [limit GPUS|none] [guarantee GPUS] "
      "[min-runtime SPAN] [sku SKU N]...", play_change },
    { "settings", 2, 6, "[backfill on|off] [assumed-run SPAN] [min-runtime SPAN]", play_settings },
    { "move", 2, 2, "PATH NEW-PARENT", play_move },
    { "remove-tenant", 1, 1, "PATH", play_remove_tenant },
    { NULL, 0, 0, NULL, NULL },
};
