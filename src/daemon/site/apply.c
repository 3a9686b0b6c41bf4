#include "daemon/site/apply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/binding.h"
#include "base/assert.h"
#include "base/json.h"
#include "base/num.h"
#include "daemon/authorization/command.h"
#include "daemon/batch/step.h"
#include "daemon/changes/accounts.h"
#include "daemon/changes/shred.h"
#include "daemon/changes/tokens.h"
#include "daemon/names/site_gpu.h"
#include "daemon/state/gpu_facts.h"

/* A fleet of 4096 nodes with 8 GPUs may change in every GPU. */
enum { PLAN_MAX = 40960, PLAN_ARENA_MAX = 8 << 20 };

/* One change: the event, and the name whose id it uses (made when it is run). */
struct apply_change {
    struct bh_event event;
    enum bh_name_kind kind;
    const char *name;
    bool is_new, drop;
};

struct bh_apply_plan {
    struct apply_change changes[PLAN_MAX];
    uint32_t count;
    uint32_t next_id[BH_NAME_KINDS]; /* ids that new names will get */
    const char *new_names[BH_NAME_KINDS][PLAN_MAX];
    uint32_t new_counts[BH_NAME_KINDS];
    struct bh_arena *arena;
};

void
bh_plan_free(struct bh_apply_plan *plan)
{
    if (!plan)
        return;
    bh_arena_free(plan->arena);
    free(plan);
}

/* The id that `name` has now, had before, or will get from this plan. */
static uint32_t
apply_planned_id(struct bh_apply_plan *plan, const struct bh_core *core, enum bh_name_kind kind,
                 const char *name, bool *ret_new)
{
    uint32_t id = bh_catalog_known(core->catalog, kind, name);

    *ret_new = false;
    if (id)
        return id;
    for (id = 1; bh_catalog_name_of(core->catalog, kind, id); id++)
        ;
    for (uint32_t i = 0; i < plan->new_counts[kind]; i++)
        if (strcmp(plan->new_names[kind][i], name) == 0)
            return id + i;
    BH_ASSERT(plan->new_counts[kind] < PLAN_MAX);
    plan->new_names[kind][plan->new_counts[kind]] = name;
    *ret_new = true;
    return id + plan->new_counts[kind]++;
}

static struct apply_change *
apply_add_change(struct bh_apply_plan *plan, enum bh_name_kind kind, const char *name)
{
    struct apply_change *change;

    if (plan->count == PLAN_MAX)
        return NULL;
    change = &plan->changes[plan->count++];
    *change = (struct apply_change){ .kind = kind, .name = bh_arena_strdup(plan->arena, name) };
    return change;
}

/* An amount that was checked before. */
static uint64_t
apply_amount_of(const char *text, uint64_t unit, uint64_t otherwise)
{
    struct bh_err err;
    uint64_t amount;

    if (!text)
        return otherwise;
    return bh_parse_parts(text, unit, &amount, &err) == BH_OK ? amount : otherwise;
}

/* What is kept of a guarantee when so much of it is lent. */
static uint64_t
apply_withheld(uint64_t guarantee, const char *lending_limit, uint64_t unit)
{
    return guarantee - apply_amount_of(lending_limit, unit, guarantee);
}

static uint64_t
apply_span_of(const char *text)
{
    struct bh_err err;
    uint64_t span_ns;

    return text && bh_parse_span(text, &span_ns, &err) == BH_OK ? span_ns : 0;
}

static uint64_t
apply_burn_in_of(const char *text)
{
    return text ? apply_span_of(text) : BH_BURN_IN_DEFAULT_NS;
}

static uint64_t
apply_half_life_of(const char *text)
{
    if (text && strcmp(text, "never") == 0)
        return BH_UNLIMITED;
    return text ? apply_span_of(text) : BH_HALF_LIFE_DEFAULT_NS;
}

