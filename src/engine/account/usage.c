#include "engine/account/usage.h"

#include "base/assert.h"
#include "engine/account/tenant.h"
#include "engine/state/slots.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define NS_PER_H (3600 * NS_PER_S)

const uint32_t bh_usage_weights[BH_USAGE_STEPS] = {
    65536,  66250,  66971,  67700,  68438,  69183,  69936,  70698,  71468,  72246,  73032,  73828,  74632,
    75444,  76266,  77096,  77936,  78785,  79642,  80510,  81386,  82273,  83169,  84074,  84990,  85915,
    86851,  87796,  88752,  89719,  90696,  91684,  92682,  93691,  94711,  95743,  96785,  97839,  98905,
    99982,  101070, 102171, 103283, 104408, 105545, 106694, 107856, 109031, 110218, 111418, 112631, 113858,
    115098, 116351, 117618, 118899, 120194, 121502, 122825, 124163, 125515, 126882, 128263, 129660,
};

/* The weights before each step, together. */
static const uint32_t weights_before[BH_USAGE_STEPS] = {
    0,       65536,   131786,  198757,  266457,  334895,  404078,  474014,  544712,  616180,  688426,
    761458,  835286,  909918,  985362,  1061628, 1138724, 1216660, 1295445, 1375087, 1455597, 1536983,
    1619256, 1702425, 1786499, 1871489, 1957404, 2044255, 2132051, 2220803, 2310522, 2401218, 2492902,
    2585584, 2679275, 2773986, 2869729, 2966514, 3064353, 3163258, 3263240, 3364310, 3466481, 3569764,
    3674172, 3779717, 3886411, 3994267, 4103298, 4213516, 4324934, 4437565, 4551423, 4666521, 4782872,
    4900490, 5019389, 5139583, 5261085, 5383910, 5508073, 5633588, 5760470, 5888733,
};

/* Half-lives after which nothing is left of a sum, whatever it was. */
enum { HALVINGS_MAX = 128 };

/* ---- decay ---- */

static bool
usage_decays(const struct bh_engine *engine)
{
    return engine->core.settings.half_life_ns != BH_UNLIMITED;
}

/* Length of a step of the weight; an hour where nothing decays. */
static uint64_t
usage_step_ms(const struct bh_engine *engine)
{
    if (!usage_decays(engine))
        return NS_PER_H / NS_PER_MS;
    return engine->core.settings.half_life_ns / NS_PER_MS / BH_USAGE_STEPS;
}

/* The step that a time lies in; the last one is a little longer than the others. */
static uint32_t
usage_step_of(const struct bh_engine *engine, uint64_t ms)
{
    uint64_t step = usage_decays(engine) ? ms / usage_step_ms(engine) : 0;

    return step < BH_USAGE_STEPS ? (uint32_t)step : BH_USAGE_STEPS - 1;
}

/* Milliseconds since the half-life began, each times its weight. */
static uint64_t
usage_weighed_ms(const struct bh_engine *engine, uint64_t at_ns)
{
    uint64_t ms = (at_ns - engine->core.half_life_began_ns) / NS_PER_MS;
    uint32_t step = usage_step_of(engine, ms);

    BH_ASSERT(at_ns >= engine->core.half_life_began_ns);
    return weights_before[step] * usage_step_ms(engine)
           + bh_usage_weights[step] * (ms - step * usage_step_ms(engine));
}

/* ---- what was used ---- */

/* GPU-equivalents that the tenant has: in use, or kept from others by dedication. */
static uint64_t
usage_held_by(const struct tenant *tenant)
{
    return tenant->used + tenant->dedicated_parts;
}

static uint64_t
usage_held_by_own(const struct tenant *tenant)
{
    return tenant->used_own + tenant->dedicated_parts_own;
}

struct spending {
    bh_part_ns gpu;
    unsigned __int128 money; /* micro-units * ns / h */
};

/* In the budget's period that holds `at_ns`. */
static struct spending
usage_spent_at(const struct tenant *tenant, uint64_t at_ns)
{
    struct spending spent = { tenant->spent_gpu, tenant->spent_money };
    uint64_t from_ns = tenant->usage_ns;

    if (at_ns >= tenant->period_end_ns) {
        from_ns = bh_period_begin_ns((enum bh_period)tenant->period, at_ns);
        spent = (struct spending){ 0, 0 };
    }
    spent.gpu += (bh_part_ns)usage_held_by(tenant) * (at_ns - from_ns);
    spent.money += (unsigned __int128)tenant->cost * (at_ns - from_ns);
    return spent;
}

