#include "engine/placement/guarantee.h"

#include "engine/account/tenant.h"
#include "engine/placement/filter.h"
#include "engine/state/slots.h"

/* ---- what is not lent ---- */

static uint64_t
guarantee_withheld_of(uint64_t guarantee, uint64_t withhold, uint64_t used)
{
    uint64_t idle = guarantee > used ? guarantee - used : 0;

    return idle < withhold ? idle : withhold;
}

/* What of its guarantee a tenant is expected to want and does not use yet. */
static uint64_t
guarantee_expected_of(const struct bh_engine *engine, const struct tenant *tenant)
{
    uint64_t wanted = tenant->expected < tenant->guarantee ? tenant->expected : tenant->guarantee;

    if (engine->core.settings.lending != BH_LEND_FORECAST || tenant->removed)
        return 0;
    return wanted > tenant->used ? wanted - tenant->used : 0;
}

static uint64_t
guarantee_greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What a tenant keeps back just now, in equivalents: on one model, or on any (0).  What its
 * guarantees of GPUs, models and SKUs say may be the same room: the greatest counts.  Partitions
 * of a SKU count with the least that keeps its promise. */
static uint64_t
guarantee_withheld_by(const struct bh_engine *engine, const struct tenant *tenant, uint32_t model)
{
    uint64_t all = guarantee_withheld_of(tenant->guarantee, tenant->withhold, tenant->used);
    uint64_t models = 0, skus = 0, expected = guarantee_expected_of(engine, tenant);

    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];
        uint64_t kept = guarantee_withheld_of(quota->guarantee, quota->withhold, quota->used);

        if (quota->scope == BH_QUOTA_MODEL)
            models += model == 0 || quota->of == model ? kept : 0;
        else
            skus += kept * bh_quota_least(engine, sku_find(engine, quota->of), 1);
    }
    if (tenant->removed)
        return 0;
    return model ? models
                 : guarantee_greater(guarantee_greater(all, expected), guarantee_greater(models, skus));
}

/* Of all tenants that keep something back from the tenant; what a tenant keeps counts for those below it
 * too. */
static uint64_t
guarantee_withheld_from(const struct bh_engine *engine, uint32_t wanting, uint32_t model, uint32_t *ret_who)
{
    uint64_t sum = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        uint32_t above = tenant_at(engine, slot)->parent;
        uint64_t kept = guarantee_withheld_by(engine, tenant_at(engine, slot), model);

        while (above
               && (bh_tenant_within(engine, above, wanting)
                   || guarantee_withheld_by(engine, tenant_at(engine, above), model) == 0))
            above = tenant_at(engine, above)->parent;
        if (kept == 0 || above || bh_tenant_within(engine, slot, wanting))
            continue;
        sum += kept;
        *ret_who = slot;
    }
    return sum;
}

/* Whether it would keep less back if nothing were expected. */
static bool
guarantee_by_forecast(const struct bh_engine *engine, uint32_t slot)
{
    struct tenant without = *tenant_at(engine, slot);

    without.expected = 0;
    return guarantee_withheld_by(engine, &without, 0)
           < guarantee_withheld_by(engine, tenant_at(engine, slot), 0);
}

/* Whether enough stays free of what others are guaranteed and do not lend. */
static bool
guarantee_leaves_enough(const struct bh_search *search, const struct bh_wanted *wanted, uint32_t model,
                        struct bh_reason *ret_why)
{
    const struct core *core = &search->engine->core;
    struct quota by_model = { .scope = BH_QUOTA_MODEL, .of = model };
    struct bh_filter filter = { .quota = model ? &by_model : NULL };
    uint32_t who = 0;
    uint64_t kept = guarantee_withheld_from(search->engine, wanted->tenant, model, &who), capacity = 0;

    if (kept == 0)
        return true;
    for (uint32_t i = 0; i < MODELS_MAX; i++)
        capacity += model == 0 || i == model ? (uint64_t)core->offered[i] * BH_GPU_PARTS : 0;
    *ret_why = (struct bh_reason){ .code = BH_REASON_KEPT,
                                   .tenant = { (uint32_t)tenant_at(search->engine, who)->id },
                                   .limit = capacity > kept ? capacity - kept : 0,
                                   .used = model ? core->used_models[model] : core->used,
                                   .wanted = wanted->equivalent };
    if (!model && guarantee_by_forecast(search->engine, who)) {
        ret_why->code = BH_REASON_KEPT_FORECAST;
        ret_why->expected = tenant_at(search->engine, who)->expected;
    }
    return bh_filter_fits(search, &filter, ret_why);
}

bool
bh_guarantee_lends(const struct bh_search *search, const struct bh_wanted *wanted, struct bh_reason *ret_why)
{
    uint32_t within;

    if (search->engine->core.withholders == 0 || wanted->equivalent == 0
        || bh_guarantee_cover(search->engine, wanted, &within) == BH_COVER_ALL)
        return true;
    return guarantee_leaves_enough(search, wanted, 0, ret_why)
           && guarantee_leaves_enough(search, wanted, wanted->model, ret_why);
}

/* ---- guarantees ---- */

enum guarantee_word { SAYS_NOTHING, COVERS_IT, IS_EXCEEDED };

/* What one guarantee says. */
static enum guarantee_word
guarantee_covers(uint64_t guarantee, uint64_t used, uint64_t more)
{
    if (guarantee == 0 || more == 0)
        return SAYS_NOTHING;
    return used + more <= guarantee ? COVERS_IT : IS_EXCEEDED;
}

