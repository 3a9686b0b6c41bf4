#include "engine/gang.h"

#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "engine/effect.h"
#include "engine/jobs.h"
#include "engine/placement.h"
#include "engine/slots.h"

/* ---- members ---- */

uint32_t
bh_gang_next(const struct bh_engine *engine, uint32_t job, uint32_t lease)
{
    lease = lease ? lease_at(engine, lease)->next_member : job_at(engine, job)->lease;
    while (lease && lease_at(engine, lease)->state == LEASE_DONE)
        lease = lease_at(engine, lease)->next_member;
    return lease;
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

bool
bh_gang_allows(const struct bh_engine *engine, uint32_t job, enum lease_event event)
{
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (!bh_lease_allows(engine, at, event))
            return false;
    return true;
}

/* A cancel outranks what would queue the job again, and a time that was over, also when some
 * members have ended. */
static void
outrank(struct job *job, const struct lease_change *change)
{
    if (!bh_lease_queues_again(job, (enum bh_end_cause)job->verdict)
        && job->verdict != BH_END_TIME_LIMIT && job->verdict != BH_END_DEADLINE)
        return;
    if (change->event == LEASE_STOP
        && (change->cause == BH_END_CANCELLED || change->cause == BH_END_TENANT_REMOVED
            || change->cause == BH_END_DATASET))
        job->verdict = (uint8_t)change->cause;
}

void
bh_gang_notify(struct work *work, uint32_t job_slot, const struct lease_change *change)
{
    const struct job *job = job_at(work->engine, job_slot);
    uint32_t at = 0;

    BH_ASSERT(change->event == LEASE_STOP || change->event == LEASE_SUSPEND);
    outrank(job_at(work->engine, job_slot), change);
    while (job->lease && (at = bh_gang_next(work->engine, job_slot, at)) != 0)
        bh_lease_step(work, at, change); /* one that is being carved for ends them all */
}

static bool
is_carving(const struct bh_engine *engine, const struct lease *lease)
{
    for (uint32_t i = 0; i < lease->count; i++)
        if (partition_at(engine, lease->parts[i])->state == BH_PARTITION_CARVING && lease->parts[i])
            return true;
    return false;
}

void
bh_gang_proceed(struct work *work, uint32_t job)
{
    const struct bh_engine *engine = work->engine;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (is_carving(engine, lease_at(engine, at)))
            return;
    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;)
        if (bh_lease_allows(engine, at, LEASE_READY))
            bh_lease_step(work, at, &(struct lease_change){ .event = LEASE_READY });
}

/* ---- what people see ---- */

/* A gang is in the first of these that some member is in. */
static const struct {
    enum lease_state lease;
    enum bh_job_state job;
} shown[] = {
    { LEASE_STOPPING, BH_JOB_STOPPING },   { LEASE_CARVING, BH_JOB_STARTING },
    { LEASE_STARTING, BH_JOB_STARTING },   { LEASE_SUSPENDING, BH_JOB_SUSPENDING },
    { LEASE_RECARVING, BH_JOB_RESUMING },  { LEASE_RESUMING, BH_JOB_RESUMING },
    { LEASE_SUSPENDED, BH_JOB_SUSPENDED }, { LEASE_RUNNING, BH_JOB_RUNNING },
    { LEASE_DONE, BH_JOB_COMPLETED },
};

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

struct bh_wanted
bh_gang_to_resume(const struct bh_engine *engine, uint32_t job)
{
    struct bh_wanted sum = { .tenant = job_at(engine, job)->tenant,
                             .sku = job_at(engine, job)->sku };
    uint32_t count = 0;
    uint64_t equivalent = 0;

    for (uint32_t at = 0; (at = bh_gang_next(engine, job, at)) != 0;) {
        sum = bh_quota_to_resume(engine, at);
        count += sum.count;
        equivalent += sum.equivalent;
    }
    sum.count = count;
    sum.equivalent = equivalent;
    return sum;
}

/* ---- decisions ---- */

void
bh_gang_begin(struct work *work, enum bh_decision_kind kind, uint32_t job,
              const struct placement *placements, uint32_t count)
{
    struct bunch *bunch = &work->bunch;
    uint32_t each = job_at(work->engine, job)->count;

    BH_ASSERT(bunch->next == bunch->members);
    BH_ASSERT(count <= BH_JOB_PARTITIONS_MAX && count % each == 0);
    bunch->kind = kind;
    bunch->job = job;
    bunch->count = each;
    bunch->next = 0;
    bunch->at_ns = 0;
    bunch->members = kind == BH_DO_RESUME ? bh_gang_live(work->engine, job) : count / each;
    if (count)
        memcpy(bunch->placements, placements, count * sizeof(struct placement));
}

