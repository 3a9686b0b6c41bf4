#include "engine/part.h"

#include "base/assert.h"
#include "engine/effect.h"
#include "engine/ledger.h"
#include "engine/order.h"
#include "engine/shape.h"
#include "engine/slots.h"

struct bh_parts
bh_part_charge(const struct gpu *gpu, uint32_t profile)
{
    struct bh_parts parts = bh_profile_parts((bh_profile_id){ profile });

    if (bh_profile_is_share((bh_profile_id){ profile }) && gpu->share_scale > BH_GPU_PARTS)
        parts.compute = parts.compute * BH_GPU_PARTS / gpu->share_scale;
    return parts;
}

static struct bh_parts
charge_of(const struct bh_engine *engine, const struct part *part)
{
    return bh_part_charge(gpu_at(engine, part->gpu), part->profile);
}

void
bh_part_limit_shares(struct gpu *gpu)
{
    uint32_t limit = gpu->share_limit;

    if (!gpu->occupancy.shared)
        gpu->share_scale = 0;
    else if (limit > gpu->share_scale)
        limit = gpu->share_scale;
    gpu->occupancy.share_limit = limit;
}

static void
occupy(struct gpu *gpu, const struct part *part)
{
    bool first = !gpu->occupancy.shared;

    bh_piece_add(&gpu->occupancy, (enum bh_gpu_model)gpu->model, part->profile, part->start);
    if (first && gpu->occupancy.shared)
        gpu->share_scale = gpu->share_limit;
    bh_part_limit_shares(gpu);
}

static void
vacate(struct gpu *gpu, const struct part *part)
{
    bh_piece_remove(&gpu->occupancy, (enum bh_gpu_model)gpu->model, part->profile, part->start);
    bh_part_limit_shares(gpu);
}

/* Destroy for a tenant the idle pieces that cannot stand beside what now occupies the GPU. */
static void
make_way(struct work *work, uint32_t gpu_slot, uint32_t tenant)
{
    struct gpu *gpu = gpu_at(work->engine, gpu_slot);
    struct bh_occupancy full = gpu->occupancy;

    for (uint32_t at = gpu->idle ? gpu->first_part : 0; at;) {
        const struct part *part = part_at(work->engine, at);
        enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;
        uint32_t next = part->next_on_gpu;

        if (part->state == BH_PIECE_IDLE) {
            if (bh_piece_fits(&full, model, part->profile, part->start))
                bh_piece_add(&full, model, part->profile, part->start);
            else
                bh_part_clear(work, at, tenant);
        }
        at = next;
    }
}

static void
unlink_from_gpu(struct bh_engine *engine, uint32_t slot)
{
    struct part *part = part_at(engine, slot);
    uint32_t *link = &gpu_at(engine, part->gpu)->first_part;

    while (*link != slot) {
        BH_ASSERT(*link != 0);
        link = &part_at(engine, *link)->next_on_gpu;
    }
    *link = part->next_on_gpu;
}

uint32_t
bh_part_carve(struct work *work, const struct bh_piece *piece, uint32_t lease)
{
    struct bh_engine *engine = work->engine;
    uint32_t gpu_slot = gpu_find(engine, piece->gpu.v);
    uint32_t slot = bh_slot_add(engine, TABLE_PART, piece->partition.v);
    struct gpu *gpu = gpu_at(engine, gpu_slot);
    struct part *part = part_at(engine, slot);

    BH_ASSERT(gpu_slot != 0);
    part->gpu = gpu_slot;
    part->lease = lease;
    part->tenant = (uint32_t)tenant_at(engine, lease_at(engine, lease)->tenant)->id;
    if (part->tenant == 0)
        bh_shape_count(engine, piece->profile, true);
    part->profile = piece->profile;
    part->start = (uint16_t)piece->start;
    part->state = BH_PIECE_CARVING;
    occupy(gpu, part);
    make_way(work, gpu_slot, part->tenant);
    part->next_on_gpu = gpu->first_part;
    gpu->first_part = slot;
    gpu->mig = bh_profile_get((bh_profile_id){ part->profile }) != NULL;
    gpu->shared = bh_profile_is_share((bh_profile_id){ part->profile });
    if (engine->core.next_partition <= piece->partition.v)
        engine->core.next_partition = piece->partition.v + 1;
    bh_effect_part(work, BH_FX_CARVE, slot);
    bh_ledger_refresh(engine, gpu_slot);
    return slot;
}

/* ---- who pays for it ---- */