static uint32_t
apply_parent_of(struct bh_apply_plan *plan, const struct bh_core *core, const char *path)
{
    const char *slash = strrchr(path, '/');
    bool ignored;

    if (!slash)
        return 0;
    return apply_planned_id(plan, core, BH_NAME_TENANT,
                            bh_arena_strndup(plan->arena, path, (size_t)(slash - path)), &ignored);
}

static void
apply_fill_quotas(struct bh_apply_plan *plan, const struct bh_core *core, const struct bh_site_tenant *from,
                  struct bh_ev_tenant *tenant)
{
    const struct bh_site_quota *quotas = from->quotas.items;
    bool ignored;

    for (uint32_t i = 0; i < from->quotas.count && i < BH_TENANT_QUOTAS_MAX; i++) {
        const struct bh_site_quota *quota = &quotas[i];
        uint64_t unit = quota->sku ? 1 : BH_GPU_PARTS;
        uint64_t guarantee = apply_amount_of(quota->guarantee, unit, 0);

        tenant->quotas[tenant->quota_count++] = (struct bh_tenant_quota){
            .scope = quota->sku ? BH_QUOTA_SKU : BH_QUOTA_MODEL,
            .of = quota->sku ? apply_planned_id(plan, core, BH_NAME_SKU, quota->sku, &ignored)
                             : bh_model_find(quota->model),
            .limit = apply_amount_of(quota->limit, unit, BH_UNLIMITED),
            .guarantee = guarantee,
            .withhold = apply_withheld(guarantee, quota->lending_limit, unit),
        };
    }
}

static void
apply_fill_tenant(struct bh_apply_plan *plan, const struct bh_core *core, const struct bh_site_tenant *from,
                  struct bh_ev_tenant *ret_tenant, bool *ret_new)
{
    uint64_t guarantee = apply_amount_of(from->guarantee, BH_GPU_PARTS, 0);

    *ret_tenant = (struct bh_ev_tenant){
        .tenant = { apply_planned_id(plan, core, BH_NAME_TENANT, from->name, ret_new) },
        .kind = bh_site_tenant_kind(from),
        .boundary = from->boundary,
        .dedicated_nodes = from->dedicated_nodes,
        .limit = apply_amount_of(from->limit, BH_GPU_PARTS, BH_UNLIMITED),
        .guarantee = guarantee,
        .withhold = apply_withheld(guarantee, from->lending_limit, BH_GPU_PARTS),
        .min_runtime_ns = apply_span_of(from->min_runtime),
        .user_limit = apply_amount_of(from->user_limit, BH_GPU_PARTS, 0),
        .weight = from->weight ? from->weight : BH_WEIGHT_DEFAULT,
        .budget = { .period = from->budget.period,
                    .gpu_s = apply_amount_of(from->budget.gpu_hours, 3600, BH_UNLIMITED),
                    .money = apply_amount_of(from->budget.money, BH_MONEY_UNIT, BH_UNLIMITED) },
    };
    ret_tenant->parent.v = apply_parent_of(plan, core, from->name);
    apply_fill_quotas(plan, core, from, ret_tenant);
}

static bool
apply_same_quotas(const struct bh_ev_tenant *a, const struct bh_ev_tenant *b)
{
    return a->quota_count == b->quota_count
           && memcmp(a->quotas, b->quotas, a->quota_count * sizeof a->quotas[0]) == 0;
}

static bool
apply_same_budget(const struct bh_budget *a, const struct bh_budget *b)
{
    return a->period == b->period && a->gpu_s == b->gpu_s && a->money == b->money;
}

static bool
apply_same_tenant(const struct bh_ev_tenant *a, const struct bh_ev_tenant *b)
{
    return a->parent.v == b->parent.v && a->kind == b->kind && a->boundary == b->boundary
           && a->dedicated_nodes == b->dedicated_nodes && a->limit == b->limit && a->guarantee == b->guarantee
           && a->withhold == b->withhold && a->min_runtime_ns == b->min_runtime_ns
           && a->user_limit == b->user_limit && a->weight == b->weight
           && apply_same_budget(&a->budget, &b->budget) && apply_same_quotas(a, b);
}

