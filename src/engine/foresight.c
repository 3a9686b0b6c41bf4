#include "engine/foresight.h"

#include <string.h>

#include "base/assert.h"
#include "engine/quota.h"
#include "engine/slots.h"

const uint32_t bh_foresight_steps[BH_FORESIGHT_HORIZONS] = { 2, 6, 48 };

const char *const bh_sight_names[BH_SIGHTS] = {
    [BH_SIGHT_TENANT] = "tenant", [BH_SIGHT_POOL] = "pool",
    [BH_SIGHT_PIECES] = "pieces", [BH_SIGHT_NODE] = "node",
};

uint32_t
bh_sight_horizons(enum bh_sight_of of)
{
    return of == BH_SIGHT_NODE ? 1 : BH_FORESIGHT_HORIZONS;
}

/* ---- rows ---- */

/* Where the subject's row is, or would be. */
static uint32_t
position(const struct bh_foresight *foresight, uint32_t of, uint32_t id)
{
    uint32_t low = 0, high = foresight->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct bh_sight *row = &foresight->rows[middle];

        if (row->of < of || (row->of == of && row->id < id))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct bh_sight *
find(const struct bh_foresight *foresight, uint32_t of, uint32_t id)
{
    uint32_t at = position(foresight, of, id);
    struct bh_sight *row = &foresight->rows[at];

    return at < foresight->count && row->of == of && row->id == id ? row : NULL;
}

const struct bh_sight *
bh_foresight_find(const struct bh_foresight *foresight, enum bh_sight_of of, uint32_t id)
{
    return find(foresight, of, id);
}

/* The subject is there: its row, with nothing counted yet. */
static void
meet(struct bh_foresight *foresight, uint32_t of, uint32_t id)
{
    uint32_t at = position(foresight, of, id);
    struct bh_sight *row = find(foresight, of, id);

    if (!row) {
        BH_ASSERT(foresight->count < foresight->max);
        row = &foresight->rows[at];
        memmove(row + 1, row, (foresight->count++ - at) * sizeof(*row));
        *row = (struct bh_sight){ .of = of, .id = id };
        bh_forecast_init(&row->series, foresight->slot_ns, BH_FORECAST_WINDOW_MAX);
        for (uint32_t i = 0; i < bh_sight_horizons((enum bh_sight_of)of); i++)
            bh_forecast_promise(&row->series, bh_foresight_steps[i], BH_FORESIGHT_Q_BP);
    }
    row->seen = 1;
    row->value = 0;
}

static void
add(const struct bh_foresight *foresight, uint32_t of, uint32_t id, uint64_t amount)
{
    struct bh_sight *row = find(foresight, of, id);
    uint64_t sum = row ? row->value + amount : 0;

    if (row)
        row->value = sum < BH_FORECAST_VALUE_MAX ? (uint32_t)sum : BH_FORECAST_VALUE_MAX;
}

bool
bh_sight_is_valid(const struct bh_sight *sight, uint64_t slot_ns)
{
    const struct bh_forecast *series = &sight->series;

    if (sight->of >= BH_SIGHTS
        || series->promise_count != bh_sight_horizons((enum bh_sight_of)sight->of)
        || series->slot_ns != slot_ns || series->window != BH_FORECAST_WINDOW_MAX
        || series->count > BH_FORECAST_SLOTS)
        return false;
    for (uint32_t i = 0; i < series->promise_count; i++)
        if (series->promises[i].steps != bh_foresight_steps[i]
            || series->promises[i].q_bp != BH_FORESIGHT_Q_BP)
            return false;
    return true;
}

/* ---- what there is ---- */

/* The row of the SKU that counts for a job that waits: the first whose model is there. */
static uint32_t
likely_row(const struct bh_engine *engine, const struct sku *sku)
{
    for (uint32_t row = 0; row < sku->model_count; row++)
        if (engine->core.offered[sku->models[row]] > 0)
            return row;
    return 0;
}

static void
meet_tenants(struct bh_foresight *foresight, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        const struct tenant *tenant = tenant_at(engine, slot);

        if (tenant->guarantee == 0 || tenant->removed)
            continue;
        meet(foresight, BH_SIGHT_TENANT, (uint32_t)tenant->id);
        add(foresight, BH_SIGHT_TENANT, (uint32_t)tenant->id, tenant->used);
    }
}

static void
meet_pools(struct bh_foresight *foresight, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);

        if (gpu->managed)
            meet(foresight, BH_SIGHT_POOL, gpu->model);
    }
    for (uint32_t model = 0; model < MODELS_MAX; model++)
        add(foresight, BH_SIGHT_POOL, model, engine->core.used_models[model]);
}

static void
meet_pieces(struct bh_foresight *foresight, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_SKU, &slot);) {
        const struct sku *sku = sku_at(engine, slot);

        for (uint32_t row = 0; row < sku->model_count; row++)
            if (bh_profile_get((bh_profile_id){ sku->profiles[row] })) /* not whole, no share */
                meet(foresight, BH_SIGHT_PIECES, sku->profiles[row]);
    }
}