static void
usage_update_at(struct bh_engine *engine, uint32_t slot, uint64_t at_ns)
{
    struct tenant *tenant = tenant_at(engine, slot);
    uint64_t weighed;

    BH_ASSERT(tenant->id != 0 && tenant->used >= tenant->used_own);
    BH_ASSERT(tenant->period < BH_PERIODS);
    if (at_ns == tenant->usage_ns)
        return;
    BH_ASSERT(at_ns > tenant->usage_ns);
    if (usage_held_by(tenant)) {
        weighed = usage_weighed_ms(engine, at_ns) - usage_weighed_ms(engine, tenant->usage_ns);
        tenant->fair += (unsigned __int128)usage_held_by(tenant) * weighed;
        tenant->fair_own += (unsigned __int128)usage_held_by_own(tenant) * weighed;
    }
    if (tenant->period != BH_PERIOD_NONE) {
        struct spending spent = usage_spent_at(tenant, at_ns);

        tenant->spent_gpu = spent.gpu;
        tenant->spent_money = spent.money;
        tenant->period_end_ns = bh_period_end_ns((enum bh_period)tenant->period, at_ns);
    }
    tenant->usage_ns = at_ns;
}

void
bh_usage_update(struct bh_engine *engine, uint32_t tenant)
{
    BH_ASSERT(tenant != 0);
    usage_update_at(engine, tenant, engine->core.now_ns);
}

void
bh_usage_update_all(struct bh_engine *engine)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);)
        usage_update_at(engine, slot, engine->core.now_ns);
}

void
bh_usage_dedicate(struct bh_engine *engine, uint32_t slot, uint64_t equivalent)
{
    BH_ASSERT(tenant_at(engine, slot)->id != 0);
    bh_usage_update(engine, slot);
    tenant_at(engine, slot)->dedicated_parts_own += equivalent;
    for (uint32_t at = slot; at; at = tenant_at(engine, at)->parent) {
        bh_usage_update(engine, at);
        tenant_at(engine, at)->dedicated_parts += equivalent;
    }
}

static void
usage_halve_all(struct bh_engine *engine, uint64_t at_ns)
{
    BH_ASSERT(at_ns >= engine->core.half_life_began_ns);
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        struct tenant *tenant = tenant_at(engine, slot);

        usage_update_at(engine, slot, at_ns);
        tenant->fair >>= 1;
        tenant->fair_own >>= 1;
    }
    engine->core.half_life_began_ns = at_ns;
}

void
bh_usage_advance(struct bh_engine *engine, uint64_t now_ns)
{
    uint64_t half_life_ns = engine->core.settings.half_life_ns;
    uint64_t began_ns = engine->core.half_life_began_ns, ends, skipped;

    BH_ASSERT(began_ns <= now_ns);
    if (!usage_decays(engine) || now_ns - began_ns < half_life_ns)
        return;
    ends = (now_ns - began_ns) / half_life_ns;
    /* of what lies further back nothing is left, however it was weighed */
    skipped = ends > HALVINGS_MAX ? ends - HALVINGS_MAX : 0;
    usage_halve_all(engine, began_ns + (skipped + 1) * half_life_ns);
    while (now_ns - engine->core.half_life_began_ns >= half_life_ns)
        usage_halve_all(engine, engine->core.half_life_began_ns + half_life_ns);
}

void
bh_usage_configure(struct bh_engine *engine, const struct bh_ev_settings *settings)
{
    struct bh_ev_settings *now = &engine->core.settings;
    uint64_t now_ns = engine->core.now_ns;
    uint64_t ms = (now_ns - engine->core.half_life_began_ns) / NS_PER_MS;
    uint32_t weight = bh_usage_weights[usage_step_of(engine, ms)];

    BH_ASSERT(engine->core.half_life_began_ns <= now_ns);
    BH_ASSERT(settings->half_life_ns != 0);
    bh_usage_update_all(engine);
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        struct tenant *tenant = tenant_at(engine, slot);

        tenant->fair = (tenant->fair << 16) / weight;
        tenant->fair_own = (tenant->fair_own << 16) / weight;
    }
    now->order = settings->order;
    now->half_life_ns = settings->half_life_ns;
    now->backfill = settings->backfill;
    now->assumed_run_ns = settings->assumed_run_ns ? settings->assumed_run_ns : BH_ASSUMED_RUN_DEFAULT_NS;
    now->min_runtime_ns = settings->min_runtime_ns;
    now->lending = settings->lending;
    now->burn_in_ns = settings->burn_in_ns;
    now->hotspots = settings->hotspots;
    now->spread_kinds = settings->spread_kinds;
    now->preshape = settings->preshape;
    engine->core.half_life_began_ns = now_ns;
}

/* ---- which tenant comes first ---- */

struct account_usage_usage {
    unsigned __int128 amount;
    uint32_t weight;
    uint64_t id; /* whose it is: the order among equals */
};

static unsigned __int128
usage_amount_of(const struct bh_engine *engine, const struct tenant *tenant, bool own)
{
    const struct core *core = &engine->core;
    uint64_t held = own ? usage_held_by_own(tenant) : usage_held_by(tenant);
    uint64_t at_ns = core->turned_ns, ms, ahead, weighed = 0;

    if (core->settings.order == BH_ORDER_DRF)
        return held;
    if (at_ns < core->half_life_began_ns)
        at_ns = core->half_life_began_ns;
    ms = (at_ns - core->half_life_began_ns) / NS_PER_MS;
    ahead = bh_usage_weights[usage_step_of(engine, ms)] * usage_step_ms(engine);
    if (held && at_ns > tenant->usage_ns)
        weighed = usage_weighed_ms(engine, at_ns) - usage_weighed_ms(engine, tenant->usage_ns);
    return (own ? tenant->fair_own : tenant->fair) + (unsigned __int128)held * (weighed + ahead);
}

