#ifndef BH_NODE_CORE_HOST_H
#define BH_NODE_CORE_HOST_H

#include "node/core/node.h"

/* Only root may change what is at `path`: the folder and all above it belong to root, are writable by root
 * alone (sticky folders above are allowed), and are no symbolic links.  BH_DENIED. */
BH_MUST_USE bh_rc bh_host_check_folder(const char *path, struct bh_err *err);

/* The machine that the node runs on. */

/* Whether the calling program has the lock (flock) of `fd` now; waits a moment for one that is just
 * ending. */
bool bh_host_lock_file(int fd);

/* Whether the peer is the daemon, or root; a refusal is logged. */
bool bh_host_allows(const struct bh_node *node, int fd);

/* Make this the only node on state_dir: BH_CONFLICT when another one runs. */
BH_MUST_USE bh_rc bh_host_lock(struct bh_node *node, struct bh_err *err);

/* Enter a private mount namespace, so that no other process sees sandboxes while they are made.  They are
 * made on a private tmpfs that allows device nodes.  On a hybrid control group host the version 2 tree is
 * unmounted, so that the runtime sees version 1 alone. */
BH_MUST_USE bh_rc bh_host_isolate(struct bh_node *node, struct bh_err *err);

/* Name, boot id, device majors, where the node's programs are. */
BH_MUST_USE bh_rc bh_host_describe(struct bh_node *node, struct bh_err *err);

/* Read the device majors again; 0 for modules that are not loaded. */
void bh_host_read_majors(struct bh_node *node);

#endif
