/* The connection to bulkhead-share (include/bulkhead/share_socket.h). */
#ifndef BH_SHIM_DRIVER_CONNECTION_H
#define BH_SHIM_DRIVER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "bulkhead/share_socket.h"

struct bh_share_connection {
    int socket;
    int limits, usage; /* descriptors; the caller's to close */
    int32_t slot;
};

/* Join as `slot`, or as a new process with -1, or see the pages alone with BH_SHARE_OBSERVE; the
 * slot is -1 then.  Retries while nothing listens, until the monotonic clock reads `until_ns`.
 * False: no answer, a refusal, or an answer that this library does not know; nothing is left open. */
bool bh_connection_open(int32_t slot, uint64_t until_ns, struct bh_share_connection *ret_connection);

/* Send a message.  False: it was not sent. */
bool bh_connection_send(int socket, const struct bh_share_client_message *message);

/* Has the other side gone? */
bool bh_connection_is_closed(int socket);

#endif
