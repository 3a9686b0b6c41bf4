#ifndef BH_DAEMON_NODES_MARKS_H
#define BH_DAEMON_NODES_MARKS_H

#include <stdint.h>

#include "base/err.h"
#include "model/ids.h"

struct bh_core;

/* How often a node's ownership map of GPU memory has changed: the highest number that it ever reported, in
 * the store.  A node that reports a lower number has a restored state folder, and treats the tenants of its
 * memory as unknown when it receives the number (node/witness.h).  A node that reported nothing yet is new
 * here. */

/* 0: nothing.  BH_IO, BH_INVALID (what the store has is no number). */
BH_MUST_USE bh_rc bh_marks_recorded(const struct bh_core *core, bh_node_id node, uint64_t *ret_marks,
                                    struct bh_err *err);

/* The node reported `changes`; `marks`, what is recorded, is raised with the batch, and never lowered. BH_IO.
 */
BH_MUST_USE bh_rc bh_marks_receive(struct bh_core *core, bh_node_id node, uint64_t changes, uint64_t *marks,
                                   struct bh_err *err);

#endif