/* From now on its tenant; where its node cannot be heard, nobody yet. */
static void
begin_charge(struct work *work, struct part *part)
{
    struct bh_engine *engine = work->engine;

    BH_ASSERT(part->state == BH_PIECE_LEASED && !part->unheard);
    if (node_at(engine, gpu_at(engine, part->gpu)->node)->up) {
        bh_ledger_hold(engine, lease_at(engine, part->lease)->tenant, charge_of(engine, part));
        return;
    }
    part->unheard = 1;
    part->unheard_ns = work->now_ns;
}

/* Its tenant had it until then, as far as nobody was charged yet. */
static void
end_charge(struct work *work, struct part *part, uint64_t until_ns)
{
    struct bh_engine *engine = work->engine;
    uint32_t tenant = lease_at(engine, part->lease)->tenant;
    uint64_t had_ns = until_ns > part->unheard_ns ? until_ns - part->unheard_ns : 0;

    BH_ASSERT(part->state == BH_PIECE_LEASED && until_ns <= work->now_ns);
    if (part->unheard)
        bh_ledger_debit(engine, tenant, charge_of(engine, part),
                        work->now_ns - part->unheard_ns, had_ns);
    else
        bh_ledger_yield(engine, tenant, charge_of(engine, part));
    part->unheard = 0;
    part->unheard_ns = 0;
}

void
bh_part_node_turned(struct work *work, uint32_t gpu)
{
    struct bh_engine *engine = work->engine;
    bool up = node_at(engine, gpu_at(engine, gpu)->node)->up;

    for (uint32_t at = gpu_at(engine, gpu)->first_part; at; at = part_at(engine, at)->next_on_gpu) {
        struct part *part = part_at(engine, at);

        if (part->state != BH_PIECE_LEASED || part->unheard != up)
            continue;
        end_charge(work, part, work->now_ns);
        begin_charge(work, part);
    }
    bh_ledger_refresh(engine, gpu);
}

/* ---- its states ---- */

static void
become_leased(struct work *work, struct part *part)
{
    part->state = BH_PIECE_LEASED;
    gpu_at(work->engine, part->gpu)->leased++;
    begin_charge(work, part);
}

static void
become_idle(struct work *work, struct part *part)
{
    struct gpu *gpu = gpu_at(work->engine, part->gpu);

    part->state = BH_PIECE_IDLE;
    part->lease = 0;
    gpu->idle++;
    vacate(gpu, part);
    bh_order_stir(work->engine);
}

void
bh_part_ready(struct work *work, uint32_t slot)
{
    struct part *part = part_at(work->engine, slot);

    BH_ASSERT(part->state == BH_PIECE_CARVING);
    part->waiting = 0;
    part->order = 0;
    if (part->lease)
        become_leased(work, part);
    else
        become_idle(work, part);
    bh_ledger_refresh(work->engine, part->gpu);
}

void
bh_part_lend(struct work *work, uint32_t slot, uint32_t lease)
{
    struct part *part = part_at(work->engine, slot);
    struct gpu *gpu = gpu_at(work->engine, part->gpu);
    uint32_t tenant =
        (uint32_t)tenant_at(work->engine, lease_at(work->engine, lease)->tenant)->id;

    BH_ASSERT(part->state == BH_PIECE_IDLE);
    if (part->tenant == 0)
        bh_shape_count(work->engine, part->profile, false);
    else
        BH_ASSERT(part->tenant == tenant);
    gpu->idle--;
    part->lease = lease;
    part->tenant = tenant;
    occupy(gpu, part);
    become_leased(work, part);
    bh_ledger_refresh(work->engine, part->gpu);
}

void
bh_part_return(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct part *part = part_at(engine, slot);
    uint32_t gpu = part->gpu;

    part->evict = 0;
    if (part->state == BH_PIECE_CARVING) {
        part->lease = 0;
        bh_order_stir(engine);
        if (part->unclean)
            bh_part_quarantine(work, slot);
        else if (part->gone)
            bh_part_drop(work, slot);
        return;
    }
    BH_ASSERT(part->state == BH_PIECE_LEASED);
    end_charge(work, part, work->lost       ? part->unheard_ns
                           : work->ended_ns ? work->ended_ns : work->now_ns);
    gpu_at(engine, gpu)->leased--;
    become_idle(work, part);
    if (part->gone)
        bh_part_drop(work, slot);
    else
        bh_ledger_refresh(engine, gpu);
}

