#ifndef BH_DAEMON_STREAMS_STREAMS_H
#define BH_DAEMON_STREAMS_STREAMS_H

#include "api/jobs/streams.h"

/* Interactive streams that are open or about to be: who may open them, how many there are, and
 * the carrying of their bytes between a client's connection and its node's (daemon/streams/stream_relay.h),
 * in the client's thread.  Nothing here is waited for by the owner. */
struct bh_streams;
struct bh_crypto_ops;

enum {
    BH_STREAMS_MAX = 192,
    BH_STREAMS_OF_JOB_MAX = 16,
    BH_STREAMS_OF_PRINCIPAL_MAX = 64,
    BH_STREAM_CONNECTIONS_MAX = 64 /* of a forward, at a time */
};

/* The owner records every end, as the daemon itself. */
BH_MUST_USE struct bh_streams *bh_streams_new(struct bh_owner owner, const struct bh_crypto_ops *crypto);

/* End all, and wait until their ends are recorded, at most a few seconds; none begins after. */
void bh_streams_stop(struct bh_streams *streams);

/* No connection may be left. */
void bh_streams_free(struct bh_streams *streams);

struct bh_streams_port bh_streams_port(struct bh_streams *streams);

/* Every few seconds: the ends of those that were not opened in time. */
void bh_streams_expire(struct bh_streams *streams);

#endif
