#include "policy/directory.h"

#include <string.h>

#include "model/path.h"

/* One search for every table: rows differ only in their type. */
#define FIND(rows, count, condition)                                                                         \
    ({                                                                                                       \
        __typeof__((rows) + 0) found_ = NULL;                                                                \
        for (uint32_t i_ = 0; i_ < (count) && !found_; i_++) {                                               \
            __typeof__((rows) + 0) row = &(rows)[i_];                                                        \
            if (condition)                                                                                   \
                found_ = row;                                                                                \
        }                                                                                                    \
        found_;                                                                                              \
    })

const struct bh_dir_tenant *
bh_directory_tenant(const struct bh_directory *dir, bh_tenant_id id)
{
    /* The maker numbers them from 1 in order; a directory that does not is searched. */
    if (id.v - 1 < dir->tenant_count && bh_same(dir->tenants[id.v - 1].id, id))
        return &dir->tenants[id.v - 1];
    return FIND(dir->tenants, dir->tenant_count, bh_same(row->id, id));
}

const struct bh_dir_tenant *
bh_directory_tenant_named(const struct bh_directory *dir, const char *path)
{
    return FIND(dir->tenants, dir->tenant_count, !row->gone && strcmp(row->path, path) == 0);
}

const struct bh_dir_sku *
bh_directory_sku(const struct bh_directory *dir, bh_sku_id id)
{
    return FIND(dir->skus, dir->sku_count, bh_same(row->id, id));
}

const struct bh_dir_sku *
bh_directory_sku_named(const struct bh_directory *dir, const char *name)
{
    return FIND(dir->skus, dir->sku_count, !row->gone && strcmp(row->name, name) == 0);
}

const struct bh_dir_principal *
bh_directory_principal(const struct bh_directory *dir, bh_principal_id id)
{
    if (id.v - 1 < dir->principal_count && bh_same(dir->principals[id.v - 1].id, id))
        return &dir->principals[id.v - 1];
    return FIND(dir->principals, dir->principal_count, bh_same(row->id, id));
}

const struct bh_dir_principal *
bh_directory_principal_named(const struct bh_directory *dir, const char *name)
{
    return FIND(dir->principals, dir->principal_count, !row->gone && strcmp(row->name, name) == 0);
}

const struct bh_dir_principal *
bh_directory_principal_uid(const struct bh_directory *dir, uint32_t uid)
{
    if (uid == UINT32_MAX)
        return NULL;
    return FIND(dir->principals, dir->principal_count, !row->gone && row->uid == uid);
}

const struct bh_dir_principal *
bh_directory_principal_known(const struct bh_directory *dir, const char *identity)
{
    return FIND(dir->principals, dir->principal_count,
                !row->gone && row->identity && strcmp(row->identity, identity) == 0);
}

const struct bh_dir_group *
bh_directory_group(const struct bh_directory *dir, const char *name)
{
    return FIND(dir->groups, dir->group_count, strcmp(row->name, name) == 0);
}

const struct bh_dir_step_up *
bh_directory_step_up(const struct bh_directory *dir, const char *verb)
{
    return FIND(dir->step_ups, dir->step_up_count, strcmp(row->verb, verb) == 0);
}

const struct bh_dir_gpu *
bh_directory_gpu(const struct bh_directory *dir, bh_gpu_id id)
{
    return FIND(dir->gpus, dir->gpu_count, bh_same(row->id, id));
}

const struct bh_dir_gpu *
bh_directory_gpu_uuid(const struct bh_directory *dir, const char *uuid)
{
    return FIND(dir->gpus, dir->gpu_count, strcmp(row->uuid, uuid) == 0);
}

const struct bh_dir_dataset *
bh_directory_dataset_named(const struct bh_directory *dir, const char *name)
{
    return FIND(dir->dataset_names, dir->dataset_count, strcmp(row->name, name) == 0);
}

const struct bh_dir_mount *
bh_directory_mount(const struct bh_directory *dir, bh_tenant_id tenant, const char *path, bool write)
{
    return FIND(dir->mounts, dir->mount_count,
                (row->write || !write) && bh_file_path_within(row->path, path)
                    && bh_directory_within(dir, row->tenant, tenant));
}

bool
bh_directory_within(const struct bh_directory *dir, bh_tenant_id ancestor, bh_tenant_id tenant)
{
    if (ancestor.v == 0)
        return true;
    /* A tree is no deeper than it has tenants; that bounds a damaged one too. */
    for (uint32_t steps = 0; tenant.v != 0 && steps <= dir->tenant_count; steps++) {
        const struct bh_dir_tenant *at;

        if (bh_same(tenant, ancestor))
            return true;
        at = bh_directory_tenant(dir, tenant);
        if (!at)
            return false;
        tenant = at->parent;
    }
    return false;
}
