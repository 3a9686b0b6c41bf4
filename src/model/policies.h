#ifndef BH_MODEL_POLICIES_H
#define BH_MODEL_POLICIES_H

#include "model/site.h"

/* The policies of a site file: its own and those of its tenants. */

/* Walk those that hold for `tenant` (NULL: all there are), the site's first and parents before
 * children: start with *cursor = 0; NULL at the end.  `ret_owner` is the tenant's path, "" of
 * the site. */
const struct bh_site_policy *bh_policies_next(const struct bh_site *site, const char *tenant,
                                              uint32_t *cursor, const char **ret_owner);

/* Whether each is right in itself, names SKUs that there are, and narrows those above it.
 *   BH_INVALID, BH_RANGE  the message names the entry: `tenants acme/vision policy.skus...` */
BH_MUST_USE bh_rc bh_policies_check(const struct bh_site *site, struct bh_err *err);

#endif
