#ifndef BH_NODE_CORE_GPU_ERROR_H
#define BH_NODE_CORE_GPU_ERROR_H

#include "node/core/node.h"

/* Why the last change of a GPU failed, for operators: shown until a change of it succeeds. */

/* `err` NULL: it came out well. */
void bh_gpu_error_record(struct bh_node *node, const char *gpu, const struct bh_err *err);

/* "" when there is none. */
const char *bh_gpu_error_find(const struct bh_node *node, const char *gpu);

#endif
