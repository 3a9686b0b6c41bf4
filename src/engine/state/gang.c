#include "engine/state/gang.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/state/effect.h"
#include "engine/state/slots.h"

/* ---- members ---- */

uint32_t
bh_gang_next(const struct bh_engine *engine, uint32_t job, uint32_t lease)
{
    uint32_t next = lease ? lease_at(engine, lease)->next_member : job_at(engine, job)->lease;

    BH_ASSERT(next == 0 || next != lease);
    while (next && lease_at(engine, next)->state == LEASE_DONE)
        next = lease_at(engine, next)->next_member;
    BH_ASSERT(next == 0 || lease_at(engine, next)->job == job);
    return next;
}

uint32_t
bh_gang_live(const struct bh_engine *engine, uint32_t job)
{
    uint32_t live = 0;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        live++;
    return live;
}

bool
bh_gang_all(const struct bh_engine *engine, uint32_t job, enum lease_state state)
{
    bool any = false;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0; any = true)
        if (lease_at(engine, at)->state != state)
            return false;
    return any;
}

bool
bh_gang_leads_suspended(const struct bh_engine *engine, uint32_t slot)
{
    const struct lease *lease = lease_at(engine, slot);

    return lease->state == LEASE_SUSPENDED && bh_gang_next(engine, lease->job, 0) == slot
           && bh_gang_all(engine, lease->job, LEASE_SUSPENDED);
}

/* ---- what people see ---- */

/* A gang is in the first of these that some member is in. */
static const struct {
    enum lease_state lease;
    enum bh_job_state job;
    /* clang-format off */
} shown[] = {
    { LEASE_STOPPING, BH_JOB_STOPPING },   { LEASE_CARVING, BH_JOB_STARTING },
    { LEASE_STARTING, BH_JOB_STARTING },   { LEASE_SUSPENDING, BH_JOB_SUSPENDING },
    { LEASE_RECARVING, BH_JOB_RESUMING },  { LEASE_RESUMING, BH_JOB_RESUMING },
    { LEASE_SUSPENDED, BH_JOB_SUSPENDED }, { LEASE_RUNNING, BH_JOB_RUNNING },
    { LEASE_DONE, BH_JOB_COMPLETED },
};
/* clang-format on */

/* Of a set of lease states. */
static enum bh_job_state
show_of(uint32_t states)
{
    uint32_t i = 0;

    BH_ASSERT(states != 0);
    while (!(states & 1u << shown[i].lease)) {
        i++;
        BH_ASSERT(i < BH_COUNT(shown));
    }
    return shown[i].job;
}

enum bh_job_state
bh_gang_shows(enum lease_state state)
{
    return show_of(1u << state);
}

void
bh_gang_show(struct work *work, uint32_t slot)
{
    struct job *job = job_at(work->engine, slot);
    uint32_t states = 0;

    for (uint32_t at = 0; (at = bh_gang_next(work->engine, slot, at)) != 0;)
        states |= 1u << lease_at(work->engine, at)->state;
    if (!states || job->state == show_of(states))
        return;
    job->state = (uint8_t)show_of(states);
    job->suspensions += job->state == BH_JOB_SUSPENDED;
    bh_effect_job(work, slot);
}

/* ---- places ---- */

uint32_t
bh_gang_places(const struct bh_engine *engine, uint32_t job,
               struct placement ret_places[BH_JOB_PARTITIONS_MAX])
{
    uint32_t count = 0;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;) {
        const struct lease *lease = lease_at(engine, at);

        BH_ASSERT(count + lease->count <= BH_JOB_PARTITIONS_MAX);
        memcpy(&ret_places[count], lease->placements, lease->count * sizeof(struct placement));
        count += lease->count;
    }
    return count;
}
