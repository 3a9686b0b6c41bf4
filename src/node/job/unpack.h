#ifndef BH_NODE_JOB_UNPACK_H
#define BH_NODE_JOB_UNPACK_H

#include "node/core/node.h"

/* Images of jobs: fetched and unpacked by bulkhead-unpack beside the node's loop, kept for each tenant
 * in <state_dir>/images/TENANT/DIGEST, never shared between two (docs/images.md).
 *
 * A START whose image is a layout, or that has scratch (scratch.h), is answered when its
 * job has been started, which is after the image is there.  Until then the job has no
 * keeper, and job->unpack. */
struct bh_unpack;

/* Whether something must be made before the job can start: an image, scratch. */
bool bh_unpack_wanted(const struct bh_msg_start *start);

/* Begin: the order is answered later.
 *   BH_DENIED       the layout is not below image_roots, or the submitter may not read it;
 *                   the registry is not one of node.conf
 *   BH_INVALID      no image, no tenant
 *   BH_UNAVAILABLE  umoci, or for registries skopeo, is not installed */
BH_MUST_USE bh_rc bh_unpack_begin(struct bh_node *node, const struct bh_msg_start *start, struct bh_err *err);

/* Whether that order waits for its image. */
bool bh_unpack_is_pending(const struct bh_node *node, uint64_t lease);

/* Its process ended, or its time is over: start the job, or answer that it cannot be.  The
 * job may be forgotten then. */
void bh_unpack_check(struct bh_node *node, struct bh_job *job);

/* Stop a job: one that waits for its image is answered and forgotten first.  As bh_job_stop. */
BH_MUST_USE bh_rc bh_unpack_stop(struct bh_node *node, const struct bh_msg_stop *stop, struct bh_err *err);

/* A daemon connected: say how far images are, and which those are that jobs have. */
void bh_unpack_connected(struct bh_node *node);

#endif