static bh_rc
apply_plan_full(struct bh_err *err)
{
    return bh_err_set(err, BH_RANGE, "the file changes more than %d objects at once", PLAN_MAX);
}

static bh_rc
apply_plan_tenants(struct bh_apply_plan *plan, struct bh_core *core, const struct bh_site *site,
                   struct bh_err *err)
{
    const struct bh_site_tenant *tenants = site->tenants.items;

    for (uint32_t i = 0; i < site->tenants.count; i++) {
        struct bh_ev_tenant wanted;
        struct bh_tenant_view present;
        struct apply_change *change;
        bool is_new, known;

        apply_fill_tenant(plan, core, &tenants[i], &wanted, &is_new);
        known = !is_new && bh_catalog_find(core->catalog, BH_NAME_TENANT, tenants[i].name)
                && bh_view_tenant(core->state.engine, wanted.tenant, bh_core_now(core), &present);
        if (known && apply_same_tenant(&wanted, &present.settings))
            continue;
        change = apply_add_change(plan, BH_NAME_TENANT, tenants[i].name);
        if (!change)
            return apply_plan_full(err);
        change->is_new = !known;
        change->event = (struct bh_event){ .kind = BH_EV_TENANT, .u.tenant = wanted };
    }
    return BH_OK;
}

/* What the file says of it; the engine's defaults else, so that they compare. */
static struct bh_defrag
apply_defrag_of(const struct bh_site_scheduling *from)
{
    struct bh_defrag defrag = {
        .mode = from->defrag,
        .moves = from->defrag_moves ? from->defrag_moves : BH_DEFRAG_MOVES_DEFAULT,
        .gain_percent = from->defrag_gain_percent ? from->defrag_gain_percent : BH_DEFRAG_GAIN_DEFAULT,
        .lost_gpu_s = apply_amount_of(from->defrag_gpu_hours, 3600, BH_DEFRAG_LOST_DEFAULT_GPU_S),
        .rest_ns = apply_span_of(from->defrag_rest),
    };

    if (!defrag.rest_ns)
        defrag.rest_ns = BH_DEFRAG_REST_DEFAULT_NS;
    return defrag;
}

static bool
apply_same_defrag(const struct bh_defrag *a, const struct bh_defrag *b)
{
    return a->mode == b->mode && a->moves == b->moves && a->gain_percent == b->gain_percent
           && a->lost_gpu_s == b->lost_gpu_s && a->rest_ns == b->rest_ns;
}

static bh_rc
apply_plan_scheduling(struct bh_apply_plan *plan, const struct bh_core *core, const struct bh_site *site,
                      struct bh_err *err)
{
    const struct bh_site_scheduling *from = &site->scheduling;
    struct bh_ev_settings present, wanted = { .order = from->order,
                                              .backfill = from->backfill != BH_SITE_OFF,
                                              .half_life_ns = apply_half_life_of(from->half_life),
                                              .assumed_run_ns = apply_span_of(from->assumed_run),
                                              .min_runtime_ns = apply_span_of(from->min_runtime),
                                              .burn_in_ns = apply_burn_in_of(from->burn_in),
                                              .lending = from->lending,
                                              .hotspots = from->hotspots == BH_SITE_ON,
                                              .preshape = from->preshape == BH_SITE_ON,
                                              .spread_kinds = from->spread_kinds == BH_SITE_ON,
                                              .defrag = apply_defrag_of(from) };

