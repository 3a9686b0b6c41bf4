#include "engine/place.h"

#include <string.h>

#include "base/assert.h"
#include "engine/quota.h"
#include "engine/slots.h"

/* GPUs with the same occupancy have the same best starts, and most GPUs of a fleet
 * look alike: remember the last few answers. */
enum { MEMO = 16 };

struct memo {
    struct bh_occupancy occupancy;
    uint32_t starts; /* those where fragmentation grows least; 0: no room */
    int64_t growth;
};

struct finder {
    const struct bh_search *search;
    const struct bh_need *need;
    uint32_t model, profile;
    uint32_t memo_count;
    struct memo memos[MEMO];
    uint32_t beside; /* a job (slot) whose neighbourhood stood in the way */
    uint32_t beside_gpu;
};

/* How good a spot is; less is better, in this order. */
struct score {
    int64_t growth;
    uint32_t carve, unused; /* must be carved; GPU holds nothing else */
    uint64_t gpu;
    uint32_t start;
};

static bool
better(const struct score *a, const struct score *b)
{
    if (a->growth != b->growth)
        return a->growth < b->growth;
    if (a->carve != b->carve)
        return a->carve < b->carve;
    if (a->unused != b->unused)
        return a->unused < b->unused;
    if (a->gpu != b->gpu)
        return a->gpu < b->gpu;
    return a->start < b->start;
}

static bool
alike(const struct bh_occupancy *a, const struct bh_occupancy *b)
{
    return a->units == b->units && a->slices == b->slices && a->whole == b->whole
           && a->media == b->media && memcmp(a->counts, b->counts, sizeof(a->counts)) == 0;
}

static void
weigh_starts(const struct bh_profile *profile, const struct bh_occupancy *occupancy,
             struct memo *ret_memo)
{
    uint64_t before;

    ret_memo->starts = 0;
    ret_memo->growth = 0;
    if (bh_occupancy_room(occupancy, profile) == 0)
        return;
    before = bh_occupancy_fragmentation(occupancy, profile->model);
    for (uint32_t starts = profile->starts; starts; starts &= starts - 1) {
        uint32_t start = (uint32_t)__builtin_ctz(starts);
        struct bh_occupancy after = *occupancy;
        int64_t growth;

        if (!bh_occupancy_fits(occupancy, profile, start))
            continue;
        bh_occupancy_add(&after, profile, start);
        growth = (int64_t)bh_occupancy_fragmentation(&after, profile->model) - (int64_t)before;
        if (ret_memo->starts && growth > ret_memo->growth)
            continue;
        if (ret_memo->starts == 0 || growth < ret_memo->growth)
            ret_memo->starts = 0;
        ret_memo->starts |= 1u << start;
        ret_memo->growth = growth;
    }
}

static void
weigh(uint32_t profile_id, const struct bh_occupancy *occupancy, struct memo *ret_memo)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });

    ret_memo->occupancy = *occupancy;
    if (profile) {
        weigh_starts(profile, occupancy, ret_memo);
        return;
    }
    ret_memo->starts = occupancy->units == 0 && !occupancy->whole;
    ret_memo->growth = 0;
}

static const struct memo *
weighed(struct finder *finder, const struct bh_occupancy *occupancy)
{
    uint32_t at = (occupancy->units * 2654435761u >> 8) % MEMO;

    if (finder->memo_count == 0) {
        for (uint32_t i = 0; i < MEMO; i++)
            finder->memos[i].occupancy.units = UINT32_MAX;
        finder->memo_count = MEMO;
    }
    if (!alike(&finder->memos[at].occupancy, occupancy))
        weigh(finder->profile, occupancy, &finder->memos[at]);
    return &finder->memos[at];
}

uint32_t
bh_place_idle(const struct bh_engine *engine, const struct bh_spot *spot, uint32_t tenant)
{
    const struct gpu *gpu = gpu_at(engine, spot->gpu);

    for (uint32_t at = gpu->idle ? gpu->first_part : 0; at;) {
        const struct part *part = part_at(engine, at);

        if (part->state == BH_PIECE_IDLE && part->profile == spot->profile
            && part->start == spot->start
            && part->tenant == tenant_at(engine, tenant)->id)
            return at;
        at = part->next_on_gpu;
    }
    return 0;
}

bool
bh_place_serves(const struct bh_engine *engine, const struct gpu *gpu, uint32_t tenant,
                const struct sku *sku, uint32_t row)
{
    uint32_t profile = sku->profiles[row];

    if (gpu->model != sku->models[row])
        return false;
    if (profile != BH_PROFILE_WHOLE.v && !gpu->mig_capable)
        return false;
    return bh_grade_keeps(bh_room_grade(engine, tenant, profile), (enum bh_grade)sku->grade);
}

