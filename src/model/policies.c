#include "model/policies.h"

#include <inttypes.h>
#include <string.h>

#include "model/network.h"
#include "model/path.h"

/* Whether what `owner` says holds for `tenant`. */
static bool
policies_holds_for(const char *owner, const char *tenant)
{
    size_t length = strlen(owner);

    return length == 0 || !tenant
           || (strncmp(owner, tenant, length) == 0 && (tenant[length] == '/' || tenant[length] == '\0'));
}

const struct bh_site_policy *
bh_policies_next(const struct bh_site *site, const char *tenant, uint32_t *cursor, const char **ret_owner)
{
    const struct bh_site_tenant *tenants = site->tenants.items;

    for (; *cursor <= site->tenants.count; ++*cursor) {
        uint32_t at = *cursor;
        const struct bh_site_policy *policy = at ? &tenants[at - 1].policy : &site->policy;
        const char *owner = at ? tenants[at - 1].name : "";

        if (bh_site_policy_empty(policy) || !policies_holds_for(owner, tenant))
            continue;
        ++*cursor;
        *ret_owner = owner;
        return policy;
    }
    return NULL;
}

static bool
policies_has_dataset(const struct bh_site *site, const char *name)
{
    return bh_site_dataset_named(site, name) || strcmp(name, "none") == 0;
}

static bh_rc
policies_check_datasets(const struct bh_site *site, const struct bh_texts *names, struct bh_err *err)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (!policies_has_dataset(site, names->items[i]))
            return bh_err_set(err, BH_INVALID, "datasets[%" PRIu32 "]: no dataset \"%.63s\" in this file", i,
                              names->items[i]);
    return BH_OK;
}

static bh_rc
policies_check_skus(const struct bh_site *site, const struct bh_site_policy *policy, struct bh_err *err)
{
    const struct bh_site_policy_partitions *partitions = policy->max_sku_partitions.items;

    for (uint32_t i = 0; i < policy->skus.count; i++)
        if (!bh_site_sku_named(site, policy->skus.items[i]))
            return bh_err_set(err, BH_INVALID, "skus[%" PRIu32 "]: no SKU \"%.63s\" in this file", i,
                              policy->skus.items[i]);
    for (uint32_t i = 0; i < policy->max_sku_partitions.count; i++)
        if (!bh_site_sku_named(site, partitions[i].sku))
            return bh_err_set(err, BH_INVALID,
                              "max_sku_partitions[%" PRIu32 "]: no SKU \"%.63s\" in this file", i,
                              partitions[i].sku);
    return BH_OK;
}

/* The policy against each that stands above it. */
static bh_rc
policies_check_above(const struct bh_site *site, const struct bh_policy_rules *rules, const char *owner,
                     struct bh_err *err)
{
    const struct bh_site_policy *policy;
    struct bh_policy_rules above;
    uint32_t cursor = 0;
    const char *name;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && (policy = bh_policies_next(site, owner, &cursor, &name))
           && strcmp(name, owner) != 0) {
        rc = bh_site_policy_read(policy, &above, err);
        if (rc == BH_OK)
            rc = bh_policy_check_narrower(&above, rules, err);
    }
    return rc;
}

/* Those of all policies above a job add up (policy/egress.h), and its node takes so many. */
static bh_rc
policies_check_egress_deny(const struct bh_site *site, const char *owner, struct bh_err *err)
{
    const struct bh_site_policy *policy;
    uint32_t cursor = 0, count = 0;
    const char *name;

    while ((policy = bh_policies_next(site, owner, &cursor, &name)))
        if (*owner || !*name)
            count += policy->egress_deny.count;
    if (count <= BH_NET_RULES_MAX)
        return BH_OK;
    return bh_err_set(err, BH_INVALID,
                      "egress_deny: %" PRIu32 " entries with those of the policies "
                      "above, %d at most",
                      count, BH_NET_RULES_MAX);
}

static bh_rc
policies_check_one(const struct bh_site *site, const struct bh_site_policy *policy, const char *owner,
                   struct bh_err *err)
{
    struct bh_policy_rules rules;
    bh_rc rc = bh_site_policy_read(policy, &rules, err);

    if (rc != BH_OK)
        return rc;
    rc = policies_check_skus(site, policy, err);
    if (rc != BH_OK)
        return rc;
    rc = policies_check_datasets(site, &policy->datasets, err);
    if (rc != BH_OK)
        return rc;
    rc = policies_check_above(site, &rules, owner, err);
    if (rc != BH_OK)
        return rc;
    return policies_check_egress_deny(site, owner, err);
}

bh_rc
bh_policies_check(const struct bh_site *site, struct bh_err *err)
{
    const struct bh_site_policy *policy;
    uint32_t cursor = 0;
    const char *owner;

    while ((policy = bh_policies_next(site, NULL, &cursor, &owner)))
        if (policies_check_one(site, policy, owner, err) != BH_OK)
            return *owner ? bh_err_wrap(err, "tenants %.119s policy", owner) : bh_err_wrap(err, "policy");
    return BH_OK;
}
