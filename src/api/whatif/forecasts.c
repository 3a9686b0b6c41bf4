#include "api/whatif/forecasts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/request/amounts.h"
#include "api/request/reply.h"
#include "api/request/visible.h"
#include "base/assert.h"
#include "engine/forecast/forecast_series.h"

/* What the engine says of a row's subject. */
struct fact {
    uint64_t guarantee, expected; /* of a tenant */
    uint64_t capacity;            /* of a node, in parts */
    const char *name;             /* of a node, in the call's arena */
    struct bh_headroom_pool pool; /* its bounds are set when it is judged */
};

struct forecasts_picture {
    struct bh_forecast_series series; /* a copy: bounds are made on the worker's thread */
    struct fact *facts;               /* beside its rows */
    struct bh_ev_settings settings;
    uint64_t now_ns;
};

static void
forecasts_know(struct forecasts_picture *picture, const struct bh_engine *engine, uint32_t at)
{
    const struct bh_forecast_row *row = &picture->series.rows[at];
    struct fact *fact = &picture->facts[at];
    struct bh_tenant_view tenant;

    if (row->of == BH_FORECAST_OF_TENANT
        && bh_view_tenant(engine, (bh_tenant_id){ row->id }, picture->now_ns, &tenant)) {
        fact->guarantee = tenant.settings.guarantee;
        fact->expected = tenant.expected;
    }
    if (row->of == BH_FORECAST_OF_NODE)
        fact->capacity = bh_forecast_series_capacity(engine, (bh_node_id){ row->id });
    if (row->of == BH_FORECAST_OF_POOL)
        fact->pool = bh_forecast_series_pool(engine, row->id, NULL);
}

static void
forecasts_ask_picture(void *self, const struct bh_forecast_series *series, const struct bh_engine *engine,
                      uint64_t now_ns)
{
    struct forecasts_picture *picture = self;
    size_t bytes = series->count * sizeof *series->rows;

    picture->series = *series;
    picture->series.rows = malloc(bytes + 1);
    picture->facts = calloc(series->count + 1, sizeof *picture->facts);
    BH_ASSERT(picture->series.rows && picture->facts);
    memcpy(picture->series.rows, series->rows, bytes);
    picture->now_ns = now_ns;
    bh_view_settings(engine, &picture->settings);
    for (uint32_t i = 0; i < series->count; i++)
        forecasts_know(picture, engine, i);
}

/* ---- as replies ---- */

struct forecast_view {
    struct bh_call *call;
    struct bh_visible visible;
    struct forecasts_picture picture;
};

/* A row with its fact and its bounds. */
struct forecast_row {
    const struct bh_forecast_row *row;
    const struct fact *fact;
    struct bh_forecast_bound bounds[BH_FORECAST_HORIZONS];
};

/* In GPUs, in the call's arena; NULL: unlimited. */
static const char *
forecasts_gpus(const struct forecast_view *o, uint64_t parts)
{
    char text[BH_AMOUNT_SIZE];

    return bh_gpus_text(parts, text) ? bh_arena_strdup(o->call->arena, text) : NULL;
}

static struct bh_reply_forecast_bound
forecasts_bound_of(const struct forecast_view *o, const struct forecast_row *from, uint32_t horizon)
{
    const struct bh_forecast_bound *bound = &from->bounds[horizon];
    struct bh_forecast_coverage coverage = bh_forecast_coverage(&from->row->series, horizon);
    bool parts = from->row->of != BH_FORECAST_OF_PARTITIONS;

    return (struct bh_reply_forecast_bound){
        .ahead_ns = bound->steps * o->picture.series.slot_ns,
        .change = bound->change,
        .changes = bound->changes,
        .firm = bound->firm,
        .gpus = parts ? forecasts_gpus(o, bound->value) : NULL,
        .judged = coverage.judged,
        .kept = coverage.kept,
        .partitions = parts ? (uint64_t)BH_UNSET : bound->value,
        .parts = parts ? bound->value : (uint64_t)BH_UNSET,
        .rank = bound->rank,
    };
}

static struct bh_reply_forecast_bounds
forecasts_bounds_of(const struct forecast_view *o, const struct forecast_row *from)
{
    struct bh_reply_forecast_bounds bounds = { .near = forecasts_bound_of(o, from, 0) };
    uint32_t horizons = bh_forecast_row_horizons((enum bh_forecast_of)from->row->of);

    if (horizons > 1)
        bounds.later = forecasts_bound_of(o, from, 1);
    if (horizons > 2)
        bounds.far = forecasts_bound_of(o, from, 2);
    return bounds;
}

