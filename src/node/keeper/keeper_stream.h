#ifndef BH_NODE_KEEPER_KEEPER_STREAM_H
#define BH_NODE_KEEPER_KEEPER_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/time.h"
#include "wire/message.h"

/* The keeper's part in interactive streams: it listens at `control` in the job's folder, passes requests on
 * to the job's bulkhead-init, and shows the job's output to attached clients. node/common/init_message.h has
 * the messages.
 *
 * The job comes first: output is in the log before any client sees it.  One chunk of it is sent at a time.
 * While an attached client has not taken the chunk, the keeper reads no more from the job, as with any
 * terminal; a client that takes nothing for BH_KEEPER_TIMEOUT is cut off.  So no client holds the job up for
 * longer than that, and none makes the keeper's memory grow. */

enum {
    BH_KEEPER_READERS_MAX = 16,
    BH_KEEPER_POLLS_MAX = 2 * BH_KEEPER_READERS_MAX + 2,
    BH_KEEPER_CHUNK = 64 << 10
};
#define BH_KEEPER_TIMEOUT (2 * BH_NS_PER_S)

struct bh_keeper_streams;

/* Listen, as far as that is possible: a job without streams is still a job.  `stdio` is enum
 * bh_stdio.  `ret_init` is the other end for bulkhead-init, or -1; the caller closes it once it
 * was inherited. */
BH_MUST_USE struct bh_keeper_streams *bh_keeper_streams_open(const char *folder, uint32_t stdio,
                                                             int *ret_init);

/* The job is over and all its output was shown: send its end to attached clients, wait for them at most
 * BH_KEEPER_TIMEOUT, and free. */
void bh_keeper_streams_close(struct bh_keeper_streams *streams);

/* The end that the job's standard input is written to; taken over.  Closed when a writer ends the input. */
void bh_keeper_streams_input(struct bh_keeper_streams *streams, int fd);

/* The job's terminal, once bulkhead-init has given it, or -1: to be read from. */
int bh_keeper_streams_terminal(const struct bh_keeper_streams *streams);

/* Whether an attached client has yet to take the last chunk. */
bool bh_keeper_streams_busy(const struct bh_keeper_streams *streams);

/* Show a chunk of output, at most BH_KEEPER_CHUNK bytes; not while busy. */
void bh_keeper_streams_show(struct bh_keeper_streams *streams, const char *bytes, size_t length);

/* Fill `polls` (BH_KEEPER_POLLS_MAX) and return how many; `ret_wait_ms`: how long poll may
 * wait, -1 for ever. */
size_t bh_keeper_streams_poll(struct bh_keeper_streams *streams, struct pollfd *polls, int *ret_wait_ms);

/* After poll, with the same entries. */
void bh_keeper_streams_dispatch(struct bh_keeper_streams *streams, const struct pollfd *polls);

#endif
