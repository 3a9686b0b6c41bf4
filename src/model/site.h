#ifndef BH_MODEL_SITE_H
#define BH_MODEL_SITE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/fields.h"
#include "model/boundary.h"
#include "model/dataset.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/period.h"
#include "model/policy.h"
#include "model/role.h"
#include "model/share.h"
#include "model/sign_in.h"

/* The site file: everything an administrator declares, as `bulkhead apply -f` takes it and `bulkhead get
 * site` gives it back.  It is applied as a whole: what it no longer names is removed. */

/* A quota of one SKU, in partitions, or of one GPU model, in GPUs. */
struct bh_site_quota {
    const char *sku, *model;                       /* one of them */
    const char *limit, *guarantee, *lending_limit; /* "4", "0.5"; NULL: unlimited, none, all */
};

/* What may be spent in each period; amounts are exact, NULL is no bound. */
struct bh_site_budget {
    enum bh_period period; /* NONE: no budget */
    const char *gpu_hours, *money;
};

/* A tenant's kind as the file says it; bh_site_tenant_kind resolves BY_DEPTH. */
enum bh_site_kind {
    BH_SITE_KIND_BY_DEPTH, /* not said: organization, department, team, project */
    BH_SITE_KIND_ORGANIZATION,
    BH_SITE_KIND_DEPARTMENT,
    BH_SITE_KIND_TEAM,
    BH_SITE_KIND_PROJECT,
    BH_SITE_KINDS
};

struct bh_site_tenant {
    const char *name; /* path: "acme", "acme/vision", "acme/vision/train" */
    enum bh_site_kind kind;
    enum bh_boundary boundary;
    bool dedicated_nodes;
    bool legal_hold;               /* nothing of it or below may be shredded, nor it removed */
    const char *limit, *guarantee; /* GPUs: "4", "0.5", "3/7"; NULL: unlimited, none */
    const char *lending_limit;     /* of the guarantee, what others may borrow; NULL: all */
    const char *user_limit;        /* GPUs of one principal; NULL: unlimited */
    const char *min_runtime;       /* "10m"; NULL: that of a tenant above, or the site's */
    uint32_t weight;               /* 0: BH_WEIGHT_DEFAULT */
    struct bh_site_budget budget;
    struct bh_site_policy policy; /* of what it and those below it submit */
    struct bh_list quotas;        /* struct bh_site_quota */
};

struct bh_site_sku_model {
    const char *model;          /* "H100-80GB" */
    const char *profile;        /* "1g.10gb" or "whole"; or */
    const char *share, *memory; /* "25%" of its compute, "18Gi" of its memory; NULL: even */
    enum bh_rounding rounding;  /* of the two, where they are no whole numbers of parts */
    enum bh_share_mode mode;
};

struct bh_site_sku {
    const char *name;
    enum bh_grade grade;
    struct bh_list models;       /* struct bh_site_sku_model */
    const char *cpu, *memory;    /* what one partition gives a job by default */
    enum bh_managed managed;     /* of shares */
    enum bh_over_cap over_cap;   /* of shares */
    enum bh_over_time over_time; /* of shares */
    const char *price;           /* of one partition and hour, in the site's currency; NULL: free */
};

struct bh_site_principal {
    const char *name;
    uint32_t uid; /* Unix user whose socket connections are this one;
                     0: none (root needs no principal) */
    bool service;
    bool account;               /* may have a password here */
    bool break_glass;           /* may become admin of the site for an hour */
    const char *default_tenant; /* of its jobs that name none; NULL: none */
    const char *identity;       /* its identity at a provider: "corp/SUBJECT"; NULL: none */
};

struct bh_site_binding {
    enum bh_role role;
    const char *principal; /* or */
    const char *group;     /* or a provider's group: "corp/ml-admins" */
    uint32_t gid;          /* or a Unix group */
    const char *tenant;    /* path; "*" is the whole site */
};

struct bh_site_gpu {
    const char *uuid; /* "GPU-..." or "all" */
    bool managed, cordoned;
    bool shared;            /* it may have shares while it is neither carved nor whole */
    uint32_t oversubscribe; /* percent of its compute that they may have; 0 is 100 */
};

