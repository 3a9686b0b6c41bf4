#include "engine/gpu/gpu_form.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/tenant.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

/* ---- tenants that may use a model ---- */

/* Whether a limit of the tenant, or of one above it, allows none of the SKU. */
static bool
form_is_without(const struct bh_engine *engine, uint32_t tenant, uint64_t sku_id)
{
    for (; tenant; tenant = tenant_at(engine, tenant)->parent)
        for (uint32_t i = 0; i < tenant_at(engine, tenant)->quota_count; i++) {
            const struct quota *quota = &tenant_at(engine, tenant)->quotas[i];

            if (quota->scope == BH_QUOTA_SKU && quota->of == sku_id && quota->limit == 0)
                return true;
        }
    return false;
}

/* The models of the SKUs of which the tenant may have some. */
static uint32_t
form_models_of_skus(const struct bh_engine *engine, uint32_t tenant)
{
    uint32_t models = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_SKU, &slot);) {
        const struct sku *sku = sku_at(engine, slot);

        for (uint32_t row = 0; row < sku->model_count && !form_is_without(engine, tenant, sku->id); row++)
            models |= UINT32_C(1) << sku->models[row];
    }
    return models;
}

/* The models that the tenant may use, as bits. */
static uint32_t
form_models_of(const struct bh_engine *engine, uint32_t tenant)
{
    uint32_t models = UINT32_MAX;
    bool by_sku = false;

    for (uint32_t at = tenant; at; at = tenant_at(engine, at)->parent) {
        if (tenant_at(engine, at)->limit == 0)
            return 0;
        for (uint32_t i = 0; i < tenant_at(engine, at)->quota_count; i++) {
            const struct quota *quota = &tenant_at(engine, at)->quotas[i];

            if (quota->limit != 0)
                continue;
            by_sku = by_sku || quota->scope == BH_QUOTA_SKU;
            if (quota->scope == BH_QUOTA_MODEL)
                models &= ~(UINT32_C(1) << quota->of);
        }
    }
    return by_sku ? models & form_models_of_skus(engine, tenant) : models;
}

/* The lowest tenant that both are at or below, or 0. */
static uint32_t
form_common_of(const struct bh_engine *engine, uint32_t a, uint32_t b)
{
    while (a && !bh_tenant_within(engine, a, b))
        a = tenant_at(engine, a)->parent;
    return a;
}

/* Those seen so far, of some models: most tenants may use all. */
struct sum {
    uint32_t common;
    bool any;
};

static void
gpu_form_add(const struct bh_engine *engine, struct sum *sum, const struct sum *more)
{
    if (!more->any)
        return;
    sum->common = sum->any ? form_common_of(engine, sum->common, more->common) : more->common;
    sum->any = true;
}

static void
form_find_common(const struct bh_engine *engine, uint32_t ret_common[MODELS_MAX])
{
    struct sum all = { 0 }, some[MODELS_MAX] = { 0 };

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_TENANT, &slot);) {
        struct sum one = { slot, true };
        uint32_t models = tenant_at(engine, slot)->children ? 0 : form_models_of(engine, slot);

        if (models == UINT32_MAX)
            gpu_form_add(engine, &all, &one);
        for (uint32_t left = models == UINT32_MAX ? 0 : models; left; left &= left - 1)
            gpu_form_add(engine, &some[__builtin_ctz(left)], &one);
    }
    for (uint32_t model = 0; model < MODELS_MAX; model++) {
        gpu_form_add(engine, &some[model], &all);
        ret_common[model] = some[model].common;
    }
}

void
bh_gpu_form_recount(struct bh_engine *engine)
{
    uint32_t common[MODELS_MAX];

    form_find_common(engine, common);
    if (memcmp(common, engine->core.common, sizeof(common)) == 0)
        return;
    memcpy(engine->core.common, common, sizeof(common));
    bh_wake_below(engine, 0);
    bh_wake_queue(engine);
}

bool
bh_gpu_form_check(const struct bh_engine *engine)
{
    uint32_t common[MODELS_MAX];

    form_find_common(engine, common);
    return memcmp(common, engine->core.common, sizeof(common)) == 0;
}

/* ---- what is called for ---- */

