#ifndef BH_NODE_GPU_GPU_PROCESS_H
#define BH_NODE_GPU_GPU_PROCESS_H

#include "node/gpu/gpu_internal.h"

/* The life of a gpu child. */

/* Asserts what holds of it between two calls. */
void bh_gpu_client_assert(const struct bh_gpu_client *client);

/* `watcher`: the one that the child belongs to; NULL for a child that answers requests.  BH_UNAVAILABLE. */
BH_MUST_USE bh_rc bh_gpu_start(struct bh_gpu_client *client, struct bh_gpu_child *child,
                               const struct bh_gpu_watcher *watcher, struct bh_err *err);

/* Kill a child and forget it, without waiting. */
void bh_gpu_abandon(struct bh_gpu_client *client, struct bh_gpu_child *child);

bool bh_gpu_is_hidden(const struct bh_gpu_client *client, uint32_t minor);

#endif
