#include "engine/gpu/partition.h"

#include "base/assert.h"
#include "engine/gpu/ledger.h"
#include "engine/state/effect.h"
#include "engine/state/slots.h"
#include "engine/state/wake.h"

/* One more, or one less, of those that no tenant has held yet: engine/placement/warm.h. */
static void
partition_count_unheld(struct bh_engine *engine, uint32_t profile, bool more)
{
    uint16_t *unheld = &engine->core.shapes.unheld[profile];

    BH_ASSERT(profile < PROFILES_MAX);
    BH_ASSERT(more || *unheld > 0);
    *unheld = (uint16_t)(more ? *unheld + 1 : *unheld - 1);
}

static struct bh_parts
partition_charge_of(const struct bh_engine *engine, const struct partition *partition)
{
    return bh_ledger_charge(gpu_at(engine, partition->gpu), partition->profile);
}

void
bh_partition_limit_shares(struct gpu *gpu)
{
    uint32_t limit = gpu->share_limit;

    BH_ASSERT(gpu->id != 0);
    if (!gpu->occupancy.shared)
        gpu->share_scale = 0;
    else if (limit > gpu->share_scale)
        limit = gpu->share_scale;
    gpu->occupancy.share_limit = limit;
}

static void
partition_occupy(struct gpu *gpu, const struct partition *partition)
{
    bool first = !gpu->occupancy.shared;

    BH_ASSERT(gpu->id != 0 && partition->id != 0);
    BH_ASSERT(bh_partition_starts(partition->profile) >> partition->start & 1);
    bh_partition_add(&gpu->occupancy, (enum bh_gpu_model)gpu->model, partition->profile, partition->start);
    if (first && gpu->occupancy.shared)
        gpu->share_scale = gpu->share_limit;
    bh_partition_limit_shares(gpu);
}

static void
partition_vacate(struct gpu *gpu, const struct partition *partition)
{
    BH_ASSERT(gpu->id != 0 && partition->id != 0);
    BH_ASSERT(bh_partition_starts(partition->profile) >> partition->start & 1);
    BH_ASSERT(!bh_occupancy_is_empty(&gpu->occupancy));
    bh_partition_remove(&gpu->occupancy, (enum bh_gpu_model)gpu->model, partition->profile, partition->start);
    bh_partition_limit_shares(gpu);
}

/* Destroy for a tenant the idle partitions that cannot stand beside what now occupies the GPU. */
static void
partition_clear_way(struct work *work, uint32_t gpu_slot, uint32_t tenant)
{
    struct gpu *gpu = gpu_at(work->engine, gpu_slot);
    struct bh_occupancy full = gpu->occupancy;

    BH_ASSERT(gpu->id != 0 && gpu->idle <= work->engine->tables[TABLE_PARTITION].live);
    for (uint32_t at = gpu->idle ? gpu->first_partition : 0; at;) {
        const struct partition *partition = partition_at(work->engine, at);
        enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;
        uint32_t next = partition->next_on_gpu;

        if (partition->state == BH_PARTITION_IDLE) {
            if (bh_partition_fits(&full, model, partition->profile, partition->start))
                bh_partition_add(&full, model, partition->profile, partition->start);
            else
                bh_partition_clear(work, at, tenant);
        }
        at = next;
    }
}

static void
partition_unlink_from_gpu(struct bh_engine *engine, uint32_t slot)
{
    struct partition *partition = partition_at(engine, slot);
    uint32_t *link = &gpu_at(engine, partition->gpu)->first_partition;

    BH_ASSERT(partition->id != 0 && *link != 0);
    while (*link != slot) {
        BH_ASSERT(*link != 0);
        link = &partition_at(engine, *link)->next_on_gpu;
    }
    *link = partition->next_on_gpu;
}