void
bh_gang_begin_reserve(struct work *work, uint32_t job, const struct placement *placements, uint32_t count,
                      uint64_t at_ns)
{
    BH_ASSERT(at_ns != 0);
    bh_gang_begin(work, BH_DO_RESERVE, job, placements, count);
    work->bunch.at_ns = at_ns;
}

/* The first member that is still suspended (slot). */
static uint32_t
first_suspended(const struct bh_engine *engine, uint32_t job)
{
    uint32_t at = bh_gang_next(engine, job, 0);

    while (lease_at(engine, at)->state != LEASE_SUSPENDED) {
        BH_ASSERT(at != 0);
        at = bh_gang_next(engine, job, at);
    }
    return at;
}

/* Pieces at these places: idle ones of the tenant, as they are now, or new ones. */
static void
fill_partitions(const struct bh_engine *engine, uint32_t tenant, const struct placement *placements,
            struct bh_decision *decision)
{
    struct bh_plan plan;
    bool found = bh_placement_plan(engine, tenant, placements, decision->partition_count, &plan);

    BH_ASSERT(found);
    bh_placement_decide(engine, &plan, decision);
}

static void
fill_claim(const struct placement *placements, struct bh_decision *decision)
{
    for (uint32_t i = 0; i < decision->partition_count; i++)
        decision->partitions[i] = (struct bh_partition){ .gpu = { placements[i].gpu },
                                                 .profile = placements[i].profile,
                                                 .start = placements[i].start };
}

bool
bh_gang_decide(struct work *work, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;
    struct bunch *bunch = &work->bunch;
    const struct placement *placements = &bunch->placements[bunch->next * bunch->count];
    const struct job *job = job_at(engine, bunch->job);
    uint32_t lease;

    if (bunch->next == bunch->members)
        return false;
    *ret_decision = (struct bh_decision){ .kind = bunch->kind, .job = { job->id },
                                          .member = bunch->next++,
                                          .partition_count = bunch->count,
                                          .at_ns = bunch->at_ns };
    if (bunch->kind == BH_DO_CLAIM || bunch->kind == BH_DO_RESERVE) {
        fill_claim(placements, ret_decision);
        return true;
    }
    if (bunch->kind == BH_DO_RESUME) {
        lease = first_suspended(engine, bunch->job);
        placements = lease_at(engine, lease)->placements;
        ret_decision->lease.v = lease_at(engine, lease)->id;
        ret_decision->member = lease_at(engine, lease)->member;
    } else {
        ret_decision->lease.v = engine->core.next_lease;
    }
    fill_partitions(engine, job->tenant, placements, ret_decision);
    return true;
}

uint32_t
bh_gang_carving(const struct bh_engine *engine, const struct placement *placements, uint32_t count)
{
    uint32_t most = count;

    for (uint32_t i = 0; i < count; i++) {
        bool seen = false;

        for (uint32_t k = i; k > 0 && !seen; k--)
            seen = placements[k - 1].gpu == placements[i].gpu;
        if (!seen)
            most += gpu_at(engine, gpu_find(engine, placements[i].gpu))->idle;
    }
    return most;
}

uint32_t
bh_gang_effects(const struct work *work)
{
    const struct bh_engine *engine = work->engine;
    const struct bunch *bunch = &work->bunch;
    uint32_t count = bunch->members * bunch->count, own = 3 + job_at(engine, bunch->job)->gang;
    struct placement placements[BH_JOB_PARTITIONS_MAX];

    BH_ASSERT(bunch->kind == BH_DO_PLACE || bunch->kind == BH_DO_RESUME);
    if (bunch->kind == BH_DO_PLACE)
        return own + bh_gang_carving(engine, bunch->placements, count);
    count = bh_gang_places(engine, bunch->job, placements);
    return own + bh_gang_carving(engine, placements, count);
}

bool
bh_gang_follows(const struct work *work, const struct bh_decision *decision)
{
    const struct rest *rest = &work->rest;

    if (rest->members)
        return decision->kind == rest->kind && decision->job.v == rest->job;
    return true;
}

void
bh_gang_decision_applied(struct work *work, const struct bh_decision *decision, uint32_t members)
{
    struct rest *rest = &work->rest;
    bool first = rest->members == 0;

    BH_ASSERT(members > 0);
    *rest = (struct rest){ decision->kind, decision->job.v,
                           (first ? members : rest->members) - 1 };
}