/* What is being made room for, within a tenant: for all but one job (slot); in the unit of a
 * quota, or equivalents. */
static uint64_t
guarantee_claimed_within(const struct bh_engine *engine, uint32_t tenant, const struct quota *quota,
                         uint32_t but_job)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; engine->core.claim_count > engine->core.reserved && i < CLAIMS_MAX; i++) {
        const struct claim *claim = &engine->core.claims[i];
        struct bh_wanted taken;

        if (!claim->job || claim->job == but_job || claim->at_ns)
            continue;
        taken = bh_quota_of_claim(engine, claim);
        if (bh_tenant_within(engine, tenant, taken.tenant))
            sum += quota ? bh_quota_counted(engine, quota, &taken) : taken.equivalent;
    }
    return sum;
}

/* The request, and whether claims of others count. */
struct guarantee_question {
    const struct bh_wanted *wanted;
    bool with_claims;
    uint32_t but_job;
};

static uint64_t
guarantee_used_with(const struct bh_engine *engine, uint32_t tenant, const struct quota *quota,
                    const struct guarantee_question *question)
{
    uint64_t used = quota ? quota->used : tenant_at(engine, tenant)->used;

    return question->with_claims ? used + guarantee_claimed_within(engine, tenant, quota, question->but_job)
                                 : used;
}

/* What a tenant's guarantees say together: one that covers it will do. */
static enum guarantee_word
guarantee_covered_by(const struct bh_engine *engine, uint32_t slot, const struct guarantee_question *question)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    enum guarantee_word word = guarantee_covers(
        tenant->guarantee, guarantee_used_with(engine, slot, NULL, question), question->wanted->equivalent);

    for (uint32_t i = 0; i < tenant->quota_count && word != COVERS_IT; i++) {
        const struct quota *quota = &tenant->quotas[i];
        enum guarantee_word by =
            guarantee_covers(quota->guarantee, guarantee_used_with(engine, slot, quota, question),
                             bh_quota_counted(engine, quota, question->wanted));

        word = by != SAYS_NOTHING ? by : word;
    }
    return word;
}

/* Up from the asking tenant: above a guarantee that is exceeded the rest says nothing more. */
static enum bh_cover
guarantee_cover_of(const struct bh_engine *engine, const struct guarantee_question *question,
                   uint32_t *ret_within)
{
    bool covered = false;

    *ret_within = 0;
    for (uint32_t at = question->wanted->tenant; at; at = tenant_at(engine, at)->parent) {
        enum guarantee_word word = guarantee_covered_by(engine, at, question);

        if (word == IS_EXCEEDED) {
            *ret_within = covered ? at : 0;
            return covered ? BH_COVER_WITHIN : BH_COVER_NONE;
        }
        covered = covered || word == COVERS_IT;
    }
    return covered ? BH_COVER_ALL : BH_COVER_NONE;
}

enum bh_cover
bh_guarantee_cover(const struct bh_engine *engine, const struct bh_wanted *wanted, uint32_t *ret_within)
{
    return guarantee_cover_of(engine, &(struct guarantee_question){ .wanted = wanted }, ret_within);
}

enum bh_cover
bh_guarantee_cover_with_claims(const struct bh_engine *engine, const struct bh_wanted *wanted, uint32_t job,
                               uint32_t *ret_within)
{
    return guarantee_cover_of(engine, &(struct guarantee_question){ wanted, true, job }, ret_within);
}

uint64_t
bh_guarantee_claimed(const struct bh_engine *engine, uint32_t tenant, uint32_t but_job)
{
    return guarantee_claimed_within(engine, tenant, NULL, but_job);
}

bool
bh_guarantee_concerns(const struct bh_engine *engine, uint32_t slot, const struct bh_wanted *wanted)
{
    const struct tenant *tenant = tenant_at(engine, slot);
    bool concerns = tenant->guarantee > 0;

    for (uint32_t i = 0; i < tenant->quota_count; i++)
        concerns =
            concerns
            || (tenant->quotas[i].guarantee > 0 && bh_quota_concerns(engine, &tenant->quotas[i], wanted));
    return concerns;
}

/* Whether one tenant's guarantees cover what is used of what the lease holds. */
static bool
guarantee_protected_by(const struct bh_search *search, uint32_t at, const struct bh_wanted *held)
{
    const struct tenant *tenant = tenant_at(search->engine, at);
    struct bh_filter all = { .tenant = at };

    if (tenant->guarantee && tenant->used - bh_filter_freed(search, &all) <= tenant->guarantee)
        return true;
    for (uint32_t i = 0; i < tenant->quota_count; i++) {
        const struct quota *quota = &tenant->quotas[i];
        struct bh_filter filter = { .tenant = at, .quota = quota };

        if (quota->guarantee && bh_quota_concerns(search->engine, quota, held)
            && quota->used - bh_filter_freed(search, &filter) <= quota->guarantee)
            return true;
    }
    return false;
}

bool
bh_quota_protects(const struct bh_search *search, uint32_t job)
{
    const struct bh_engine *engine = search->engine;
    struct bh_wanted held = bh_quota_to_resume(engine, job_at(engine, job)->lease);

    for (uint32_t at = held.tenant; at; at = tenant_at(engine, at)->parent)
        if (!bh_tenant_within(engine, at, search->tenant) && guarantee_protected_by(search, at, &held))
            return true;
    return false;
}
