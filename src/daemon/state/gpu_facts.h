#ifndef BH_DAEMON_STATE_GPU_FACTS_H
#define BH_DAEMON_STATE_GPU_FACTS_H

#include "daemon/state/core.h"

/* The facts of a GPU; all false when no node has spoken of it since the start. */
struct bh_gpu_facts *bh_gpu_facts_of(struct bh_core *core, bh_gpu_id gpu);

#endif