static void
add_chosen(const struct bh_plan *plan, uint32_t gpu, enum bh_gpu_model model,
           struct bh_occupancy *occupancy)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->spots[i].gpu == gpu)
            bh_room_block(occupancy, model, plan->spots[i].profile, plan->spots[i].start);
}

/* The best start on one GPU: of those where fragmentation grows least, one with an
 * idle piece of the tenant, else the lowest. */
static bool
spot_on(struct finder *finder, const struct bh_plan *plan, uint32_t slot,
        struct bh_spot *ret_spot, struct score *ret_score)
{
    const struct bh_engine *engine = finder->search->engine;
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_occupancy occupancy;
    const struct memo *memo;

    bh_room_occupancy(finder->search, slot, &occupancy);
    add_chosen(plan, slot, (enum bh_gpu_model)gpu->model, &occupancy);
    memo = weighed(finder, &occupancy);
    if (memo->starts == 0)
        return false;
    *ret_spot = (struct bh_spot){ .gpu = slot, .profile = finder->profile,
                                  .start = (uint32_t)__builtin_ctz(memo->starts) };
    for (uint32_t starts = memo->starts; gpu->idle && starts && !ret_spot->reuse;
         starts &= starts - 1) {
        struct bh_spot spot = { .gpu = slot, .profile = finder->profile,
                                .start = (uint32_t)__builtin_ctz(starts) };

        spot.reuse = bh_place_idle(engine, &spot, finder->need->tenant);
        if (spot.reuse)
            *ret_spot = spot;
    }
    *ret_score = (struct score){ .growth = memo->growth, .carve = !ret_spot->reuse,
                                 .unused = occupancy.units == 0 || !gpu->mig,
                                 .gpu = gpu->id, .start = ret_spot->start };
    return true;
}

static bool
offers(struct finder *finder, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(finder->search->engine, slot);

    return gpu->model == finder->model && gpu->id != finder->need->avoid_gpu
           && (gpu->mig_capable || finder->profile == BH_PROFILE_WHOLE.v)
           && bh_room_offered(finder->search->engine, gpu);
}

/* The best spot on a node for one more piece. */
static bool
next_spot(struct finder *finder, const struct bh_plan *plan, struct bh_spot *ret_spot,
          struct score *ret_score)
{
    const struct bh_engine *engine = finder->search->engine;
    bool found = false;

    for (uint32_t slot = node_at(engine, plan->node)->first_gpu; slot;
         slot = gpu_at(engine, slot)->next_on_node) {
        struct bh_spot spot;
        struct score score;

        if (!offers(finder, slot) || !spot_on(finder, plan, slot, &spot, &score))
            continue;
        if (found && !better(&score, ret_score))
            continue;
        if (!bh_room_beside(finder->search, slot, finder->profile, &finder->beside)) {
            finder->beside_gpu = slot;
            continue;
        }
        *ret_spot = spot;
        *ret_score = score;
        found = true;
    }
    return found;
}

/* All pieces on one node; the score is that of the first, with all growth. */
static bool
fill_node(struct finder *finder, uint32_t node, struct bh_plan *ret_plan,
          struct score *ret_score)
{
    if (!node_at(finder->search->engine, node)->up
        || !bh_room_on_node(finder->search, node, &finder->beside))
        return false;
    ret_plan->node = node;
    ret_plan->count = 0;
    for (uint32_t i = 0; i < finder->need->count; i++) {
        struct bh_spot spot = { 0 };
        struct score score = { 0 };

        if (!next_spot(finder, ret_plan, &spot, &score))
            return false;
        ret_plan->spots[ret_plan->count++] = spot;
        if (i == 0) {
            *ret_score = score;
            continue;
        }
        ret_score->growth += score.growth;
        ret_score->carve += score.carve;
        ret_score->unused += score.unused;
    }
    return true;
}

/* The best node for one row of the SKU. */
static bool
fill_row(struct finder *finder, struct bh_plan *best, struct score *best_score, bool found)
{
    struct bh_plan plan;
    struct score score = { 0 };

    for (uint32_t node = 0; bh_slot_next(finder->search->engine, TABLE_NODE, &node);) {
        if (!fill_node(finder, node, &plan, &score))
            continue;
        if (found && !better(&score, best_score))
            continue;
        *best = plan;
        *best_score = score;
        found = true;
    }
    return found;
}

bool
bh_place_on_node(const struct bh_search *search, const struct bh_need *need, uint32_t row,
                 uint32_t node, struct bh_plan *ret_plan)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    struct finder finder = { .search = search, .need = need, .model = sku->models[row],
                             .profile = sku->profiles[row] };
    struct score score = { 0 };

    BH_ASSERT(row < sku->model_count);
    if (!bh_grade_keeps(bh_room_grade(search->engine, need->tenant, finder.profile),
                        (enum bh_grade)sku->grade)
        || !fill_node(&finder, node, ret_plan, &score))
        return false;
    ret_plan->growth = score.growth;
    return true;
}

