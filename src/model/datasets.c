#include "model/datasets.h"

#include <inttypes.h>
#include <string.h>

#include "model/path.h"

static bool
has_pool(const struct bh_site *site, const char *name)
{
    const struct bh_site_pool *pools = site->pools.items;

    for (uint32_t i = 0; i < site->pools.count; i++)
        if (strcmp(pools[i].name, name) == 0)
            return true;
    return false;
}

static bh_rc
check_grant(const struct bh_site *site, const struct bh_site_dataset_grant *grant, struct bh_err *err)
{
    if (grant->tenant && strcmp(grant->tenant, "*") != 0 && !bh_site_tenant_named(site, grant->tenant))
        return bh_err_set(err, BH_INVALID, "no tenant %.119s in this file", grant->tenant);
    if (grant->principal && !bh_site_principal_named(site, grant->principal))
        return bh_err_set(err, BH_INVALID, "no principal %.63s in this file", grant->principal);
    for (uint32_t i = 0; i < grant->to.pools.count; i++)
        if (!has_pool(site, grant->to.pools.items[i]))
            return bh_err_set(err, BH_INVALID, "to: no pool %.63s in this file", grant->to.pools.items[i]);
    return BH_OK;
}

/* Whether one of two folders lies in the other. */
static bool
overlap(const char *a, const char *b)
{
    return bh_file_path_within(a, b) || bh_file_path_within(b, a);
}

static bh_rc
check_other_paths(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_dataset *datasets = site->datasets.items, *own = &datasets[at];
    const struct bh_site_mount *mounts = site->mounts.items;

    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(datasets[i].name, own->name) == 0)
            return bh_err_set(err, BH_INVALID, "declared twice");
        if (overlap(datasets[i].path, own->path))
            return bh_err_set(err, BH_INVALID, "its path and that of %s overlap", datasets[i].name);
    }
    for (uint32_t i = 0; i < site->mounts.count; i++) {
        if (!overlap(mounts[i].path, own->path))
            continue;
        bh_err_set(err, BH_INVALID, "its path and mounts[%" PRIu32 "] %.100s overlap", i, mounts[i].path);
        return bh_err_hint(err, "jobs could mount it by its path, without a grant: use separate folders");
    }
    return BH_OK;
}

bh_rc
bh_dataset_check(const struct bh_site *site, uint32_t at, struct bh_err *err)
{
    const struct bh_site_dataset *own = (const struct bh_site_dataset *)site->datasets.items + at;
    const struct bh_site_dataset_grant *grants = own->grants.items;
    struct bh_dataset unused;
    bh_rc rc = bh_dataset_read(own, &unused, err);

    if (rc != BH_OK)
        return rc;
    rc = check_other_paths(site, at, err);
    if (rc != BH_OK)
        return rc;
    if (!bh_site_tenant_named(site, own->tenant))
        return bh_err_set(err, BH_INVALID, "no tenant %.119s in this file", own->tenant);
    for (uint32_t i = 0; i < own->grants.count; i++) {
        rc = check_grant(site, &grants[i], err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "grants[%" PRIu32 "]", i);
    }
    return BH_OK;
}