    if (!wanted.assumed_run_ns)
        wanted.assumed_run_ns = BH_ASSUMED_RUN_DEFAULT_NS;
    bh_view_settings(core->state.engine, &present);
    if (wanted.order == present.order && wanted.backfill == present.backfill
        && wanted.half_life_ns == present.half_life_ns && wanted.assumed_run_ns == present.assumed_run_ns
        && wanted.min_runtime_ns == present.min_runtime_ns && wanted.burn_in_ns == present.burn_in_ns
        && wanted.lending == present.lending && wanted.hotspots == present.hotspots
        && wanted.preshape == present.preshape && wanted.spread_kinds == present.spread_kinds
        && apply_same_defrag(&wanted.defrag, &present.defrag))
        return BH_OK;
    if (plan->count == PLAN_MAX)
        return apply_plan_full(err);
    plan->changes[plan->count++] =
        (struct apply_change){ .name = "scheduling",
                               .event = { .kind = BH_EV_SETTINGS, .u.settings = wanted } };
    return BH_OK;
}

static void
apply_fill_sku(struct bh_apply_plan *plan, const struct bh_core *core, const struct bh_site_sku *from,
               struct bh_ev_sku *ret_sku, bool *ret_new)
{
    const struct bh_site_sku_model *models = from->models.items;

    *ret_sku = (struct bh_ev_sku){
        .sku = { apply_planned_id(plan, core, BH_NAME_SKU, from->name, ret_new) },
        .grade = from->grade,
        .price = apply_amount_of(from->price, BH_MONEY_UNIT, 0),
    };
    for (uint32_t i = 0; i < from->models.count && i < BH_SKU_MODELS_MAX; i++) {
        ret_sku->models[ret_sku->model_count++] =
            (struct bh_sku_model){ bh_model_find(models[i].model), bh_site_sku_profile(&models[i]) };
    }
}

static bh_rc
apply_plan_skus(struct bh_apply_plan *plan, struct bh_core *core, const struct bh_site *site,
                struct bh_err *err)
{
    const struct bh_site_sku *skus = site->skus.items;

    for (uint32_t i = 0; i < site->skus.count; i++) {
        struct bh_ev_sku wanted, present;
        struct apply_change *change;
        bool is_new, known;

        apply_fill_sku(plan, core, &skus[i], &wanted, &is_new);
        known = !is_new && bh_catalog_find(core->catalog, BH_NAME_SKU, skus[i].name)
                && bh_view_sku(core->state.engine, wanted.sku, &present);
        if (known && present.grade == wanted.grade && present.price == wanted.price
            && present.model_count == wanted.model_count
            && memcmp(present.models, wanted.models, wanted.model_count * sizeof wanted.models[0]) == 0)
            continue;
        change = apply_add_change(plan, BH_NAME_SKU, skus[i].name);
        if (!change)
            return apply_plan_full(err);
        change->is_new = !known;
        change->event = (struct bh_event){ .kind = BH_EV_SKU, .u.sku = wanted };
    }
    return BH_OK;
}

/* A name without an engine event: it alone is kept. */
static bh_rc
apply_plan_name(struct bh_apply_plan *plan, const struct bh_core *core, enum bh_name_kind kind,
                const char *name, struct bh_err *err)
{
    struct apply_change *change;

    if (bh_catalog_find(core->catalog, kind, name))
        return BH_OK;
    change = apply_add_change(plan, kind, name);
    if (!change)
        return apply_plan_full(err);
    change->is_new = true;
    return BH_OK;
}

static bool
apply_planned(const struct bh_apply_plan *plan, enum bh_name_kind kind, const char *name)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->changes[i].kind == kind && strcmp(plan->changes[i].name, name) == 0)
            return true;
    return false;
}

