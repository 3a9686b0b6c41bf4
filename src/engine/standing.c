#include "engine/standing.h"

#include "base/assert.h"
#include "engine/alone.h"
#include "engine/health.h"
#include "engine/order.h"
#include "engine/part.h"
#include "engine/room.h"
#include "engine/slots.h"

/* After a carve that failed once all stood. */
#define RETRY_NS UINT64_C(60000000000)

static bool
names(const struct standing *standing, uint32_t profile, uint32_t start)
{
    for (uint32_t i = 0; i < standing->count; i++)
        if (standing->profiles[i] == profile && standing->starts[i] == start)
            return true;
    return false;
}

static bool
is_under_way(const struct gpu *gpu)
{
    return gpu->standing == BH_STANDING_APPLYING || gpu->standing == BH_STANDING_UNDOING;
}

static void
want(struct bh_engine *engine, struct gpu *gpu, const struct standing *wanted)
{
    engine->core.declared -= gpu->wanted.mode != BH_STANDING_NOT_SAID;
    gpu->wanted = *wanted;
    if (!wanted->mode && gpu->share_limit)
        bh_order_stir(engine); /* it may be shared again */
    engine->core.declared += gpu->wanted.mode != BH_STANDING_NOT_SAID;
    engine->hints.settled = false;
}

/* ---- declaring ---- */

/* What stands there now, to be made once again should the change fail. */
static struct standing
present(const struct bh_engine *engine, const struct gpu *gpu)
{
    struct standing standing = { .mode = BH_STANDING_ONCE };

    for (uint32_t at = gpu->first_part; at; at = part_at(engine, at)->next_on_gpu) {
        const struct part *part = part_at(engine, at);

        if (part->state == BH_PIECE_CLEARING || !bh_profile_get((bh_profile_id){ part->profile })
            || standing.count == BH_STANDING_MAX)
            continue;
        standing.profiles[standing.count] = (uint8_t)part->profile;
        standing.starts[standing.count++] = (uint8_t)part->start;
    }
    return standing;
}

static struct standing
from_event(const struct bh_ev_standing *event)
{
    struct standing standing = { .mode = (uint8_t)event->mode };

    for (uint32_t i = 0; i < event->piece_count; i++) {
        standing.profiles[i] = (uint8_t)event->pieces[i].profile;
        standing.starts[i] = (uint8_t)event->pieces[i].start;
    }
    standing.count = (uint8_t)event->piece_count;
    return standing;
}

void
bh_standing_set(struct work *work, const struct bh_ev_standing *event)
{
    struct bh_engine *engine = work->engine;
    uint32_t slot = gpu_find(engine, event->gpu.v);
    struct gpu *gpu = gpu_at(engine, slot);
    struct standing wanted = from_event(event);

    BH_ASSERT(slot != 0);
    if (!is_under_way(gpu)) /* else the last state that was whole stays the one to go back to */
        gpu->before = gpu->wanted.mode == BH_STANDING_DECLARED ? gpu->wanted
                                                               : present(engine, gpu);
    want(engine, gpu, &wanted);
    gpu->apply = engine->core.applied = event->apply;
    gpu->standing = wanted.mode ? BH_STANDING_APPLYING : BH_STANDING_NONE;
    gpu->standing_rc = 0;
    gpu->standing_retry_ns = 0;
    engine->hints.due_known = false;
    bh_standing_settle(engine, slot);
}

bh_rc
bh_standing_admit(const struct bh_engine *engine, const struct bh_ev_standing *event,
                  struct bh_reason *ret_why)
{
    uint32_t slot = gpu_find(engine, event->gpu.v), last = engine->core.applied;
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_occupancy occupancy = { 0 };

    ret_why->code = BH_REASON_OUT_OF_RANGE;
    ret_why->gpu = event->gpu;
    if (!slot)
        return BH_NOT_FOUND;
    if ((uint32_t)event->mode >= BH_STANDING_MODES || event->piece_count > BH_STANDING_MAX
        || event->apply == 0 || event->apply == UINT32_MAX || event->apply < last
        || event->apply > last + 1)
        return BH_RANGE;
    if (event->piece_count && (!gpu->mig_capable || event->mode == BH_STANDING_NOT_SAID))
        return BH_RANGE;
    for (uint32_t i = 0; i < event->piece_count; i++) {
        const struct bh_profile *profile =
            bh_profile_get((bh_profile_id){ event->pieces[i].profile });

        if (!profile || (uint32_t)profile->model != gpu->model || profile->id.v >= PROFILES_MAX
            || !bh_occupancy_fits(&occupancy, profile, event->pieces[i].start))
            return BH_RANGE;
        bh_occupancy_add(&occupancy, profile, event->pieces[i].start);
    }
    return BH_OK;
}

/* ---- making it so ---- */

