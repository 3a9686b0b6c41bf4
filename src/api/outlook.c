#include "api/outlook.h"

#include <stdlib.h>
#include <string.h>

#include "api/amounts.h"
#include "api/visible.h"
#include "base/assert.h"
#include "engine/foresight.h"

/* What the engine says of a row's subject. */
struct fact {
    uint64_t guarantee, expected; /* of a tenant */
    uint64_t capacity;            /* of a node, in parts */
    const char *name;             /* of a node, in the call's arena */
    struct bh_headroom_pool pool; /* its bounds are set when it is judged */
};

struct picture {
    struct bh_foresight foresight; /* a copy: bounds are made on the worker's thread */
    struct fact *facts;            /* beside its rows */
    struct bh_ev_settings settings;
    uint64_t now_ns;
};

static void
know(struct picture *picture, const struct bh_engine *engine, uint32_t at)
{
    const struct bh_sight *row = &picture->foresight.rows[at];
    struct fact *fact = &picture->facts[at];
    struct bh_tenant_view tenant;

    if (row->of == BH_SIGHT_TENANT
        && bh_view_tenant(engine, (bh_tenant_id){ row->id }, picture->now_ns, &tenant)) {
        fact->guarantee = tenant.settings.guarantee;
        fact->expected = tenant.expected;
    }
    if (row->of == BH_SIGHT_NODE)
        fact->capacity = bh_foresight_capacity(engine, (bh_node_id){ row->id });
    if (row->of == BH_SIGHT_POOL)
        fact->pool = bh_foresight_pool(engine, row->id, NULL);
}

static void
ask_picture(void *self, const struct bh_foresight *foresight, const struct bh_engine *engine,
            uint64_t now_ns)
{
    struct picture *picture = self;
    size_t bytes = foresight->count * sizeof *foresight->rows;

    picture->foresight = *foresight;
    picture->foresight.rows = malloc(bytes + 1);
    picture->facts = calloc(foresight->count + 1, sizeof *picture->facts);
    BH_ASSERT(picture->foresight.rows && picture->facts);
    memcpy(picture->foresight.rows, foresight->rows, bytes);
    picture->now_ns = now_ns;
    bh_view_settings(engine, &picture->settings);
    for (uint32_t i = 0; i < foresight->count; i++)
        know(picture, engine, i);
}

/* ---- in JSON ---- */

struct outlook {
    struct bh_call *call;
    struct bh_json_writer w;
    struct bh_visible visible;
    struct picture picture;
    uint32_t at;                 /* the row that is put */
    struct bh_forecast_bound bounds[BH_FORESIGHT_HORIZONS]; /* its own */
};

static const struct bh_sight *
row_of(const struct outlook *o)
{
    return &o->picture.foresight.rows[o->at];
}

/* In GPUs where the series counts parts. */
static void
put_value(struct bh_json_writer *w, const char *key, const char *gpus, uint64_t value)
{
    bh_json_u64(w, key, value);
    if (gpus)
        bh_put_gpus(w, gpus, value);
}

static void
put_bound(struct outlook *o, uint32_t horizon)
{
    static const char *const names[BH_FORESIGHT_HORIZONS] = { "near", "later", "far" };
    const struct bh_forecast_bound *bound = &o->bounds[horizon];
    struct bh_forecast_coverage coverage = bh_forecast_coverage(&row_of(o)->series, horizon);
    bool parts = row_of(o)->of != BH_SIGHT_PIECES;

    bh_json_open(&o->w, names[horizon], '{');
    bh_json_ns(&o->w, "ahead_ns", bound->steps * o->picture.foresight.slot_ns);
    bh_json_i64(&o->w, "change", bound->change);
    bh_json_u64(&o->w, "changes", bound->changes);
    bh_json_bool(&o->w, "firm", bound->firm);
    bh_json_u64(&o->w, "judged", coverage.judged);
    bh_json_u64(&o->w, "kept", coverage.kept);
    bh_json_u64(&o->w, "rank", bound->rank);
    put_value(&o->w, parts ? "parts" : "pieces", parts ? "gpus" : NULL, bound->value);
    bh_json_close(&o->w, '}');
}

static void
put_series(struct outlook *o)
{
    bool parts = row_of(o)->of != BH_SIGHT_PIECES;

    bh_json_open(&o->w, "bounds", '{');
    for (uint32_t i = 0; i < bh_sight_horizons((enum bh_sight_of)row_of(o)->of); i++)
        put_bound(o, i);
    bh_json_close(&o->w, '}');
    put_value(&o->w, parts ? "level_parts" : "level", parts ? "level" : NULL,
              o->bounds[0].level);
}

static void
put_tenant(struct outlook *o)
{
    const struct fact *fact = &o->picture.facts[o->at];
    uint64_t lends = bh_headroom_lend(fact->guarantee, &o->bounds[0]);

    put_series(o);
    put_value(&o->w, "expected_parts", "expected", fact->guarantee - lends);
    put_value(&o->w, "guarantee_parts", "guarantee", fact->guarantee);
    put_value(&o->w, "lends_parts", "lends", lends);
    bh_json_str(&o->w, "name",
                bh_directory_tenant(o->call->dir, (bh_tenant_id){ row_of(o)->id })->path);
}

static const char *
model_name(uint32_t model)
{
    const struct bh_model_facts *facts = bh_model_facts((enum bh_gpu_model)model);

    return model != BH_GPU_MODEL_NONE && facts ? facts->name : "other";
}