/* Of principals, groups, and datasets, whose grants are read where they are asked about. */
static bh_rc
apply_plan_names(struct bh_apply_plan *plan, const struct bh_core *core, const struct bh_site *site,
                 struct bh_err *err)
{
    const struct bh_site_principal *principals = site->principals.items;
    const struct bh_site_binding *bindings = site->bindings.items;
    const struct bh_site_dataset *datasets = site->datasets.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < site->principals.count && rc == BH_OK; i++)
        rc = apply_plan_name(plan, core, BH_NAME_PRINCIPAL, principals[i].name, err);
    for (uint32_t i = 0; i < site->bindings.count && rc == BH_OK; i++)
        if (bindings[i].group && !apply_planned(plan, BH_NAME_GROUP, bindings[i].group))
            rc = apply_plan_name(plan, core, BH_NAME_GROUP, bindings[i].group, err);
    for (uint32_t i = 0; i < site->datasets.count && rc == BH_OK; i++)
        rc = apply_plan_name(plan, core, BH_NAME_DATASET, datasets[i].name, err);
    return rc;
}

static bool
apply_site_has_group(const struct bh_site *site, const char *name)
{
    const struct bh_site_binding *bindings = site->bindings.items;

    for (uint32_t i = 0; i < site->bindings.count; i++)
        if (bindings[i].group && strcmp(bindings[i].group, name) == 0)
            return true;
    return false;
}

static bool
apply_site_has(const struct bh_site *site, enum bh_name_kind kind, const char *name)
{
    switch ((int)kind) {
    case BH_NAME_TENANT:
        return bh_site_tenant_named(site, name) != NULL;
    case BH_NAME_SKU:
        return bh_site_sku_named(site, name) != NULL;
    case BH_NAME_DATASET:
        return bh_site_dataset_named(site, name) != NULL;
    case BH_NAME_GROUP:
        return apply_site_has_group(site, name);
    default: /* principals */
        return bh_site_principal_named(site, name) || strcmp(name, "root") == 0
               || bh_principal_is_issuers(site, name);
    }
}

static bh_rc
apply_plan_removals(struct bh_apply_plan *plan, const struct bh_core *core, enum bh_name_kind kind,
                    const struct bh_site *site, struct bh_err *err)
{
    uint32_t cursor = 0, id, first = plan->count;
    const char *name;

    while ((name = bh_catalog_next(core->catalog, kind, &cursor, &id))) {
        struct apply_change *change;

        if (apply_site_has(site, kind, name))
            continue;
        change = apply_add_change(plan, kind, name);
        if (!change)
            return apply_plan_full(err);
        change->drop = true;
        if (kind == BH_NAME_TENANT)
            change->event = (struct bh_event){ .kind = BH_EV_TENANT_REMOVE, .u.tenant.tenant = { id } };
        else if (kind == BH_NAME_SKU)
            change->event = (struct bh_event){ .kind = BH_EV_SKU_REMOVE, .u.sku.sku = { id } };
    }
    /* children were named after their parents: remove in the other direction */
    for (uint32_t a = first, b = plan->count; a + 1 < b; a++, b--) {
        struct apply_change kept = plan->changes[a];

        plan->changes[a] = plan->changes[b - 1];
        plan->changes[b - 1] = kept;
    }
    return BH_OK;
}

bool
bh_site_revives(const struct bh_core *core, const struct bh_site *site)
{
    const struct bh_site_tenant *tenants = site->tenants.items;
    struct bh_tenant_view view;

    for (uint32_t i = 0; i < site->tenants.count; i++) {
        uint32_t id = bh_catalog_known(core->catalog, BH_NAME_TENANT, tenants[i].name);

        if (id && !bh_catalog_find(core->catalog, BH_NAME_TENANT, tenants[i].name)
            && bh_view_tenant(core->state.engine, (bh_tenant_id){ id }, bh_core_now(core), &view))
            return true;
    }
    return false;
}

static bh_rc
apply_plan_gpus(struct bh_apply_plan *plan, struct bh_core *core, const struct bh_site *site,
                struct bh_err *err)
{
    struct bh_gpu_view view;
    uint32_t cursor = 0;

