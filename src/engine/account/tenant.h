#ifndef BH_ENGINE_ACCOUNT_TENANT_H
#define BH_ENGINE_ACCOUNT_TENANT_H

#include "engine/state/state_internal.h"

/* The tenant tree.  Tenants are slots here. */

/* Whether `ancestor` is `tenant` or stands above it. */
bool bh_tenant_within(const struct bh_engine *engine, uint32_t ancestor, uint32_t tenant);

/* Whether the tenant, or one above it, is being removed. */
bool bh_tenant_leaving(const struct bh_engine *engine, uint32_t tenant);

/* Whether it may keep something of a guarantee back from borrowers. */
bool bh_tenant_withholds(const struct tenant *tenant);

/* Count jobs in the tenant and all above it. */
void bh_tenant_count(struct bh_engine *engine, uint32_t tenant, int32_t running, int32_t pending);

#endif
