#ifndef BH_ENGINE_STATE_WORK_INTERNAL_H
#define BH_ENGINE_STATE_WORK_INTERNAL_H

#include <string.h>

#include "engine/state/outcome.h"
#include "engine/state/state_internal.h"

/* A step while it is under way: nothing of it stays. */

/* Decisions for the members of one job, that stand in one record. */
struct bunch {
    enum bh_decision_kind kind;                         /* PLACE, RESUME, CLAIM or RESERVE */
    uint32_t job;                                       /* slot */
    uint32_t members, next;                             /* all of them, and the one to be decided on */
    uint32_t count;                                     /* places of each */
    uint64_t at_ns;                                     /* of RESERVE */
    struct placement placements[BH_JOB_PARTITIONS_MAX]; /* not of RESUME: the leases know theirs */
};

/* What must come next in a record that was begun: the rest of a bunch. */
struct rest {
    enum bh_decision_kind kind;
    uint64_t job;     /* id */
    uint32_t members; /* that are still to come; 0: anything may */
};

/* One step under way. */
struct work {
    struct bh_engine *engine;
    struct bh_step *step;
    uint64_t now_ns, seq;
    uint64_t ended_ns; /* when the job ended that is ended just now; 0: now */
    bool lost;         /* not known when: it was not heard of since its node went */
    struct rest rest;  /* being applied */
    /* jobs (slots) that are to make way for the job (id) that claimed room last */
    uint64_t victims_for;
    uint32_t victim_count;
    uint32_t victims[32];
    uint64_t of_age_ns; /* when the next lease may make way that was too young */
    struct bunch bunch; /* being decided; last, for its places are never cleared */
};

/* A step that begins. */
static inline void
bh_work_init(struct work *work, struct bh_engine *engine, struct bh_step *step)
{
    memset(work, 0, offsetof(struct work, bunch.placements));
    work->engine = engine;
    work->step = step;
}

#endif
