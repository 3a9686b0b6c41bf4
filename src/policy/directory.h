#ifndef BH_POLICY_DIRECTORY_H
#define BH_POLICY_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/boundary.h"
#include "model/ids.h"
#include "model/role.h"
#include "model/share.h"
#include "model/sign_in.h"
#include "policy/admission.h"
#include "policy/datasets.h"

/* The names of all principals, tenants and objects: an immutable picture of the site, made anew by the owner
 * when the site changes and read by every worker.  Plain arrays; the maker owns the memory. */

struct bh_dir_tenant {
    bh_tenant_id id, parent;
    const char *path;
    enum bh_tenant_kind kind;
    bool gone;
};

struct bh_dir_sku {
    bh_sku_id id;
    const char *name;
    const char *cpu, *memory; /* defaults of one partition; NULL: the node's share */
    bool gone;
    uint64_t models;             /* GPU models that keep it, a bit each */
    enum bh_managed managed;     /* of shares */
    enum bh_over_cap over_cap;   /* of shares */
    enum bh_over_time over_time; /* of shares */
};

struct bh_dir_principal {
    bh_principal_id id;
    const char *name;
    uint32_t uid; /* UINT32_MAX: none */
    bool service, gone;
    bool account; /* may have a password here */
    bool break_glass;
    const char *default_tenant; /* of jobs that name none; NULL: none */
    const char *identity;       /* "corp/SUBJECT"; NULL: not known by one in the site file */
};

struct bh_dir_binding {
    enum bh_role role;
    bh_principal_id principal; /* 0: a group's */
    uint32_t gid;
    bh_tenant_id tenant; /* 0: the whole site */
    uint32_t group;      /* a provider's, by its id; 0: the Unix group `gid` */
};

/* A provider's group that bindings name. */
struct bh_dir_group {
    uint32_t id;
    const char *name; /* "corp/ml-admins" */
};

struct bh_dir_step_up {
    const char *verb;
    enum bh_level level;
    uint64_t within_ns;
};

struct bh_dir_gpu {
    bh_gpu_id id;
    const char *uuid;
    bool managed; /* the site file wants it so */
};

struct bh_dir_mount {
    const char *path;
    bh_tenant_id tenant; /* 0: all */
    bool write;
};

/* Its declaration is in `datasets`, while it exists. */
struct bh_dir_dataset {
    bh_dataset_id id;
    const char *name;
    bool gone;
};

struct bh_directory {
    const struct bh_dir_tenant *tenants;
    const struct bh_dir_sku *skus;
    const struct bh_dir_principal *principals;
    const struct bh_dir_binding *bindings;
    const struct bh_dir_gpu *gpus;
    const struct bh_dir_mount *mounts;
    const struct bh_dir_group *groups;
    const struct bh_dir_step_up *step_ups;
    uint32_t tenant_count, sku_count, principal_count, binding_count, gpu_count, mount_count;
    uint32_t group_count, step_up_count;
    const struct bh_site_sign_in *sign_in; /* never NULL in a published one */
    struct bh_admission admission;         /* what may be submitted */
    const struct bh_dir_dataset *dataset_names;
    uint32_t dataset_count;
    struct bh_datasets datasets; /* and the grants on them */
};

/* Lookups; NULL when there is none.  Those by name find only what is not gone; those
 * by id find all, so that old records can be read. */
const struct bh_dir_tenant *bh_directory_tenant(const struct bh_directory *dir, bh_tenant_id id);
const struct bh_dir_tenant *bh_directory_tenant_named(const struct bh_directory *dir, const char *path);
const struct bh_dir_sku *bh_directory_sku(const struct bh_directory *dir, bh_sku_id id);
const struct bh_dir_sku *bh_directory_sku_named(const struct bh_directory *dir, const char *name);
const struct bh_dir_principal *bh_directory_principal(const struct bh_directory *dir, bh_principal_id id);
const struct bh_dir_principal *bh_directory_principal_named(const struct bh_directory *dir, const char *name);
const struct bh_dir_principal *bh_directory_principal_uid(const struct bh_directory *dir, uint32_t uid);
/* The principal that the site file gives to an identity "corp/SUBJECT". */
const struct bh_dir_principal *bh_directory_principal_known(const struct bh_directory *dir,
                                                            const char *identity);
const struct bh_dir_group *bh_directory_group(const struct bh_directory *dir, const char *name);
/* What `verb` asks of a user besides the roles. */
const struct bh_dir_step_up *bh_directory_step_up(const struct bh_directory *dir, const char *verb);
const struct bh_dir_gpu *bh_directory_gpu(const struct bh_directory *dir, bh_gpu_id id);
const struct bh_dir_gpu *bh_directory_gpu_uuid(const struct bh_directory *dir, const char *uuid);

/* The dataset that has the name, else the one that had it last. */
const struct bh_dir_dataset *bh_directory_dataset_named(const struct bh_directory *dir, const char *name);

/* What lets `tenant` mount `path`, for writing when `write`; NULL: nothing does. */
const struct bh_dir_mount *bh_directory_mount(const struct bh_directory *dir, bh_tenant_id tenant,
                                              const char *path, bool write);

/* Whether `ancestor` is `tenant` or above it; ancestor 0 is the site: above all. */
bool bh_directory_within(const struct bh_directory *dir, bh_tenant_id ancestor, bh_tenant_id tenant);

#endif