uint64_t
bh_usage_of(const struct bh_engine *engine, uint32_t slot)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    uint64_t now_ns = engine->core.now_ns;
    uint64_t ms = (now_ns - engine->core.half_life_began_ns) / NS_PER_MS;
    uint64_t weighed = usage_weighed_ms(engine, now_ns) - usage_weighed_ms(engine, tenant->usage_ns);
    unsigned __int128 sum = tenant->fair + (unsigned __int128)usage_held_by(tenant) * weighed;

    return (uint64_t)(sum / bh_usage_weights[usage_step_of(engine, ms)] / BH_GPU_PARTS / 1000);
}

/* Of the tenant that stands right below `above` on the way to `tenant`; where that is
 * `above` itself, what its own jobs used. */
static struct account_usage_usage
usage_below(const struct bh_engine *engine, uint32_t above, uint32_t tenant)
{
    if (tenant == above)
        return (struct account_usage_usage){ usage_amount_of(engine, tenant_at(engine, tenant), true),
                                             BH_WEIGHT_DEFAULT, tenant_at(engine, tenant)->id };
    while (tenant_at(engine, tenant)->parent != above)
        tenant = tenant_at(engine, tenant)->parent;
    return (struct account_usage_usage){ usage_amount_of(engine, tenant_at(engine, tenant), false),
                                         tenant_at(engine, tenant)->weight, tenant_at(engine, tenant)->id };
}

int
bh_usage_compare(const struct bh_engine *engine, uint32_t a, uint32_t b)
{
    uint32_t above = a;
    struct account_usage_usage one, other;

    BH_ASSERT(a != 0 && b != 0);
    if (a == b || engine->core.settings.order == BH_ORDER_FIFO)
        return 0;
    while (above && !bh_tenant_within(engine, above, b))
        above = tenant_at(engine, above)->parent;
    one = usage_below(engine, above, a);
    other = usage_below(engine, above, b);
    /* amounts stay below 2^98: 2^29 parts, 2^36 ms of at most a year, 2^17 of weight */
    one.amount *= other.weight;
    other.amount *= one.weight;
    if (one.amount != other.amount)
        return one.amount < other.amount ? -1 : 1;
    return one.id < other.id ? -1 : 1;
}

/* ---- budgets ---- */

void
bh_usage_set_budget(struct bh_engine *engine, uint32_t slot, const struct bh_budget *budget)
{
    struct tenant *tenant = tenant_at(engine, slot);

    BH_ASSERT(tenant->id != 0 && (uint32_t)budget->period < BH_PERIODS);
    bh_usage_update(engine, slot);
    if (tenant->period != budget->period) {
        tenant->spent_gpu = tenant->spent_money = 0;
        tenant->period_end_ns = bh_period_end_ns(budget->period, engine->core.now_ns);
    }
    tenant->period = budget->period;
    tenant->budget_gpu_s = budget->gpu_s;
    tenant->budget_money = budget->money;
}

void
bh_usage_spent(const struct bh_engine *engine, uint32_t slot, uint64_t now_ns, bh_part_ns *ret_gpu,
               uint64_t *ret_money)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    struct spending spent = { 0, 0 };

    if (tenant->period != BH_PERIOD_NONE)
        spent = usage_spent_at(tenant, now_ns > tenant->usage_ns ? now_ns : tenant->usage_ns);
    *ret_gpu = spent.gpu;
    *ret_money = (uint64_t)(spent.money / NS_PER_H);
}

/* Whether one tenant's budget is spent; the reason says which amount. */
static bool
usage_is_spent(const struct bh_engine *engine, uint32_t slot, struct bh_reason *ret_why)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    bh_part_ns gpu;
    uint64_t money, gpu_s;

    if (tenant->period == BH_PERIOD_NONE)
        return false;
    bh_usage_spent(engine, slot, engine->core.now_ns, &gpu, &money);
    gpu_s = (uint64_t)(gpu / BH_GPU_PARTS / NS_PER_S);
    *ret_why = (struct bh_reason){ .code = BH_REASON_BUDGET,
                                   .tenant = { (uint32_t)tenant->id },
                                   .limit = tenant->budget_gpu_s,
                                   .used = gpu_s,
                                   .frees_at_ns = bh_period_end_ns((enum bh_period)tenant->period,
                                                                   engine->core.now_ns) };
    if (tenant->budget_gpu_s != BH_UNLIMITED && gpu_s >= tenant->budget_gpu_s)
        return true;
    ret_why->code = BH_REASON_BUDGET_MONEY;
    ret_why->limit = tenant->budget_money;
    ret_why->used = money;
    return tenant->budget_money != BH_UNLIMITED && money >= tenant->budget_money;
}

bool
bh_usage_exhausted(const struct bh_engine *engine, uint32_t slot, struct bh_reason *ret_why)
{
    for (; slot; slot = tenant_at(engine, slot)->parent)
        if (usage_is_spent(engine, slot, ret_why))
            return true;
    return false;
}
