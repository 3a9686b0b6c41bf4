#include "model/site.h"

#include <string.h>

#include "model/geometry.h"
#include "model/path.h"

/* The descriptions; what must hold between entries is in site_check.c. */

static const char *const kind_names[BH_SITE_KINDS] = {
    [BH_SITE_KIND_ORGANIZATION] = "organization",
    [BH_SITE_KIND_DEPARTMENT] = "department",
    [BH_SITE_KIND_TEAM] = "team",
    [BH_SITE_KIND_PROJECT] = "project",
};

/* The public tables name their zero; a file leaves it out instead. */
static const char *const grade_names[BH_GRADES] = {
    [BH_GRADE_A] = "A", [BH_GRADE_B] = "B", [BH_GRADE_C] = "C", [BH_GRADE_D] = "D",
    [BH_GRADE_E] = "E", [BH_GRADE_F] = "F", [BH_GRADE_G] = "G",
};

static const char *const role_names[BH_ROLES] = {
    [BH_ROLE_VIEWER] = "viewer", [BH_ROLE_DEVELOPER] = "developer", [BH_ROLE_OPERATOR] = "operator",
    [BH_ROLE_ADMIN] = "admin",   [BH_ROLE_AUDITOR] = "auditor",     [BH_ROLE_BILLING] = "billing",
};

static const char *const period_names[BH_PERIODS] = {
    [BH_PERIOD_DAY] = "day",
    [BH_PERIOD_WEEK] = "week",
    [BH_PERIOD_MONTH] = "month",
};

static const struct bh_field quota_rows[] = {
    BH_F(struct bh_site_quota, guarantee, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "partitions or GPUs guaranteed to it; none when absent"),
    BH_F(struct bh_site_quota, lending_limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "of the guarantee, what others may borrow while it is idle"),
    BH_F(struct bh_site_quota, limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "most partitions or GPUs at once, in the tenant and everything below"),
    BH_F(struct bh_site_quota, model, BH_FIELD_TEXT, .max = 32, .doc = "a GPU model, counted in GPUs; or"),
    BH_F(struct bh_site_quota, sku, BH_FIELD_TEXT, .max = BH_NAME_MAX,
         .doc = "a SKU's name, counted in partitions"),
};
static const struct bh_fields quota_fields = BH_FIELDS("quota", struct bh_site_quota, quota_rows);

static const struct bh_field budget_rows[] = {
    BH_F(struct bh_site_budget, gpu_hours, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "GPU-equivalents times hours: \"500\", \"0.5\""),
    BH_F(struct bh_site_budget, money, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "of the site's currency, by the SKUs' prices: \"1200.50\""),
    BH_F_ENUM(struct bh_site_budget, period, period_names, .flags = BH_FIELD_REQUIRED,
              .doc = "calendar period in UTC; weeks begin on Monday"),
};
static const struct bh_fields budget_fields = BH_FIELDS("budget", struct bh_site_budget, budget_rows);

static const struct bh_field tenant_rows[] = {
    BH_F_ENUM(struct bh_site_tenant, boundary, bh_boundary_names,
              .doc = "isolation between its subtree and everything outside; by kind when absent"),
    BH_F(struct bh_site_tenant, budget, BH_FIELD_STRUCT, .of = &budget_fields,
         .doc = "none of its jobs starts when this is spent"),
    BH_F(struct bh_site_tenant, dedicated_nodes, BH_FIELD_BOOL,
         .doc = "its nodes are shared with no tenant outside"),
    BH_F(struct bh_site_tenant, guarantee, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "GPUs guaranteed to it: \"1\", \"0.5\", \"3/7\"; none when absent"),
    BH_F_ENUM(struct bh_site_tenant, kind, kind_names, .doc = "by depth when absent"),
    BH_F(struct bh_site_tenant, legal_hold, BH_FIELD_BOOL,
         .doc = "keys of it and those below it are not destroyed, and it is not removed"),
    BH_F(struct bh_site_tenant, lending_limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "of the guarantee, GPUs that others may borrow while it is idle; "
                "all when absent"),
    BH_F(struct bh_site_tenant, limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "most GPUs at once, with everything below; unlimited when absent"),
    BH_F(struct bh_site_tenant, min_runtime, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "its jobs are not preempted for jobs outside before they have run this long: \"10m\"; the "
                "site's when absent"),
    BH_F(struct bh_site_tenant, name, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_TENANT_PATH_MAX,
         .doc = "path: \"acme/vision\"; parents come first"),
    BH_F(struct bh_site_tenant, policy, BH_FIELD_STRUCT, .of = &bh_site_policy_fields,
         .doc = "what it and those below it may submit; it can only narrow what is above it"),
    BH_F(struct bh_site_tenant, quotas, BH_FIELD_LIST, .of = &quota_fields, .max = BH_SITE_TENANT_QUOTAS_MAX,
         .doc = "limits and guarantees of single SKUs or "
                "GPU models"),
    BH_F(struct bh_site_tenant, user_limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "most GPUs at once of one user, with everything below"),
    BH_F(struct bh_site_tenant, weight, BH_FIELD_U32,
         .doc = "weight among its siblings for what is not guaranteed; 100 when absent"),
};
static const struct bh_fields tenant_fields = BH_FIELDS("tenant", struct bh_site_tenant, tenant_rows);

