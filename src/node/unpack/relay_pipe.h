#ifndef BH_NODE_UNPACK_RELAY_PIPE_H
#define BH_NODE_UNPACK_RELAY_PIPE_H

#include <poll.h>
#include <stddef.h>

#include "node/unpack/relay.h"

/* Connections of a relay: bytes both ways between a socket of the cell and one of a host,
 * with a buffer for each way, and an end that is passed on. */

enum { BH_RELAY_PIPES_MAX = 48, BH_RELAY_PIPE_FDS = 2 * BH_RELAY_PIPES_MAX, BH_RELAY_BUFFER = 64 << 10 };

struct bh_relay_way {
    uint8_t bytes[BH_RELAY_BUFFER];
    size_t from, to; /* what is still to be written */
    bool ended;      /* nothing more comes */
    bool passed;     /* and that was passed on */
};

struct bh_relay_pipe {
    int inside, outside; /* both -1: free */
    struct bh_relay_way out, in;
};

struct bh_relay_pipes {
    struct bh_relay_pipe pipe[BH_RELAY_PIPES_MAX];
    uint32_t count;
};

bool bh_relay_pipes_have_space(const struct bh_relay_pipes *pipes);

/* Both are taken over, and are non-blocking. */
void bh_relay_pipe_add(struct bh_relay_pipes *pipes, int inside, int outside);

/* What to poll for: two places for each; how many. */
uint32_t bh_relay_pipe_fds(const struct bh_relay_pipes *pipes, struct pollfd *ret_fds);

/* Move what can be moved; what came from outside is counted in `shared`, and at its limit
 * `over` is set. */
void bh_relay_pipe_move(struct bh_relay_pipes *pipes, const struct pollfd *fds,
                        struct bh_relay_shared *shared);

#endif
