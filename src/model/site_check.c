#include "model/site.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "model/datasets.h"
#include "model/geometry.h"
#include "model/path.h"
#include "model/policies.h"
#include "model/quantity.h"
#include "model/spec.h"

#define SPAN_MAX_NS (366 * UINT64_C(86400) * 1000000000)

#define DEFRAG_GPU_S_MAX (UINT64_C(1000000) * 3600)

enum { UID_NOBODY = 65534, DEFRAG_PERCENT_MAX = 1000000, PROFILE_SHOWN_MAX = 24 };

/* ---- lookups within the file ---- */

static const struct bh_site_tenant *
check_tenant_named(const struct bh_site *site, const char *name, uint32_t before)
{
    const struct bh_site_tenant *tenant = site->tenants.items;

    for (uint32_t i = 0; i < before; i++)
        if (strcmp(tenant[i].name, name) == 0)
            return &tenant[i];
    return NULL;
}

static const struct bh_site_sku *
check_sku_named(const struct bh_site *site, const char *name, uint32_t before)
{
    const struct bh_site_sku *sku = site->skus.items;

    for (uint32_t i = 0; i < before; i++)
        if (strcmp(sku[i].name, name) == 0)
            return &sku[i];
    return NULL;
}

static const struct bh_site_principal *
check_principal_named(const struct bh_site *site, const char *name, uint32_t before)
{
    const struct bh_site_principal *principal = site->principals.items;

    for (uint32_t i = 0; i < before; i++)
        if (strcmp(principal[i].name, name) == 0)
            return &principal[i];
    return NULL;
}

static bh_rc
check_scope(const struct bh_site *site, const char *tenant, struct bh_err *err)
{
    if (!tenant)
        return bh_err_set(err, BH_INVALID, "tenant is missing");
    if (strcmp(tenant, "*") == 0 || check_tenant_named(site, tenant, site->tenants.count))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "no tenant %.130s in this file", tenant);
    return bh_err_hint(err, "add it under tenants, or write \"*\" for all");
}

/* ---- tenants ---- */

/* An exact amount in parts of a unit; an absent one leaves *ret_amount. */
static bh_rc
check_read_amount(const char *field, const char *text, uint64_t unit, uint64_t *ret_amount,
                  struct bh_err *err)
{
    bh_rc rc = text ? bh_parse_parts(text, unit, ret_amount, err) : BH_OK;

    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", field);
}

/* The same, for amounts that were checked before. */
static uint64_t
check_guarantee_of(const struct bh_site_tenant *tenant)
{
    struct bh_err unused;
    uint64_t parts = 0;

    return check_read_amount("guarantee", tenant->guarantee, BH_GPU_PARTS, &parts, &unused) == BH_OK ? parts
                                                                                                     : 0;
}

static bh_rc
check_refuse_twice(struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "declared twice");
    return bh_err_hint(err, "remove one of the two, or give it a different name");
}

/* A limit, a guarantee within it, and how much of that is lent. */
static bh_rc
check_promise(const struct bh_site_quota *quota, uint64_t unit, struct bh_err *err)
{
    uint64_t limit = UINT64_MAX, guarantee = 0, lent = 0;
    bh_rc rc = check_read_amount("limit", quota->limit, unit, &limit, err);

    if (rc != BH_OK)
        return rc;
    rc = check_read_amount("guarantee", quota->guarantee, unit, &guarantee, err);
    if (rc != BH_OK)
        return rc;
    rc = check_read_amount("lending_limit", quota->lending_limit, unit, &lent, err);
    if (rc != BH_OK)
        return rc;
    if (guarantee > limit) {
        bh_err_set(err, BH_INVALID, "guarantee %s is over the limit %s", quota->guarantee, quota->limit);
        return bh_err_hint(err, "raise the limit or lower the guarantee");
    }
    if (lent > guarantee) {
        bh_err_set(err, BH_INVALID, "lending_limit %s is over the guarantee %s", quota->lending_limit,
                   quota->guarantee ? quota->guarantee : "0");
        return bh_err_hint(err, "raise the guarantee or lower the lending_limit");
    }
    return BH_OK;
}