static void
put_pool(struct outlook *o)
{
    static const char *const moves[] = { [BH_HEADROOM_KEEP] = "keep",
                                         [BH_HEADROOM_GROW] = "grow",
                                         [BH_HEADROOM_SHRINK] = "shrink" };
    struct bh_headroom_pool pool = o->picture.facts[o->at].pool;
    struct bh_headroom_scale scale;

    pool.need = &o->bounds[0];
    pool.later = &o->bounds[BH_FORESIGHT_HORIZONS - 1];
    scale = bh_headroom_propose(&pool);
    put_series(o);
    bh_json_u64(&o->w, "gpus", pool.capacity);
    bh_json_str(&o->w, "model", model_name(row_of(o)->id));
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
put_pieces(struct outlook *o)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ row_of(o)->id });

    put_series(o);
    bh_json_str(&o->w, "model", model_name(profile ? (uint32_t)profile->model : 0));
    bh_json_str(&o->w, "profile", profile ? profile->name : "");
    bh_json_u64(&o->w, "ready", bh_sight_ready(row_of(o)));
}

static void
put_node(struct outlook *o)
{
    uint64_t capacity = o->picture.facts[o->at].capacity;
    struct bh_headroom_heat heat = { .hot = false };

    if (capacity)
        heat = bh_headroom_test_node(&o->bounds[0], capacity, BH_FORESIGHT_MARK_PERMILLE);
    put_series(o);
    put_value(&o->w, "capacity_parts", "capacity", capacity);
    bh_json_bool(&o->w, "hot", heat.hot);
    bh_json_u64(&o->w, "level_permille", heat.level_permille);
    bh_json_u64(&o->w, "mark_permille", BH_FORESIGHT_MARK_PERMILLE);
    bh_json_str(&o->w, "node", o->picture.facts[o->at].name ? o->picture.facts[o->at].name : "");
    bh_json_u64(&o->w, "projected_permille", heat.projected_permille);
}

static bool
is_shown(const struct outlook *o)
{
    const struct bh_sight *row = row_of(o);

    if (row->of != BH_SIGHT_TENANT)
        return o->visible.all;
    return bh_visible_has(&o->visible, row->id)
           && bh_directory_tenant(o->call->dir, (bh_tenant_id){ row->id });
}

/* All rows of one kind. */
static void
put_rows(struct outlook *o, enum bh_sight_of of, const char *key)
{
    static void (*const put[BH_SIGHTS])(struct outlook *) = {
        [BH_SIGHT_TENANT] = put_tenant, [BH_SIGHT_POOL] = put_pool,
        [BH_SIGHT_PIECES] = put_pieces, [BH_SIGHT_NODE] = put_node,
    };

    bh_json_open(&o->w, key, '[');
    for (o->at = 0; o->at < o->picture.foresight.count; o->at++) {
        if (row_of(o)->of != of || !is_shown(o))
            continue;
        for (uint32_t i = 0; i < bh_sight_horizons(of); i++)
            o->bounds[i] = bh_sight_bound(row_of(o), i);
        bh_json_open(&o->w, NULL, '{');
        put[of](o);
        bh_json_close(&o->w, '}');
    }
    bh_json_close(&o->w, ']');
}

static void
put_all(struct outlook *o)
{
    const struct bh_ev_settings *settings = &o->picture.settings;

    bh_json_open(&o->w, NULL, '{');
    bh_json_open(&o->w, "ahead_ns", '[');
    for (uint32_t i = 0; i < BH_FORESIGHT_HORIZONS; i++)
        bh_json_ns(&o->w, NULL, bh_foresight_steps[i] * o->picture.foresight.slot_ns);
    bh_json_close(&o->w, ']');
    bh_json_ns(&o->w, "at_ns", o->picture.now_ns);
    bh_json_bool(&o->w, "hotspots", settings->hotspots);
    bh_json_str(&o->w, "lending", bh_lending_names[settings->lending]);
    put_rows(o, BH_SIGHT_NODE, "nodes");
    put_rows(o, BH_SIGHT_PIECES, "pieces");
    put_rows(o, BH_SIGHT_POOL, "pools");
    bh_json_bool(&o->w, "preshape", settings->preshape);
    bh_json_u64(&o->w, "q_bp", BH_FORESIGHT_Q_BP);
    bh_json_ns(&o->w, "slot_ns", o->picture.foresight.slot_ns);
    put_rows(o, BH_SIGHT_TENANT, "tenants");
    bh_json_close(&o->w, '}');
}

/* Nodes have no place in the directory: their names come from the store. */
static bool
take_name(void *self, const struct bh_name_row *row)
{
    struct outlook *o = self;
    const struct bh_sight *sight =
        row->kind == BH_NAME_NODE && !row->gone
            ? bh_foresight_find(&o->picture.foresight, BH_SIGHT_NODE, row->id)
            : NULL;

    if (sight)
        o->picture.facts[sight - o->picture.foresight.rows].name =
            bh_arena_strdup(o->call->arena, row->name);
    return true;
}

bh_rc
bh_outlook_show(struct bh_call *call, struct bh_err *err)
{
    const struct bh_owner *owner = &call->api->options.owner;
    const struct bh_store *store = &call->api->options.store;
    struct outlook o = { .call = call, .w = bh_call_writer(call) };
    bh_rc rc = bh_visible_find(call, "usage.view", &o.visible, err);

    if (rc == BH_OK)
        rc = owner->ops->foresee(owner->self, ask_picture, &o.picture, err);
    if (rc == BH_OK)
        rc = store->ops->list_names(store->self, take_name, &o, err);
    if (rc == BH_OK)
        put_all(&o);
    free(o.picture.foresight.rows);
    free(o.picture.facts);
    return rc;
}
