/* Knocking at bulkhead-share's door (include/bulkhead/share_socket.h). */
#ifndef BH_SHIM_DRIVER_DOOR_H
#define BH_SHIM_DRIVER_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "bulkhead/share_socket.h"

struct bh_door {
    int socket;
    int limits, usage; /* descriptors; the caller's to close */
    int32_t slot;
};

/* Join as `slot`, or as a new process with -1, or see the pages alone with BH_SHARE_OBSERVE; the
 * slot is -1 then.  Knocks again while nobody is there, until
 * the monotonic clock says `until_ns`.  False: nobody came, or the answer was no, or no
 * answer that this library knows; nothing is left open. */
bool bh_door_knock(int32_t slot, uint64_t until_ns, struct bh_door *ret_door);

/* Say a word.  False: it did not leave. */
bool bh_door_say(int socket, const struct bh_share_client_message *say);

/* Has the other side gone? */
bool bh_door_is_shut(int socket);

#endif
