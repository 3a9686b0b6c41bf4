#ifndef BH_NODE_VERIFY_VERIFY_FENCE_H
#define BH_NODE_VERIFY_VERIFY_FENCE_H

#include "node/core/node.h"

/* What was found of the isolation of this machine (node/verify/verify.h tries it), and which GPUs take no
 * new lease for it. */

/* BH_UNAVAILABLE: an isolation check failed here, or on a GPU of one of the partitions. */
BH_MUST_USE bh_rc bh_verify_check_start(const struct bh_node *node, const struct bh_msg_start *start,
                                        struct bh_err *err);

/* An isolation check of that lease failed, by evidence that no job can make: one GPU of its takes
 * no new lease from now on, unless its job was the cause of that before. */
void bh_verify_close_gpu(struct bh_node *node, const struct bh_job *job, const char *why);

/* How it stands. */
void bh_verify_isolation(const struct bh_node *node, struct bh_msg_isolation *ret_isolation);

/* Why no new lease may be placed on the GPU: what failed, or was inconclusive; NULL: it may. */
const char *bh_verify_why(const struct bh_node *node, const char *gpu);

#endif
