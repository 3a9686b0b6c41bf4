#include "api/site/status.h"

#include "api/nodes/gpus.h"
#include "api/request/reply.h"
#include "api/request/visible.h"

enum { INVENTORY_JSON_MAX = 16 << 20, DEMANDS_MAX = 128 };

struct status_question {
    struct bh_visible visible;
    uint64_t now_ns, oldest_ns;
    uint32_t running, pending, tenants, gpus, managed, fenced;
    uint32_t free, whole, mig, shared; /* of those managed */
    struct bh_parts used, idle, dedicated, unusable, causes[BH_UNUSABLES];
    struct bh_demand_view asked[BH_GPU_MODELS]; /* no shapes: not known */
};

/* How a GPU is divided; one on which nothing is held or made is free. */
static void
status_count_mode(struct status_question *q, const struct bh_gpu_view *gpu)
{
    bool busy = bh_parts_equivalent(gpu->used) > 0
                || bh_parts_equivalent(gpu->causes[BH_UNUSABLE_CARVING]) > 0
                || bh_parts_equivalent(gpu->causes[BH_UNUSABLE_UNHEARD]) > 0;

    if (!gpu->managed)
        return;
    q->mig += gpu->mig;
    q->free += !gpu->mig && !busy;
    q->shared += !gpu->mig && busy && gpu->shared;
    q->whole += !gpu->mig && busy && !gpu->shared;
}

static void
status_add_gpu(struct status_question *q, const struct bh_gpu_view *gpu)
{
    q->gpus++;
    q->managed += gpu->managed;
    q->fenced += gpu->fenced || (gpu->health != BH_HEALTH_OK && gpu->health != BH_HEALTH_WATCHED);
    status_count_mode(q, gpu);
    q->used = bh_parts_add(q->used, gpu->used);
    q->idle = bh_parts_add(q->idle, gpu->idle);
    q->dedicated = bh_parts_add(q->dedicated, gpu->dedicated);
    q->unusable = bh_parts_add(q->unusable, gpu->unusable);
    for (uint32_t i = 0; i < BH_UNUSABLES; i++)
        q->causes[i] = bh_parts_add(q->causes[i], gpu->causes[i]);
}

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
    while (bh_view_next_gpu(engine, &cursor, &gpu))
        status_add_gpu(q, &gpu);
    for (uint32_t model = 0; model < BH_GPU_MODELS; model++)
        if (!bh_view_demand(engine, model, &q->asked[model]))
            q->asked[model].shapes = 0;
}

/* The sizes that were requested lately, by which capacity on MIG GPUs is kept: of all tenants together, so
 * only for callers that may see the whole site. */
static struct bh_list
status_demand_of(const struct bh_call *call, const struct status_question *q,
                 struct bh_reply_status_demand rows[DEMANDS_MAX])
{
    uint32_t count = 0;

