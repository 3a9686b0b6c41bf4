/* Statements on tenants. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "replay/scenario_option.h"

static const struct bh_choice boundaries = { "boundary", bh_boundary_names, BH_BOUNDARIES };
static const struct bh_choice kinds = { "kind", bh_tenant_kind_names, BH_TENANT_KINDS };

/* lends 0.5: so much of the guarantee, which is said before */
static bh_rc
tenant_read_lends(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                  const char *const *values, void *into, struct bh_err *err)
{
    struct bh_ev_tenant *tenant = into;
    uint64_t lent;
    bh_rc rc = bh_parse_parts(values[0], BH_GPU_PARTS, &lent, err);

    if (rc != BH_OK)
        return rc;
    if (lent > tenant->guarantee)
        return bh_err_set(err, BH_INVALID, "lends more than its guarantee");
    tenant->withhold = tenant->guarantee - lent;
    return BH_OK;
}

/* budget day 2.5 none: GPU-hours and money in each period */
static bh_rc
tenant_read_budget(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                   const char *const *values, void *into, struct bh_err *err)
{
    static const struct bh_choice periods = { "period", bh_period_names, BH_PERIODS };
    struct bh_budget *budget = &((struct bh_ev_tenant *)into)->budget;
    uint32_t period;
    bh_rc rc = bh_word_choose(&periods, values[0], &period, err);

    if (rc != BH_OK)
        return rc;
    budget->period = (enum bh_period)period;
    rc = bh_scenario_parse_limit(values[1], 3600, &budget->gpu_s, err);
    return rc == BH_OK ? bh_scenario_parse_limit(values[2], BH_MONEY_UNIT, &budget->money, err) : rc;
}

/* The tenant's row for a SKU or a model, found or new. */
static bh_rc
tenant_find_quota(struct bh_ev_tenant *tenant, const struct bh_tenant_quota *like,
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
tenant_read_sku_limit(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                      const char *const *values, void *into, struct bh_err *err)
{
    struct bh_tenant_quota like = { .scope = BH_QUOTA_SKU }, *quota;
    uint32_t count;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_SKU, values[0], &like.of, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_u32(values[1], 0, 1000000, &count, err);
    if (rc != BH_OK)
        return rc;
    rc = tenant_find_quota(into, &like, &quota, err);
    if (rc == BH_OK)
        quota->limit = count;
    return rc;
}

/* model H100-80GB 2 1: limit and guarantee in GPUs; "none" and 0 are no limit and none */
static bh_rc
tenant_read_model(struct bh_scenario_run *run, const struct bh_scenario_option *option,
                  const char *const *values, void *into, struct bh_err *err)
{
    struct bh_tenant_quota like = { .scope = BH_QUOTA_MODEL, .of = bh_model_find(values[0]) };
    struct bh_tenant_quota *quota;
    uint64_t limit, guarantee;
    bh_rc rc;

    if (like.of == BH_GPU_MODEL_NONE)
        return bh_err_set(err, BH_NOT_FOUND, "no GPU model \"%s\"", values[0]);
    rc = bh_scenario_parse_limit(values[1], BH_GPU_PARTS, &limit, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_parse_parts(values[2], BH_GPU_PARTS, &guarantee, err);
    if (rc != BH_OK)
        return rc;
    rc = tenant_find_quota(into, &like, &quota, err);
    if (rc != BH_OK)
        return rc;
    quota->limit = limit;
    quota->guarantee = guarantee;
    return BH_OK;
}

#define FIELD(name) offsetof(struct bh_ev_tenant, name)
static const struct bh_scenario_option tenant_options[] = {
    { "boundary", 1, bh_scenario_read_word, FIELD(boundary), .choice = &boundaries },
    { "dedicated-nodes", 0, bh_scenario_read_switch, FIELD(dedicated_nodes) },
    { "limit", 1, bh_scenario_read_limit, FIELD(limit), .unit = BH_GPU_PARTS },
    { "guarantee", 1, bh_scenario_read_amount, FIELD(guarantee), .unit = BH_GPU_PARTS },
    { "lends", 1, tenant_read_lends },
    { "user-limit", 1, bh_scenario_read_amount, FIELD(user_limit), .unit = BH_GPU_PARTS },
    { "weight", 1, bh_scenario_read_number, FIELD(weight), .least = 1, .most = BH_WEIGHT_MAX },
    { "budget", 3, tenant_read_budget },
    { "sku", 2, tenant_read_sku_limit },
    { "model", 3, tenant_read_model },
    { "min-runtime", 1, bh_scenario_read_span, FIELD(min_runtime_ns) },
};

/* The tenant above a path, 0 for none. */
static bh_rc
tenant_find_parent(struct bh_scenario_run *run, const char *path, bh_tenant_id *ret_parent,
                   struct bh_err *err)
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
tenant_play_tenant(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    static const struct bh_scenario_options options = { 3, tenant_options, BH_COUNT(tenant_options) };
    struct bh_event event = { .kind = BH_EV_TENANT, .u.tenant = { .limit = BH_UNLIMITED } };
    struct bh_ev_tenant *tenant = &event.u.tenant;
    uint32_t kind;
    bh_rc rc = bh_word_choose(&kinds, words->at[2], &kind, err);

    if (rc != BH_OK)
        return rc;
    rc = tenant_find_parent(run, words->at[1], &tenant->parent, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_options_read(run, words, &options, tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_names_add(run->names, BH_NAMED_TENANT, words->at[1], &tenant->tenant.v, err);
    if (rc != BH_OK)
        return rc;
    tenant->kind = (enum bh_tenant_kind)kind;
    return bh_scenario_run_send(run, &event, err);
}

static bh_rc
tenant_play_change(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
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
tenant_play_move(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
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
    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_run_send(run, &event, err);
    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%.120s/%.120s", words->at[2], slash ? slash + 1 : words->at[1]);
    return bh_names_change(run->names, BH_NAMED_TENANT, view.settings.tenant.v, path, err);
}

static bh_rc
tenant_play_remove_tenant(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_event event = { .kind = BH_EV_TENANT_REMOVE };
    bh_tenant_id *tenant = &event.u.tenant.tenant;
    bh_rc rc = bh_names_find(run->names, BH_NAMED_TENANT, words->at[1], &tenant->v, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_scenario_run_send(run, &event, err);
    if (rc == BH_OK)
        bh_names_drop(run->names, BH_NAMED_TENANT, tenant->v);
    return rc;
}

const struct bh_statement bh_tenant_statements[] = {
    { "tenant", 2, 30,
      "PATH KIND [boundary B] [dedicated-nodes] [limit GPUS] [guarantee GPUS] [lends GPUS] "
      "[user-limit GPUS] [weight N] [budget PERIOD GPU-HOURS MONEY] [min-runtime SPAN] "
      "[sku SKU N]... [model MODEL LIMIT GUARANTEE]...",
      tenant_play_tenant },
    { "change", 2, 30, "PATH, and what a tenant takes; what is not said stays", tenant_play_change },
    { "move", 2, 2, "PATH NEW-PARENT", tenant_play_move },
    { "remove-tenant", 1, 1, "PATH", tenant_play_remove_tenant },
    { NULL, 0, 0, NULL, NULL },
};
