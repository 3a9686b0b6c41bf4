#include "engine/forecast/forecast_series.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/quota.h"
#include "engine/gpu/capacity.h"
#include "engine/state/slots.h"

const uint32_t bh_forecast_horizon_steps[BH_FORECAST_HORIZONS] = { 2, 6, 48 };

uint32_t
bh_forecast_row_horizons(enum bh_forecast_of of)
{
    return of == BH_FORECAST_OF_NODE ? 1 : BH_FORECAST_HORIZONS;
}

/* ---- rows ---- */

/* Where the subject's row is, or would be. */
static uint32_t
series_position(const struct bh_forecast_series *series, uint32_t of, uint32_t id)
{
    uint32_t low = 0, high = series->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct bh_forecast_row *row = &series->rows[middle];

        if (row->of < of || (row->of == of && row->id < id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct bh_forecast_row *
series_find(const struct bh_forecast_series *series, uint32_t of, uint32_t id)
{
    uint32_t at = series_position(series, of, id);
    struct bh_forecast_row *row = &series->rows[at];

    return at < series->count && row->of == of && row->id == id ? row : NULL;
}

const struct bh_forecast_row *
bh_forecast_series_find(const struct bh_forecast_series *series, enum bh_forecast_of of, uint32_t id)
{
    return series_find(series, of, id);
}

/* The subject is there: its row, with nothing counted yet. */
static void
series_meet(struct bh_forecast_series *series, uint32_t of, uint32_t id)
{
    uint32_t at = series_position(series, of, id);
    struct bh_forecast_row *row = series_find(series, of, id);

    if (!row) {
        BH_ASSERT(series->count < series->max);
        row = &series->rows[at];
        memmove(row + 1, row, (series->count++ - at) * sizeof(*row));
        *row = (struct bh_forecast_row){ .of = of, .id = id };
        bh_forecast_init(&row->series, series->slot_ns, BH_FORECAST_WINDOW_MAX);
        for (uint32_t i = 0; i < bh_forecast_row_horizons((enum bh_forecast_of)of); i++)
            bh_forecast_promise(&row->series, bh_forecast_horizon_steps[i], BH_FORECAST_Q_BP);
    }
    row->seen = 1;
    row->value = 0;
}

static void
series_add(const struct bh_forecast_series *series, uint32_t of, uint32_t id, uint64_t amount)
{
    struct bh_forecast_row *row = series_find(series, of, id);
    uint64_t sum = row ? row->value + amount : 0;

    if (row)
        row->value = sum < BH_FORECAST_VALUE_MAX ? (uint32_t)sum : BH_FORECAST_VALUE_MAX;
}

bool
bh_forecast_row_is_valid(const struct bh_forecast_row *forecast_row, uint64_t slot_ns)
{
    const struct bh_forecast *series = &forecast_row->series;

    if (forecast_row->of >= BH_FORECAST_OFS
        || series->promise_count != bh_forecast_row_horizons((enum bh_forecast_of)forecast_row->of)
        || series->slot_ns != slot_ns || series->window != BH_FORECAST_WINDOW_MAX
        || series->count > BH_FORECAST_SLOTS)
        return false;
    for (uint32_t i = 0; i < series->promise_count; i++)
        if (series->promises[i].steps != bh_forecast_horizon_steps[i]
            || series->promises[i].q_bp != BH_FORECAST_Q_BP)
            return false;
    return true;
}

/* ---- what there is ---- */

/* The row of the SKU that counts for a job that waits: the first whose model is there. */
static uint32_t
series_likely_row(const struct bh_engine *engine, const struct sku *sku)
{
    for (uint32_t row = 0; row < sku->model_count; row++)
        if (engine->core.offered[sku->models[row]] > 0)
            return row;
    return 0;
}

static void
series_meet_tenants(struct bh_forecast_series *series, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        const struct tenant *tenant = tenant_at(engine, slot);

        if (tenant->guarantee == 0 || tenant->removed)
            continue;
        series_meet(series, BH_FORECAST_OF_TENANT, (uint32_t)tenant->id);
        series_add(series, BH_FORECAST_OF_TENANT, (uint32_t)tenant->id, tenant->used);
    }
}

static void
series_meet_pools(struct bh_forecast_series *series, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);

        if (gpu->managed)
            series_meet(series, BH_FORECAST_OF_POOL, gpu->model);
    }
    for (uint32_t model = 0; model < MODELS_MAX; model++)
        series_add(series, BH_FORECAST_OF_POOL, model, engine->core.used_models[model]);
}

static void
series_meet_partitions(struct bh_forecast_series *series, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_SKU, &slot);) {
        const struct sku *sku = sku_at(engine, slot);

        for (uint32_t row = 0; row < sku->model_count; row++)
            if (bh_profile_get((bh_profile_id){ sku->profiles[row] })) /* not whole, no share */
                series_meet(series, BH_FORECAST_OF_PARTITIONS, sku->profiles[row]);
    }
}

static void
series_meet_nodes(struct bh_forecast_series *series, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);)
        series_meet(series, BH_FORECAST_OF_NODE, (uint32_t)node_at(engine, slot)->id);
}

