#ifndef BH_NODE_SANDBOX_STORE_H
#define BH_NODE_SANDBOX_STORE_H

#include "node/core/node.h"

/* Unpacked images: <state_dir>/images/TENANT/DIGEST/{rootfs,image.json}, slashes of the
 * tenant's path written as '%'.  The time of image.json is that of the last use.  What a
 * job uses stands in its own folder, as <state_dir>/jobs/LEASE/image, and is never removed
 * while it lives. */

/* After a start of the node: the folder, less what was half made or half removed. */
BH_MUST_USE bh_rc bh_store_sweep(struct bh_node *node, struct bh_err *err);

/* The tenant's folder, made when it is not there.  BH_INVALID: no tenant. */
BH_MUST_USE bh_rc bh_store_open(const struct bh_node *node, const char *tenant,
                                char ret_path[BH_NODE_PATH_MAX], struct bh_err *err);

/* Remove what unpacking for that lease left. */
void bh_store_clear(struct bh_node *node, const char *tenant, uint64_t lease);

/* Note that the job of that lease uses the image; where it is (its folder).
 *   BH_NOT_FOUND  it is not in the store */
BH_MUST_USE bh_rc bh_store_use(struct bh_node *node, uint64_t lease, const char *tenant, const char *digest,
                               struct bh_err *err);
BH_MUST_USE bh_rc bh_store_folder(const struct bh_node *node, uint64_t lease, char ret_path[BH_NODE_PATH_MAX],
                                  struct bh_err *err);

/* Remove images of the tenant that no job uses, those used longest ago first, until the
 * rest is within images_cap_mib. */
void bh_store_trim(struct bh_node *node, const char *tenant);

#endif