static const struct bh_field model_rows[] = {
    BH_F(struct bh_site_sku_model, memory, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc =
             "of a share: the cap on its GPU memory, \"18Gi\" or \"20%\"; an equal part for as many shares "
             "as fit, when absent"),
    BH_F_ENUM(struct bh_site_sku_model, mode, bh_share_mode_names,
              .doc =
                  "of a share: work_conserving, hard (never more than the share), latency (for interactive "
                  "jobs), multiplexed (the whole GPU in time slices)"),
    BH_F(struct bh_site_sku_model, model, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = 32,
         .doc = "GPU model: \"H100-80GB\""),
    BH_F(struct bh_site_sku_model, profile, BH_FIELD_TEXT, .max = 24,
         .doc = "MIG profile \"1g.10gb\", or \"whole\"; or share"),
    BH_F_ENUM(struct bh_site_sku_model, rounding, bh_rounding_names,
              .doc =
                  "of a share's memory to whole parts, of which a GPU has 4200: up, down; none refuses other "
                  "amounts"),
    BH_F(struct bh_site_sku_model, share, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "a share of a GPU's compute in the place of a profile: \"25%\", \"1/4\""),
};
static const struct bh_fields sku_model_fields = BH_FIELDS("sku_model", struct bh_site_sku_model, model_rows);

static const struct bh_field sku_rows[] = {
    BH_F(struct bh_site_sku, cpu, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "cores for one partition; the node's share when absent"),
    BH_F_ENUM(struct bh_site_sku, grade, grade_names, .flags = BH_FIELD_REQUIRED,
              .doc = "weakest isolation it promises: A dedicated node, B whole GPU, C MIG"),
    BH_F_ENUM(
        struct bh_site_sku, managed, bh_managed_names,
        .doc = "of shares: managed memory (cuMemAllocManaged): charge counts it against the cap (also when "
               "absent), host does not, refuse forbids it"),
    BH_F(struct bh_site_sku, memory, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "main memory for one partition: \"8Gi\"; the node's share when absent"),
    BH_F(struct bh_site_sku, models, BH_FIELD_LIST, .flags = BH_FIELD_REQUIRED, .of = &sku_model_fields,
         .max = BH_SITE_SKU_MODELS_MAX, .doc = "what provides it on each GPU model"),
    BH_F(struct bh_site_sku, name, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_NAME_MAX,
         .doc = "\"small\""),
    BH_F_ENUM(
        struct bh_site_sku, over_cap, bh_over_cap_names,
        .doc = "of shares: action on a job that has more GPU memory than its cap, as the driver reports it: "
               "warn (also when absent), throttle, stop"),
    BH_F_ENUM(struct bh_site_sku, over_time, bh_over_time_names,
              .doc = "of shares: action on a job that uses its GPU outside its time slices, by the driver's "
                     "samples: warn (also when absent), stop"),
    BH_F(struct bh_site_sku, price, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "of one partition for an hour, in the site's currency: \"0.85\"; free when absent"),
};
static const struct bh_fields sku_fields = BH_FIELDS("sku", struct bh_site_sku, sku_rows);

