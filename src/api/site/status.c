#include "api/site/status.h"

#include "api/request/visible.h"

enum { INVENTORY_JSON_MAX = 16 << 20 };

struct status_question {
    struct bh_visible visible;
    uint64_t now_ns;
    uint32_t running, pending, tenants, gpus, managed, fenced;
    struct bh_demand_view asked[BH_GPU_MODELS]; /* no shapes: not known */
};

static void
ask_status(void *self, const struct bh_engine *engine, uint64_t now_ns)
{
    struct status_question *q = self;
    struct bh_tenant_view tenant;
    struct bh_gpu_view gpu;
    uint32_t cursor = 0;

    q->now_ns = now_ns;
    while (bh_view_next_tenant(engine, &cursor, now_ns, &tenant)) {
        if (!bh_visible_has(&q->visible, tenant.settings.tenant.v))
            continue;
        q->tenants++;
        if (tenant.settings.parent.v /* whose counts hold its subtree's */
            && bh_visible_has(&q->visible, tenant.settings.parent.v))
            continue;
        q->running += tenant.running;
        q->pending += tenant.pending;
    }
    cursor = 0;
    while (bh_view_next_gpu(engine, &cursor, &gpu)) {
        q->gpus++;
        q->managed += gpu.managed;
        q->fenced += gpu.fenced || (gpu.health != BH_HEALTH_OK && gpu.health != BH_HEALTH_WATCHED);
    }
    for (uint32_t model = 0; model < BH_GPU_MODELS; model++)
        if (!bh_view_demand(engine, model, &q->asked[model]))
            q->asked[model].shapes = 0;
}

static void
status_put_counts(struct bh_json_writer *w, const struct status_question *q)
{
    bh_json_open(w, "gpus", '{');
    bh_json_u64(w, "fenced", q->fenced);
    bh_json_u64(w, "managed", q->managed);
    bh_json_u64(w, "total", q->gpus);
    bh_json_close(w, '}');
    bh_json_open(w, "jobs", '{');
    bh_json_u64(w, "pending", q->pending);
    bh_json_u64(w, "running", q->running);
    bh_json_close(w, '}');
}

/* The sizes that were asked for lately, which room on MIG GPUs is kept by: of all tenants
 * together, so for those who may see the whole site. */
static void
status_put_asked(const struct bh_call *call, struct bh_json_writer *w, const struct status_question *q)
{
    if (!bh_authz_check(call->dir, &call->caller.subject, "site.view", (bh_tenant_id){ 0 }).allow)
        return;
    bh_json_open(w, "asked_for", '[');
    for (uint32_t model = 0; model < BH_GPU_MODELS; model++)
        for (uint32_t i = 0; i < q->asked[model].shapes; i++) {
            bh_profile_id id = { q->asked[model].profiles[i] };

            if (q->asked[model].partitions[i] == 0)
                continue;
            bh_json_open(w, NULL, '{');
            bh_json_str(w, "model", bh_model_facts((enum bh_gpu_model)model)->name);
            bh_json_u64(w, "pieces", q->asked[model].partitions[i]);
            bh_json_str(w, "profile", bh_profile_get(id)->name);
            bh_json_close(w, '}');
        }
    bh_json_close(w, ']');
}

/* How many nodes are connected, and the first one's inventory: many are not read for it. */
static uint64_t
status_count_nodes(const struct bh_owner *owner, struct bh_json **ret_first)
{
    uint32_t cursor = 0;
    uint64_t count = 0;
    struct bh_err unused;
    struct bh_buf text;

    bh_buf_init(&text, INVENTORY_JSON_MAX);
    while (owner->ops->inventory(owner->self, &cursor, &text)) {
        if (count++ == 0 && bh_buf_text(&text)
            && bh_json_parse(bh_buf_text(&text), text.length, ret_first, &unused) != BH_OK)
            *ret_first = NULL;
        bh_buf_clear(&text);
    }
    bh_buf_fini(&text);
    return count;
}

static void
status_put_nodes(struct bh_json_writer *w, const struct bh_owner *owner)
{
    BH_AUTO(bh_json_free) struct bh_json *first = NULL;
    uint64_t count = status_count_nodes(owner, &first);
    bh_json_value root = first ? bh_json_root(first) : NULL;

    bh_json_open(w, "node", '{');
    bh_json_bool(w, "connected", count > 0);
    bh_json_str(w, "driver", bh_json_text(bh_json_get(root, "driver"), ""));
    bh_json_str(w, "name", bh_json_text(bh_json_get(root, "node"), ""));
    bh_json_str(w, "runtime", bh_json_text(bh_json_get(root, "runtime"), ""));
    bh_json_close(w, '}');
    bh_json_u64(w, "nodes", count);
}

/* While the signer is away checkpoints wait: their age tells. */
static void
status_put_checkpoint(struct bh_json_writer *w, const struct bh_owner *owner, uint64_t now_ns)
{
    struct bh_signed last = owner->ops->last_signed(owner->self);

    bh_json_open(w, "checkpoint", '{');
    if (last.at_ns)
        bh_json_ns(w, "age_ns", now_ns > last.at_ns ? now_ns - last.at_ns : 0);
    bh_json_ns(w, "at_ns", last.at_ns);
    bh_json_u64(w, "records", last.records);
    bh_json_close(w, '}');
}

/* How far the wall clock is ahead of engine time (negative: behind it). */
static void
status_put_clock(const struct bh_call *call, struct bh_json_writer *w, uint64_t now_ns)
{
    int64_t ahead_ns = (int64_t)bh_call_now(call) - (int64_t)now_ns;

    bh_json_i64(w, "clock_ahead_ms", ahead_ns / (int64_t)BH_NS_PER_MS);
}

bh_rc
bh_status_show(struct bh_call *call, struct bh_err *err)
{
    const struct bh_api_options *options = &call->api->options;
    struct bh_json_writer w = bh_call_writer(call);
    struct status_question q = { 0 };
    uint64_t last = 0;
    bh_rc rc = options->store.ops->last_record(options->store.self, &last, err);
    uint64_t records = rc == BH_OK ? last + 1 : 0;

    if (rc == BH_OK || rc == BH_NOT_FOUND)
        rc = bh_visible_find(call, "job.view", &q.visible, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, ask_status, &q, err);
    if (rc != BH_OK)
        return rc;
    bh_json_open(&w, NULL, '{');
    status_put_asked(call, &w, &q);
    bh_json_ns(&w, "at_ns", q.now_ns);
    status_put_checkpoint(&w, &options->owner, q.now_ns);
    status_put_clock(call, &w, q.now_ns);
    if (q.visible.all) /* it counts what everybody does */
        bh_json_u64(&w, "commits", options->owner.ops->commits(options->owner.self));
    status_put_counts(&w, &q);
    status_put_nodes(&w, &options->owner);
    if (q.visible.all)
        bh_json_u64(&w, "records", records);
    bh_json_str(&w, "store", options->store.ops->name);
    bh_json_u64(&w, "tenants", q.tenants);
    bh_json_str(&w, "version", options->version);
    bh_json_close(&w, '}');
    return BH_OK;
}

bh_rc
bh_status_health(struct bh_call *call, struct bh_err *err)
{
    bh_buf_puts(&call->reply->body, "{\"status\":\"ok\"}");
    return BH_OK;
}
