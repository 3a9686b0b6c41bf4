#include "api/tenants.h"

#include "api/visible.h"
#include "policy/gpus.h"

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

/* GPU-equivalents as text; null where there is no limit. */
static void
put_gpus(struct bh_json_writer *w, const char *key, uint64_t parts)
{
    char text[48];
    struct bh_buf amount;

    if (parts == BH_UNLIMITED) {
        bh_json_raw(w, key, "null");
        return;
    }
    bh_buf_init_fixed(&amount, text, sizeof text);
    bh_gpus_put_amount(&amount, parts);
    bh_json_str(w, key, bh_buf_text(&amount));
}

static void
put_sku_limits(struct bh_call *call, struct bh_json_writer *w, const struct bh_tenant_view *view)
{
    bh_json_open(w, "sku_limits", '[');
    for (uint32_t i = 0; i < view->settings.sku_count; i++) {
        const struct bh_dir_sku *sku = bh_directory_sku(call->dir, view->settings.skus[i].sku);

        bh_json_open(w, NULL, '{');
        bh_json_u64(w, "limit", view->settings.skus[i].count);
        bh_json_str(w, "sku", sku ? sku->name : "");
        bh_json_u64(w, "used", view->sku_used[i]);
        bh_json_close(w, '}');
    }
    bh_json_close(w, ']');
}

static enum bh_boundary
boundary_of(const struct bh_ev_tenant *settings)
{
    return settings->boundary == BH_BOUNDARY_UNSET ? bh_boundary_default(settings->kind)
                                                   : settings->boundary;
}

static void
put_tenant(struct bh_call *call, struct bh_json_writer *w, const struct bh_dir_tenant *named,
           const struct bh_tenant_view *view)
{
    const struct bh_ev_tenant *settings = &view->settings;

    bh_json_open(w, NULL, '{');
    bh_json_str(w, "boundary", bh_boundary_names[boundary_of(settings)]);
    bh_json_bool(w, "dedicated_nodes", settings->dedicated_nodes);
    put_gpus(w, "guarantee", settings->guarantee);
    bh_json_u64(w, "guarantee_parts", settings->guarantee);
    bh_json_u64(w, "id", named->id.v);
    bh_json_str(w, "kind", bh_tenant_kind_names[settings->kind]);
    put_gpus(w, "limit", settings->limit);
    if (settings->limit != BH_UNLIMITED)
        bh_json_u64(w, "limit_parts", settings->limit);
    bh_json_str(w, "name", named->path);
    bh_json_u64(w, "pending", view->pending);
    bh_json_u64(w, "running", view->running);
    put_sku_limits(call, w, view);
    put_gpus(w, "used", view->used);
    bh_json_u64(w, "used_parts", view->used);
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

    if (rc == BH_OK)
        rc = bh_call_alloc(call, call->dir->tenant_count * sizeof *q.views, &q.views, err);
    if (rc == BH_OK)
        rc = bh_call_ask(call, ask_tenants, &q, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "items", '[');
    for (uint32_t i = 0; i < call->dir->tenant_count; i++) {
        const struct bh_dir_tenant *named = &call->dir->tenants[i];

        if (named->gone || !q.views[i].settings.tenant.v
            || !bh_visible_has(&visible, named->id.v))
            continue;
        put_tenant(call, &w, named, &q.views[i]);
        total++;
    }
    bh_json_close(&w, ']');
    bh_json_u64(&w, "total", total);
    bh_json_close(&w, '}');
    return BH_OK;
}