struct bh_gpu_form_call
bh_gpu_form_call_of(const struct bh_engine *engine, uint32_t tenant, uint32_t model)
{
    struct bh_gpu_form_call call = { .boundary = BH_BOUNDARY_NONE };

    BH_ASSERT(model < MODELS_MAX);
    for (uint32_t at = tenant; at && !bh_tenant_within(engine, at, engine->core.common[model]);
         at = tenant_at(engine, at)->parent)
        if (tenant_at(engine, at)->boundary > call.boundary) {
            call.boundary = (enum bh_boundary)tenant_at(engine, at)->boundary;
            call.tenant = at;
        }
    call.form = bh_boundary_form(call.boundary);
    return call;
}

uint32_t
bh_gpu_form_offered(const struct sku *sku)
{
    uint32_t forms = 0;

    for (uint32_t row = 0; row < sku->model_count; row++)
        forms |= 1u << bh_gpu_form_of((bh_profile_id){ sku->profiles[row] });
    return forms;
}

bool
bh_gpu_form_allows(const struct bh_engine *engine, uint32_t tenant, const struct sku *sku, uint32_t row)
{
    uint32_t form = (uint32_t)bh_gpu_form_of((bh_profile_id){ sku->profiles[row] });

    BH_ASSERT(row < sku->model_count);
    if (sku->forms >> (form + 1) == 0)
        return true; /* the strongest that it offers */
    return form >= (uint32_t)bh_gpu_form_call_of(engine, tenant, sku->models[row]).form;
}

/* ---- which, and why ---- */

/* Whether the SKU offers the form, or for NONE any share, on the model. */
static bool
form_is_offered(const struct sku *sku, uint32_t model, enum bh_gpu_form called)
{
    for (uint32_t row = 0; row < sku->model_count; row++) {
        enum bh_gpu_form form = bh_gpu_form_of((bh_profile_id){ sku->profiles[row] });

        if (sku->models[row] == model
            && (form == called || (called == BH_GPU_FORM_MULTIPLEXED && form == BH_GPU_FORM_SHARE)))
            return true;
    }
    return false;
}

static enum bh_gpu_form_cause
gpu_form_cause_of(const struct sku *sku, uint32_t model, enum bh_gpu_form form, enum bh_gpu_form called)
{
    if (form < called)
        return BH_GPU_FORM_STRONGEST;
    if (form == called || (called == BH_GPU_FORM_MULTIPLEXED && form == BH_GPU_FORM_SHARE))
        return BH_GPU_FORM_CALLED;
    return form_is_offered(sku, model, called) ? BH_GPU_FORM_BLOCKS_LESS : BH_GPU_FORM_NOT_OFFERED;
}

/* The first row that its boundary keeps a job that waits from; `model_count` where none. */
static uint32_t
form_first_forbidden(const struct bh_engine *engine, const struct job *job, const struct sku *sku)
{
    uint32_t row = 0;

    while (row < sku->model_count && bh_gpu_form_allows(engine, job->tenant, sku, row))
        row++;
    return row;
}

void
bh_gpu_form_explain(const struct bh_engine *engine, uint32_t slot, struct bh_gpu_form_reason *ret_form)
{
    const struct job *job = job_at(engine, slot);
    const struct sku *sku = sku_at(engine, job->sku);
    const struct lease *lease = lease_at(engine, job->lease);
    uint32_t row = job->lease ? 0 : form_first_forbidden(engine, job, sku), model;
    struct bh_gpu_form_call call;
    enum bh_gpu_form form;

    if (!slot || (!job->lease && row == sku->model_count))
        return;
    model = job->lease ? gpu_at(engine, gpu_find(engine, lease->placements[0].gpu))->model : sku->models[row];
    form = bh_gpu_form_of((bh_profile_id){ job->lease ? lease->placements[0].profile : sku->profiles[row] });
    call = bh_gpu_form_call_of(engine, job->tenant, model);
    *ret_form =
        (struct bh_gpu_form_reason){ .cause = job->lease ? gpu_form_cause_of(sku, model, form, call.form)
                                                         : BH_GPU_FORM_FORBIDDEN,
                                     .form = form,
                                     .called = call.form,
                                     .boundary = call.boundary,
                                     .model = model,
                                     .tenant = { (uint32_t)tenant_at(engine, call.tenant)->id } };
}
