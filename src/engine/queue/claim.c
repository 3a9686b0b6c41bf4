#include "engine/queue/claim.h"

#include <string.h>

#include "base/assert.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

static struct claim *
find_claim(struct bh_engine *engine, uint32_t job, bool reserved)
{
    for (uint32_t i = 0; engine->core.claim_count && i < CLAIMS_MAX; i++) {
        struct claim *claim = &engine->core.claims[i];

        if (claim->job == job && (claim->at_ns != 0) == reserved)
            return claim;
    }
    return NULL;
}

struct claim *
bh_claim_of(struct bh_engine *engine, uint32_t job)
{
    return find_claim(engine, job, false);
}

struct claim *
bh_claim_reserved(struct bh_engine *engine, uint32_t job)
{
    return engine->core.reserved ? find_claim(engine, job, true) : NULL;
}

bool
bh_claim_of_class(const struct bh_engine *engine, uint32_t class)
{
    const struct core *core = &engine->core;

    for (uint32_t i = 0; core->claim_count > core->reserved && i < CLAIMS_MAX; i++)
        if (core->claims[i].job && core->claims[i].at_ns == 0
            && job_at(engine, core->claims[i].job)->class == class)
            return true;
    return false;
}

void
bh_claim_drop(struct bh_engine *engine, struct claim *claim)
{
    BH_ASSERT(claim->job != 0);
    BH_ASSERT(engine->core.claim_count > 0);
    BH_ASSERT(claim->count > 0 && claim->count <= BH_JOB_PARTITIONS_MAX);
    BH_ASSERT(engine->core.reserved >= (claim->at_ns != 0));
    BH_ASSERT(job_at(engine, claim->job)->id != 0);
    for (uint32_t i = 0; i < claim->count; i++)
        gpu_at(engine, gpu_find(engine, claim->placements[i].gpu))->claimed--;
    engine->core.reserved -= claim->at_ns != 0;
    engine->core.claim_count--;
    bh_wake_below(engine, job_at(engine, claim->job)->tenant);
    memset(claim, 0, sizeof(*claim));
    bh_wake_queue(engine);
}

void
bh_claim_drop_all(struct bh_engine *engine, uint32_t job)
{
    struct claim *claim = bh_claim_of(engine, job);

    BH_ASSERT(job != 0);
    BH_ASSERT(job_at(engine, job)->id != 0);
    if (claim)
        bh_claim_drop(engine, claim);
    claim = bh_claim_reserved(engine, job);
    if (claim)
        bh_claim_drop(engine, claim);
}
