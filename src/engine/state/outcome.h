#ifndef BH_ENGINE_STATE_OUTCOME_H
#define BH_ENGINE_STATE_OUTCOME_H

#include "engine/state/event.h"
#include "engine/state/reason.h"

/* A record has room for the largest gang: its decisions, those on all its victims, and what it takes to clear
 * and carve every partition; beside what the event itself causes. So many partitions in all decisions can be
 * written in a record of the journal. */
enum { BH_DECISIONS_MAX = 128, BH_EFFECTS_MAX = 2304, BH_DECIDED_PARTITIONS_MAX = 384 };

/* What one step brought; filled by the step, owned by the caller. */
struct bh_step {
    struct bh_reason verdict; /* why the event was refused, when it was */
    bool more;                /* decisions were cut at the maximum: send a TICK */
    uint32_t decision_count, effect_count;
    struct bh_decision decisions[BH_DECISIONS_MAX];
    struct bh_effect effects[BH_EFFECTS_MAX];
};

#endif
