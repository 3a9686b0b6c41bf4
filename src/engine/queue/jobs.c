#include "engine/queue/jobs.h"

#include <string.h>

#include "base/assert.h"
#include "engine/account/tenant.h"
#include "engine/gpu/node_index.h"
#include "engine/gpu/pool.h"
#include "engine/placement/tenant_change.h"
#include "engine/queue/claim.h"
#include "engine/queue/preemptible.h"
#include "engine/queue/queue.h"
#include "engine/state/effect.h"
#include "engine/state/slots.h"

uint64_t
bh_job_hopeless_ns(uint64_t deadline_ns, uint64_t time_limit_ns)
{
    if (time_limit_ns == 0)
        return deadline_ns;
    return deadline_ns >= time_limit_ns ? deadline_ns - time_limit_ns + 1 : 1;
}

/* The sweep for missed deadlines must come by in time. */
static void
jobs_note_deadline(struct bh_engine *engine, const struct job *job)
{
    uint64_t hopeless_ns = bh_job_hopeless_ns(job->deadline_ns, job->time_limit_ns);

    if (job->deadline_ns && hopeless_ns < engine->hints.hopeless_ns)
        engine->hints.hopeless_ns = hopeless_ns;
}

void
bh_job_create(struct work *work, const struct bh_ev_submit *event)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = bh_slot_add(engine, TABLE_JOB, event->job.v);
    struct job *job = job_at(engine, slot);

    job->tenant = tenant_find(engine, event->tenant.v);
    job->principal = event->principal.v;
    job->sku = sku_find(engine, event->sku.v);
    job->sequence = engine->core.next_sequence++;
    job->submitted_ns = work->now_ns;
    job->time_limit_ns = event->time_limit_ns;
    job->grace_ns = event->grace_ns;
    job->deadline_ns = event->deadline_ns;
    job->signal = (uint8_t)event->checkpoint_signal;
    memcpy(job->spec, event->spec, sizeof(job->spec));
    job->count = (uint8_t)event->count;
    job->gang = (uint8_t)(event->gang ? event->gang : 1);
    job->kind = (uint8_t)event->kind;
    job->priority = (uint8_t)event->priority;
    job->contract = (uint8_t)event->contract;
    job->cpu_milli = event->cpu_milli;
    job->memory_mib = event->memory_mib;
    job->hold = event->hold;
    job->state = BH_JOB_PENDING;
    BH_ASSERT(job->tenant != 0 && job->sku != 0);
    BH_ASSERT(job->count > 0 && job->count <= BH_JOB_COUNT_MAX);
    tenant_at(engine, job->tenant)->jobs++;
    sku_at(engine, job->sku)->jobs++;
    bh_pool_demand_add(engine, job->sku, (uint32_t)job->count * job->gang);
    bh_node_index_demand(engine, slot);
    bh_tenant_count(engine, job->tenant, 0, 1);
    bh_queue_add(engine, slot);
    jobs_note_deadline(engine, job);
    bh_effect_job(work, slot);
}

void
bh_job_end(struct work *work, uint32_t slot, enum bh_job_state state, enum bh_end_cause cause,
           int32_t exit_status)
{
    struct bh_engine *engine = work->engine;
    struct job *job = job_at(engine, slot);

    BH_ASSERT(job->lease == 0);
    BH_ASSERT(job->state == BH_JOB_PENDING);
    BH_ASSERT(state >= BH_JOB_COMPLETED && state < BH_JOB_STATES);
    BH_ASSERT(job->id != 0 && (uint32_t)cause < BH_END_CAUSES);
    if (job->class)
        bh_queue_remove(engine, slot);
    bh_claim_drop_all(engine, slot);
    bh_tenant_count(engine, job->tenant, 0, -1);
    job->state = (uint8_t)state;
    job->cause = (uint8_t)cause;
    job->exit_status = exit_status;
    job->ended_ns = work->ended_ns ? work->ended_ns : work->now_ns;
    job->next = engine->core.ended_head;
    engine->core.ended_head = slot;
    engine->core.ended_count++;
    bh_effect_job(work, slot);
}

void
bh_job_requeue(struct work *work, uint32_t slot, enum bh_end_cause cause)
{
    struct job *job = job_at(work->engine, slot);

    BH_ASSERT(job->lease == 0);
    BH_ASSERT(job->state == BH_JOB_PENDING);
    BH_ASSERT(job->id != 0 && job->class == 0);
    job->cause = (uint8_t)cause;
    job->started_ns = 0;
    bh_queue_add(work->engine, slot);
    jobs_note_deadline(work->engine, job);
    bh_effect_job(work, slot);
}

void
bh_job_unhold(struct work *work, uint32_t slot)
{
    struct job *job = job_at(work->engine, slot);

    BH_ASSERT(job->hold);
    BH_ASSERT(job->class != 0 && job->state == BH_JOB_PENDING);
    bh_queue_remove(work->engine, slot);
    job->hold = 0;
    job->sequence = work->engine->core.next_sequence++;
    bh_queue_add(work->engine, slot);
    bh_effect_job(work, slot);
}

void
bh_job_attach_lease(struct work *work, uint32_t slot, uint32_t lease)
{
    struct bh_engine *engine = work->engine;
    struct job *job = job_at(engine, slot);

    BH_ASSERT(job->state == BH_JOB_PENDING);
    BH_ASSERT(job->lease == 0);
    BH_ASSERT(job->class != 0 && job->verdict < BH_END_CAUSES);
    BH_ASSERT(lease_at(engine, lease)->job == slot);
    bh_queue_remove(engine, slot);
    bh_claim_drop_all(engine, slot);
    job->lease = lease;
    job->state = BH_JOB_STARTING;
    job->cause = BH_END_NONE;
    job->verdict = BH_END_NONE;
    job->verdict_status = 0;
    if (job->contract != BH_CONTRACT_NEVER)
        engine->core.preemptible_jobs[job->priority]++;
    bh_preemptible_add(engine, slot);
    bh_tenant_count(engine, job->tenant, 1, -1);
    bh_effect_job(work, slot);
}

void
bh_job_detach(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct job *job = job_at(engine, slot);

    BH_ASSERT(job->lease != 0);
    BH_ASSERT(job->state != BH_JOB_PENDING && job->state < BH_JOB_COMPLETED);
    BH_ASSERT(job->contract == BH_CONTRACT_NEVER || engine->core.preemptible_jobs[job->priority] > 0);
    bh_effect_job(work, slot); /* while its lease is still known */
    bh_preemptible_remove(engine, slot);
    job->lease = 0;
    job->state = BH_JOB_PENDING;
    if (job->contract != BH_CONTRACT_NEVER)
        engine->core.preemptible_jobs[job->priority]--;
    bh_tenant_count(engine, job->tenant, -1, 1);
}

void
bh_jobs_reap(struct bh_engine *engine)
{
    while (engine->core.ended_head) {
        uint32_t slot = engine->core.ended_head;
        const struct job *job = job_at(engine, slot);
        uint32_t tenant = job->tenant;

        engine->core.ended_head = job->next;
        engine->core.ended_count--;
        sku_at(engine, job->sku)->jobs--;
        tenant_at(engine, tenant)->jobs--;
        bh_slot_remove(engine, TABLE_JOB, slot);
        bh_tenant_reap(engine, tenant);
    }
    BH_ASSERT(engine->core.ended_count == 0);
}
