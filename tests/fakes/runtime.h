#ifndef BH_FAKES_RUNTIME_H
#define BH_FAKES_RUNTIME_H

#include "ports/runtime.h"

/* A runtime without sandboxes, for tests of what uses the port: the command runs as an ordinary process group
 * of the calling user.  Never for tenants; bulkhead-node cannot be configured to use it.  State lies in the
 * bundles; at most 64 sandboxes. */
BH_MUST_USE bh_rc bh_fake_open(struct bh_runtime *ret_runtime, struct bh_err *err);

#endif
