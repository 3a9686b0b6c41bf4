#ifndef BH_API_TRAFFIC_H
#define BH_API_TRAFFIC_H

#include "api/call.h"

/* Write the member `traffic`: what all members of a job sent and received since they were
 * started, as their nodes said last; nothing when no connected node knows of a network of it. */
void bh_traffic_put_job(const struct bh_call *call, struct bh_json_writer *w, uint64_t job);

#endif
