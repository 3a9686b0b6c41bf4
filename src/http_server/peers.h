#ifndef BH_HTTP_SERVER_PEERS_H
#define BH_HTTP_SERVER_PEERS_H

#include <pthread.h>

#include "base/time.h"
#include "http_server/places.h"
#include "ports/http.h"

/* The open connections of a server: no client may hold more than a share of them, take for ever to send its
 * request, or take the places of others.
 *
 * A connection is anonymous until a request on it was made by a known principal (bh_peers_authenticated);
 * local root is known from the beginning.  Where a newcomer finds no place, a client gives one back
 * (http_server/places.h): that connection is shut down.  Where none does, the newcomer's first request is to
 * be refused; where many such wait, it is shut down, too.  A client that sends a byte now and then never is
 * idle; here it has a deadline for its head, and one for its whole request.  A thread looks every few seconds
 * and shuts late connections down; libmicrohttpd then ends them as it ends any that broke. */
struct bh_peers;
struct sockaddr;

/* What lives as long as a connection; its requests follow one another. */
struct bh_connection {
    struct bh_transport transport;
    struct bh_arena *arena; /* reset after each request */
    struct bh_peers *peers;
    int fd;
    _Atomic uint32_t holders;        /* libmicrohttpd, and the stream loop */
    bool streams;                    /* the stream loop ends it; set in the connection's thread */
    const char *target, *target_end; /* of the request, where it was received; only to be compared */
    bool target_is_plain;            /* no blank is in it */
    bool target_is_short;            /* it has no more parameters than one request may */
    /* under the peers' mutex */
    struct bh_place place;
    char who[BH_WHO_TEXT]; /* the name of the known caller, or "" */
    bool leaving;          /* being closed, or refused; it counts no more */
    bool refused;
    struct bh_connection *next, **link;
};

struct bh_peers_limits {
    struct bh_places_limits places;
    bh_ns head;              /* from the end of a reply to the end of an unknown client's next head */
    bh_ns request;           /* and to the end of any next request */
    bh_http_crowded crowded; /* called with each client that gives a place back or gets none; may be NULL */
};

/* Fill in the peer of this address, of IPv4 or IPv6: no Unix user, the address as text, and the block that it
 * is counted with.  The rest of the zeroed transport is left alone. */
void bh_peers_read_address(const struct sockaddr *from, struct bh_transport *transport);

BH_MUST_USE struct bh_peers *bh_peers_new(const struct bh_peers_limits *limits);

/* No connection may be left. */
void bh_peers_free(struct bh_peers *peers);

/* A connection whose transport and fd are known begins; it may be refused, or another shut down. */
void bh_peers_add(struct bh_peers *peers, struct bh_connection *connection);
void bh_peers_remove(struct bh_connection *connection);

/* The request's head is there; false: it is to be refused, there is no place for it. */
BH_MUST_USE bool bh_peers_head_received(struct bh_connection *connection);

/* The request is whole; false: the connection is being closed, so nothing may be done for it.
 * From now on it is not cut. */
BH_MUST_USE bool bh_peers_request_received(struct bh_connection *connection);

/* The principal of the request, or 0, and its name. */
void bh_peers_authenticated(struct bh_connection *connection, uint32_t principal, const char *who);

/* It is carried out, and its answer on the way; the answer is sent. */
void bh_peers_answered(struct bh_connection *connection, enum bh_place_state state);
void bh_peers_reply_sent(struct bh_connection *connection);

/* Its socket, which is its stream's from now on: libmicrohttpd, which ends its own part, gets one that leads
 * nowhere.  The connection has one more holder.  -1: there are no descriptors, and nothing is changed. */
BH_MUST_USE int bh_peers_take_socket(struct bh_connection *connection);

/* How many are open. */
uint32_t bh_peers_count(struct bh_peers *peers);

/* One holder fewer; the last one frees it. */
void bh_connection_put(struct bh_connection *connection);

#endif