uint32_t
bh_partition_carve(struct work *work, const struct bh_partition *decided, uint32_t lease)
{
    struct bh_engine *engine = work->engine;
    uint32_t gpu_slot = gpu_find(engine, decided->gpu.v);
    uint32_t slot = bh_slot_add(engine, TABLE_PARTITION, decided->partition.v);
    struct gpu *gpu = gpu_at(engine, gpu_slot);
    struct partition *partition = partition_at(engine, slot);

    BH_ASSERT(gpu_slot != 0);
    BH_ASSERT(lease == 0 || lease_at(engine, lease)->id != 0);
    BH_ASSERT(decided->start <= UINT16_MAX && decided->carve);
    BH_ASSERT(bh_partition_exists((enum bh_gpu_model)gpu->model, decided->profile));
    partition->gpu = gpu_slot;
    partition->lease = lease;
    partition->tenant = (uint32_t)tenant_at(engine, lease_at(engine, lease)->tenant)->id;
    if (partition->tenant == 0)
        partition_count_unheld(engine, decided->profile, true);
    partition->profile = decided->profile;
    partition->start = (uint16_t)decided->start;
    partition->state = BH_PARTITION_CARVING;
    partition_occupy(gpu, partition);
    partition_clear_way(work, gpu_slot, partition->tenant);
    partition->next_on_gpu = gpu->first_partition;
    gpu->first_partition = slot;
    gpu->mig = bh_profile_get((bh_profile_id){ partition->profile }) != NULL;
    gpu->shared = bh_profile_is_share((bh_profile_id){ partition->profile });
    if (engine->core.next_partition <= decided->partition.v)
        engine->core.next_partition = decided->partition.v + 1;
    bh_effect_partition(work, BH_FX_CARVE, slot);
    bh_ledger_refresh(engine, gpu_slot);
    return slot;
}

/* ---- the tenant that is charged ---- */

/* From now on its tenant; where its node cannot be heard, no tenant yet. */
static void
partition_begin_charge(struct work *work, struct partition *partition)
{
    struct bh_engine *engine = work->engine;

    BH_ASSERT(partition->state == BH_PARTITION_LEASED && !partition->unheard);
    BH_ASSERT(lease_at(engine, partition->lease)->id != 0);
    BH_ASSERT(partition->unheard_ns == 0);
    if (node_at(engine, gpu_at(engine, partition->gpu)->node)->up) {
        bh_ledger_acquire(engine, lease_at(engine, partition->lease)->tenant,
                          partition_charge_of(engine, partition));
        return;
    }
    partition->unheard = 1;
    partition->unheard_ns = work->now_ns;
}

/* Its tenant had it until then, as far as no tenant was charged yet. */
static void
partition_end_charge(struct work *work, struct partition *partition, uint64_t until_ns)
{
    struct bh_engine *engine = work->engine;
    uint32_t tenant = lease_at(engine, partition->lease)->tenant;
    uint64_t had_ns = until_ns > partition->unheard_ns ? until_ns - partition->unheard_ns : 0;

    BH_ASSERT(partition->state == BH_PARTITION_LEASED && until_ns <= work->now_ns);
    BH_ASSERT(lease_at(engine, partition->lease)->id != 0 && partition->unheard <= 1);
    BH_ASSERT(partition->unheard_ns <= work->now_ns);
    if (partition->unheard)
        bh_ledger_debit(engine, tenant, partition_charge_of(engine, partition),
                        work->now_ns - partition->unheard_ns, had_ns);
    else
        bh_ledger_release(engine, tenant, partition_charge_of(engine, partition));
    partition->unheard = 0;
    partition->unheard_ns = 0;
}

void
bh_partition_node_changed(struct work *work, uint32_t gpu)
{
    struct bh_engine *engine = work->engine;
    bool up = node_at(engine, gpu_at(engine, gpu)->node)->up;

    BH_ASSERT(gpu_at(engine, gpu)->id != 0);
    for (uint32_t at = gpu_at(engine, gpu)->first_partition; at; at = bh_partition_after(engine, at)) {
        struct partition *partition = partition_at(engine, at);

        if (partition->state != BH_PARTITION_LEASED || partition->unheard != up)
            continue;
        partition_end_charge(work, partition, work->now_ns);
        partition_begin_charge(work, partition);
    }
    bh_ledger_refresh(engine, gpu);
}

/* ---- its states ---- */

static void
partition_become_leased(struct work *work, struct partition *partition)
{
    BH_ASSERT(partition->lease != 0 && partition->waiting == 0);
    BH_ASSERT(!partition->stuck && !partition->unclean);
    partition->state = BH_PARTITION_LEASED;
    gpu_at(work->engine, partition->gpu)->leased++;
    partition_begin_charge(work, partition);
}

static void
partition_become_idle(struct work *work, struct partition *partition)
{
    struct gpu *gpu = gpu_at(work->engine, partition->gpu);

    BH_ASSERT(gpu->id != 0);
    BH_ASSERT(partition->waiting == 0 && !partition->stuck);
    partition->state = BH_PARTITION_IDLE;
    partition->lease = 0;
    gpu->idle++;
    partition_vacate(gpu, partition);
    bh_wake_queue(work->engine);
}