    while (bh_view_next_gpu(core->state.engine, &cursor, &view)) {
        const char *uuid = bh_catalog_name_of(core->catalog, BH_NAME_GPU, view.gpu.v);
        const struct bh_gpu_facts *facts;
        struct apply_change *change;
        struct bh_site_gpu_flags flags =
            bh_site_gpu_flags(site, uuid, bh_catalog_name_of(core->catalog, BH_NAME_NODE, view.node.v));

        facts = bh_gpu_facts_of(core, view.gpu);
        flags.managed = flags.managed && (facts->seen ? facts->usable : view.managed);
        if (flags.managed == view.managed && flags.cordoned == view.cordoned && flags.layout == view.layout
            && flags.share_limit == view.share_limit)
            continue;
        change = apply_add_change(plan, BH_NAME_GPU, uuid);
        if (!change)
            return apply_plan_full(err);
        change->event = (struct bh_event){ .kind = BH_EV_GPU, .u.gpu = bh_view_gpu_report(&view) };
        change->event.u.gpu.managed = flags.managed;
        change->event.u.gpu.cordoned = flags.cordoned;
        change->event.u.gpu.layout = flags.layout;
        change->event.u.gpu.share_limit = flags.share_limit;
    }
    return BH_OK;
}

/* A tenant whose tenants below go by the same file is kept by the jobs of those, which end when the
 * file is in force and not before: say that instead of what the file says already. */
static void
apply_name_jobs_below(const struct bh_core *core, const struct apply_change *change,
                      const struct bh_reason *why, struct bh_err *err)
{
    struct bh_tenant_view view;
    uint32_t jobs;

    if (why->code != BH_REASON_TENANT_BUSY
        || !bh_view_tenant(core->state.engine, why->tenant, bh_core_now(core), &view))
        return;
    jobs = view.running + view.pending;
    if (jobs == 0)
        return;
    bh_err_set(err, err->rc,
               "%.100s: %" PRIu32 " job%s of tenants below it, which the file leaves "
               "out too, must have ended first",
               change->name, jobs, jobs == 1 ? "" : "s");
    bh_err_hint(err, "cancel them or wait: `bulkhead ps --tenant %.80s`", change->name);
}

/* All events on a copy: the file is applied wholly or not at all. */
static bh_rc
apply_rehearse(const struct bh_apply_plan *plan, const struct bh_core *core, struct bh_err *err)
{
    struct bh_step *step = calloc(1, sizeof *step);
    struct bh_state copy;
    bh_rc rc = BH_OK;

    BH_ASSERT(step);
    bh_state_copy(&core->state, &copy);
    for (uint32_t i = 0; i < plan->count && rc == BH_OK; i++) {
        struct bh_event event = plan->changes[i].event;

        if (event.kind == BH_EV_TICK)
            continue;
        event.now_ns = bh_core_now(core);
        event.seq = core->journal.next_seq + i;
        rc = bh_state_step(&copy, &event, step);
        if (rc == BH_OK)
            continue;
        bh_command_explain(core, rc, &step->verdict, err);
        bh_err_wrap(err, "%s", plan->changes[i].name);
        apply_name_jobs_below(core, &plan->changes[i], &step->verdict, err);
    }
    bh_state_fini(&copy);
    free(step);
    return rc;
}

bh_rc
bh_plan_make(struct bh_core *core, const struct bh_site *site, struct bh_apply_plan **ret_plan,
             struct bh_err *err)
{
    static const enum bh_name_kind removed[] = { BH_NAME_TENANT, BH_NAME_PRINCIPAL, BH_NAME_GROUP,
                                                 BH_NAME_DATASET, BH_NAME_SKU };
    BH_AUTO(bh_plan_free) struct bh_apply_plan *plan = calloc(1, sizeof *plan);
    bh_rc rc;

