#ifndef BH_API_NODES_LAYOUTS_H
#define BH_API_NODES_LAYOUTS_H

#include "api/request/call.h"
#include "model/layout.h"

/* /v1/layouts: the declared MIG instances of GPUs; bh_resources.
 *
 * GET shows what is declared, what exists and how far the last change is.  POST .../diff shows what a
 * document would change, POST declares it, POST .../rollback restores the state before the last change.
 * Failures, beside those of a request: BH_INVALID, a GPU that does not exist or cannot be divided so;
 * BH_CONFLICT, one that Bulkhead may not change, or that is lost.  The message names the GPU, the hint the
 * remedy. */
bh_rc bh_layouts_list(struct bh_call *call, struct bh_err *err);
bh_rc bh_layouts_diff(struct bh_call *call, struct bh_err *err);
bh_rc bh_layouts_apply(struct bh_call *call, struct bh_err *err);
bh_rc bh_layouts_rollback(struct bh_call *call, struct bh_err *err);

#endif
