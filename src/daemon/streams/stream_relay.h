#ifndef BH_DAEMON_STREAMS_STREAM_RELAY_H
#define BH_DAEMON_STREAMS_STREAM_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "api/request/owner.h"

/* Carrying bytes between two sockets, in at most two small buffers: the relay does not read from a socket
 * whose peer does not read.  The frames of wire/stream.h are parsed on the node's side only, to learn how the
 * stream ended. */

#define BH_STREAM_RELAY_IDLE_NS (UINT64_C(8) * 3600 * BH_NS_PER_S)

struct bh_stream_relay {
    int client, node;
    /* Asked every second or so: false ends the stream. */
    bool (*may_continue)(void *self);
    void *self;
};

/* Until either side is done.  Sets res, status and the bytes of `ret_end`:
 *   BH_OK           the stream ended by its last frame, EXIT; or another code, by ERROR
 *   BH_UNAVAILABLE  one side went without a last frame
 *   BH_DENIED       may_continue said so
 *   BH_TIMEOUT      nothing came for BH_STREAM_RELAY_IDLE_NS */
void bh_stream_relay(const struct bh_stream_relay *relay, struct bh_stream_end *ret_end);

#endif