static bh_rc
check_budget(const struct bh_site_budget *budget, struct bh_err *err)
{
    uint64_t amount = 0;
    bh_rc rc = check_read_amount("gpu_hours", budget->gpu_hours, 3600, &amount, err);

    if (rc == BH_OK)
        rc = check_read_amount("money", budget->money, BH_MONEY_UNIT, &amount, err);
    if (rc == BH_OK && budget->period != BH_PERIOD_NONE && !budget->gpu_hours && !budget->money)
        rc = bh_err_set(err, BH_INVALID, "neither gpu_hours nor money is set");
    return rc == BH_OK ? rc : bh_err_wrap(err, "budget");
}

/* A span of at most a year; an absent one is right. */
static bh_rc
site_check_span(const char *field, const char *text, struct bh_err *err)
{
    uint64_t span_ns = 0;
    bh_rc rc = text ? bh_parse_span(text, &span_ns, err) : BH_OK;

    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", field);
    return span_ns <= SPAN_MAX_NS ? BH_OK : bh_err_set(err, BH_RANGE, "%s: longer than a year", field);
}

static bh_rc
check_half_life(const char *text, struct bh_err *err)
{
    uint64_t span_ns = 0;
    bh_rc rc = site_check_span("half_life", text, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_parse_span(text, &span_ns, err);
    if (rc != BH_OK)
        return rc;
    if (span_ns < 60 * UINT64_C(1000000000))
        return bh_err_set(err, BH_RANGE, "half_life: shorter than a minute");
    return BH_OK;
}

static bh_rc
check_defrag(const struct bh_site_scheduling *scheduling, struct bh_err *err)
{
    uint64_t amount = 1;
    bh_rc rc = site_check_span("defrag_rest", scheduling->defrag_rest, err);

    if (rc != BH_OK)
        return rc;
    rc = check_read_amount("defrag_gpu_hours", scheduling->defrag_gpu_hours, 3600, &amount, err);
    if (rc != BH_OK)
        return rc;
    if (amount == 0 || amount > DEFRAG_GPU_S_MAX)
        return bh_err_set(err, BH_RANGE, "defrag_gpu_hours: more than nothing, at most 1000000");
    if (scheduling->defrag_gain_percent
        && (scheduling->defrag_gain_percent < 100 || scheduling->defrag_gain_percent > DEFRAG_PERCENT_MAX))
        return bh_err_set(err, BH_RANGE, "defrag_gain_percent: from 100 to %d", DEFRAG_PERCENT_MAX);
    return BH_OK;
}

static bh_rc
check_scheduling(const struct bh_site_scheduling *scheduling, struct bh_err *err)
{
    bh_rc rc = site_check_span("assumed_run", scheduling->assumed_run, err);

    if (rc == BH_OK)
        rc = site_check_span("burn_in", scheduling->burn_in, err);
    if (rc == BH_OK)
        rc = site_check_span("min_runtime", scheduling->min_runtime, err);
    if (rc == BH_OK && scheduling->half_life && strcmp(scheduling->half_life, "never") != 0)
        rc = check_half_life(scheduling->half_life, err);
    if (rc == BH_OK)
        rc = check_defrag(scheduling, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "scheduling");
}

static bh_rc
check_amounts(const struct bh_site_tenant *tenant, struct bh_err *err)
{
    struct bh_site_quota all = { .limit = tenant->limit,
                                 .guarantee = tenant->guarantee,
                                 .lending_limit = tenant->lending_limit };
    uint64_t user_limit = 1;
    bh_rc rc = check_promise(&all, BH_GPU_PARTS, err);

    if (rc != BH_OK)
        return rc;
    rc = check_read_amount("user_limit", tenant->user_limit, BH_GPU_PARTS, &user_limit, err);
    if (rc != BH_OK)
        return rc;
    if (user_limit == 0)
        return bh_err_set(err, BH_RANGE, "user_limit: must be more than nothing");
    if (tenant->weight > BH_WEIGHT_MAX)
        return bh_err_set(err, BH_RANGE, "weight %" PRIu32 " is over %d", tenant->weight, BH_WEIGHT_MAX);
    return check_budget(&tenant->budget, err);
}

static bool
check_same_quota(const struct bh_site_quota *a, const struct bh_site_quota *b)
{
    if (!a->sku != !b->sku)
        return false;
    return a->sku ? strcmp(a->sku, b->sku) == 0 : strcmp(a->model, b->model) == 0;
}

/* What the quota names, and its amounts. */
static bh_rc
check_quota(const struct bh_site *site, const struct bh_site_quota *quota, struct bh_err *err)
{
    if (!quota->sku == !quota->model)
        return bh_err_set(err, BH_INVALID, "names a sku or a model, not both or neither");
    if (quota->sku && !check_sku_named(site, quota->sku, site->skus.count))
        return bh_err_set(err, BH_INVALID, "no SKU \"%.63s\" in this file", quota->sku);
    if (quota->model && bh_model_find(quota->model) == BH_GPU_MODEL_NONE)
        return bh_err_set(err, BH_INVALID, "GPU model \"%.32s\" is not known", quota->model);
    return check_promise(quota, quota->sku ? 1 : BH_GPU_PARTS, err);
}

static bh_rc
check_quotas(const struct bh_site *site, const struct bh_site_tenant *tenant, struct bh_err *err)
{
    const struct bh_site_quota *quotas = tenant->quotas.items;

    if (tenant->quotas.count > BH_SITE_TENANT_QUOTAS_MAX)
        return bh_err_set(err, BH_RANGE, "more than %d quotas", BH_SITE_TENANT_QUOTAS_MAX);
    for (uint32_t i = 0; i < tenant->quotas.count; i++) {
        bh_rc rc = check_quota(site, &quotas[i], err);

        for (uint32_t k = 0; k < i && rc == BH_OK; k++)
            if (check_same_quota(&quotas[k], &quotas[i]))
                rc = bh_err_set(err, BH_INVALID, "%s is named twice",
                                quotas[i].sku ? quotas[i].sku : quotas[i].model);
        if (rc != BH_OK)
            return bh_err_wrap(err, "quotas[%" PRIu32 "]", i);
    }
    return BH_OK;
}

static bh_rc
check_tree(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_tenant *tenants = site->tenants.items;
    const char *name = tenants[at].name;

    if (!bh_tenant_path_valid(name)) {
        bh_err_set(err, BH_INVALID, "not a valid path");
        return bh_err_hint(err, "names of a-z 0-9 - _ . joined by /, as in acme/vision");
    }
    if (check_tenant_named(site, name, at))
        return check_refuse_twice(err);
    if (bh_tenant_path_depth(name) == 0)
        return BH_OK;
    for (uint32_t i = 0; i < at; i++)
        if (bh_tenant_path_is_parent(tenants[i].name, name))
            return BH_OK;
    bh_err_set(err, BH_INVALID, "its parent is not declared before it");
    return bh_err_hint(err, "declare %.*s first", (int)(strrchr(name, '/') - name), name);
}

/* Guarantees of the children must fit into the parent's own. */
static bh_rc
check_guarantees(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_tenant *tenants = site->tenants.items;
    uint64_t own = check_guarantee_of(&tenants[at]), below = 0;

    for (uint32_t i = at + 1; i < site->tenants.count; i++)
        if (bh_tenant_path_is_parent(tenants[at].name, tenants[i].name)
            && !bh_add_u64(below, check_guarantee_of(&tenants[i]), &below))
            return bh_err_set(err, BH_RANGE, "guarantees below it are too large");
    if (below <= own)
        return BH_OK;
    if (below % BH_GPU_PARTS == 0)
        bh_err_set(err, BH_INVALID, "guarantees below it sum to %" PRIu64 " GPUs, its own is %s",
                   below / BH_GPU_PARTS, tenants[at].guarantee ? tenants[at].guarantee : "0");
    else
        bh_err_set(err, BH_INVALID, "guarantees below it sum to %" PRIu64 "/%d GPUs, its own is %s", below,
                   BH_GPU_PARTS, tenants[at].guarantee ? tenants[at].guarantee : "0");
    return bh_err_hint(err, "raise its guarantee or lower its children's");
}

static bh_rc
site_check_tenant(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_tenant *tenant = (const struct bh_site_tenant *)site->tenants.items + at;
    bh_rc rc = check_tree(site, at, err);

    if (rc != BH_OK)
        return rc;
    rc = check_amounts(tenant, err);
    if (rc != BH_OK)
        return rc;
    rc = site_check_span("min_runtime", tenant->min_runtime, err);
    if (rc != BH_OK)
        return rc;
    rc = check_quotas(site, tenant, err);
    if (rc != BH_OK)
        return rc;
    return check_guarantees(site, at, err);
}

/* ---- SKUs ---- */

static bh_rc
check_share(const struct bh_site_sku *sku, const struct bh_site_sku_model *entry, struct bh_err *err)
{
    struct bh_share_words words = { entry->share, entry->memory, entry->rounding, entry->mode };
    struct bh_share share;

    if (!entry->share || entry->profile)
        return bh_err_set(err, BH_INVALID, "give either a profile or a share, not %s",
                          entry->profile ? "both" : "neither");
    if (sku->grade < BH_GRADE_F) {
        bh_err_set(err, BH_INVALID, "a share cannot provide grade %s", bh_grade_names[sku->grade]);
        return bh_err_hint(err, "use grade F, or a profile");
    }
    return bh_share_parse(bh_model_find(entry->model), &words, &share, err);
}

static bh_rc
check_refuse_profile(enum bh_gpu_model model, const struct bh_site_sku_model *entry, struct bh_err *err)
{
    char memory[sizeof err->hint];
    uint32_t count;
    const struct bh_profile *profile = bh_profile_first(model, &count);
    struct bh_buf hint;

    bh_err_set(err, BH_INVALID, "%s has no profile \"%.24s\"", entry->model, entry->profile);
    bh_buf_init_fixed(&hint, memory, sizeof memory);
    bh_buf_puts(&hint, "whole");
    for (uint32_t i = 0; i < count && hint.length + PROFILE_SHOWN_MAX < sizeof memory; i++)
        bh_buf_printf(&hint, ", %s", profile[i].name);
    return bh_err_hint(err, "%s", bh_buf_text(&hint));
}

static bh_rc
check_model(const struct bh_site_sku *sku, const struct bh_site_sku_model *entry, struct bh_err *err)
{
    enum bh_gpu_model model = bh_model_find(entry->model);
    bool whole = entry->profile && strcmp(entry->profile, "whole") == 0;

    if (model == BH_GPU_MODEL_NONE) {
        bh_err_set(err, BH_INVALID, "GPU model \"%.32s\" is not known", entry->model);
        return bh_err_hint(err, "`bulkhead gpu` shows the models of this site");
    }
    if (!entry->profile || entry->share)
        return check_share(sku, entry, err);
    if (entry->memory || entry->rounding || entry->mode)
        return bh_err_set(err, BH_INVALID,
                          "memory, mode and rounding are a share's, and this is a "
                          "profile");
    if (!whole && !bh_profile_find(model, entry->profile))
        return check_refuse_profile(model, entry, err);
    if (!whole && bh_grade_meets(sku->grade, BH_GRADE_B)) {
        bh_err_set(err, BH_INVALID, "a MIG instance (%s) cannot provide grade %s", entry->profile,
                   bh_grade_names[sku->grade]);
        return bh_err_hint(err, "use grade C, or profile \"whole\"");
    }
    return BH_OK;
}

static bh_rc
check_models(const struct bh_site_sku *sku, struct bh_err *err)
{
    const struct bh_site_sku_model *models = sku->models.items;
    bool shares = false;

    if (sku->models.count == 0)
        return bh_err_set(err, BH_INVALID, "names no GPU model");
    if (sku->models.count > BH_SITE_SKU_MODELS_MAX)
        return bh_err_set(err, BH_RANGE, "more than %d models", BH_SITE_SKU_MODELS_MAX);
    for (uint32_t i = 0; i < sku->models.count; i++) {
        bh_rc rc = check_model(sku, &models[i], err);

        for (uint32_t k = 0; k < i && rc == BH_OK; k++)
            if (strcmp(models[k].model, models[i].model) == 0
                && bh_site_sku_profile(&models[k]) == bh_site_sku_profile(&models[i]))
                rc = bh_err_set(err, BH_INVALID, "%s is named twice", models[i].model);
        if (rc != BH_OK)
            return bh_err_wrap(err, "models[%" PRIu32 "]", i);
        shares = shares || models[i].share;
    }
    if ((sku->over_cap || sku->over_time || sku->managed) && !shares)
        return bh_err_set(err, BH_INVALID, "%s is for shares, and it has none",
                          sku->over_cap    ? "over_cap"
                          : sku->over_time ? "over_time"
                                           : "managed");
    return BH_OK;
}

static bh_rc
check_sku(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_sku *sku = (const struct bh_site_sku *)site->skus.items + at;
    uint64_t amount;
    uint32_t milli;
    bh_rc rc;

    if (bh_name_check(sku->name, err) != BH_OK)
        return err->rc;
    if (check_sku_named(site, sku->name, at))
        return check_refuse_twice(err);
    if (sku->grade == BH_GRADE_NONE)
        return bh_err_set(err, BH_INVALID, "has no grade");
    if (sku->grade == BH_GRADE_D || sku->grade == BH_GRADE_E) {
        bh_err_set(err, BH_INVALID, "grade %s (%s) is not offered: not verified on hardware",
                   bh_grade_names[sku->grade],
                   sku->grade == BH_GRADE_D ? "memory limited by the driver" : "MPS");
        return bh_err_hint(err, "use grade C (a MIG instance) or B (a whole GPU)");
    }
    rc = sku->cpu ? bh_spec_parse_cpu(sku->cpu, &milli, err) : BH_OK;
    if (rc != BH_OK)
        return rc;
    if (sku->memory)
        rc = bh_spec_parse_memory(sku->memory, &amount, err);
    if (rc != BH_OK)
        return rc;
    rc = check_read_amount("price", sku->price, BH_MONEY_UNIT, &amount, err);
    if (rc != BH_OK)
        return rc;
    return check_models(sku, err);
}

/* ---- people ---- */

/* `what` of two principals is the same. */
static bh_rc
check_refuse_taken(const char *what, const struct bh_site_principal *has, struct bh_err *err)
{
    if (strcmp(what, "uid") == 0)
        bh_err_set(err, BH_INVALID, "uid %" PRIu32 " is %s already", has->uid, has->name);
    else
        bh_err_set(err, BH_INVALID, "identity: is %s already", has->name);
    return bh_err_hint(err, "one %s is one principal: use a different one here, or bind roles to %.80s", what,
                       has->name);
}

static bh_rc
check_principal(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_principal *principals = site->principals.items;
    const struct bh_site_principal *own = &principals[at];

    if (bh_name_check(own->name, err) != BH_OK)
        return err->rc;
    if (check_principal_named(site, own->name, at))
        return check_refuse_twice(err);
    if (own->uid == UID_NOBODY || own->uid == UINT32_MAX) {
        bh_err_set(err, BH_INVALID, "uid %" PRIu32 " cannot be a principal's", own->uid);
        return bh_err_hint(err, "`id -u NAME` shows a user's");
    }
    if (own->uid == 0 && !own->service && !own->account && !own->identity) {
        bh_err_set(err, BH_INVALID, "has no uid, account or identity, and is not a service");
        return bh_err_hint(err, "add uid: N (not 0, root needs no principal), account: true, "
                                "identity: ISSUER/SUBJECT, or service: true");
    }
    if (own->service && (own->account || own->identity))
        return bh_err_set(err, BH_INVALID, "a service signs in with tokens: no account or identity");
    if (own->default_tenant && !check_tenant_named(site, own->default_tenant, site->tenants.count))
        return bh_err_set(err, BH_INVALID, "default_tenant: no tenant %.130s in this file",
                          own->default_tenant);
    if (own->identity && !bh_sign_in_names(&site->sign_in, own->identity))
        return bh_err_set(err, BH_INVALID, "identity: is not an ISSUER/SUBJECT of sign_in.issuers");
    for (uint32_t i = 0; i < at; i++)
        if (own->uid && principals[i].uid == own->uid)
            return check_refuse_taken("uid", &principals[i], err);
        else if (own->identity && principals[i].identity
                 && strcmp(principals[i].identity, own->identity) == 0)
            return check_refuse_taken("identity", &principals[i], err);
    return BH_OK;
}

static bh_rc
check_binding(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_binding *own = (const struct bh_site_binding *)site->bindings.items + at;

    if (own->role <= BH_ROLE_NONE || own->role >= BH_ROLES)
        return bh_err_set(err, BH_INVALID, "role is missing");
    if (!!own->principal + !!own->gid + !!own->group != 1) {
        bh_err_set(err, BH_INVALID, "needs one of principal, gid and group");
        return bh_err_hint(err, "gid 0 cannot be bound: root has every verb already");
    }
    if (own->group && !bh_sign_in_names(&site->sign_in, own->group)) {
        bh_err_set(err, BH_INVALID, "group: is not an ISSUER/GROUP of sign_in.issuers");
        return bh_err_hint(err, "a group of a provider: \"corp/ml-admins\"");
    }
    if (own->principal && !check_principal_named(site, own->principal, site->principals.count)) {
        bh_err_set(err, BH_INVALID, "no principal %.63s in this file", own->principal);
        return bh_err_hint(err, "add it under principals");
    }
    return check_scope(site, own->tenant, err);
}

/* ---- hardware ---- */

static bh_rc
check_gpu(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_gpu *gpus = site->gpus.items;

    if (strcmp(gpus[at].uuid, "all") != 0 && strncmp(gpus[at].uuid, "GPU-", 4) != 0) {
        bh_err_set(err, BH_INVALID, "uuid is neither \"all\" nor of the form GPU-...");
        return bh_err_hint(err, "`bulkhead gpu -o wide` shows the UUIDs");
    }
    if (gpus[at].oversubscribe && !gpus[at].shared)
        return bh_err_set(err, BH_INVALID, "oversubscribe is for a GPU with shared: true");
    if (gpus[at].oversubscribe
        && (gpus[at].oversubscribe < 100 || gpus[at].oversubscribe > 100 * BH_SHARE_OVERSUBSCRIBE_MAX))
        return bh_err_set(err, BH_RANGE, "oversubscribe: not 100 to %d percent",
                          100 * BH_SHARE_OVERSUBSCRIBE_MAX);
    for (uint32_t i = 0; i < at; i++)
        if (strcmp(gpus[i].uuid, gpus[at].uuid) == 0)
            return bh_err_set(err, BH_INVALID, "named twice");
    return BH_OK;
}

static bh_rc
check_mount(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_mount *own = (const struct bh_site_mount *)site->mounts.items + at;
    const char *fault = bh_file_path_fault(own->path);

    if (fault)
        return bh_err_set(err, BH_INVALID, "path %s", fault);
    return check_scope(site, own->tenant, err);
}

/* A node is in one pool, or its name would say nothing. */
static bh_rc
check_pool(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_pool *pools = site->pools.items, *own = &pools[at];

    if (own->nodes.count == 0)
        return bh_err_set(err, BH_INVALID, "nodes: name at least one, or \"all\"");
    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(pools[i].name, own->name) == 0)
            return bh_err_set(err, BH_INVALID, "named twice");
        for (uint32_t k = 0; k < own->nodes.count; k++)
            if (bh_site_pool_names(&pools[i], own->nodes.items[k]))
                return bh_err_set(err, BH_INVALID, "%.60s is in pool %.60s, too", own->nodes.items[k],
                                  pools[i].name);
    }
    return BH_OK;
}