void
bh_partition_set_ready(struct work *work, uint32_t slot)
{
    struct partition *partition = partition_at(work->engine, slot);

    BH_ASSERT(partition->state == BH_PARTITION_CARVING);
    BH_ASSERT(partition->waiting == BH_FX_CARVE + 1 && partition->order != 0);
    BH_ASSERT(partition->lease == 0
              || lease_at(work->engine, partition->lease)->node
                     == gpu_at(work->engine, partition->gpu)->node);
    partition->waiting = 0;
    partition->order = 0;
    if (partition->lease)
        partition_become_leased(work, partition);
    else
        partition_become_idle(work, partition);
    bh_ledger_refresh(work->engine, partition->gpu);
}

void
bh_partition_assign(struct work *work, uint32_t slot, uint32_t lease)
{
    struct partition *partition = partition_at(work->engine, slot);
    struct gpu *gpu = gpu_at(work->engine, partition->gpu);
    uint32_t tenant = (uint32_t)tenant_at(work->engine, lease_at(work->engine, lease)->tenant)->id;

    BH_ASSERT(partition->state == BH_PARTITION_IDLE);
    BH_ASSERT(partition->lease == 0 && partition->waiting == 0);
    BH_ASSERT(gpu->idle > 0 && lease_at(work->engine, lease)->node == gpu->node);
    if (partition->tenant == 0)
        partition_count_unheld(work->engine, partition->profile, false);
    else
        BH_ASSERT(partition->tenant == tenant);
    gpu->idle--;
    partition->lease = lease;
    partition->tenant = tenant;
    partition_occupy(gpu, partition);
    partition_become_leased(work, partition);
    bh_ledger_refresh(work->engine, partition->gpu);
}

void
bh_partition_release(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct partition *partition = partition_at(engine, slot);
    uint32_t gpu = partition->gpu;

    BH_ASSERT(partition->id != 0 && partition->lease != 0);
    BH_ASSERT(gpu_at(engine, gpu)->id != 0);
    partition->evict = 0;
    if (partition->state == BH_PARTITION_CARVING) {
        partition->lease = 0;
        bh_wake_queue(engine);
        if (partition->unclean)
            bh_partition_quarantine(work, slot);
        else if (partition->gone)
            bh_partition_drop(work, slot);
        return;
    }
    BH_ASSERT(partition->state == BH_PARTITION_LEASED);
    partition_end_charge(work, partition,
                         work->lost       ? partition->unheard_ns
                         : work->ended_ns ? work->ended_ns
                                          : work->now_ns);
    gpu_at(engine, gpu)->leased--;
    partition_become_idle(work, partition);
    if (partition->gone)
        bh_partition_drop(work, slot);
    else
        bh_ledger_refresh(engine, gpu);
}

void
bh_partition_clear(struct work *work, uint32_t slot, uint32_t tenant)
{
    struct partition *partition = partition_at(work->engine, slot);

    BH_ASSERT(partition->state == BH_PARTITION_IDLE);
    BH_ASSERT(partition->lease == 0 && partition->waiting == 0);
    BH_ASSERT(gpu_at(work->engine, partition->gpu)->idle > 0);
    partition->cleared_for = tenant;
    if (partition->tenant == 0)
        partition_count_unheld(work->engine, partition->profile, false);
    gpu_at(work->engine, partition->gpu)->idle--;
    partition->state = BH_PARTITION_CLEARING;
    bh_effect_partition(work, BH_FX_DESTROY, slot);
    bh_ledger_refresh(work->engine, partition->gpu);
}

void
bh_partition_drop(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct partition *partition = partition_at(engine, slot);
    uint32_t gpu_slot = partition->gpu;
    struct gpu *gpu = gpu_at(engine, gpu_slot);

    BH_ASSERT(partition->state != BH_PARTITION_LEASED);
    BH_ASSERT(partition->id != 0 && partition->lease == 0);
    BH_ASSERT(gpu->stuck >= partition->stuck && partition->stuck <= 1);
    BH_ASSERT(partition->state != BH_PARTITION_IDLE || gpu->idle > 0);
    if (partition->state == BH_PARTITION_CARVING)
        partition_vacate(gpu, partition);
    if (partition->state == BH_PARTITION_IDLE)
        gpu->idle--;
    if (partition->tenant == 0 && partition->state != BH_PARTITION_CLEARING)
        partition_count_unheld(engine, partition->profile, false);
    gpu->stuck -= partition->stuck;
    engine->hints.due_known = engine->hints.due_known && !partition->stuck;
    partition_unlink_from_gpu(engine, slot);
    bh_slot_remove(engine, TABLE_PARTITION, slot);
    bh_ledger_refresh(engine, gpu_slot);
    bh_wake_queue(engine);
}