    BH_ASSERT(plan);
    plan->arena = bh_arena_new(PLAN_ARENA_MAX);
    rc = bh_hold_check(core, site, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_plan_scheduling(plan, core, site, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_plan_skus(plan, core, site, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_plan_tenants(plan, core, site, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_plan_names(plan, core, site, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_plan_gpus(plan, core, site, err);
    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < BH_COUNT(removed) && rc == BH_OK; i++)
        rc = apply_plan_removals(plan, core, removed[i], site, err);
    if (rc != BH_OK)
        return rc;
    rc = apply_rehearse(plan, core, err);
    if (rc != BH_OK)
        return rc;
    *ret_plan = bh_steal(&plan);
    return BH_OK;
}

const struct bh_event *
bh_plan_events(const struct bh_apply_plan *plan, struct bh_arena *arena, uint32_t *ret_count)
{
    struct bh_event *events = bh_arena_alloc(arena, (plan->count + 1) * sizeof *events);

    *ret_count = 0;
    for (uint32_t i = 0; events && i < plan->count; i++)
        if (plan->changes[i].event.kind != BH_EV_TICK)
            events[(*ret_count)++] = plan->changes[i].event;
    return events;
}

/* What one change is about: a tenant, a SKU or a GPU by its id, or the scheduling. */
static struct bh_record_object
apply_object_of(const struct apply_change *change, const struct bh_core *core)
{
    struct bh_record_object object = { .type = "scheduling" };

    if (change->event.kind == BH_EV_SETTINGS)
        return object;
    snprintf(object.type, sizeof object.type, "%s", bh_binding_kinds[change->kind]);
    object.id = bh_catalog_find(core->catalog, change->kind, change->name);
    return object;
}

/* A start replays changes one by one, so each has a record of its own.  It says which it is; that
 * of the deed, with the file's digest, comes behind them by the same request. */
static bh_rc
apply_step_change(const struct apply_change *change, struct bh_core *core, const struct bh_entry *origin,
                  struct bh_err *err)
{
    struct bh_event event = change->event;
    struct bh_entry entry = *origin;

    entry.verb = "site.change";
    entry.obj = apply_object_of(change, core);
    return bh_core_step(core, &entry, &event, err);
}

static bh_rc
apply_run_change(const struct apply_change *change, struct bh_core *core, const struct bh_entry *entry,
                 struct bh_err *err)
{
    uint32_t id;
    bh_rc rc = bh_core_begin(core, err);

    if (rc != BH_OK)
        return rc;
    if (change->is_new)
        rc = bh_catalog_name(core->catalog, change->kind, change->name, &id, err);
    if (rc != BH_OK)
        return rc;
    if (change->event.kind != BH_EV_TICK)
        rc = apply_step_change(change, core, entry, err);
    if (rc != BH_OK)
        return rc;
    if (change->drop && change->kind == BH_NAME_PRINCIPAL)
        rc = bh_tokens_revoke_all(core, bh_catalog_find(core->catalog, BH_NAME_PRINCIPAL, change->name), err);
    if (rc != BH_OK)
        return rc;
    if (change->drop && change->kind == BH_NAME_PRINCIPAL)
        rc = bh_accounts_forget(core, bh_catalog_find(core->catalog, BH_NAME_PRINCIPAL, change->name), err);
    if (rc != BH_OK)
        return rc;
    if (change->drop)
        return bh_catalog_drop(core->catalog, change->kind,
                               bh_catalog_find(core->catalog, change->kind, change->name), err);
    return BH_OK;
}

bh_rc
bh_plan_run(struct bh_apply_plan *plan, struct bh_core *core, const struct bh_entry *entry,
            struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < plan->count && rc == BH_OK; i++)
        rc = apply_run_change(&plan->changes[i], core, entry, err);
    return rc;
}

bool
bh_plan_next_removal(const struct bh_apply_plan *plan, const struct bh_core *core, uint32_t *cursor,
                     enum bh_name_kind *ret_kind, uint32_t *ret_id)
{
    while (*cursor < plan->count) {
        const struct apply_change *change = &plan->changes[(*cursor)++];

        if (!change->drop)
            continue;
        *ret_kind = change->kind;
        *ret_id = bh_catalog_find(core->catalog, change->kind, change->name);
        return true;
    }
    return false;
}