static void
forecasts_fill_tenant(const struct forecast_view *o, const struct forecast_row *from, void *ret)
{
    uint64_t guarantee = from->fact->guarantee, lends = bh_headroom_lend(guarantee, &from->bounds[0]);

    *(struct bh_reply_forecast_tenant *)ret = (struct bh_reply_forecast_tenant){
        .bounds = forecasts_bounds_of(o, from),
        .expected = forecasts_gpus(o, guarantee - lends),
        .expected_parts = guarantee - lends,
        .guarantee = forecasts_gpus(o, guarantee),
        .guarantee_parts = guarantee,
        .lends = forecasts_gpus(o, lends),
        .lends_parts = lends,
        .level = forecasts_gpus(o, from->bounds[0].level),
        .level_parts = from->bounds[0].level,
        .name = bh_directory_tenant(o->call->dir, (bh_tenant_id){ from->row->id })->path,
    };
}

static const char *
forecasts_model_name(uint32_t model)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)model);

    return model != BH_GPU_MODEL_NONE && facts ? facts->name : "other";
}

static void
forecasts_fill_pool(const struct forecast_view *o, const struct forecast_row *from, void *ret)
{
    static const char *const moves[] = {
        [BH_HEADROOM_KEEP] = "keep", [BH_HEADROOM_GROW] = "grow", [BH_HEADROOM_SHRINK] = "shrink"
    };
    struct bh_headroom_pool pool = from->fact->pool;
    struct bh_headroom_scale scale;

    pool.need = &from->bounds[0];
    pool.later = &from->bounds[BH_FORECAST_HORIZONS - 1];
    scale = bh_headroom_propose(&pool);
    *(struct bh_reply_forecast_pool *)ret = (struct bh_reply_forecast_pool){
        .bounds = forecasts_bounds_of(o, from),
        .gpus = pool.capacity,
        .level = forecasts_gpus(o, from->bounds[0].level),
        .level_parts = from->bounds[0].level,
        .model = forecasts_model_name(from->row->id),
        .proposal = { .gpus = scale.gpus,
                      .grain = pool.grain,
                      .least = pool.least,
                      .move = moves[scale.move],
                      .reserve_permille = pool.reserve_permille,
                      .wanted = scale.wanted,
                      .wanted_later = scale.wanted_later },
    };
}

static void
forecasts_fill_partitions(const struct forecast_view *o, const struct forecast_row *from, void *ret)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ from->row->id });

    *(struct bh_reply_forecast_partitions *)ret = (struct bh_reply_forecast_partitions){
        .bounds = forecasts_bounds_of(o, from),
        .level = from->bounds[0].level,
        .model = forecasts_model_name(profile ? (uint32_t)profile->model : 0),
        .profile = profile ? profile->name : "",
        .ready = bh_forecast_row_ready(from->row),
    };
}

static void
forecasts_fill_node(const struct forecast_view *o, const struct forecast_row *from, void *ret)
{
    uint64_t capacity = from->fact->capacity;
    struct bh_headroom_heat heat = { .hot = false };

    if (capacity)
        heat = bh_headroom_test_node(&from->bounds[0], capacity, BH_FORECAST_HOT_PERMILLE);
    *(struct bh_reply_forecast_node *)ret = (struct bh_reply_forecast_node){
        .bounds = forecasts_bounds_of(o, from),
        .capacity = forecasts_gpus(o, capacity),
        .capacity_parts = capacity,
        .hot = heat.hot,
        .level = forecasts_gpus(o, from->bounds[0].level),
        .level_parts = from->bounds[0].level,
        .level_permille = heat.level_permille,
        .mark_permille = BH_FORECAST_HOT_PERMILLE,
        .node = from->fact->name,
        .projected_permille = heat.projected_permille,
    };
}

static bool
forecasts_is_shown(const struct forecast_view *o, const struct bh_forecast_row *row)
{
    if (row->of != BH_FORECAST_OF_TENANT)
        return o->visible.all;
    return bh_visible_has(&o->visible, row->id)
           && bh_directory_tenant(o->call->dir, (bh_tenant_id){ row->id });
}

