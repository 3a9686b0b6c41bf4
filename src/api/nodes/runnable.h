#ifndef BH_API_NODES_RUNNABLE_H
#define BH_API_NODES_RUNNABLE_H

#include "api/request/call.h"
#include "model/spec.h"

/* What a job asks of its node beside GPUs, cores and memory: folders, an image, a network.  Nodes say
 * what they give when they connect (bh_msg_inventory).
 *   BH_RANGE  nodes are connected and none of them gives it: the message says why, of the node
 *             that lacks least; the hint which role could change that
 * Asking for none of it costs nothing; BH_OK, too, while no node is connected. */
BH_MUST_USE bh_rc bh_runnable_check(struct bh_call *call, const struct bh_job_spec *spec,
                                    const struct bh_job_numbers *numbers, struct bh_err *err);

/* Whether a node gives the folder that the job asks an image in; true, too, where it asks for none,
 * and while no node is connected. */
bool bh_runnable_image(const struct bh_call *call, const struct bh_job_spec *spec);

#endif
