#ifndef BH_DAEMON_NODES_TRAFFIC_H
#define BH_DAEMON_NODES_TRAFFIC_H

#include "base/buf.h"
#include "wire/message.h"

/* What the jobs of one node sent and received: the last word on each of those that run, and of
 * those that ended until that is in the store (daemon/nodes/carried.h).  No record and in no store: it is
 * gone when the daemon is, and said again by the node. */
enum { BH_TRAFFIC_MAX = 4096 + 1024 };

struct bh_traffic {
    struct bh_msg_traffic_item *items; /* the oldest first */
    uint32_t count;
};

/* Take over what a node says; when all is full, the oldest of a job that ended goes first. */
void bh_traffic_update(struct bh_traffic *traffic, const struct bh_list *items);

/* The last word on a lease into `carried`; false, and nothing is changed, when there is
 * none. */
bool bh_traffic_find(const struct bh_traffic *traffic, uint64_t lease, struct bh_msg_carried *carried);

/* It is in the store now. */
void bh_traffic_forget(struct bh_traffic *traffic, uint64_t lease);

void bh_traffic_fini(struct bh_traffic *traffic);

/* Append the JSON array of all of them. */
void bh_traffic_put(const struct bh_traffic *traffic, struct bh_buf *out);

#endif