    if (!bh_authz_check(call->dir, &call->caller.subject, "site.view", (bh_tenant_id){ 0 }).allow)
        return (struct bh_list){ NULL, 0 };
    for (uint32_t model = 0; model < BH_GPU_MODELS; model++)
        for (uint32_t i = 0; i < q->asked[model].shapes && count < DEMANDS_MAX; i++) {
            bh_profile_id id = { q->asked[model].profiles[i] };

            if (q->asked[model].partitions[i] == 0)
                continue;
            rows[count++] =
                (struct bh_reply_status_demand){ .model = bh_model_facts((enum bh_gpu_model)model)->name,
                                                 .partitions = q->asked[model].partitions[i],
                                                 .profile = bh_profile_get(id)->name };
        }
    return (struct bh_list){ rows, count };
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

/* Checkpoints wait while the signer is away: the age of the last one shows it. */
static struct bh_reply_status_checkpoint
status_checkpoint_of(const struct bh_owner *owner, uint64_t now_ns)
{
    struct bh_signed last = owner->ops->last_signed(owner->self);

    return (struct bh_reply_status_checkpoint){
        .age_ns = !last.at_ns           ? (uint64_t)BH_UNSET
                  : now_ns > last.at_ns ? now_ns - last.at_ns
                                        : 0,
        .at_ns = last.at_ns,
        .records = last.records,
    };
}

static bool
status_read_submitted(void *self, const struct bh_job_row *row)
{
    uint64_t *submitted_ns = self;

    *submitted_ns = row->submitted_ns;
    return false;
}

/* When the pending job of the lowest number was submitted; 0: none waits that the caller sees. */
static bh_rc
status_read_oldest(struct bh_call *call, const struct bh_visible *visible, uint64_t *ret_ns,
                   struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    const struct bh_job_filter filter = { .tenants = visible->all ? NULL : visible->ids,
                                          .tenant_count = visible->all ? 0 : visible->count,
                                          .active_only = true,
                                          .state = "pending",
                                          .limit = 1 };

    *ret_ns = 0;
    if (!visible->all && visible->count == 0)
        return BH_OK;
    return store->ops->list_jobs(store->self, &filter, status_read_submitted, ret_ns, err);
}

static struct bh_reply_status_gpus
status_gpus_of(const struct status_question *q, const struct bh_reply_gpu_unusable_by *unusable_by,
               char texts[4][BH_AMOUNT_SIZE])
{
    return (struct bh_reply_status_gpus){
        .dedicated = bh_gpus_parts(q->dedicated, texts[0]),
        .fenced = q->fenced,
        .free = q->free,
        .idle = bh_gpus_parts(q->idle, texts[1]),
        .managed = q->managed,
        .mig = q->mig,
        .shared = q->shared,
        .total = q->gpus,
        .unusable = bh_gpus_parts(q->unusable, texts[2]),
        .unusable_by = q->visible.all && bh_parts_equivalent(q->unusable) > 0 ? unusable_by : NULL,
        .used = bh_gpus_parts(q->used, texts[3]),
        .whole = q->whole,
    };
}

static void
status_write(struct bh_call *call, const struct status_question *q, uint64_t records)
{
    const struct bh_api_options *options = &call->api->options;
    BH_AUTO(bh_json_free) struct bh_json *first = NULL;
    uint64_t nodes = status_count_nodes(&options->owner, &first);
    bh_json_value root = first ? bh_json_root(first) : NULL;
    struct bh_reply_status_demand demand[DEMANDS_MAX];
    char texts[4][BH_AMOUNT_SIZE], causes[BH_UNUSABLES][BH_AMOUNT_SIZE];
    const struct bh_reply_gpu_unusable_by unusable_by = bh_gpus_unusable_by(q->causes, causes);

    BH_REPLY_WITH(call, status, .asked_for = status_demand_of(call, q, demand), .at_ns = q->now_ns,
                  .checkpoint = status_checkpoint_of(&options->owner, q->now_ns),
                  .clock_ahead_ms = ((int64_t)bh_call_now(call) - (int64_t)q->now_ns) / (int64_t)BH_NS_PER_MS,
                  /* these count what all tenants do */
                  .commits =
                      q->visible.all ? options->owner.ops->commits(options->owner.self) : (uint64_t)BH_UNSET,
                  .records = q->visible.all ? records : (uint64_t)BH_UNSET,
                  .gpus = status_gpus_of(q, &unusable_by, texts),
                  .jobs = { .oldest_ns = q->oldest_ns, .pending = q->pending, .running = q->running },
                  .node = { .connected = nodes > 0,
                            .driver = bh_json_text(bh_json_get(root, "driver"), ""),
                            .name = bh_json_text(bh_json_get(root, "node"), ""),
                            .runtime = bh_json_text(bh_json_get(root, "runtime"), "") },
                  .nodes = nodes, .store = options->store.ops->name, .tenants = q->tenants,
                  .version = options->version);
}

bh_rc
bh_status_show(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct status_question q = { 0 };
    uint64_t last = 0;
    bh_rc rc = store->ops->last_record(store->self, &last, err);
    uint64_t records = rc == BH_OK ? last + 1 : 0;

    if (rc == BH_OK || rc == BH_NOT_FOUND)
        rc = bh_visible_find(call, "job.view", &q.visible, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_call_ask(call, ask_status, &q, err);
    if (rc == BH_OK)
        rc = status_read_oldest(call, &q.visible, &q.oldest_ns, err);
    if (rc != BH_OK)
        return rc;
    status_write(call, &q, records);
    return BH_OK;
}

bh_rc
bh_status_health(struct bh_call *call, struct bh_err *err)
{
    const struct bh_store *store = &call->api->options.store;
    struct bh_err gone; /* names a path, which is not for everyone */

    if (store->ops->check_files(store->self, &gone) == BH_OK)
        BH_REPLY_WITH(call, health, .status = "ok");
    else
        BH_REPLY_WITH(call, health, .status = "degraded",
                      .why = "the store's files were removed or replaced while they are in use");
    return BH_OK;
}