/* All rows of one kind, in the call's arena. */
static bh_rc
forecasts_list(const struct forecast_view *o, enum bh_forecast_of of, struct bh_list *ret, struct bh_err *err)
{
    static const struct {
        const struct bh_fields *fields;
        void (*fill)(const struct forecast_view *, const struct forecast_row *, void *ret);
    } kinds[BH_FORECAST_OFS] = {
        [BH_FORECAST_OF_TENANT] = { &bh_reply_forecast_tenant_fields, forecasts_fill_tenant },
        [BH_FORECAST_OF_POOL] = { &bh_reply_forecast_pool_fields, forecasts_fill_pool },
        [BH_FORECAST_OF_PARTITIONS] = { &bh_reply_forecast_partitions_fields, forecasts_fill_partitions },
        [BH_FORECAST_OF_NODE] = { &bh_reply_forecast_node_fields, forecasts_fill_node },
    };
    const struct bh_forecast_series *series = &o->picture.series;
    size_t size = kinds[of].fields->size;
    char *rows;
    bh_rc rc = bh_call_alloc(o->call, series->count * size, &rows, err);

    if (rc != BH_OK)
        return rc;
    *ret = (struct bh_list){ rows, 0 };
    for (uint32_t at = 0; at < series->count; at++) {
        struct forecast_row from = { .row = &series->rows[at], .fact = &o->picture.facts[at] };

        if (from.row->of != of || !forecasts_is_shown(o, from.row))
            continue;
        for (uint32_t i = 0; i < bh_forecast_row_horizons(of); i++)
            from.bounds[i] = bh_forecast_row_bound(from.row, i);
        kinds[of].fill(o, &from, rows + ret->count++ * size);
    }
    return BH_OK;
}

static bh_rc
forecasts_write(const struct forecast_view *o, struct bh_err *err)
{
    const struct bh_ev_settings *settings = &o->picture.settings;
    const char *ahead[BH_FORECAST_HORIZONS];
    struct bh_reply_forecast reply = {
        .ahead_ns = { ahead, BH_FORECAST_HORIZONS },
        .at_ns = o->picture.now_ns,
        .hotspots = settings->hotspots,
        .lending = bh_lending_names[settings->lending],
        .preshape = settings->preshape,
        .q_bp = BH_FORECAST_Q_BP,
        .slot_ns = o->picture.series.slot_ns,
    };
    bh_rc rc = forecasts_list(o, BH_FORECAST_OF_NODE, &reply.nodes, err);

    if (rc != BH_OK)
        return rc;
    rc = forecasts_list(o, BH_FORECAST_OF_PARTITIONS, &reply.partitions, err);
    if (rc != BH_OK)
        return rc;
    rc = forecasts_list(o, BH_FORECAST_OF_POOL, &reply.pools, err);
    if (rc != BH_OK)
        return rc;
    rc = forecasts_list(o, BH_FORECAST_OF_TENANT, &reply.tenants, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < BH_FORECAST_HORIZONS; i++)
        ahead[i] = bh_arena_printf(o->call->arena, "%" PRIu64,
                                   bh_forecast_horizon_steps[i] * o->picture.series.slot_ns);
    bh_reply_put(o->call, &bh_reply_forecast_fields, &reply);
    return BH_OK;
}

/* Nodes have no place in the directory: their names come from the store. */
static bool
forecasts_read_name(void *self, const struct bh_name_row *row)
{
    struct forecast_view *o = self;
    const struct bh_forecast_row *sight =
        row->kind == BH_NAME_NODE && !row->gone
            ? bh_forecast_series_find(&o->picture.series, BH_FORECAST_OF_NODE, row->id)
            : NULL;

    if (sight)
        o->picture.facts[sight - o->picture.series.rows].name = bh_arena_strdup(o->call->arena, row->name);
    return true;
}

bh_rc
bh_forecasts_show(struct bh_call *call, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    const struct bh_store *store = &call->api->options.store;
    struct forecast_view o = { .call = call };
    bh_rc rc = bh_visible_find(call, "usage.view", &o.visible, err);

    if (rc == BH_OK)
        rc = owner->ops->ask_forecast(owner->self, forecasts_ask_picture, &o.picture, err);
    if (rc == BH_OK)
        rc = store->ops->list_names(store->self, forecasts_read_name, &o, err);
    if (rc == BH_OK)
        rc = forecasts_write(&o, err);
    free(o.picture.series.rows);
    free(o.picture.facts);
    return rc;
}
