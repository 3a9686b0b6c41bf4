#ifndef BH_DAEMON_LINK_H
#define BH_DAEMON_LINK_H

#include "daemon/core.h"

/* The owner's connection to bulkhead-node: effects become messages, messages become
 * engine events.  Owner thread only, except bh_node_link_inventory.
 *
 * When the connection comes, the node says what it has, the engine hears what changed
 * meanwhile, and every effect that was ordered and not yet answered is sent again;
 * the node answers repeats with the old outcome. */
struct bh_node_link;

BH_MUST_USE struct bh_node_link *bh_node_link_new(struct bh_core *core);
void bh_node_link_free(struct bh_node_link *link);

/* Try to connect if there is no connection and it is time to; never blocks for long. */
void bh_node_link_connect(struct bh_node_link *link);

/* When bh_node_link_connect will try next (monotonic); UINT64_MAX while connected. */
uint64_t bh_node_link_try_ns(const struct bh_node_link *link);

/* For poll(): the descriptor (-1 without a connection) and the events wanted. */
int bh_node_link_fd(const struct bh_node_link *link);
short bh_node_link_interest(const struct bh_node_link *link);

/* The socket is ready: read, and step the core for every message, inside its batch.
 * A lost connection is an event too.  BH_IO and BH_FULL: abort the batch. */
BH_MUST_USE bh_rc bh_node_link_receive(struct bh_node_link *link, struct bh_err *err);

/* Tell the engine, once, when no node is connected.  As bh_node_link_receive. */
BH_MUST_USE bh_rc bh_node_link_settle(struct bh_node_link *link, struct bh_err *err);

/* After a commit: send the core's effects and acknowledge what is on disk now. */
void bh_node_link_release(struct bh_node_link *link);

/* The batch was aborted: what was received is forgotten and the connection dropped, so
 * that the node repeats it. */
void bh_node_link_reset(struct bh_node_link *link);

/* Any thread: the last inventory with samples, as JSON in `arena`; "null" when no node
 * is connected. */
const char *bh_node_link_inventory(struct bh_node_link *link, struct bh_arena *arena);

#endif
