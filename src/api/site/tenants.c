#include "api/site/tenants.h"

#include "api/request/amounts.h"
#include "api/request/visible.h"
#include "base/time.h"

struct tenant_question {
    const struct bh_directory *dir;
    struct bh_tenant_view *views; /* beside dir->tenants; settings.tenant.v 0: unknown */
};

static void
ask_tenants(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct tenant_question *q = self;

    for (uint32_t i = 0; i < q->dir->tenant_count; i++)
        if (!bh_view_tenant(engine, q->dir->tenants[i].id, now_ns, &q->views[i]))
            q->views[i].settings.tenant.v = 0;
}

/* GPUs of a model, or partitions of a SKU; null where there is no limit. */
static void
put_quota_amount(struct bh_json_writer *w, const char *key, enum bh_quota_scope scope, uint64_t amount)
{
    if (scope == BH_QUOTA_MODEL || amount == BH_UNLIMITED)
        bh_put_gpus(w, key, amount);
    else
        bh_json_u64(w, key, amount);
}

static void
put_quota(struct bh_call *call, struct bh_json_writer *w, const struct bh_tenant_quota *quota, uint64_t used)
{
    const struct bh_dir_sku *sku = bh_directory_sku(call->dir, (bh_sku_id){ quota->of });
    bool of_sku = quota->scope == BH_QUOTA_SKU;

    bh_json_open(w, NULL, '{');
    put_quota_amount(w, "guarantee", quota->scope, quota->guarantee);
    put_quota_amount(w, "lending_limit", quota->scope, quota->guarantee - quota->withhold);
    put_quota_amount(w, "limit", quota->scope, quota->limit);
    if (of_sku)
        bh_json_str(w, "sku", sku ? sku->name : "");
    else
        bh_json_str(w, "model", bh_model_facts((enum bh_gpu_model)quota->of)->name);
    put_quota_amount(w, "used", quota->scope, used);
    bh_json_close(w, '}');
}

static void
put_quotas(struct bh_call *call, struct bh_json_writer *w, const struct bh_tenant_view *view)
{
    bh_json_open(w, "quotas", '[');
    for (uint32_t i = 0; i < view->settings.quota_count; i++)
        put_quota(call, w, &view->settings.quotas[i], view->quota_used[i]);
    bh_json_close(w, ']');
}

static void
tenants_put_budget(struct bh_json_writer *w, const struct bh_tenant_view *view)
{
    const struct bh_budget *budget = &view->settings.budget;

    if (budget->period == BH_PERIOD_NONE)
        return;
    bh_json_open(w, "budget", '{');
    bh_put_decimal(w, "gpu_hours", budget->gpu_s, 3600);
    bh_put_decimal(w, "money", budget->money, BH_MONEY_UNIT);
    bh_json_str(w, "period", bh_period_names[budget->period]);
    bh_put_decimal(w, "spent_gpu_hours", (uint64_t)(view->spent_gpu / BH_GPU_PARTS / BH_NS_PER_S), 3600);
    bh_put_decimal(w, "spent_money", view->spent_money, BH_MONEY_UNIT);
    bh_json_close(w, '}');
}

static enum bh_boundary
boundary_of(const struct bh_ev_tenant *settings)
{
    return settings->boundary == BH_BOUNDARY_UNSET ? bh_boundary_default(settings->kind) : settings->boundary;
}

static void
tenants_put_tenant(struct bh_call *call, struct bh_json_writer *w, const struct bh_dir_tenant *named,
                   const struct bh_tenant_view *view)
{
    const struct bh_ev_tenant *settings = &view->settings;

    bh_json_open(w, NULL, '{');
    bh_json_str(w, "boundary", bh_boundary_names[boundary_of(settings)]);
    tenants_put_budget(w, view);
    bh_json_bool(w, "dedicated_nodes", settings->dedicated_nodes);
    bh_put_decimal(w, "fair_gpu_hours", view->fair, 3600);
    bh_put_gpus(w, "guarantee", settings->guarantee);
    bh_json_u64(w, "guarantee_parts", settings->guarantee);
    bh_json_u64(w, "id", named->id.v);
    bh_json_str(w, "kind", bh_tenant_kind_names[settings->kind]);
    bh_put_gpus(w, "lending_limit", settings->guarantee - settings->withhold);
    bh_put_gpus(w, "limit", settings->limit);
    if (settings->limit != BH_UNLIMITED)
        bh_json_u64(w, "limit_parts", settings->limit);
    if (settings->min_runtime_ns)
        bh_json_ns(w, "min_runtime_ns", settings->min_runtime_ns);
    bh_json_str(w, "name", named->path);
    bh_json_u64(w, "pending", view->pending);
    bh_json_u64(w, "running", view->running);
    put_quotas(call, w, view);
    bh_put_gpus(w, "used", view->used);
    bh_json_u64(w, "used_parts", view->used);
    if (settings->user_limit)
        bh_put_gpus(w, "user_limit", settings->user_limit);
    bh_json_u64(w, "weight", settings->weight);
    bh_json_close(w, '}');
}

bh_rc
bh_tenants_list(struct bh_call *call, struct bh_err *err)
{
    struct bh_json_writer w = bh_call_writer(call);
    struct tenant_question q = { .dir = call->dir };
    struct bh_visible visible;
    uint64_t total = 0;
    bh_rc rc = bh_visible_find(call, "tenant.view", &visible, err);
    if (rc != BH_OK)
        return rc;

    rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *q.views, &q.views, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, ask_tenants, &q, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "items", '[');
    for (uint32_t i = 0; i < call->dir->tenant_count; i++) {
        const struct bh_dir_tenant *named = &call->dir->tenants[i];

        if (named->gone || !q.views[i].settings.tenant.v || !bh_visible_has(&visible, named->id.v))
            continue;
        tenants_put_tenant(call, &w, named, &q.views[i]);
        total++;
    }
    bh_json_close(&w, ']');
    bh_json_u64(&w, "total", total);
    bh_json_close(&w, '}');
    return BH_OK;
}