/* ---- all sections ---- */

/* A section: where its list stands and which text names an entry in messages. */
static const struct section {
    const char *name;
    size_t list, size, label;
    bh_rc (*check)(const struct bh_site *site, uint32_t at, struct bh_err *err);
} sections[] = {
#define SECTION(list, type, label_member, check)                                                             \
    {                                                                                                        \
#list, offsetof(struct bh_site, list), sizeof(type), offsetof(type, label_member), check             \
    }
    SECTION(skus, struct bh_site_sku, name, check_sku),
    SECTION(tenants, struct bh_site_tenant, name, site_check_tenant),
    SECTION(principals, struct bh_site_principal, name, check_principal),
    SECTION(bindings, struct bh_site_binding, tenant, check_binding),
    SECTION(gpus, struct bh_site_gpu, uuid, check_gpu),
    SECTION(mounts, struct bh_site_mount, path, check_mount),
    SECTION(pools, struct bh_site_pool, name, check_pool),
    SECTION(datasets, struct bh_site_dataset, name, bh_dataset_check),
#undef SECTION
};

static const char *
check_label_of(const struct section *section, const struct bh_list *list, uint32_t at)
{
    const char *label;

    memcpy(&label, (const char *)list->items + at * section->size + section->label, sizeof label);
    return label ? label : "";
}