static const struct bh_field principal_rows[] = {
    BH_F(struct bh_site_principal, account, BH_FIELD_BOOL,
         .doc = "may have a password and a second factor here"),
    BH_F(struct bh_site_principal, break_glass, BH_FIELD_BOOL,
         .doc = "may become an admin of the site for an hour in an emergency; every user sees it"),
    BH_F(struct bh_site_principal, default_tenant, BH_FIELD_TEXT, .max = BH_TENANT_PATH_MAX,
         .doc = "tenant of its jobs that name none; when absent the only tenant that it may submit to"),
    BH_F(struct bh_site_principal, identity, BH_FIELD_TEXT, .max = BH_NAME_MAX + 1 + BH_GROUP_MAX,
         .doc = "its identity at an issuer: \"corp/SUBJECT\""),
    BH_F(struct bh_site_principal, name, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_NAME_MAX,
         .doc = "\"alice\""),
    BH_F(struct bh_site_principal, service, BH_FIELD_BOOL, .doc = "an account of a program"),
    BH_F(struct bh_site_principal, uid, BH_FIELD_U32,
         .doc = "Unix user whose connections to the socket are this principal's"),
};
static const struct bh_fields principal_fields =
    BH_FIELDS("principal", struct bh_site_principal, principal_rows);

static const struct bh_field binding_rows[] = {
    BH_F(struct bh_site_binding, gid, BH_FIELD_U32, .doc = "a Unix group, where no principal is named"),
    BH_F(struct bh_site_binding, group, BH_FIELD_TEXT, .max = BH_NAME_MAX + 1 + BH_GROUP_MAX,
         .doc = "or a group of an issuer: \"corp/ml-admins\""),
    BH_F(struct bh_site_binding, principal, BH_FIELD_TEXT, .max = BH_NAME_MAX, .doc = "who holds the role"),
    BH_F_ENUM(struct bh_site_binding, role, role_names, .flags = BH_FIELD_REQUIRED,
              .doc = "what each allows: man bulkhead-site, ROLES"),
    BH_F(struct bh_site_binding, tenant, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_TENANT_PATH_MAX,
         .doc = "where, with everything below; \"*\" is the whole site"),
};
static const struct bh_fields binding_fields = BH_FIELDS("binding", struct bh_site_binding, binding_rows);

static const struct bh_field gpu_rows[] = {
    BH_F(struct bh_site_gpu, cordoned, BH_FIELD_BOOL, .doc = "takes no new work"),
    BH_F(struct bh_site_gpu, managed, BH_FIELD_BOOL,
         .doc = "Bulkhead may change it; other GPUs are listed and left alone"),
    BH_F(struct bh_site_gpu, oversubscribe, BH_FIELD_U32,
         .doc = "percent of its compute that shares may be promised together, 100 to 1000; 100 "
                "when absent"),
    BH_F(struct bh_site_gpu, shared, BH_FIELD_BOOL,
         .doc = "it may be shared (docs/shares.md) while it has no other partitions"),
    BH_F(struct bh_site_gpu, uuid, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = 47,
         .doc = "\"GPU-...\", or \"all\""),
};
static const struct bh_fields gpu_fields = BH_FIELDS("gpu", struct bh_site_gpu, gpu_rows);

static const struct bh_field pool_rows[] = {
    BH_F_ENUM(
        struct bh_site_pool, layout, bh_pool_layout_names,
        .doc =
            "what its GPUs are preferred for: development, partitions of less than half a GPU; production, "
            "larger ones; balanced, every second GPU for either; on-demand, any"),
    BH_F(struct bh_site_pool, name, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = 63, .doc = "its name"),
    BH_F(struct bh_site_pool, nodes, BH_FIELD_TEXTS, .flags = BH_FIELD_REQUIRED, .max = 4096,
         .doc = "names of nodes; \"all\" means those in no other pool"),
};
static const struct bh_fields pool_fields = BH_FIELDS("pool", struct bh_site_pool, pool_rows);

static const struct bh_field mount_rows[] = {
    BH_F(struct bh_site_mount, path, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_FILE_PATH_MAX,
         .doc = "folder of the node that jobs may mount"),
    BH_F(struct bh_site_mount, tenant, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_TENANT_PATH_MAX,
         .doc = "tenant whose jobs may mount it, with everything below; \"*\" is all"),
    BH_F(struct bh_site_mount, write, BH_FIELD_BOOL, .doc = "also writable"),
};
static const struct bh_fields site_mount_fields = BH_FIELDS("site_mount", struct bh_site_mount, mount_rows);

static const char *const switch_names[BH_SITE_SWITCHES] = {
    [BH_SITE_OFF] = "off",
    [BH_SITE_ON] = "on",
};

