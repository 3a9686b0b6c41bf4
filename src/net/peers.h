#ifndef BH_NET_PEERS_H
#define BH_NET_PEERS_H

#include <pthread.h>

#include "base/time.h"
#include "ports/http.h"

/* The open connections of a server: nobody may hold more than a share of them, and
 * nobody may take for ever to say what it wants.
 *
 * A client that sends a byte now and then never is idle; here it has a deadline for its
 * whole request.  A thread looks every few seconds and shuts such connections down;
 * libmicrohttpd then ends them as it ends any that broke. */
struct bh_peers;

/* What lives as long as a connection; its requests follow one another. */
struct bh_connection {
    struct bh_transport transport;
    struct bh_arena *arena;      /* reset after each request */
    struct bh_peers *peers;
    int fd;
    bh_ns waiting_since;         /* monotonic; 0 while the request is being answered */
    struct bh_connection *next, **place; /* under the peers' mutex */
};

/* At most `most_each` connections a Unix user (root has no limit) or an address, and
 * `deadline` from the end of one reply to the end of the next request. */
BH_MUST_USE struct bh_peers *bh_peers_new(uint32_t most_each, bh_ns deadline);

/* No connection may be left. */
void bh_peers_free(struct bh_peers *peers);

/* A connection whose transport and fd are known begins; one too many of its peer is
 * shut down at once. */
void bh_peers_enter(struct bh_peers *peers, struct bh_connection *connection);
void bh_peers_leave(struct bh_connection *connection);

/* The request is whole, and its answer sent. */
void bh_peers_answering(struct bh_connection *connection);
void bh_peers_waiting(struct bh_connection *connection);

#endif
