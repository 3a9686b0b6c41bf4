#ifndef BH_API_NODES_NODES_H
#define BH_API_NODES_NODES_H

#include "api/request/call.h"

/* GET /v1/nodes; a bh_resource.  Facts of a node are known while it is connected. */
bh_rc bh_nodes_list(struct bh_call *call, struct bh_err *err);

/* GET /v1/nodes/{id}, by its name; a bh_resource. */
bh_rc bh_nodes_get(struct bh_call *call, struct bh_err *err);

#endif