/* What is made on a GPU with a fault would be in the way of its reset, or go with it. */
static bool
can_be_changed(const struct bh_engine *engine, const struct gpu *gpu)
{
    return gpu->managed && !gpu->fenced && bh_health_takes_work(gpu)
           && node_at(engine, gpu->node)->up;
}

bool
bh_standing_wants(const struct bh_engine *engine, uint32_t slot, const struct bh_piece *piece)
{
    const struct gpu *gpu = gpu_at(engine, slot);

    return gpu->wanted.mode && can_be_changed(engine, gpu)
           && names(&gpu->wanted, piece->profile, piece->start);
}

/* Whether the piece stands there, or will when it is carved. */
static bool
stands(const struct bh_engine *engine, const struct gpu *gpu, uint32_t profile, uint32_t start,
       bool carved)
{
    for (uint32_t at = gpu->first_part; at; at = part_at(engine, at)->next_on_gpu) {
        const struct part *part = part_at(engine, at);

        if (part->profile == profile && part->start == start && !part->gone
            && (part->state == BH_PIECE_IDLE || part->state == BH_PIECE_LEASED
                || (!carved && part->state == BH_PIECE_CARVING)))
            return true;
    }
    return false;
}

/* An idle piece that is not wanted, while that is being seen to. */
static uint32_t
find_unwanted(const struct bh_engine *engine, const struct gpu *gpu)
{
    for (uint32_t at = is_under_way(gpu) && gpu->idle ? gpu->first_part : 0; at;
         at = part_at(engine, at)->next_on_gpu) {
        const struct part *part = part_at(engine, at);

        if (part->state == BH_PIECE_IDLE && !names(&gpu->wanted, part->profile, part->start))
            return at;
    }
    return 0;
}

/* One that is wanted, missing, and has room. */
static bool
find_missing(const struct bh_engine *engine, uint32_t slot, struct bh_piece *ret_piece)
{
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_search search = { .engine = engine };
    struct bh_occupancy occupancy;

    if (bh_slots_free(engine, TABLE_PART) == 0)
        return false;
    bh_room_occupancy(&search, slot, &occupancy);
    for (uint32_t i = 0; i < gpu->wanted.count; i++) {
        uint32_t profile = gpu->wanted.profiles[i], start = gpu->wanted.starts[i];

        if (stands(engine, gpu, profile, start, false)
            || !bh_occupancy_fits(&occupancy, bh_profile_get((bh_profile_id){ profile }), start))
            continue;
        *ret_piece = (struct bh_piece){ { engine->core.next_partition },
                                        { (uint32_t)gpu->id }, profile, start, true };
        return true;
    }
    return false;
}

static bool
may_change(const struct bh_engine *engine, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(engine, slot);

    return gpu->wanted.mode && gpu->standing != BH_STANDING_FAILED && !gpu->standing_retry_ns
           && gpu->mig_capable && can_be_changed(engine, gpu) && bh_alone_with(engine, slot, 0);
}

bool
bh_standing_decide(const struct work *work, struct bh_decision *ret_decision)
{
    const struct bh_engine *engine = work->engine;

    for (uint32_t slot = 0; engine->core.declared && bh_slot_next(engine, TABLE_GPU, &slot);) {
        uint32_t unwanted;
        struct bh_piece piece;

        if (!may_change(engine, slot))
            continue;
        unwanted = find_unwanted(engine, gpu_at(engine, slot));
        if (unwanted) {
            const struct part *part = part_at(engine, unwanted);

            piece = (struct bh_piece){ { part->id }, { (uint32_t)gpu_at(engine, slot)->id },
                                       part->profile, part->start, false };
        } else if (!find_missing(engine, slot, &piece)) {
            continue;
        }
        *ret_decision = (struct bh_decision){ .kind = unwanted ? BH_DO_CLEAR : BH_DO_SHAPE,
                                              .piece_count = 1, .pieces = { piece } };
        return true;
    }
    return false;
}

bh_rc
bh_standing_clear(struct work *work, const struct bh_decision *decision)
{
    const struct bh_piece *piece = &decision->pieces[0];
    uint32_t slot = part_find(work->engine, piece->partition.v);
    const struct part *part = part_at(work->engine, slot);

    if (decision->piece_count != 1 || decision->job.v || decision->lease.v || piece->carve
        || !slot || part->state != BH_PIECE_IDLE || part->profile != piece->profile
        || part->start != piece->start
        || gpu_at(work->engine, part->gpu)->id != piece->gpu.v
        || !bh_alone_with(work->engine, part->gpu, 0))
        return BH_CONFLICT;
    bh_part_clear(work, slot, 0);
    return BH_OK;
}

/* ---- how it went ---- */

