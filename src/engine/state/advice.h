#ifndef BH_ENGINE_STATE_ADVICE_H
#define BH_ENGINE_STATE_ADVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/ids.h"

/* What was worked out beside the engine and is reported to it: what forecasts expect, which jobs
 * to move.  Plain values, payloads of events (engine/state/event.h). */

enum bh_advice_of { BH_ADVICE_TENANT, BH_ADVICE_NODE, BH_ADVICE_PARTITIONS, BH_ADVICE_OFS };

enum { BH_READY_MAX = 1024 };

/* What forecasts say of one tenant, node or profile (engine/foresight.h); holds until it is
 * said anew.  Whether it is acted upon is a matter of the settings. */
struct bh_ev_advice {
    enum bh_advice_of of;
    bh_tenant_id tenant; /* TENANT */
    uint64_t expected;   /* of its guarantee, what it may want soon with its subtree:
                            GPU-equivalents in parts, at most BH_AMOUNT_MAX */
    bh_node_id node;     /* NODE */
    bool hot;            /* it will be full soon */
    uint32_t profile;    /* PARTITIONS: a MIG profile */
    uint32_t ready;      /* partitions that should stand ready, at most BH_READY_MAX */
};

/* Move jobs: they are stopped, queued again and start anew on the places named, which are
 * kept for them; so are those for the one that all this is for.  Made by engine/forecast/defrag.h. */
enum { BH_MOVES_MAX = 8, BH_MOVE_PLACEMENTS_MAX = 32 };
struct bh_moved {
    bh_job_id job;
    bh_lease_id lease; /* of its first member: it has not started anew since */
};
struct bh_move_placement {
    bh_gpu_id gpu;
    uint32_t profile, start;
};
struct bh_ev_move {
    bh_job_id for_job; /* the pending job; 0: capacity for large jobs is joined */
    struct bh_moved moves[BH_MOVES_MAX];
    uint32_t move_count;
    struct bh_move_placement placements[BH_MOVE_PLACEMENTS_MAX]; /* of the moved, in order, member by
                                                        member; then of for_job */
    uint32_t placement_count;
    uint64_t gain_gpu_ms; /* as it was worked out: GPU-equivalents times ms */
    uint64_t cost_gpu_ms;
};

#endif
