#ifndef BH_CLI_CLIENT_DUPLEX_H
#define BH_CLI_CLIENT_DUPLEX_H

#include "cli/client/client.h"
#include "wire/stream.h"

/* The client's end of an interactive stream: an upgraded connection to bulkheadd, over its unix
 * socket or HTTPS, and frames on it. */
struct bh_duplex;

/* Open the stream of a ticket; `port` 0: not a connection of a forward.  Errors of the server
 * as bh_client_send has them. */
BH_MUST_USE bh_rc bh_duplex_open(const struct bh_client *client, const char *ticket, uint32_t port,
                                 struct bh_duplex **ret_duplex, struct bh_err *err);
void bh_duplex_close(struct bh_duplex *duplex);
BH_AUTO_DEFINE(struct bh_duplex *, bh_duplex_close)

/* For poll: POLLIN, once bh_duplex_next said BH_NOT_FOUND. */
int bh_duplex_fd(const struct bh_duplex *duplex);

/* The next frame; its bytes are valid until the next call.
 *   BH_NOT_FOUND    none is there now
 *   BH_UNAVAILABLE  the connection broke
 *   BH_INVALID      what came is no frame */
BH_MUST_USE bh_rc bh_duplex_next(struct bh_duplex *duplex, struct bh_stream_frame *ret_frame,
                                 struct bh_err *err);

/* Send a frame; waits while the server does not take it.  BH_UNAVAILABLE. */
BH_MUST_USE bh_rc bh_duplex_send(struct bh_duplex *duplex, const struct bh_stream_frame *frame,
                                 struct bh_err *err);

#endif