static void
meet_nodes(struct bh_foresight *foresight, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);)
        meet(foresight, BH_SIGHT_NODE, (uint32_t)node_at(engine, slot)->id);
}

uint32_t
bh_foresight_needed(const struct bh_engine *engine)
{
    return engine->tables[TABLE_TENANT].live + MODELS_MAX + PROFILES_MAX
           + engine->tables[TABLE_NODE].live;
}

/* ---- what is used and waited for ---- */

static void
count_parts(const struct bh_foresight *foresight, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_PART, &slot);) {
        const struct part *part = part_at(engine, slot);
        const struct node *node = node_at(engine, gpu_at(engine, part->gpu)->node);

        if (!part->lease)
            continue;
        add(foresight, BH_SIGHT_NODE, (uint32_t)node->id, bh_quota_equivalent(part->profile, 1));
        add(foresight, BH_SIGHT_PIECES, part->profile, 1);
    }
}

/* So many pieces by the row are wanted beside what is used. */
static void
count_wanted(const struct bh_foresight *foresight, const struct bh_engine *engine,
             uint32_t tenant, const struct sku *sku, uint64_t pieces)
{
    uint32_t row = likely_row(engine, sku);
    uint64_t equivalent = sku->equivalents[row] * pieces;

    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent)
        add(foresight, BH_SIGHT_TENANT, (uint32_t)tenant_at(engine, at)->id, equivalent);
    add(foresight, BH_SIGHT_POOL, sku->models[row], equivalent);
    add(foresight, BH_SIGHT_PIECES, sku->profiles[row], pieces);
}

static void
count_waiting(const struct bh_foresight *foresight, const struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_CLASS, &slot);) {
        const struct class *class = class_at(engine, slot);

        if (!class->hold)
            count_wanted(foresight, engine, class->tenant, sku_at(engine, class->sku),
                         (uint64_t)class->jobs * class->count * class->gang);
    }
    for (uint32_t slot = 0; engine->core.suspended && bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);

        if (lease->state == LEASE_SUSPENDED)
            count_wanted(foresight, engine, lease->tenant,
                         sku_at(engine, job_at(engine, lease->job)->sku), lease->count);
    }
}

void
bh_foresight_observe(struct bh_foresight *foresight, const struct bh_engine *engine,
                     uint64_t now_ns)
{
    uint32_t kept = 0;

    BH_ASSERT(foresight->slot_ns > 0);
    if (now_ns / foresight->slot_ns < foresight->slot)
        return;
    foresight->slot = now_ns / foresight->slot_ns;
    for (uint32_t i = 0; i < foresight->count; i++)
        foresight->rows[i].seen = 0;
    meet_tenants(foresight, engine);
    meet_pools(foresight, engine);
    meet_pieces(foresight, engine);
    meet_nodes(foresight, engine);
    count_parts(foresight, engine);
    count_waiting(foresight, engine);
    for (uint32_t i = 0; i < foresight->count; i++) {
        struct bh_sight *row = &foresight->rows[i];

        if (!row->seen)
            continue;
        bh_forecast_put(&row->series, now_ns, row->value);
        if (kept++ != i)
            foresight->rows[kept - 1] = *row;
    }
    foresight->count = kept;
}

/* ---- what follows ---- */

struct bh_forecast_bound
bh_sight_bound(const struct bh_sight *sight, uint32_t horizon)
{
    BH_ASSERT(horizon < BH_FORESIGHT_HORIZONS);
    return bh_forecast_bound(&sight->series, bh_foresight_steps[horizon], BH_FORESIGHT_Q_BP);
}

uint64_t
bh_foresight_capacity(const struct bh_engine *engine, bh_node_id id)
{
    const struct node *node = node_at(engine, node_find(engine, id.v));
    uint64_t gpus = 0;

    for (uint32_t at = node->first_gpu; at; at = gpu_at(engine, at)->next_on_node)
        gpus += bh_room_offered(engine, gpu_at(engine, at));
    return gpus * BH_GPU_PARTS;
}

static bool
tell_tenant(const struct bh_engine *engine, const struct bh_sight *sight,
            struct bh_ev_outlook *outlook)
{
    const struct tenant *tenant = tenant_at(engine, tenant_find(engine, sight->id));
    struct bh_forecast_bound bound = bh_sight_bound(sight, 0);

    outlook->of = BH_OUTLOOK_TENANT;
    outlook->tenant.v = sight->id;
    outlook->expected = tenant->guarantee - bh_headroom_lend(tenant->guarantee, &bound);
    return engine->core.settings.lending == BH_LEND_FORECAST && tenant->id && !tenant->removed
           && outlook->expected != tenant->expected;
}

