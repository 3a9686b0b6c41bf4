#ifndef BH_NODE_JOB_STREAM_H
#define BH_NODE_JOB_STREAM_H

#include "node/core/node.h"

/* Interactive streams as far as the node has to do with them: it accepts bulkheadd's connections
 * at `<socket>.streams`, reads the one message that says what is wanted, and gives the
 * connection to a bulkhead-stream of its own.  From then on the stream needs neither the node
 * nor its thread, and outlives both. */

enum { BH_NODE_STREAMS_MAX = 512, BH_NODE_STREAMS_OF_JOB_MAX = 128 };

struct bh_node_streams;

/* Listen; the socket is the daemon's, as the node's other one. */
BH_MUST_USE bh_rc bh_node_streams_open(struct bh_node *node, struct bh_node_streams **ret_streams,
                                       struct bh_err *err);
void bh_node_streams_close(struct bh_node_streams *streams);

/* For poll: readable when there is something to do. */
int bh_node_streams_fd(const struct bh_node_streams *streams);

/* Accept, read, start and reap what is there; never blocks. */
void bh_node_streams_dispatch(struct bh_node_streams *streams);

#endif
