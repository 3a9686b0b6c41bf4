#ifndef BH_DAEMON_OWNER_REQUEST_DOOR_H
#define BH_DAEMON_OWNER_REQUEST_DOOR_H

#include "daemon/state/core.h"

/* What stands between a server and what it serves: while a request, its stream or its upgraded connection
 * runs, the thread says so (api/request/work.h), and what failed an assert before is refused. */
struct bh_request_door {
    const struct bh_core *core;
    bh_http_handler handler;
    void *self;
};

/* A bh_http_handler; `self` is a struct bh_request_door. */
void bh_request_door_handle(void *self, const struct bh_request *request, struct bh_reply *reply);

#endif
