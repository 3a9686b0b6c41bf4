#ifndef BH_WIRE_FRAME_IO_H
#define BH_WIRE_FRAME_IO_H

#include <stdbool.h>

#include "base/err.h"
#include "base/fields.h"
#include "wire/frame.h"

/* One end of a connection that carries frames, for a program that polls.
 *
 *   pollfd = { bh_link_fd(link), bh_link_interest(link) };  poll(...);
 *   POLLIN, POLLHUP: bh_link_readable, then bh_link_next until BH_NOT_FOUND
 *   POLLOUT:         bh_link_flush
 *
 * No call blocks.  After any result but BH_OK (and BH_NOT_FOUND of next, BH_FULL of
 * send) the connection is of no more use: free the link. */
struct bh_link;

/* A frame's most bytes may be received before it is taken; so many may wait to be
 * written before the peer counts as dead. */
enum { BH_LINK_READ_MAX = BH_FRAME_MAX + 65536, BH_LINK_WRITE_MAX = 4 * BH_FRAME_MAX };

/* A link over a connected stream socket, which it owns from now on and makes
 * non-blocking. */
BH_MUST_USE struct bh_link *bh_link_new(int fd);
void bh_link_free(struct bh_link *link); /* closes the socket */
BH_AUTO_DEFINE(struct bh_link *, bh_link_free)

int bh_link_fd(const struct bh_link *link);

/* POLLIN, with POLLOUT while there is something to write. */
short bh_link_interest(const struct bh_link *link);

/* Read what is there.  BH_OK also when there was nothing; BH_UNAVAILABLE when the peer
 * has closed and everything it sent before was read and taken; BH_IO. */
BH_MUST_USE bh_rc bh_link_readable(struct bh_link *link, struct bh_err *err);

/* The next frame received; its payload is valid until the next bh_link_readable.
 * BH_NOT_FOUND: none is complete; BH_INVALID: the peer sent no frame. */
BH_MUST_USE bh_rc bh_link_next(struct bh_link *link, struct bh_frame *ret_frame, struct bh_err *err);

/* Put a message behind those that wait, to be written by bh_link_flush.  BH_FULL, and
 * nothing was put: the message is too long, or BH_LINK_WRITE_MAX wait already. */
BH_MUST_USE bh_rc bh_link_put(struct bh_link *link, uint32_t number, const struct bh_fields *fields,
                              const void *message, struct bh_err *err);

/* bh_link_put, and write what the socket takes. */
BH_MUST_USE bh_rc bh_link_send(struct bh_link *link, uint32_t number, const struct bh_fields *fields,
                               const void *message, struct bh_err *err);

/* Write what the socket takes.  BH_UNAVAILABLE: the peer is gone; BH_IO. */
BH_MUST_USE bh_rc bh_link_flush(struct bh_link *link, struct bh_err *err);

#endif
