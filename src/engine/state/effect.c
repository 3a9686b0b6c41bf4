#include "engine/state/effect.h"

#include "base/assert.h"
#include "engine/state/slots.h"

/* One more effect for a node (slot); the caller fills in the rest.  There is always
 * room: events cause few effects, and decisions end before the step is full. */
static struct bh_effect *
effect_add(struct work *work, enum bh_effect_kind kind, uint32_t node)
{
    struct bh_step *step = work->step;
    struct bh_effect *effect = &step->effects[step->effect_count];

    BH_ASSERT((uint32_t)kind < BH_EFFECT_KINDS);
    BH_ASSERT(kind == BH_FX_JOB || node_at(work->engine, node)->id != 0);
    _Static_assert(BH_EFFECTS_MAX <= 1 << BH_ORDER_BITS, "orders have numbers of their own");
    BH_ASSERT(step->effect_count < BH_EFFECTS_MAX);
    *effect = (struct bh_effect){ .kind = kind,
                                  .order = (work->seq << BH_ORDER_BITS) + step->effect_count,
                                  .node = { (uint32_t)node_at(work->engine, node)->id } };
    step->effect_count++;
    return effect;
}

static struct bh_partition
effect_partition_of(const struct bh_engine *engine, const struct partition *partition)
{
    return (struct bh_partition){ .partition = { partition->id },
                                  .gpu = { (uint32_t)gpu_at(engine, partition->gpu)->id },
                                  .profile = partition->profile,
                                  .start = partition->start,
                                  .carve = partition->state == BH_PARTITION_CARVING };
}

void
bh_effect_of_partition(const struct bh_engine *engine, uint32_t slot, struct bh_effect *ret_effect)
{
    const struct partition *partition = partition_at(engine, slot);
    const struct gpu *gpu = gpu_at(engine, partition->gpu);

    BH_ASSERT(partition->waiting != 0);
    BH_ASSERT(partition->waiting <= BH_EFFECT_KINDS && gpu->id != 0);
    *ret_effect = (struct bh_effect){ .kind = (enum bh_effect_kind)(partition->waiting - 1),
                                      .order = partition->order,
                                      .node = { (uint32_t)node_at(engine, gpu->node)->id },
                                      .lease = { lease_at(engine, partition->lease)->id },
                                      .partition = effect_partition_of(engine, partition) };
    ret_effect->tenant.v =
        partition->state == BH_PARTITION_CLEARING ? partition->cleared_for : partition->tenant;
}

void
bh_effect_of_lease(const struct bh_engine *engine, uint32_t slot, struct bh_effect *ret_effect)
{
    const struct lease *lease = lease_at(engine, slot);
    const struct job *job = job_at(engine, lease->job);

    BH_ASSERT(lease->waiting != 0);
    BH_ASSERT(lease->waiting <= BH_EFFECT_KINDS && job->id != 0);
    *ret_effect = (struct bh_effect){ .kind = (enum bh_effect_kind)(lease->waiting - 1),
                                      .order = lease->order,
                                      .node = { (uint32_t)node_at(engine, lease->node)->id },
                                      .lease = { lease->id },
                                      .job = { job->id } };
    if (ret_effect->kind != BH_FX_STOP)
        return;
    ret_effect->grace_ns = job->grace_ns;
    if (job->contract == BH_CONTRACT_CHECKPOINT
        && (lease->stop_cause == BH_END_PREEMPTED || lease->stop_cause == BH_END_MOVED
            || lease->stop_cause == BH_END_DRAINED))
        ret_effect->signal = job->signal ? job->signal : BH_CHECKPOINT_SIGNAL;
}

void
bh_effect_lease(struct work *work, enum bh_effect_kind kind, uint32_t slot)
{
    struct lease *lease = lease_at(work->engine, slot);
    struct bh_effect *effect = effect_add(work, kind, lease->node);

    BH_ASSERT(lease->id != 0 && lease->state != LEASE_DONE);
    BH_ASSERT(kind == BH_FX_START || kind == BH_FX_SUSPEND || kind == BH_FX_RESUME || kind == BH_FX_STOP);
    lease->order = effect->order;
    lease->waiting = (uint8_t)(kind + 1);
    bh_effect_of_lease(work->engine, slot, effect);
}

void
bh_effect_partition(struct work *work, enum bh_effect_kind kind, uint32_t slot)
{
    struct partition *partition = partition_at(work->engine, slot);
    struct bh_effect *effect = effect_add(work, kind, gpu_at(work->engine, partition->gpu)->node);

    BH_ASSERT(partition->id != 0);
    BH_ASSERT(kind == BH_FX_CARVE || kind == BH_FX_DESTROY);
    BH_ASSERT(partition->state == (kind == BH_FX_CARVE ? BH_PARTITION_CARVING : BH_PARTITION_CLEARING));
    partition->order = effect->order;
    partition->waiting = (uint8_t)(kind + 1);
    bh_effect_of_partition(work->engine, slot, effect);
}

void
bh_effect_of_gpu(const struct bh_engine *engine, uint32_t slot, struct bh_effect *ret_effect)
{
    const struct gpu *gpu = gpu_at(engine, slot);

    BH_ASSERT(gpu->health.waiting != 0);
    BH_ASSERT(gpu->health.waiting <= BH_EFFECT_KINDS && gpu->id != 0);
    *ret_effect = (struct bh_effect){ .kind = (enum bh_effect_kind)(gpu->health.waiting - 1),
                                      .order = gpu->health.order,
                                      .node = { (uint32_t)node_at(engine, gpu->node)->id },
                                      .partition.gpu = { (uint32_t)gpu->id } };
}

void
bh_effect_gpu(struct work *work, enum bh_effect_kind kind, uint32_t slot)
{
    struct gpu *gpu = gpu_at(work->engine, slot);
    struct bh_effect *effect = effect_add(work, kind, gpu->node);

    BH_ASSERT(kind == BH_FX_RESET || kind == BH_FX_TEST);
    BH_ASSERT(gpu->health.waiting == 0 && gpu->health.order == 0);
    gpu->health.order = effect->order;
    gpu->health.waiting = (uint8_t)(kind + 1);
    bh_effect_of_gpu(work->engine, slot, effect);
}

static struct bh_effect *
effect_find_job(const struct work *work, uint64_t job_id)
{
    for (uint32_t i = 0; i < work->step->effect_count; i++) {
        struct bh_effect *effect = &work->step->effects[i];

        if (effect->kind == BH_FX_JOB && effect->job.v == job_id)
            return effect;
    }
    return NULL;
}

void
bh_effect_job(struct work *work, uint32_t slot)
{
    const struct job *job = job_at(work->engine, slot);
    const struct lease *lease = lease_at(work->engine, job->lease);
    struct bh_effect *effect = effect_find_job(work, job->id);

    BH_ASSERT(job->id != 0 && job->state < BH_JOB_STATES);
    BH_ASSERT(job->cause < BH_END_CAUSES && (job->lease == 0 || lease->job == slot));
    if (!effect)
        effect = effect_add(work, BH_FX_JOB, lease->node);
    effect->job.v = job->id;
    if (job->lease) {
        effect->lease.v = lease->id;
        effect->node.v = (uint32_t)node_at(work->engine, lease->node)->id;
    }
    effect->state = (enum bh_job_state)job->state;
    effect->cause = (enum bh_end_cause)job->cause;
    effect->exit_status = job->exit_status;
}
