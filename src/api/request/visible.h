#ifndef BH_API_REQUEST_VISIBLE_H
#define BH_API_REQUEST_VISIBLE_H

#include "api/request/call.h"

/* What a caller may see.  What it may not see does not exist for it. */
struct bh_visible {
    uint32_t *ids; /* tenants, ascending, in the call's arena */
    uint32_t count;
    bool all; /* the whole site */
};

/* The tenants on which the caller holds `verb`; may be none.  BH_FULL. */
BH_MUST_USE bh_rc bh_visible_find(const struct bh_call *call, const char *verb,
                                  struct bh_visible *ret_visible, struct bh_err *err);

/* Whether the tenant is among them. */
bool bh_visible_has(const struct bh_visible *visible, uint32_t tenant);

/* Cut down to the tenant at `path` and what is below.  BH_NOT_FOUND: no such tenant, or
 * not visible. */
BH_MUST_USE bh_rc bh_visible_narrow(const struct bh_call *call, const char *path, struct bh_visible *visible,
                                    struct bh_err *err);

/* The tenants of bh_visible_find, cut down to the query's `tenant` where it has one. */
BH_MUST_USE bh_rc bh_visible_read(const struct bh_call *call, const char *verb,
                                  struct bh_visible *ret_visible, struct bh_err *err);

/* For sentences: `how` over the tenants whose jobs the caller may see. */
BH_MUST_USE bh_rc bh_visible_explain(const struct bh_call *call, struct bh_explain *ret_how,
                                     struct bh_err *err);

#endif
