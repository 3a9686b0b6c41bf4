#ifndef BH_ENGINE_PLACEMENT_TENANT_CHANGE_H
#define BH_ENGINE_PLACEMENT_TENANT_CHANGE_H

#include "engine/state/state_internal.h"

/* How the tenant tree changes.  Tenants are slots here. */

/* BH_NOT_FOUND  the parent or a SKU
 * BH_RANGE      a kind, boundary or number of limits out of range
 * BH_CONFLICT   below itself, being removed, or leases would then stand too close */
BH_MUST_USE bh_rc bh_tenant_check(struct bh_engine *engine, const struct bh_ev_tenant *event,
                                  struct bh_reason *ret_why);
void bh_tenant_set(struct bh_engine *engine, const struct bh_ev_tenant *event);

/* BH_NOT_FOUND, BH_CONFLICT while it has children. */
BH_MUST_USE bh_rc bh_tenant_check_remove(const struct bh_engine *engine, bh_tenant_id id,
                                         struct bh_reason *ret_why);
void bh_tenant_remove(struct bh_engine *engine, bh_tenant_id id);

/* What it may want soon of its guarantee, in parts. */
void bh_tenant_expect(struct bh_engine *engine, uint32_t tenant, uint64_t expected);

/* Free the slot of a removed tenant whose last job is gone. */
void bh_tenant_reap(struct bh_engine *engine, uint32_t tenant);

#endif
