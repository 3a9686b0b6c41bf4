#ifndef BH_DAEMON_NODES_LINK_H
#define BH_DAEMON_NODES_LINK_H

#include "base/lock.h"
#include "daemon/state/core.h"

/* The owner's connection to one bulkhead-node: effects become messages, messages become
 * engine events.  Owner thread only, except bh_node_link_inventory.
 *
 * When the connection comes, the node says what it has, the engine hears what changed
 * meanwhile, and every effect that was ordered and not yet answered is sent again;
 * the node answers repeats with the old outcome. */
struct bh_node_link;

/* What all links of a daemon share; daemon/nodes/links.h keeps it. */
struct bh_links_shared {
    struct bh_core *core;
    struct bh_arena *arena;        /* of the message in hand */
    int epoll_fd;                  /* every connected link is in it */
    struct bh_node_link **of_node; /* by node id: the link that speaks for it, or NULL */
    uint32_t of_node_count;
    struct bh_node_link *touched; /* have something to do after the commit */
    bool down_pending;            /* a link went down outside a batch */
    uint64_t connect_ns;          /* when a link wants to connect next (monotonic) */
    struct bh_mutex mutex;        /* over every link's inventory and samples */
};

/* It connects at once, unless what its node sent failed an assert lately (daemon/state/quarantine.h). */
BH_MUST_USE struct bh_node_link *bh_node_link_new(struct bh_links_shared *shared, const char *path);
void bh_node_link_free(struct bh_node_link *link); /* as bh_node_link_reset before */

/* What the owner thread works on while it serves this link. */
struct bh_work bh_node_link_work(const struct bh_node_link *link);

const char *bh_node_link_path(const struct bh_node_link *link);
bool bh_node_link_is_connected(const struct bh_node_link *link);

/* Try to connect if there is no connection and it is time to; never blocks for long.
 * Says in `shared->connect_ns` when it wants to be called again. */
void bh_node_link_connect(struct bh_node_link *link);

/* The socket is ready: read, and step the core for every message, inside its batch.
 * A lost connection is an event too.  A node that speaks under a name for which another
 * link speaks already is refused and tried again later.
 * BH_IO and BH_FULL: abort the batch. */
BH_MUST_USE bh_rc bh_node_link_receive(struct bh_node_link *link, struct bh_err *err);

/* Tell the engine, once, when the connection went outside a batch.  As
 * bh_node_link_receive. */
BH_MUST_USE bh_rc bh_node_link_report_down(struct bh_node_link *link, struct bh_err *err);

/* Whether an effect goes out by bh_node_link_order: the node has said what it has, and
 * is not about to hear everything outstanding anyway. */
bool bh_node_link_accepts_orders(const struct bh_node_link *link);

/* After a commit: put an effect behind what waits to be written.  The link is touched. */
void bh_node_link_order(struct bh_node_link *link, const struct bh_effect *effect);

/* After a commit, a touched link's first call: acknowledge what is on disk now.  Returns
 * the next touched one. */
struct bh_node_link *bh_node_link_acknowledge(struct bh_node_link *link);

/* A touched link's last call: say everything again to a node that has just come, write,
 * and leave the list; returns the next in it. */
struct bh_node_link *bh_node_link_finish(struct bh_node_link *link);

/* The batch was aborted: what was received is forgotten and the connection dropped, so
 * that the node repeats it. */
void bh_node_link_reset(struct bh_node_link *link);

/* Any thread, under shared->mutex: append the last inventory with samples as one JSON
 * object; false, and nothing is appended, when the node is not connected. */
bool bh_node_link_inventory(const struct bh_node_link *link, struct bh_buf *ret_json);

/* After a commit: ask the node for its isolation checks. */
void bh_node_link_verify(struct bh_node_link *link, const struct bh_verify_order *order);

/* Any thread, under shared->mutex: append the verdict in that place when it is on the request. */
enum { BH_NODE_VERDICTS = 8 };
bool bh_node_link_verdict(const struct bh_node_link *link, uint32_t place, uint64_t request,
                          struct bh_buf *ret_json);

#endif