void
bh_part_clear(struct work *work, uint32_t slot, uint32_t tenant)
{
    struct part *part = part_at(work->engine, slot);

    BH_ASSERT(part->state == BH_PIECE_IDLE);
    part->cleared_for = tenant;
    if (part->tenant == 0)
        bh_shape_count(work->engine, part->profile, false);
    gpu_at(work->engine, part->gpu)->idle--;
    part->state = BH_PIECE_CLEARING;
    bh_effect_part(work, BH_FX_DESTROY, slot);
    bh_ledger_refresh(work->engine, part->gpu);
}

void
bh_part_drop(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct part *part = part_at(engine, slot);
    uint32_t gpu_slot = part->gpu;
    struct gpu *gpu = gpu_at(engine, gpu_slot);

    BH_ASSERT(part->state != BH_PIECE_LEASED);
    if (part->state == BH_PIECE_CARVING)
        vacate(gpu, part);
    if (part->state == BH_PIECE_IDLE)
        gpu->idle--;
    if (part->tenant == 0 && part->state != BH_PIECE_CLEARING)
        bh_shape_count(engine, part->profile, false);
    gpu->stuck -= part->stuck;
    engine->hints.due_known = engine->hints.due_known && !part->stuck;
    unlink_from_gpu(engine, slot);
    bh_slot_remove(engine, TABLE_PART, slot);
    bh_ledger_refresh(engine, gpu_slot);
    bh_order_stir(engine);
}

void
bh_part_lose(struct work *work, uint32_t slot)
{
    struct part *part = part_at(work->engine, slot);

    BH_ASSERT(part->lease != 0);
    part->gone = 1;
    part->waiting = 0;
    part->order = 0;
}

uint64_t
bh_gpu_retry_ns(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    bool answers = node_at(engine, gpu->node)->up && gpu->fenced != FENCE_ENDS
                   && gpu->health.state != BH_HEALTH_RESETTING;

    return gpu->stuck && gpu->retry_ns && answers ? gpu->retry_ns : UINT64_MAX;
}

/* Between two scrubs of an unclean piece the pause doubles. */
static uint64_t
pause_ns(const struct part *part)
{
    return BH_PART_RETRY_NS << (part->unclean > 1 ? part->unclean - 1 : 0);
}

void
bh_part_stick(struct work *work, uint32_t slot)
{
    struct part *part = part_at(work->engine, slot);
    struct gpu *gpu = gpu_at(work->engine, part->gpu);

    BH_ASSERT(part->state == BH_PIECE_CLEARING && part->unclean <= BH_UNCLEAN_TRIES);
    part->waiting = 0;
    part->order = 0;
    if (!part->stuck && gpu->claimed)
        bh_order_stir(work->engine); /* it may stand in room that is kept for somebody */
    gpu->stuck += !part->stuck;
    part->stuck = 1;
    if (!bh_part_is_given_up(work->engine, slot))
        gpu->retry_ns = work->now_ns + pause_ns(part);
    work->engine->hints.due_known = false;
}

void
bh_part_mark_unclean(struct work *work, uint32_t slot)
{
    struct part *part = part_at(work->engine, slot);

    BH_ASSERT(part->state == BH_PIECE_CARVING || part->state == BH_PIECE_CLEARING);
    part->unclean += part->unclean < BH_UNCLEAN_TRIES;
}

void
bh_part_quarantine(struct work *work, uint32_t slot)
{
    struct bh_engine *engine = work->engine;
    struct part *part = part_at(engine, slot);

    BH_ASSERT(part->state == BH_PIECE_CARVING && part->unclean && !part->lease);
    vacate(gpu_at(engine, part->gpu), part);
    if (part->tenant == 0)
        bh_shape_count(engine, part->profile, false);
    part->state = BH_PIECE_CLEARING;
    part->gone = 0;
    bh_part_stick(work, slot);
    bh_ledger_refresh(engine, part->gpu);
    bh_order_stir(engine);
}

void
bh_part_absolve(struct work *work, uint32_t gpu_slot)
{
    struct gpu *gpu = gpu_at(work->engine, gpu_slot);

    for (uint32_t at = gpu->stuck ? gpu->first_part : 0; at;
         at = part_at(work->engine, at)->next_on_gpu) {
        struct part *part = part_at(work->engine, at);

        part->unclean = part->unclean && part->stuck ? 1 : part->unclean;
    }
}

bool
bh_part_is_given_up(const struct bh_engine *engine, uint32_t slot)
{
    return part_at(engine, slot)->unclean >= BH_UNCLEAN_TRIES;
}