void
bh_partition_set_lost(struct work *work, uint32_t slot)
{
    struct partition *partition = partition_at(work->engine, slot);

    BH_ASSERT(partition->lease != 0);
    BH_ASSERT(partition->state == BH_PARTITION_CARVING || partition->state == BH_PARTITION_LEASED);
    BH_ASSERT(partition->gone == 0);
    partition->gone = 1;
    partition->waiting = 0;
    partition->order = 0;
}

uint64_t
bh_gpu_retry_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    bool answers = node_at(engine, gpu->node)->up && gpu->fenced != FENCE_ENDS
                   && gpu->health.state != BH_HEALTH_RESETTING;

    return gpu->stuck && gpu->retry_ns && answers ? gpu->retry_ns : UINT64_MAX;
}

/* Between two scrubs of an unclean partition the pause doubles. */
static uint64_t
partition_pause_ns(const struct partition *partition)
{
    return BH_PARTITION_RETRY_NS << (partition->unclean > 1 ? partition->unclean - 1 : 0);
}

void
bh_partition_set_stuck(struct work *work, uint32_t slot)
{
    struct partition *partition = partition_at(work->engine, slot);
    struct gpu *gpu = gpu_at(work->engine, partition->gpu);

    BH_ASSERT(partition->state == BH_PARTITION_CLEARING && partition->unclean <= BH_UNCLEAN_TRIES);
    BH_ASSERT(gpu->id != 0 && partition->lease == 0);
    BH_ASSERT(partition->stuck <= 1 && gpu->stuck >= partition->stuck);
    partition->waiting = 0;
    partition->order = 0;
    if (!partition->stuck && gpu->claimed)
        bh_wake_queue(work->engine); /* it may lie in capacity that is kept for a job */
    gpu->stuck += !partition->stuck;
    partition->stuck = 1;
    if (!bh_partition_is_given_up(work->engine, slot))
        gpu->retry_ns = work->now_ns + partition_pause_ns(partition);
    work->engine->hints.due_known = false;
}

void
bh_partition_set_unclean(struct work *work, uint32_t slot)
{
    struct partition *partition = partition_at(work->engine, slot);

    BH_ASSERT(partition->state == BH_PARTITION_CARVING || partition->state == BH_PARTITION_CLEARING);
    BH_ASSERT(partition->id != 0 && partition->unclean <= BH_UNCLEAN_TRIES);
    partition->unclean += partition->unclean < BH_UNCLEAN_TRIES;
}

void
bh_partition_quarantine(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct partition *partition = partition_at(engine, slot);

    BH_ASSERT(partition->state == BH_PARTITION_CARVING && partition->unclean && !partition->lease);
    BH_ASSERT(partition->id != 0 && partition->stuck == 0);
    partition_vacate(gpu_at(engine, partition->gpu), partition);
    if (partition->tenant == 0)
        partition_count_unheld(engine, partition->profile, false);
    partition->state = BH_PARTITION_CLEARING;
    partition->gone = 0;
    bh_partition_set_stuck(work, slot);
    bh_ledger_refresh(engine, partition->gpu);
    bh_wake_queue(engine);
}

void
bh_partition_retry(struct work *work, uint32_t gpu_slot)
{
    struct gpu *gpu = gpu_at(work->engine, gpu_slot);

    BH_ASSERT(gpu->id != 0);
    for (uint32_t at = gpu->stuck ? gpu->first_partition : 0; at; at = bh_partition_after(work->engine, at)) {
        struct partition *partition = partition_at(work->engine, at);

        partition->unclean = partition->unclean && partition->stuck ? 1 : partition->unclean;
    }
}

bool
bh_partition_is_given_up(const struct bh_engine *engine, uint32_t slot)
{
    return partition_at(engine, slot)->unclean >= BH_UNCLEAN_TRIES;
}