static bool
tell_node(const struct bh_engine *engine, const struct bh_sight *sight,
          struct bh_ev_outlook *outlook)
{
    uint64_t capacity = bh_foresight_capacity(engine, (bh_node_id){ sight->id });
    const struct node *node = node_at(engine, node_find(engine, sight->id));
    struct bh_forecast_bound bound;

    if (!engine->core.settings.hotspots || !node->id || capacity == 0)
        return false;
    bound = bh_sight_bound(sight, 0);
    outlook->of = BH_OUTLOOK_NODE;
    outlook->node.v = sight->id;
    outlook->hot = bh_headroom_test_node(&bound, capacity, BH_FORESIGHT_MARK_PERMILLE).hot;
    return outlook->hot != (bool)node->hot;
}

uint32_t
bh_sight_ready(const struct bh_sight *sight)
{
    struct bh_forecast_bound bound = bh_sight_bound(sight, 0);
    uint32_t more = bound.value > bound.level ? bound.value - bound.level : 0;

    if (!bound.firm)
        return 0;
    return more < BH_READY_MAX ? more : BH_READY_MAX;
}

static bool
tell_pieces(const struct bh_engine *engine, uint32_t profile, uint32_t ready,
            struct bh_ev_outlook *outlook)
{
    outlook->of = BH_OUTLOOK_PIECES;
    outlook->profile = profile;
    outlook->ready = ready;
    return engine->core.settings.preshape && engine->core.shapes.ready[profile] != ready;
}

/* Profiles that no SKU has any more. */
static bool
tell_gone(const struct bh_foresight *foresight, const struct bh_engine *engine,
          uint32_t profile, struct bh_ev_outlook *outlook)
{
    return !find(foresight, BH_SIGHT_PIECES, profile)
           && tell_pieces(engine, profile, 0, outlook);
}

bool
bh_foresight_next(const struct bh_foresight *foresight, const struct bh_engine *engine,
                  uint32_t *cursor, struct bh_event *ret_event)
{
    struct bh_ev_outlook *outlook = &ret_event->u.outlook;
    bool differs = false;

    *ret_event = (struct bh_event){ .kind = BH_EV_OUTLOOK };
    while (!differs && *cursor < foresight->count + PROFILES_MAX) {
        const struct bh_sight *row = &foresight->rows[*cursor];
        bool gone = *cursor >= foresight->count;

        *outlook = (struct bh_ev_outlook){ 0 };
        if (gone)
            differs = tell_gone(foresight, engine, *cursor - foresight->count, outlook);
        else if (row->of == BH_SIGHT_TENANT)
            differs = tell_tenant(engine, row, outlook);
        else if (row->of == BH_SIGHT_NODE)
            differs = tell_node(engine, row, outlook);
        else if (row->of == BH_SIGHT_PIECES)
            differs = tell_pieces(engine, row->id, bh_sight_ready(row), outlook);
        ++*cursor;
    }
    return differs;
}

/* ---- pools ---- */

/* What is guaranteed of a model's GPUs, or, where there is no other model, at all. */
static uint64_t
guaranteed_of(const struct tenant *tenant, uint32_t model, bool only)
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
guaranteed(const struct bh_engine *engine, uint32_t model, bool only)
{
    uint64_t sum = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        uint32_t above = tenant_at(engine, slot)->parent;

        while (above && guaranteed_of(tenant_at(engine, above), model, only) == 0)
            above = tenant_at(engine, above)->parent;
        if (!above)
            sum += guaranteed_of(tenant_at(engine, slot), model, only);
    }
    return sum;
}

/* GPUs of the model on the smallest node that has any: what comes and goes together. */
static uint32_t
grain_of(const struct bh_engine *engine, uint32_t model)
{
    uint32_t grain = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_NODE, &slot);) {
        uint32_t gpus = 0;

        for (uint32_t at = node_at(engine, slot)->first_gpu; at;
             at = gpu_at(engine, at)->next_on_node)
            gpus += gpu_at(engine, at)->model == model;
        if (gpus > 0 && (grain == 0 || gpus < grain))
            grain = gpus;
    }
    return grain ? grain : 1;
}

struct bh_headroom_pool
bh_foresight_pool(const struct bh_engine *engine, uint32_t model,
                  const struct bh_forecast_bound *bounds)
{
    const uint32_t most = (1u << 30) - 1;
    bool only = true;
    uint64_t least;

    for (uint32_t i = 0; i < MODELS_MAX; i++)
        only = only && (i == model || engine->core.offered[i] == 0);
    least = (guaranteed(engine, model, only) + BH_GPU_PARTS - 1) / BH_GPU_PARTS;
    return (struct bh_headroom_pool){ .need = bounds,
                                      .later = bounds ? &bounds[BH_FORESIGHT_HORIZONS - 1]
                                                      : NULL,
                                      .capacity = engine->core.offered[model],
                                      .least = least < most ? (uint32_t)least : most,
                                      .most = most,
                                      .grain = grain_of(engine, model),
                                      .reserve_permille = BH_FORESIGHT_RESERVE_PERMILLE };
}