static const struct bh_field scheduling_rows[] = {
    BH_F(struct bh_site_scheduling, assumed_run, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "run time that reservations assume for a job without a time limit; \"24h\" when absent"),
    BH_F_ENUM(
        struct bh_site_scheduling, backfill, switch_names,
        .doc = "whether jobs that end in time may use capacity that is reserved for the first job; on when "
               "absent"),
    BH_F(struct bh_site_scheduling, burn_in, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "how long a GPU that was reset is watched before it gets work; \"1m\" when "
                "absent"),
    BH_F_ENUM(
        struct bh_site_scheduling, defrag, bh_defrag_mode_names,
        .doc =
            "whether jobs that allow it are stopped and started elsewhere to make room for others: suggest "
            "shows plans, on applies them; off when absent"),
    BH_F(struct bh_site_scheduling, defrag_gain_percent, BH_FIELD_U32,
         .doc = "gain of such a plan, in percent of what it loses, at least 100; 200 when absent"),
    BH_F(struct bh_site_scheduling, defrag_gpu_hours, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 40,
         .doc = "work that moves may lose in an hour, in GPU-hours; 4 when absent"),
    BH_F(struct bh_site_scheduling, defrag_moves, BH_FIELD_U32,
         .doc = "jobs moved in an hour at most; 10 when absent"),
    BH_F(struct bh_site_scheduling, defrag_rest, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "time before a moved job may be moved again; \"6h\" when absent"),
    BH_F(struct bh_site_scheduling, half_life, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc =
             "time after which past use counts half, a minute to 366 days, or \"never\"; 7 days when absent"),
    BH_F_ENUM(
        struct bh_site_scheduling, hotspots, switch_names,
        .doc = "whether new work avoids nodes that are expected to be full soon while others have capacity; "
               "off when absent"),
    BH_F_ENUM(
        struct bh_site_scheduling, lending, bh_lending_names,
        .doc = "what others may borrow of an idle guarantee: all that its tenant lends, or by forecast only "
               "what the tenant is not expected to need soon; all when absent"),
    BH_F(struct bh_site_scheduling, min_runtime, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "no job is preempted before it has run this long: \"10m\"; none when absent"),
    BH_F_ENUM(struct bh_site_scheduling, order, bh_queue_order_names,
              .doc =
                  "order of jobs beyond guarantees: fair_tree by use over weight, drf by present use, fifo; "
                  "fair_tree when absent"),
    BH_F_ENUM(struct bh_site_scheduling, preshape, switch_names,
              .doc = "whether MIG instances are carved ahead of expected demand; off when absent"),
    BH_F_ENUM(
        struct bh_site_scheduling, spread_kinds, switch_names,
        .doc =
            "keep batch jobs on different nodes than service and interactive jobs while both have capacity"),
};
static const struct bh_fields scheduling_fields =
    BH_FIELDS("scheduling", struct bh_site_scheduling, scheduling_rows);

static const struct bh_field site_rows[] = {
    BH_F(struct bh_site, bindings, BH_FIELD_LIST, .of = &binding_fields, .doc = "who holds which role where"),
    BH_F(struct bh_site, datasets, BH_FIELD_LIST, .of = &bh_site_dataset_fields,
         .doc = "data and models that jobs mount by name, and who may mount them"),
    BH_F(struct bh_site, gpus, BH_FIELD_LIST, .of = &gpu_fields, .doc = "GPUs that Bulkhead may use"),
    BH_F(struct bh_site, mounts, BH_FIELD_LIST, .of = &site_mount_fields,
         .doc = "folders that jobs may mount"),
    BH_F(struct bh_site, policy, BH_FIELD_STRUCT, .of = &bh_site_policy_fields,
         .doc = "what may be submitted"),
    BH_F(struct bh_site, pools, BH_FIELD_LIST, .of = &pool_fields,
         .doc = "nodes whose GPUs are preferred for small or large partitions"),
    BH_F(struct bh_site, principals, BH_FIELD_LIST, .of = &principal_fields,
         .doc = "users and service accounts"),
    BH_F(struct bh_site, scheduling, BH_FIELD_STRUCT, .of = &scheduling_fields,
         .doc = "how the whole site schedules"),
    BH_F(struct bh_site, sign_in, BH_FIELD_STRUCT, .of = &bh_site_sign_in_fields,
         .doc = "how users sign in, and which actions need a second factor again"),
    BH_F(struct bh_site, skus, BH_FIELD_LIST, .of = &sku_fields, .doc = "the sizes a job can ask for"),
    BH_F(struct bh_site, tenants, BH_FIELD_LIST, .of = &tenant_fields, .doc = "the tree of tenants"),
};
const struct bh_fields bh_site_fields = BH_FIELDS("site", struct bh_site, site_rows);

