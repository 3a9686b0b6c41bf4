#ifndef BH_DAEMON_NODES_IMAGES_H
#define BH_DAEMON_NODES_IMAGES_H

#include "daemon/state/core.h"
#include "wire/message.h"

/* Images of the jobs of one node.  How far they are is memory: it is gone when the node or the
 * daemon is, and said again by the node.  Which image a job has is a record, and a document
 * (api/jobs/image.h). */

enum { BH_IMAGES_MAX = 4096 };

struct bh_images {
    struct bh_msg_image *items; /* of leases that wait for theirs */
    uint32_t count;
};

/* Take over how far one is; READY ends that, and so does a full table of those that came later. */
void bh_images_update(struct bh_images *images, const struct bh_msg_image *image);

/* The node is gone. */
void bh_images_clear(struct bh_images *images);
void bh_images_fini(struct bh_images *images);

/* Append the JSON array of all of them. */
void bh_images_put(const struct bh_images *images, struct bh_buf *out);

/* Which image it is, when READY: a record and a document for its job, once.  Results of the
 * store; BH_FULL: the batch has no room.  What no lease of that node has is passed over. */
BH_MUST_USE bh_rc bh_images_record(struct bh_core *core, bh_node_id node, const struct bh_msg_image *image,
                                   struct bh_err *err);

#endif