struct bh_need
bh_place_need(const struct bh_engine *engine, uint32_t slot)
{
    const struct class *class = class_at(engine, slot);
    bool avoid = class->avoid_generation == engine->core.generation
                 && engine->core.now_ns < class->avoid_until_ns;

    return (struct bh_need){ .tenant = class->tenant, .sku = class->sku, .job = class->head,
                             .count = class->count, .avoid_gpu = avoid ? class->avoid_gpu : 0 };
}

bool
bh_place_find(const struct bh_search *search, const struct bh_need *need,
              struct bh_plan *ret_plan, struct bh_reason *ret_why)
{
    const struct bh_engine *engine = search->engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct bh_reason limit = { 0 };
    struct score score = { 0 };
    uint32_t whose, beside = 0, beside_gpu = 0;
    bool found = false;

    for (uint32_t row = 0; row < sku->model_count; row++) {
        struct finder finder = { .search = search, .need = need, .model = sku->models[row],
                                 .profile = sku->profiles[row] };
        struct bh_wanted wanted = { need->tenant, need->sku, need->count,
                                    bh_quota_equivalent(sku->profiles[row], need->count) };

        if (!bh_grade_keeps(bh_room_grade(engine, need->tenant, finder.profile),
                            (enum bh_grade)sku->grade))
            continue;
        if (search->closed >> finder.model & 1
            || !bh_quota_allows(search, &wanted, &limit, &whose))
            continue;
        found = fill_row(&finder, ret_plan, &score, found);
        beside = finder.beside ? finder.beside : beside;
        beside_gpu = finder.beside_gpu ? finder.beside_gpu : beside_gpu;
    }
    if (found || !ret_why)
        return found;
    *ret_why = limit;
    if (beside)
        *ret_why = (struct bh_reason){ .code = BH_REASON_BOUNDARY,
                                       .sku = { (uint32_t)sku->id },
                                       .gpu = { (uint32_t)gpu_at(engine, beside_gpu)->id },
                                       .job = { job_at(engine, beside)->id } };
    return false;
}

/* Whether there is such a piece on such a GPU at all. */
static bool
stands_on(const struct gpu *gpu, const struct bh_profile *profile, uint32_t profile_id)
{
    return profile ? (uint32_t)profile->model == gpu->model
                   : profile_id == BH_PROFILE_WHOLE.v;
}

bool
bh_place_possible(const struct bh_search *search, const struct place *places, uint32_t count)
{
    const struct bh_engine *engine = search->engine;
    struct bh_plan chosen = { .count = 0 };
    uint32_t beside;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = gpu_find(engine, places[i].gpu);
        const struct bh_profile *profile = bh_profile_get((bh_profile_id){ places[i].profile });
        const struct gpu *gpu = gpu_at(engine, slot);
        struct bh_occupancy occupancy;

        if (!slot || !bh_room_offered(engine, gpu) || search->closed >> gpu->model & 1
            || !stands_on(gpu, profile, places[i].profile))
            return false;
        bh_room_occupancy(search, slot, &occupancy);
        add_chosen(&chosen, slot, (enum bh_gpu_model)gpu->model, &occupancy);
        if (profile ? !bh_occupancy_fits(&occupancy, profile, places[i].start)
                    : occupancy.whole || occupancy.units)
            return false;
        if (!bh_room_beside(search, slot, places[i].profile, &beside)
            || !bh_room_on_node(search, gpu->node, &beside))
            return false;
        chosen.spots[chosen.count++] =
            (struct bh_spot){ slot, places[i].profile, places[i].start, 0 };
    }
    return true;
}

bool
bh_place_plan(const struct bh_engine *engine, uint32_t tenant, const struct place *places,
              uint32_t count, struct bh_plan *ret_plan)
{
    ret_plan->count = count;
    ret_plan->node = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct bh_spot *spot = &ret_plan->spots[i];

        *spot = (struct bh_spot){ gpu_find(engine, places[i].gpu), places[i].profile,
                                  places[i].start, 0 };
        if (!spot->gpu)
            return false;
        spot->reuse = bh_place_idle(engine, spot, tenant);
        ret_plan->node = gpu_at(engine, spot->gpu)->node;
    }
    return count > 0;
}

void
bh_place_decide(const struct bh_engine *engine, const struct bh_plan *plan,
                struct bh_decision *ret_decision)
{
    uint64_t next = engine->core.next_partition;

    BH_ASSERT(plan->count <= BH_JOB_COUNT_MAX);
    ret_decision->piece_count = plan->count;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct bh_spot *spot = &plan->spots[i];

        ret_decision->pieces[i] = (struct bh_piece){
            .partition = { spot->reuse ? part_at(engine, spot->reuse)->id : next },
            .gpu = { (uint32_t)gpu_at(engine, spot->gpu)->id },
            .profile = spot->profile, .start = spot->start, .carve = !spot->reuse };
        next += !spot->reuse;
    }
}
