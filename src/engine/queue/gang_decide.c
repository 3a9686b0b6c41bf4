#include "engine/queue/gang_decide.h"

#include <string.h>

#include "base/assert.h"
#include "engine/placement/placement.h"
#include "engine/state/gang.h"
#include "engine/state/slots.h"

void
bh_gang_begin(struct work *work, enum bh_decision_kind kind, uint32_t job, const struct placement *placements,
              uint32_t count)
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
decide_first_suspended(const struct bh_engine *engine, uint32_t job)
{
    uint32_t at = bh_gang_next(engine, job, 0);

    while (lease_at(engine, at)->state != LEASE_SUSPENDED) {
        BH_ASSERT(at != 0);
        at = bh_gang_next(engine, job, at);
    }
    return at;
}

/* Partitions at these places: idle ones of the tenant, as they are now, or new ones. */
static void
decide_fill_partitions(const struct bh_engine *engine, uint32_t tenant, const struct placement *placements,
                       struct bh_decision *decision)
{
    struct bh_plan plan;
    bool found = bh_placement_plan(engine, tenant, placements, decision->partition_count, &plan);

    BH_ASSERT(found);
    bh_placement_decide(engine, &plan, decision);
}

static void
decide_fill_claim(const struct placement *placements, struct bh_decision *decision)
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
    *ret_decision = (struct bh_decision){ .kind = bunch->kind,
                                          .job = { job->id },
                                          .member = bunch->next++,
                                          .partition_count = bunch->count,
                                          .at_ns = bunch->at_ns };
    if (bunch->kind == BH_DO_CLAIM || bunch->kind == BH_DO_RESERVE) {
        decide_fill_claim(placements, ret_decision);
        return true;
    }
    if (bunch->kind == BH_DO_RESUME) {
        lease = decide_first_suspended(engine, bunch->job);
        placements = lease_at(engine, lease)->placements;
        ret_decision->lease.v = lease_at(engine, lease)->id;
        ret_decision->member = lease_at(engine, lease)->member;
    } else {
        ret_decision->lease.v = engine->core.next_lease;
    }
    decide_fill_partitions(engine, job->tenant, placements, ret_decision);
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
    *rest = (struct rest){ decision->kind, decision->job.v, (first ? members : rest->members) - 1 };
}
