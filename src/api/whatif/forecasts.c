#include "api/whatif/forecasts.h"

#include <stdlib.h>
#include <string.h>

#include "api/request/amounts.h"
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

/* ---- in JSON ---- */

struct forecast_view {
    struct bh_call *call;
    struct bh_json_writer w;
    struct bh_visible visible;
    struct forecasts_picture picture;
    uint32_t at;                                           /* the row that is put */
    struct bh_forecast_bound bounds[BH_FORECAST_HORIZONS]; /* its own */
};

static const struct bh_forecast_row *
forecasts_row_of(const struct forecast_view *o)
{
    return &o->picture.series.rows[o->at];
}

/* In GPUs where the series counts parts. */
static void
forecasts_put_value(struct bh_json_writer *w, const char *key, const char *gpus, uint64_t value)
{
    bh_json_u64(w, key, value);
    if (gpus)
        bh_put_gpus(w, gpus, value);
}

static void
forecasts_put_bound(struct forecast_view *o, uint32_t horizon)
{
    static const char *const names[BH_FORECAST_HORIZONS] = { "near", "later", "far" };
    const struct bh_forecast_bound *bound = &o->bounds[horizon];
    struct bh_forecast_coverage coverage = bh_forecast_coverage(&forecasts_row_of(o)->series, horizon);
    bool parts = forecasts_row_of(o)->of != BH_FORECAST_OF_PARTITIONS;

    bh_json_open(&o->w, names[horizon], '{');
    bh_json_ns(&o->w, "ahead_ns", bound->steps * o->picture.series.slot_ns);
    bh_json_i64(&o->w, "change", bound->change);
    bh_json_u64(&o->w, "changes", bound->changes);
    bh_json_bool(&o->w, "firm", bound->firm);
    bh_json_u64(&o->w, "judged", coverage.judged);
    bh_json_u64(&o->w, "kept", coverage.kept);
    bh_json_u64(&o->w, "rank", bound->rank);
    forecasts_put_value(&o->w, parts ? "parts" : "pieces", parts ? "gpus" : NULL, bound->value);
    bh_json_close(&o->w, '}');
}

static void
forecasts_put_series(struct forecast_view *o)
{
    bool parts = forecasts_row_of(o)->of != BH_FORECAST_OF_PARTITIONS;

    bh_json_open(&o->w, "bounds", '{');
    for (uint32_t i = 0; i < bh_forecast_row_horizons((enum bh_forecast_of)forecasts_row_of(o)->of); i++)
        forecasts_put_bound(o, i);
    bh_json_close(&o->w, '}');
    forecasts_put_value(&o->w, parts ? "level_parts" : "level", parts ? "level" : NULL, o->bounds[0].level);
}

static void
forecasts_put_tenant(struct forecast_view *o)
{
    const struct fact *fact = &o->picture.facts[o->at];
    uint64_t lends = bh_headroom_lend(fact->guarantee, &o->bounds[0]);

    forecasts_put_series(o);
    forecasts_put_value(&o->w, "expected_parts", "expected", fact->guarantee - lends);
    forecasts_put_value(&o->w, "guarantee_parts", "guarantee", fact->guarantee);
    forecasts_put_value(&o->w, "lends_parts", "lends", lends);
    bh_json_str(&o->w, "name",
                bh_directory_tenant(o->call->dir, (bh_tenant_id){ forecasts_row_of(o)->id })->path);
}

static const char *
forecasts_model_name(uint32_t model)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)model);

    return model != BH_GPU_MODEL_NONE && facts ? facts->name : "other";
}

static void
forecasts_put_pool(struct forecast_view *o)
{
    static const char *const moves[] = {
        [BH_HEADROOM_KEEP] = "keep", [BH_HEADROOM_GROW] = "grow", [BH_HEADROOM_SHRINK] = "shrink"
    };
    struct bh_headroom_pool pool = o->picture.facts[o->at].pool;
    struct bh_headroom_scale scale;

    pool.need = &o->bounds[0];
    pool.later = &o->bounds[BH_FORECAST_HORIZONS - 1];
    scale = bh_headroom_propose(&pool);
    forecasts_put_series(o);
    bh_json_u64(&o->w, "gpus", pool.capacity);
    bh_json_str(&o->w, "model", forecasts_model_name(forecasts_row_of(o)->id));
    bh_json_open(&o->w, "proposal", '{');
    bh_json_u64(&o->w, "gpus", scale.gpus);
    bh_json_u64(&o->w, "grain", pool.grain);
    bh_json_u64(&o->w, "least", pool.least);
    bh_json_str(&o->w, "move", moves[scale.move]);
    bh_json_u64(&o->w, "reserve_permille", pool.reserve_permille);
    bh_json_u64(&o->w, "wanted", scale.wanted);
    bh_json_u64(&o->w, "wanted_later", scale.wanted_later);
    bh_json_close(&o->w, '}');
}

