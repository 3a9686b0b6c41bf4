#ifndef BH_DAEMON_NODES_LINKS_H
#define BH_DAEMON_NODES_LINKS_H

#include "daemon/state/core.h"

/* The owner's connections to its nodes: one for the socket that node_socket names, or
 * one for each *.sock in the folder that it names (at most BH_NODE_LINKS_MAX).  The
 * folder is read again every second: sockets that come are connected to, those that are
 * gone and not connected are forgotten.  Owner thread only, except
 * bh_node_links_inventory. */
struct bh_node_links;

enum { BH_NODE_LINKS_MAX = 4096 };

BH_MUST_USE struct bh_node_links *bh_node_links_new(struct bh_core *core);
void bh_node_links_free(struct bh_node_links *links);

/* Connect the links that are due. */
void bh_node_links_connect(struct bh_node_links *links);

/* When bh_node_links_connect wants to be called next (monotonic). */
uint64_t bh_node_links_connect_ns(const struct bh_node_links *links);

/* For poll(): readable when a link has something to do. */
int bh_node_links_fd(const struct bh_node_links *links);

/* Take what the nodes said, inside the core's batch; what more than a few hundred say
 * at once stays for the next.  Never blocks.  BH_IO and BH_FULL: abort the batch. */
BH_MUST_USE bh_rc bh_node_links_receive(struct bh_node_links *links, struct bh_err *err);

/* Tell the engine which nodes are gone: at the start and after a reset all that it may
 * believe up, later those whose connection broke outside a batch.  As
 * bh_node_links_receive. */
BH_MUST_USE bh_rc bh_node_links_report_down(struct bh_node_links *links, struct bh_err *err);

/* After a commit: send each effect of the core to its node, and acknowledge what is on
 * disk now.  What a node that is away should do is sent when it comes back. */
void bh_node_links_release(struct bh_node_links *links);

/* The batch was aborted: every connection is dropped, so that the nodes repeat. */
void bh_node_links_reset(struct bh_node_links *links);

/* The path of a connected node's socket, in the arena, or NULL. */
const char *bh_node_links_socket(const struct bh_node_links *links, bh_node_id node, struct bh_arena *arena);

/* Any thread: append the next connected node's last inventory, with samples, as one JSON
 * object; false at the end.  Start with *cursor = 0.  Nodes that come or go meanwhile may
 * be missed. */
bool bh_node_links_inventory(struct bh_node_links *links, uint32_t *cursor, struct bh_buf *ret_json);

/* The same of verdicts on a request; behind a comma when the buffer holds one. */
bool bh_node_links_verdict(struct bh_node_links *links, uint64_t request, uint32_t *cursor,
                           struct bh_buf *ret_json);

#endif
