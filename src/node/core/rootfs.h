#ifndef BH_NODE_CORE_ROOTFS_H
#define BH_NODE_CORE_ROOTFS_H

#include "base/err.h"
#include "node/common/conf.h"
#include "ports/runtime.h"

/* The `host` root file system: parts of this machine, read-only, prepared once at start.
 * Flat: crun 1.8 does not carry mounts below a mount along.
 *
 *   /usr        this machine's
 *   /usr/local  remade, so that there are places for driver libraries and Bulkhead's
 *               tools: links to this machine's, which is shown at /usr/local/.machine
 *   /etc        copies of a short list; users, groups and hosts are made up
 *
 * A job's root is an empty folder with places for these, for its own mounts, and the
 * links /bin, /lib, ... as this machine has them. */
struct bh_rootfs;

enum { BH_ROOTFS_MOUNTS_MAX = 64 };

#define BH_ROOTFS_DRIVER "/usr/local/nvidia/lib"
#define BH_ROOTFS_TOOLS "/usr/local/bulkhead/bin"
#define BH_ROOTFS_LIBEXEC "/usr/local/bulkhead/libexec"

/* Build the parts below the folder `boxes`. */
BH_MUST_USE bh_rc bh_rootfs_open(const struct bh_conf *conf, const char *sandboxes, const char *libexec,
                                 struct bh_rootfs **ret_rootfs, struct bh_err *err);
void bh_rootfs_close(struct bh_rootfs *rootfs);
BH_AUTO_DEFINE(struct bh_rootfs *, bh_rootfs_close)

/* Make an empty root in the folder `root` with places for the parts. */
BH_MUST_USE bh_rc bh_rootfs_make_root(const struct bh_rootfs *rootfs, const char *root, struct bh_err *err);

/* The parts as mounts of a sandbox; their texts live as long as `rootfs`. */
const struct bh_sandbox_mount *bh_rootfs_mounts(const struct bh_rootfs *rootfs, uint32_t *ret_count);

#endif