uint32_t
bh_forecast_series_needed(const struct bh_engine *engine)
{
    return engine->tables[TABLE_TENANT].live + MODELS_MAX + PROFILES_MAX + engine->tables[TABLE_NODE].live;
}

/* ---- what is used and waited for ---- */

static void
series_count_parts(const struct bh_forecast_series *series, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_PARTITION, &slot);) {
        const struct partition *partition = partition_at(engine, slot);
        const struct node *node = node_at(engine, gpu_at(engine, partition->gpu)->node);

        if (!partition->lease)
            continue;
        series_add(series, BH_FORECAST_OF_NODE, (uint32_t)node->id,
                   bh_quota_equivalent(partition->profile, 1));
        series_add(series, BH_FORECAST_OF_PARTITIONS, partition->profile, 1);
    }
}

/* So many partitions by the row are wanted beside what is used. */
static void
series_count_wanted(const struct bh_forecast_series *series, const struct bh_engine *engine, uint32_t tenant,
                    const struct sku *sku, uint64_t partitions)
{
    uint32_t row = series_likely_row(engine, sku);
    uint64_t equivalent = sku->equivalents[row] * partitions;

    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent)
        series_add(series, BH_FORECAST_OF_TENANT, (uint32_t)tenant_at(engine, at)->id, equivalent);
    series_add(series, BH_FORECAST_OF_POOL, sku->models[row], equivalent);
    series_add(series, BH_FORECAST_OF_PARTITIONS, sku->profiles[row], partitions);
}

static void
series_count_waiting(const struct bh_forecast_series *series, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        const struct class *class = class_at(engine, slot);

        if (!class->hold)
            series_count_wanted(series, engine, class->tenant, sku_at(engine, class->sku),
                                (uint64_t) class->jobs * class->count * class->gang);
    }
    for (uint32_t slot = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);

        if (lease->state == LEASE_SUSPENDED)
            series_count_wanted(series, engine, lease->tenant,
                                sku_at(engine, job_at(engine, lease->job)->sku), lease->count);
    }
}

void
bh_forecast_series_observe(struct bh_forecast_series *series, const struct bh_engine *engine, uint64_t now_ns)
{
    uint32_t kept = 0;

    BH_ASSERT(series->slot_ns > 0);
    if (now_ns / series->slot_ns < series->slot)
        return;
    series->slot = now_ns / series->slot_ns;
    for (uint32_t i = 0; i < series->count; i++)
        series->rows[i].seen = 0;
    series_meet_tenants(series, engine);
    series_meet_pools(series, engine);
    series_meet_partitions(series, engine);
    series_meet_nodes(series, engine);
    series_count_parts(series, engine);
    series_count_waiting(series, engine);
    for (uint32_t i = 0; i < series->count; i++) {
        struct bh_forecast_row *row = &series->rows[i];

        if (!row->seen)
            continue;
        bh_forecast_put(&row->series, now_ns, row->value);
        if (kept++ != i)
            series->rows[kept - 1] = *row;
    }
    series->count = kept;
}

/* ---- what follows ---- */

struct bh_forecast_bound
bh_forecast_row_bound(const struct bh_forecast_row *forecast_row, uint32_t horizon)
{
    BH_ASSERT(horizon < BH_FORECAST_HORIZONS);
    return bh_forecast_bound(&forecast_row->series, bh_forecast_horizon_steps[horizon], BH_FORECAST_Q_BP);
}

uint64_t
bh_forecast_series_capacity(const struct bh_engine *engine, bh_node_id id)
{
    const struct node *node = node_at(engine, node_find(engine, id.v));
    uint64_t gpus = 0;

    for (uint32_t at = node->first_gpu; at; at = bh_gpu_after(engine, at))
        gpus += bh_capacity_offered(engine, gpu_at(engine, at));
    return gpus * BH_GPU_PARTS;
}

static bool
series_advise_tenant(const struct bh_engine *engine, const struct bh_forecast_row *forecast_row,
                     struct bh_ev_advice *advice)
{
    const struct tenant *tenant = tenant_at(engine, tenant_find(engine, forecast_row->id));
    struct bh_forecast_bound bound = bh_forecast_row_bound(forecast_row, 0);

    advice->of = BH_ADVICE_TENANT;
    advice->tenant.v = forecast_row->id;
    advice->expected = tenant->guarantee - bh_headroom_lend(tenant->guarantee, &bound);
    return engine->core.settings.lending == BH_LEND_FORECAST && tenant->id && !tenant->removed
           && advice->expected != tenant->expected;
}

static bool
series_advise_node(const struct bh_engine *engine, const struct bh_forecast_row *forecast_row,
                   struct bh_ev_advice *advice)
{
    uint64_t capacity = bh_forecast_series_capacity(engine, (bh_node_id){ forecast_row->id });
    const struct node *node = node_at(engine, node_find(engine, forecast_row->id));
    struct bh_forecast_bound bound;

