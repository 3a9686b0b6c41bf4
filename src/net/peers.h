#ifndef BH_NET_PEERS_H
#define BH_NET_PEERS_H

#include <pthread.h>

#include "base/time.h"
#include "ports/http.h"

/* The open connections of a server: nobody may hold more than a share of them, nobody may take
 * for ever to say what it wants, and strangers cannot take the places of who is known.
 *
 * A connection is a stranger's until a request on it was made by somebody known (bh_peers_known);
 * local root is known from the beginning.  Where a newcomer finds no place, the stranger's
 * connection that has waited longest for a request makes room; where there is none, the newcomer
 * goes.  A client that sends a byte now and then never is idle; here it has a deadline for its
 * head, and one for its whole request.  A thread looks every few seconds and shuts late
 * connections down; libmicrohttpd then ends them as it ends any that broke. */
struct bh_peers;
struct sockaddr;

/* What lives as long as a connection; its requests follow one another. */
struct bh_connection {
    struct bh_transport transport;
    struct bh_arena *arena;      /* reset after each request */
    struct bh_peers *peers;
    int fd;
    bh_ns waiting_since;         /* monotonic; 0 while the request is being answered */
    bool spoke;                  /* a head has come since then */
    const char *target, *target_end; /* of the request, where it was received; only to be compared */
    bool target_is_plain;        /* no blank is in it */
    bool known;
    bool leaving;                /* told to end; it counts no more.  Under the peers' mutex, as: */
    struct bh_connection *next, **place;
};

struct bh_peers_limits {
    uint32_t most;               /* connections */
    uint32_t most_strangers;
    uint32_t most_each;          /* of a Unix user (root has no limit) or an address block */
    bh_ns head;                  /* from the end of a reply to the end of a stranger's next head */
    bh_ns request;               /* and to the end of anybody's next request */
};

/* Who has this address, of IPv4 or IPv6: no Unix user, the address as text, and the block that it
 * is counted with.  The rest of the zeroed transport is left alone. */
void bh_peers_read_address(const struct sockaddr *from, struct bh_transport *transport);

BH_MUST_USE struct bh_peers *bh_peers_new(const struct bh_peers_limits *limits);

/* No connection may be left. */
void bh_peers_free(struct bh_peers *peers);

/* A connection whose transport and fd are known begins; it, or the one that makes room for it,
 * may be shut down at once. */
void bh_peers_enter(struct bh_peers *peers, struct bh_connection *connection);
void bh_peers_leave(struct bh_connection *connection);

/* The request's head is there; the request is whole; somebody known made it; its answer is
 * sent. */
void bh_peers_spoke(struct bh_connection *connection);
void bh_peers_answering(struct bh_connection *connection);
void bh_peers_known(struct bh_connection *connection);
void bh_peers_waiting(struct bh_connection *connection);

#endif
