#ifndef BH_ENGINE_ACCOUNT_SEPARATION_H
#define BH_ENGINE_ACCOUNT_SEPARATION_H

#include "engine/state/state_internal.h"

/* Whether two tenants may share a GPU or a node.  Tenants are slots here. */

/* What must stand between the jobs of two tenants. */
struct bh_separation {
    enum bh_boundary boundary;
    bool dedicated; /* not even a common node */
};
struct bh_separation bh_separation_between(const struct bh_engine *engine, uint32_t a, uint32_t b);

/* The strongest boundary that the tenant or one above it asks for. */
enum bh_boundary bh_separation_boundary(const struct bh_engine *engine, uint32_t tenant);

/* The innermost of the tenant and those above it that asks for nodes of its own, or 0. */
uint32_t bh_separation_dedicated(const struct bh_engine *engine, uint32_t tenant);

#endif