/* Every entry has its name before it is looked up. */
static bh_rc
site_check_labels(const struct bh_site *site, struct bh_err *err)
{
    for (size_t s = 0; s < BH_COUNT(sections); s++) {
        const struct bh_list *list =
            (const struct bh_list *)(const void *)((const char *)site + sections[s].list);

        for (uint32_t i = 0; i < list->count; i++)
            if (!check_label_of(&sections[s], list, i)[0])
                return bh_err_set(err, BH_INVALID, "%s[%" PRIu32 "]: has no name", sections[s].name, i);
    }
    return BH_OK;
}

static bh_rc
check_section(const struct bh_site *site, const struct section *section, struct bh_err *err)
{
    const struct bh_list *list = (const struct bh_list *)(const void *)((const char *)site + section->list);

    for (uint32_t i = 0; i < list->count; i++) {
        bh_rc rc = section->check(site, i, err);

        if (rc != BH_OK)
            return bh_err_wrap(err, "%s[%" PRIu32 "] %.119s", section->name, i,
                               check_label_of(section, list, i));
    }
    return BH_OK;
}

bh_rc
bh_site_check(const struct bh_site *site, struct bh_err *err)
{
    bh_rc rc;

    err->hint[0] = '\0';
    rc = site_check_labels(site, err);
    if (rc != BH_OK)
        return rc;
    rc = check_scheduling(&site->scheduling, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_sign_in_check(&site->sign_in, err);
    if (rc != BH_OK)
        return rc;
    for (size_t s = 0; s < BH_COUNT(sections); s++) {
        rc = check_section(site, &sections[s], err);
        if (rc != BH_OK)
            return rc;
    }
    return bh_policies_check(site, err);
}