static void
forecasts_put_partitions(struct forecast_view *o)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ forecasts_row_of(o)->id });

    forecasts_put_series(o);
    bh_json_str(&o->w, "model", forecasts_model_name(profile ? (uint32_t)profile->model : 0));
    bh_json_str(&o->w, "profile", profile ? profile->name : "");
    bh_json_u64(&o->w, "ready", bh_forecast_row_ready(forecasts_row_of(o)));
}

static void
forecasts_put_node(struct forecast_view *o)
{
    uint64_t capacity = o->picture.facts[o->at].capacity;
    struct bh_headroom_heat heat = { .hot = false };

    if (capacity)
        heat = bh_headroom_test_node(&o->bounds[0], capacity, BH_FORECAST_HOT_PERMILLE);
    forecasts_put_series(o);
    forecasts_put_value(&o->w, "capacity_parts", "capacity", capacity);
    bh_json_bool(&o->w, "hot", heat.hot);
    bh_json_u64(&o->w, "level_permille", heat.level_permille);
    bh_json_u64(&o->w, "mark_permille", BH_FORECAST_HOT_PERMILLE);
    bh_json_str(&o->w, "node", o->picture.facts[o->at].name ? o->picture.facts[o->at].name : "");
    bh_json_u64(&o->w, "projected_permille", heat.projected_permille);
}

static bool
forecasts_is_shown(const struct forecast_view *o)
{
    const struct bh_forecast_row *row = forecasts_row_of(o);

    if (row->of != BH_FORECAST_OF_TENANT)
        return o->visible.all;
    return bh_visible_has(&o->visible, row->id)
           && bh_directory_tenant(o->call->dir, (bh_tenant_id){ row->id });
}

/* All rows of one kind. */
static void
forecasts_put_rows(struct forecast_view *o, enum bh_forecast_of of, const char *key)
{
    static void (*const put[BH_FORECAST_OFS])(struct forecast_view *) = {
        [BH_FORECAST_OF_TENANT] = forecasts_put_tenant,
        [BH_FORECAST_OF_POOL] = forecasts_put_pool,
        [BH_FORECAST_OF_PARTITIONS] = forecasts_put_partitions,
        [BH_FORECAST_OF_NODE] = forecasts_put_node,
    };

    bh_json_open(&o->w, key, '[');
    for (o->at = 0; o->at < o->picture.series.count; o->at++) {
        if (forecasts_row_of(o)->of != of || !forecasts_is_shown(o))
            continue;
        for (uint32_t i = 0; i < bh_forecast_row_horizons(of); i++)
            o->bounds[i] = bh_forecast_row_bound(forecasts_row_of(o), i);
        bh_json_open(&o->w, NULL, '{');
        put[of](o);
        bh_json_close(&o->w, '}');
    }
    bh_json_close(&o->w, ']');
}

static void
forecasts_put_all(struct forecast_view *o)
{
    const struct bh_ev_settings *settings = &o->picture.settings;

    bh_json_open(&o->w, NULL, '{');
    bh_json_open(&o->w, "ahead_ns", '[');
    for (uint32_t i = 0; i < BH_FORECAST_HORIZONS; i++)
        bh_json_ns(&o->w, NULL, bh_forecast_horizon_steps[i] * o->picture.series.slot_ns);
    bh_json_close(&o->w, ']');
    bh_json_ns(&o->w, "at_ns", o->picture.now_ns);
    bh_json_bool(&o->w, "hotspots", settings->hotspots);
    bh_json_str(&o->w, "lending", bh_lending_names[settings->lending]);
    forecasts_put_rows(o, BH_FORECAST_OF_NODE, "nodes");
    forecasts_put_rows(o, BH_FORECAST_OF_PARTITIONS, "pieces");
    forecasts_put_rows(o, BH_FORECAST_OF_POOL, "pools");
    bh_json_bool(&o->w, "preshape", settings->preshape);
    bh_json_u64(&o->w, "q_bp", BH_FORECAST_Q_BP);
    bh_json_ns(&o->w, "slot_ns", o->picture.series.slot_ns);
    forecasts_put_rows(o, BH_FORECAST_OF_TENANT, "tenants");
    bh_json_close(&o->w, '}');
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
    struct forecast_view o = { .call = call, .w = bh_call_writer(call) };
    bh_rc rc = bh_visible_find(call, "usage.view", &o.visible, err);

    if (rc == BH_OK)
        rc = owner->ops->ask_forecast(owner->self, forecasts_ask_picture, &o.picture, err);
    if (rc == BH_OK)
        rc = store->ops->list_names(store->self, forecasts_read_name, &o, err);
    if (rc == BH_OK)
        forecasts_put_all(&o);
    free(o.picture.series.rows);
    free(o.picture.facts);
    return rc;
}
