#include "api/site/tenants.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/request/amounts.h"
#include "api/request/reply.h"
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

/* GPUs of a model, or partitions of a SKU, as JSON; null where there is no limit. */
static struct bh_slice
tenants_amount(enum bh_quota_scope scope, uint64_t amount, char text[BH_AMOUNT_SIZE])
{
    char gpus[BH_AMOUNT_SIZE];

    if (amount == BH_UNLIMITED)
        return bh_reply_slice("null");
    if (scope == BH_QUOTA_MODEL)
        snprintf(text, BH_AMOUNT_SIZE, "\"%s\"", bh_gpus_text(amount, gpus));
    else
        snprintf(text, BH_AMOUNT_SIZE, "%" PRIu64, amount);
    return bh_reply_slice(text);
}

/* The quotas of a tenant, while its row is written. */
struct tenant_quotas {
    struct bh_reply_tenant_quota rows[BH_TENANT_QUOTAS_MAX];
    char texts[BH_TENANT_QUOTAS_MAX][4][BH_AMOUNT_SIZE];
};

static void
tenants_fill_quota(const struct bh_call *call, const struct bh_tenant_view *view, uint32_t at,
                   struct tenant_quotas *ret)
{
    const struct bh_tenant_quota *quota = &view->settings.quotas[at];
    const struct bh_dir_sku *sku = bh_directory_sku(call->dir, (bh_sku_id){ quota->of });
    bool of_sku = quota->scope == BH_QUOTA_SKU;

    ret->rows[at] = (struct bh_reply_tenant_quota){
        .guarantee = tenants_amount(quota->scope, quota->guarantee, ret->texts[at][0]),
        .lending_limit = tenants_amount(quota->scope, quota->guarantee - quota->withhold, ret->texts[at][1]),
        .limit = tenants_amount(quota->scope, quota->limit, ret->texts[at][2]),
        .model = of_sku ? NULL : bh_model_facts((enum bh_gpu_model)quota->of)->name,
        .sku = !of_sku ? NULL
               : sku   ? sku->name
                       : "",
        .used = tenants_amount(quota->scope, view->quota_used[at], ret->texts[at][3]),
    };
}

static enum bh_boundary
boundary_of(const struct bh_ev_tenant *settings)
{
    return settings->boundary == BH_BOUNDARY_UNSET ? bh_boundary_default(settings->kind) : settings->boundary;
}

static void
tenants_put_tenant(const struct bh_call *call, struct bh_rows *rows, const struct bh_dir_tenant *named,
                   const struct bh_tenant_view *view)
{
    const struct bh_ev_tenant *settings = &view->settings;
    const struct bh_budget *budget = &settings->budget;
    uint64_t spent_s = (uint64_t)(view->spent_gpu / BH_GPU_PARTS / BH_NS_PER_S);
    const struct bh_reply_tenant_budget spending = {
        .gpu_hours = bh_decimal_text(budget->gpu_s, 3600, BH_AMOUNT_TEXT),
        .money = bh_decimal_text(budget->money, BH_MONEY_UNIT, BH_AMOUNT_TEXT),
        .period = bh_period_names[budget->period],
        .spent_gpu_hours = bh_decimal_text(spent_s, 3600, BH_AMOUNT_TEXT),
        .spent_money = bh_decimal_text(view->spent_money, BH_MONEY_UNIT, BH_AMOUNT_TEXT),
    };
    struct tenant_quotas quotas;
    const struct bh_reply_tenant_shown row = {
        .boundary = bh_boundary_names[boundary_of(settings)],
        .budget = budget->period == BH_PERIOD_NONE ? NULL : &spending,
        .dedicated_nodes = settings->dedicated_nodes,
        .fair_gpu_hours = bh_decimal_text(view->fair, 3600, BH_AMOUNT_TEXT),
        .guarantee = bh_gpus_text(settings->guarantee, BH_AMOUNT_TEXT),
        .guarantee_parts = settings->guarantee,
        .id = named->id.v,
        .kind = bh_tenant_kind_names[settings->kind],
        .lending_limit = bh_gpus_text(settings->guarantee - settings->withhold, BH_AMOUNT_TEXT),
        .limit = bh_gpus_text(settings->limit, BH_AMOUNT_TEXT),
        .limit_parts = settings->limit == BH_UNLIMITED ? (uint64_t)BH_UNSET : settings->limit,
        .min_runtime_ns = settings->min_runtime_ns,
        .name = named->path,
        .pending = view->pending,
        .quotas = { quotas.rows, settings->quota_count },
        .running = view->running,
        .used = bh_gpus_text(view->used, BH_AMOUNT_TEXT),
        .used_parts = view->used,
        .user_limit = settings->user_limit ? bh_gpus_text(settings->user_limit, BH_AMOUNT_TEXT) : NULL,
        .weight = settings->weight,
    };

    for (uint32_t i = 0; i < settings->quota_count; i++)
        tenants_fill_quota(call, view, i, &quotas);
    (void)bh_rows_put(rows, &row);
}

bh_rc
bh_tenants_list(struct bh_call *call, struct bh_err *err)
{
    struct tenant_question q = { .dir = call->dir };
    struct bh_visible visible;
    struct bh_rows rows;
    bh_rc rc = bh_visible_find(call, "tenant.view", &visible, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *q.views, &q.views, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, ask_tenants, &q, err);
    if (rc != BH_OK)
        return rc;
    rows = bh_rows_begin(call, &bh_reply_tenant_list_fields);
    for (uint32_t i = 0; i < call->dir->tenant_count; i++) {
        const struct bh_dir_tenant *named = &call->dir->tenants[i];

        if (!named->gone && q.views[i].settings.tenant.v && bh_visible_has(&visible, named->id.v))
            tenants_put_tenant(call, &rows, named, &q.views[i]);
    }
    bh_rows_end(&rows, &(struct bh_reply_tenant_list){ .total = rows.count });
    return BH_OK;
}