const struct bh_site_tenant *
bh_site_tenant_named(const struct bh_site *site, const char *name)
{
    const struct bh_site_tenant *tenants = site->tenants.items;

    for (uint32_t i = 0; i < site->tenants.count; i++)
        if (strcmp(tenants[i].name, name) == 0)
            return &tenants[i];
    return NULL;
}

const struct bh_site_principal *
bh_site_principal_named(const struct bh_site *site, const char *name)
{
    const struct bh_site_principal *principals = site->principals.items;

    for (uint32_t i = 0; i < site->principals.count; i++)
        if (strcmp(principals[i].name, name) == 0)
            return &principals[i];
    return NULL;
}

const struct bh_site_sku *
bh_site_sku_named(const struct bh_site *site, const char *name)
{
    const struct bh_site_sku *skus = site->skus.items;

    for (uint32_t i = 0; i < site->skus.count; i++)
        if (strcmp(skus[i].name, name) == 0)
            return &skus[i];
    return NULL;
}

const struct bh_site_dataset *
bh_site_dataset_named(const struct bh_site *site, const char *name)
{
    const struct bh_site_dataset *datasets = site->datasets.items;

    for (uint32_t i = 0; i < site->datasets.count; i++)
        if (strcmp(datasets[i].name, name) == 0)
            return &datasets[i];
    return NULL;
}

uint64_t
bh_site_sku_models(const struct bh_site_sku *sku)
{
    const struct bh_site_sku_model *models = sku->models.items;
    uint64_t mask = 0;

    for (uint32_t i = 0; i < sku->models.count; i++)
        mask |= UINT64_C(1) << bh_model_find(models[i].model);
    return mask;
}

uint32_t
bh_site_sku_profile(const struct bh_site_sku_model *entry)
{
    enum bh_gpu_model model = bh_model_find(entry->model);
    struct bh_share_words words = { entry->share, entry->memory, entry->rounding, entry->mode };
    const struct bh_profile *profile = entry->profile ? bh_profile_find(model, entry->profile) : NULL;
    struct bh_share share;
    struct bh_err unseen;

    if (entry->share && bh_share_parse(model, &words, &share, &unseen) == BH_OK)
        return bh_share_profile(&share).v;
    return profile ? profile->id.v : BH_PROFILE_WHOLE.v;
}

uint32_t
bh_site_gpu_share_limit(const struct bh_site_gpu *gpu)
{
    uint32_t percent = gpu->oversubscribe ? gpu->oversubscribe : 100;

    return gpu->shared ? BH_GPU_PARTS / 100 * percent : 0;
}

bool
bh_principal_is_issuers(const struct bh_site *site, const char *name)
{
    const char *colon = strchr(name, ':');

    return colon && bh_sign_in_issuer(&site->sign_in, name, (size_t)(colon - name));
}

bool
bh_site_pool_names(const struct bh_site_pool *pool, const char *node)
{
    for (uint32_t i = 0; i < pool->nodes.count; i++)
        if (strcmp(pool->nodes.items[i], node) == 0)
            return true;
    return false;
}

const struct bh_site_pool *
bh_site_pool_of(const struct bh_site *site, const char *node)
{
    const struct bh_site_pool *pools = site->pools.items, *rest = NULL;

    for (uint32_t i = 0; i < site->pools.count; i++) {
        if (bh_site_pool_names(&pools[i], node))
            return &pools[i];
        rest = bh_site_pool_names(&pools[i], "all") ? &pools[i] : rest;
    }
    return rest;
}

enum bh_tenant_kind
bh_site_tenant_kind(const struct bh_site_tenant *tenant)
{
    unsigned depth;

    if (tenant->kind != BH_SITE_KIND_BY_DEPTH)
        return (enum bh_tenant_kind)(tenant->kind - 1);
    depth = bh_tenant_path_depth(tenant->name);
    return depth < BH_TENANT_PROJECT ? (enum bh_tenant_kind)depth : BH_TENANT_PROJECT;
}