static bool
is_complete(const struct bh_engine *engine, const struct gpu *gpu)
{
    for (uint32_t i = 0; i < gpu->wanted.count; i++)
        if (!stands(engine, gpu, gpu->wanted.profiles[i], gpu->wanted.starts[i], true))
            return false;
    for (uint32_t at = gpu->first_part; at; at = part_at(engine, at)->next_on_gpu) {
        const struct part *part = part_at(engine, at);

        if (part->state == BH_PIECE_CLEARING
            || (part->state == BH_PIECE_IDLE
                && !names(&gpu->wanted, part->profile, part->start)))
            return false;
    }
    return true;
}

void
bh_standing_settle(struct bh_engine *engine, uint32_t slot)
{
    static const struct standing nothing;
    struct gpu *gpu = gpu_at(engine, slot);
    bool once = gpu->wanted.mode == BH_STANDING_ONCE;

    if (!is_under_way(gpu) || !is_complete(engine, gpu))
        return;
    if (gpu->standing == BH_STANDING_UNDOING)
        gpu->standing = BH_STANDING_UNDONE;
    else
        gpu->standing = once ? BH_STANDING_NONE : BH_STANDING_STANDS;
    if (once)
        want(engine, gpu, &nothing);
}

/* All GPUs of the change go back. */
static void
undo(struct bh_engine *engine, uint32_t apply)
{
    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        struct gpu *gpu = gpu_at(engine, slot);

        if (gpu->apply != apply || (gpu->standing != BH_STANDING_APPLYING
                                    && gpu->standing != BH_STANDING_STANDS))
            continue;
        want(engine, gpu, &gpu->before);
        gpu->standing = BH_STANDING_UNDOING;
        bh_standing_settle(engine, slot);
    }
}

bool
bh_standing_failed(struct work *work, uint32_t part_slot, uint32_t rc)
{
    static const struct standing nothing;
    struct bh_engine *engine = work->engine;
    struct gpu *gpu = gpu_at(engine, part_at(engine, part_slot)->gpu);

    if (!gpu->wanted.mode)
        return false;
    gpu->standing_rc = rc && rc < UINT8_MAX ? (uint8_t)rc : BH_IO;
    if (gpu->standing == BH_STANDING_APPLYING) {
        undo(engine, gpu->apply);
    } else if (gpu->standing == BH_STANDING_UNDOING) {
        gpu->standing = BH_STANDING_FAILED;
        want(engine, gpu, &nothing);
    } else {
        gpu->standing_retry_ns = work->now_ns + RETRY_NS;
        engine->hints.due_known = false;
    }
    return true;
}

uint64_t
bh_standing_retry_ns(const struct bh_engine *engine)
{
    uint64_t next_ns = UINT64_MAX;

    for (uint32_t slot = 0; engine->core.declared && bh_slot_next(engine, TABLE_GPU, &slot);) {
        uint64_t retry_ns = gpu_at(engine, slot)->standing_retry_ns;

        next_ns = retry_ns && retry_ns < next_ns ? retry_ns : next_ns;
    }
    return next_ns;
}

void
bh_standing_pass(struct bh_engine *engine)
{
    for (uint32_t slot = 0; engine->core.declared && bh_slot_next(engine, TABLE_GPU, &slot);) {
        struct gpu *gpu = gpu_at(engine, slot);

        if (!gpu->standing_retry_ns || gpu->standing_retry_ns > engine->core.now_ns)
            continue;
        gpu->standing_retry_ns = 0;
        engine->hints.due_known = false;
    }
}

/* ---- invariants ---- */

static bool
can_stand(const struct gpu *gpu, const struct standing *standing)
{
    struct bh_occupancy occupancy = { 0 };

    for (uint32_t i = 0; i < standing->count; i++) {
        const struct bh_profile *profile =
            bh_profile_get((bh_profile_id){ standing->profiles[i] });

        if (!profile || (uint32_t)profile->model != gpu->model
            || !bh_occupancy_fits(&occupancy, profile, standing->starts[i]))
            return false;
        bh_occupancy_add(&occupancy, profile, standing->starts[i]);
    }
    return true;
}

const char *
bh_standing_broken(const struct bh_engine *engine, uint64_t *ret_gpu)
{
    uint32_t declared = 0;

    for (uint32_t slot = 0; bh_slot_next(engine, TABLE_GPU, &slot);) {
        const struct gpu *gpu = gpu_at(engine, slot);

        *ret_gpu = gpu->id;
        declared += gpu->wanted.mode != BH_STANDING_NOT_SAID;
        if (!can_stand(gpu, &gpu->wanted))
            return "what is declared cannot stand on it";
        if ((is_under_way(gpu) || gpu->standing == BH_STANDING_STANDS) && !gpu->wanted.mode)
            return "a layout is made that nobody wants";
        if (gpu->apply > engine->core.applied)
            return "its layout is of a change to come";
    }
    *ret_gpu = declared;
    return declared == engine->core.declared ? NULL : "declared layouts are miscounted";
}
