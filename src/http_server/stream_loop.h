#ifndef BH_HTTP_SERVER_STREAM_LOOP_H
#define BH_HTTP_SERVER_STREAM_LOOP_H

#include "base/time.h"
#include "http_server/seal.h"
#include "ports/http.h"

/* All streams of a server: one thread reads their sources and writes to their sockets, and waits for neither.
 *
 * A stream whose client takes nothing holds the one block that its socket had no room for, is not read, and
 * ends when that lasts for `patience`.  A client that goes ends its stream at once.  What woke many streams
 * is passed on in rounds, between which the thread rests several times as long as one took: readers
 * take a part of one processor, however many there are and however often they are woken. */
struct bh_stream_loop;

/* A stream whose head was sent. */
struct bh_streamed {
    struct bh_stream source;
    int fd;                    /* the client's socket; TCP where `tcp` */
    bool tcp;                  /* a client that sends no more has gone; on a unix socket it may still read */
    bool chunked;              /* the body is sent in chunks of HTTP/1.1; else its end is the connection's */
    struct bh_seal *seal;      /* over TLS, else NULL */
    void (*ended)(void *self); /* called once, after the source was closed and before the socket is */
    void *self;
};

BH_MUST_USE struct bh_stream_loop *bh_stream_loop_new(bh_ns patience);

/* From now on the loop's; any thread. */
void bh_stream_loop_add(struct bh_stream_loop *loop, const struct bh_streamed *streamed);

/* End all streams; those that come later end as they are added. */
void bh_stream_loop_stop(struct bh_stream_loop *loop);
void bh_stream_loop_free(struct bh_stream_loop *loop); /* stopped */

#endif
