#include "engine/gpu/unchecked.h"

#include "base/assert.h"
#include "engine/gpu/ledger.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

/* Put the node aside, or back. */
static void
unchecked_put(struct work *work, uint32_t slot, bool unchecked)
{
    struct bh_engine *engine = work->engine;
    struct node *node = node_at(engine, slot);

    BH_ASSERT(node->id != 0 && node->unchecked <= 1);
    BH_ASSERT(engine->core.unchecked >= node->unchecked);
    if (node->unchecked == unchecked)
        return;
    node->unchecked = unchecked;
    engine->core.unchecked += unchecked ? 1u : -1u;
    for (uint32_t gpu = node_at(engine, slot)->first_gpu; gpu; gpu = bh_gpu_after(engine, gpu))
        bh_ledger_refresh(engine, gpu);
    engine->hints.swept = false;
    bh_wake_window(engine);
}

/* Whether only the tenant's jobs wait, and run on the node. */
static bool
is_alone(const struct bh_engine *engine, uint32_t node, uint32_t tenant)
{
    if (engine->core.pending > tenant_at(engine, tenant)->pending)
        return false;
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_LEASE, &slot);) {
        const struct lease *lease = lease_at(engine, slot);

        if (lease->node == node && lease->tenant != tenant && lease->state != LEASE_DONE)
            return false;
    }
    return true;
}

void
bh_unchecked_count_failure(struct work *work, uint32_t slot, uint32_t job_slot)
{
    struct bh_engine *engine = work->engine;
    struct node *node = node_at(engine, slot);
    const struct job *job = job_at(engine, job_slot);
    uint32_t tenant = (uint32_t)tenant_at(engine, job->tenant)->id;
    bool rests = node->passed_ns && work->now_ns < node->passed_ns + BH_UNCHECKED_REST_NS;
    bool second = node->failed_job && node->failed_job != job->id
                  && (node->failed_tenant != tenant || is_alone(engine, slot, job->tenant));

    BH_ASSERT(node->id != 0 && job->id != 0);
    if (node->unchecked)
        return;
    node->failed_before = node->failed_job;
    node->failed_job = job->id;
    node->failed_tenant = tenant;
    if (second && !rests)
        unchecked_put(work, slot, true);
}

void
bh_unchecked_forget(struct bh_engine *engine, uint32_t slot)
{
    struct node *node = node_at(engine, slot);

    BH_ASSERT(node->id != 0);
    if (node->unchecked)
        return;
    node->failed_job = node->failed_before = 0;
    node->failed_tenant = 0;
}

void
bh_unchecked_clear(struct work *work, uint32_t slot)
{
    BH_ASSERT(node_at(work->engine, slot)->id != 0);
    unchecked_put(work, slot, false);
    bh_unchecked_forget(work->engine, slot);
}

void
bh_unchecked_checked(struct work *work, const struct bh_ev_checked *checked)
{
    uint32_t slot = node_find(work->engine, checked->node.v);

    BH_ASSERT(slot != 0);
    if (checked->outcome == BH_OUTCOME_OK) {
        node_at(work->engine, slot)->passed_ns = work->now_ns;
        bh_unchecked_clear(work, slot);
        return;
    }
    unchecked_put(work, slot, true);
}