    if (!engine->core.settings.hotspots || !node->id || capacity == 0)
        return false;
    bound = bh_forecast_row_bound(forecast_row, 0);
    advice->of = BH_ADVICE_NODE;
    advice->node.v = forecast_row->id;
    advice->hot = bh_headroom_test_node(&bound, capacity, BH_FORECAST_HOT_PERMILLE).hot;
    return advice->hot != (bool)node->hot;
}

uint32_t
bh_forecast_row_ready(const struct bh_forecast_row *forecast_row)
{
    struct bh_forecast_bound bound = bh_forecast_row_bound(forecast_row, 0);
    uint32_t more = bound.value > bound.level ? bound.value - bound.level : 0;

    if (!bound.firm)
        return 0;
    return more < BH_READY_MAX ? more : BH_READY_MAX;
}

static bool
series_advise_partitions(const struct bh_engine *engine, uint32_t profile, uint32_t ready,
                         struct bh_ev_advice *advice)
{
    advice->of = BH_ADVICE_PARTITIONS;
    advice->profile = profile;
    advice->ready = ready;
    return engine->core.settings.preshape && engine->core.shapes.ready[profile] != ready;
}

/* Profiles that are in no SKU. */
static bool
series_advise_gone(const struct bh_forecast_series *series, const struct bh_engine *engine, uint32_t profile,
                   struct bh_ev_advice *advice)
{
    return !series_find(series, BH_FORECAST_OF_PARTITIONS, profile)
           && series_advise_partitions(engine, profile, 0, advice);
}

bool
bh_forecast_series_next(const struct bh_forecast_series *series, const struct bh_engine *engine,
                        uint32_t *cursor, struct bh_event *ret_event)
{
    struct bh_ev_advice *advice = &ret_event->u.advice;
    bool differs = false;

    *ret_event = (struct bh_event){ .kind = BH_EV_ADVICE };
    while (!differs && *cursor < series->count + PROFILES_MAX) {
        const struct bh_forecast_row *row = &series->rows[*cursor];
        bool gone = *cursor >= series->count;

        *advice = (struct bh_ev_advice){ 0 };
        if (gone)
            differs = series_advise_gone(series, engine, *cursor - series->count, advice);
        else if (row->of == BH_FORECAST_OF_TENANT)
            differs = series_advise_tenant(engine, row, advice);
        else if (row->of == BH_FORECAST_OF_NODE)
            differs = series_advise_node(engine, row, advice);
        else if (row->of == BH_FORECAST_OF_PARTITIONS)
            differs = series_advise_partitions(engine, row->id, bh_forecast_row_ready(row), advice);
        ++*cursor;
    }
    return differs;
}

/* ---- pools ---- */

/* What is guaranteed of a model's GPUs, or, where there is no other model, at all. */
static uint64_t
series_guaranteed_of(const struct tenant *tenant, uint32_t model, bool only)
{
    uint64_t most = only ? tenant->guarantee : 0;

    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];

        if (quota->scope == BH_QUOTA_MODEL && quota->of == model && quota->guarantee > most)
            most = quota->guarantee;
    }
    return tenant->removed ? 0 : most;
}

/* A guarantee holds for the tenants below it too. */
static uint64_t
series_guaranteed(const struct bh_engine *engine, uint32_t model, bool only)
{
    uint64_t sum = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        uint32_t above = tenant_at(engine, slot)->parent;

        while (above && series_guaranteed_of(tenant_at(engine, above), model, only) == 0)
            above = tenant_at(engine, above)->parent;
        if (!above)
            sum += series_guaranteed_of(tenant_at(engine, slot), model, only);
    }
    return sum;
}

/* GPUs of the model on the smallest node that has any: what comes and goes together. */
static uint32_t
series_grain_of(const struct bh_engine *engine, uint32_t model)
{
    uint32_t grain = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);) {
        uint32_t gpus = 0;

        for (uint32_t at = node_at(engine, slot)->first_gpu; at; at = bh_gpu_after(engine, at))
            gpus += gpu_at(engine, at)->model == model;
        if (gpus > 0 && (grain == 0 || gpus < grain))
            grain = gpus;
    }
    return grain ? grain : 1;
}

struct bh_headroom_pool
bh_forecast_series_pool(const struct bh_engine *engine, uint32_t model,
                        const struct bh_forecast_bound *bounds)
{
    const uint32_t most = (1u << 30) - 1;
    bool only = true;
    uint64_t least;

    for (uint32_t i = 0; i < MODELS_MAX; i++)
        only = only && (i == model || engine->core.offered[i] == 0);
    least = (series_guaranteed(engine, model, only) + BH_GPU_PARTS - 1) / BH_GPU_PARTS;
    return (struct bh_headroom_pool){ .need = bounds,
                                      .later = bounds ? &bounds[BH_FORECAST_HORIZONS - 1] : NULL,
                                      .capacity = engine->core.offered[model],
                                      .least = least < most ? (uint32_t)least : most,
                                      .most = most,
                                      .grain = series_grain_of(engine, model),
                                      .reserve_permille = BH_FORECAST_RESERVE_PERMILLE };
}