/* Nodes whose GPUs are kept for partitions of a size. */
struct bh_site_pool {
    const char *name;
    struct bh_texts nodes; /* names; "all" stands for those that no other pool names */
    enum bh_pool_layout layout;
};

struct bh_site_mount {
    const char *path;   /* host path that may be mounted, with what is below */
    const char *tenant; /* for this tenant and below; "*" for all */
    bool write;
};

enum bh_site_switch { BH_SITE_DEFAULT, BH_SITE_OFF, BH_SITE_ON, BH_SITE_SWITCHES };

/* How the whole site schedules; what is absent takes its default. */
struct bh_site_scheduling {
    const char *assumed_run;                /* "24h" */
    enum bh_site_switch backfill;           /* on */
    const char *burn_in;                    /* "1m"; "0s": none */
    enum bh_defrag_mode defrag;             /* off */
    const char *defrag_gpu_hours;           /* "4": work that moves may lose in an hour */
    uint32_t defrag_gain_percent;           /* 200; at least 100 */
    uint32_t defrag_moves;                  /* 10: jobs moved in an hour at most */
    const char *defrag_rest;                /* "6h": how long a job that was moved is left alone */
    const char *half_life;                  /* "7-00:00:00"; "never" */
    const char *min_runtime;                /* none */
    enum bh_lending lending;                /* all */
    enum bh_site_switch hotspots, preshape; /* off */
    enum bh_site_switch spread_kinds;       /* off */
    enum bh_queue_order order;              /* fair_tree */
};

struct bh_site {
    struct bh_list bindings;
    struct bh_list datasets; /* struct bh_site_dataset */
    struct bh_list gpus, mounts;
    struct bh_site_policy policy; /* of all that is submitted */
    struct bh_list pools, principals;
    struct bh_site_scheduling scheduling;
    struct bh_site_sign_in sign_in;
    struct bh_list skus, tenants;
};

extern const struct bh_fields bh_site_fields;

enum { BH_SITE_TENANT_QUOTAS_MAX = 8, BH_SITE_SKU_MODELS_MAX = 16 };

/* What has that name; NULL: there is none. */
const struct bh_site_tenant *bh_site_tenant_named(const struct bh_site *site, const char *name);
const struct bh_site_principal *bh_site_principal_named(const struct bh_site *site, const char *name);
const struct bh_site_sku *bh_site_sku_named(const struct bh_site *site, const char *name);
const struct bh_site_dataset *bh_site_dataset_named(const struct bh_site *site, const char *name);

/* The GPU models that keep the SKU's promise: a bit for each, by enum bh_gpu_model. */
uint64_t bh_site_sku_models(const struct bh_site_sku *sku);

/* The profile that a row of a file that is right stands for. */
uint32_t bh_site_sku_profile(const struct bh_site_sku_model *entry);

/* Compute parts that shares of the GPU may have together; 0: it must not be shared. */
uint32_t bh_site_gpu_share_limit(const struct bh_site_gpu *gpu);

/* Whether a principal's name is one that an issuer of the file gives, "corp:ada": such people
 * are not declared. */
bool bh_principal_is_issuers(const struct bh_site *site, const char *name);

/* Whether the pool's list has the name. */
bool bh_site_pool_names(const struct bh_site_pool *pool, const char *node);

/* The pool that the node of that name is in; NULL: none. */
const struct bh_site_pool *bh_site_pool_of(const struct bh_site *site, const char *node);

/* The tenant's kind: as said, or by its depth. */
enum bh_tenant_kind bh_site_tenant_kind(const struct bh_site_tenant *tenant);

/* Whether the file is right in itself: names valid and unique, parents declared
 * before children, SKUs and roles and principals that are named exist, amounts
 * exact, models and profiles known, guarantees of children within the parent's, their
 * policies no wider, datasets reached by their names alone.
 * The message names the entry: `tenants[2] acme/vision: ...`. */
BH_MUST_USE bh_rc bh_site_check(const struct bh_site *site, struct bh_err *err);

#endif
