#ifndef BH_API_NODES_LAYOUTS_H
#define BH_API_NODES_LAYOUTS_H

#include "api/request/call.h"
#include "model/layout.h"

/* /v1/layouts: which MIG instances shall stand ready on which GPUs; bh_resources.
 *
 * GET tells what is declared, what stands and how the last change got on.  POST .../diff says
 * what a document would change, POST declares it, POST .../rollback goes back to what was
 * before the last change.  Failures, beside those of a request: BH_INVALID, a GPU that is not
 * there or cannot be divided so; BH_CONFLICT, one that is not Bulkhead's to change or is lost.
 * The message names the GPU, the hint what helps. */
bh_rc bh_layouts_list(struct bh_call *call, struct bh_err *err);
bh_rc bh_layouts_diff(struct bh_call *call, struct bh_err *err);
bh_rc bh_layouts_apply(struct bh_call *call, struct bh_err *err);
bh_rc bh_layouts_rollback(struct bh_call *call, struct bh_err *err);

#endif
