#ifndef BH_ENGINE_QUEUE_AVOID_H
#define BH_ENGINE_QUEUE_AVOID_H

#include "engine/placement/placement.h"
#include "engine/state/work_internal.h"

/* GPUs and nodes where jobs are not tried again for a while after a failure.
 *
 * After a failed carve or start the job is tried elsewhere first, for five seconds.  After a start that found
 * its node's scratch taken the job waits as for any other capacity: half a minute, or five seconds after a
 * lease on that node has ended, whichever comes first; the next failure in a row keeps it off all nodes.
 * Jobs that wait so are a class of their own, and have no capacity kept: others of their kind that want no
 * scratch may pass them. */

/* A pending job's class keeps off a GPU, or a node (ids, or 0). */
void bh_avoid(struct work *work, uint32_t job, uint32_t gpu, uint32_t node);

/* A pending job's class waits for scratch of that node (slot); of any where the job waited before. */
void bh_avoid_for_scratch(struct work *work, uint32_t job, uint32_t node, bool before);

/* A lease is gone from the node (slot), and with it perhaps scratch. */
void bh_avoid_left(struct work *work, uint32_t node);

/* Whether jobs of the class wait for scratch now. */
bool bh_avoid_waits(const struct bh_engine *engine, uint32_t class);

/* Whether the job would have room if it kept off nothing: why it does, and until when. */
bool bh_avoid_why(const struct bh_search *search, const struct bh_need *need, struct bh_reason *ret_reason);

#endif
