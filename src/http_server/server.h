#ifndef BH_HTTP_SERVER_SERVER_H
#define BH_HTTP_SERVER_SERVER_H

#include <stdint.h>

#include "base/err.h"
#include "ports/http.h"

/* libmicrohttpd behind ports/http.h: one server a listening socket, one thread a connection until its
 * answer is a stream; streams have one thread together (http_server/stream_loop.h).
 *
 * Bodies are at most BH_SERVER_BODY_MAX (413 above), headers BH_SERVER_HEADERS_MAX (431 above), parameters of
 * a query BH_SERVER_PARAMETERS_MAX (414 above); a head that two readers could read in two ways is 400
 * (http_server/head.h).  A client that says nothing for idle_s loses its connection, and so does one that
 * takes three times as long for a request, or an unknown client that takes 15 s for a head, or one
 * that takes nothing of its stream for idle_s.  With connections_max open, the client that holds the most
 * gives one back to a newcomer, or is refused, 429 (http_server/places.h): no Unix user but root and no
 * address block holds more than half, unknown clients together hold at most three quarters, and root always
 * gets in.  Replies carry Cache-Control: no-store and X-Content-Type-Options: nosniff.  Nothing is logged: a
 * faulty client learns of its fault from the answer.
 */
struct bh_server;

enum { BH_SERVER_BODY_MAX = 1 << 20, BH_SERVER_HEADERS_MAX = 32 << 10, BH_SERVER_PARAMETERS_MAX = 64 };

struct bh_server_options {
    bh_http_handler handler;
    void *self;                    /* the handler's */
    int fd;                        /* listening unix or TCP socket; taken over, and closed when
                                      the server cannot start */
    const char *certificate, *key; /* PEM, copied: TLS 1.3 only.  NULL for unix */
    const char *client_ca;         /* PEM, copied: authorities of clients' certificates.  Clients
                                      are asked for one and may show none; one that is not good
                                      is answered 403.  NULL: they are not asked */
    uint32_t connections_max;      /* 0: 512 */
    uint32_t idle_s;               /* 0: 60 */
    bh_http_crowded crowded;       /* NULL: not reported */
};

/* Starts to serve.
 *   BH_INVALID      a TCP socket without certificate, or a certificate, key or
 *                   authority that cannot be used
 *   BH_UNAVAILABLE  this libmicrohttpd has no TLS, or it cannot start */
BH_MUST_USE bh_rc bh_server_start(const struct bh_server_options *options, struct bh_server **ret_server,
                                  struct bh_err *err);

/* Stops accepting, ends open connections, streams at once, and frees the server; closes the listening
 * socket. */
void bh_server_stop(struct bh_server *server);
BH_AUTO_DEFINE(struct bh_server *, bh_server_stop)

/* Connections that are open now. */
uint32_t bh_server_connections(const struct bh_server *server);

/* A listening TCP socket at a numeric address ("127.0.0.1", "::", "0.0.0.0"); port 0
 * takes a free one.  BH_INVALID: no numeric address; BH_CONFLICT: in use; BH_DENIED. */
BH_MUST_USE bh_rc bh_tcp_listen(const char *address, uint16_t port, int *ret_fd, struct bh_err *err);

/* The port that a listening TCP socket has, 0 for others. */
uint16_t bh_tcp_port(int fd);

#endif
