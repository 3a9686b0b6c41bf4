#include "engine/placement/placement.h"

#include <string.h>

#include "base/assert.h"
#include "engine/gpu/exclusive.h"
#include "engine/gpu/gpu_form.h"
#include "engine/gpu/host.h"
#include "engine/gpu/node_index.h"
#include "engine/placement/placement_internal.h"
#include "engine/state/slots.h"

bool
bh_placement_better(const struct bh_score *a, const struct bh_score *b)
{
    if (a->nodes != b->nodes)
        return a->nodes < b->nodes;
    if (a->parts != b->parts)
        return a->parts < b->parts;
    if (a->hot != b->hot)
        return a->hot < b->hot;
    if (a->misfits != b->misfits)
        return a->misfits < b->misfits;
    if (a->mixed != b->mixed)
        return a->mixed < b->mixed;
    if (a->growth != b->growth)
        return a->growth < b->growth;
    if (a->apart != b->apart)
        return a->apart < b->apart;
    if (a->node != b->node)
        return a->node < b->node;
    if (a->carve != b->carve)
        return a->carve < b->carve;
    if (a->unused != b->unused)
        return a->unused < b->unused;
    if (a->gpu != b->gpu)
        return a->gpu < b->gpu;
    return a->start < b->start;
}

bool
bh_placement_is_mixed(const struct bh_engine *engine, uint32_t slot, uint32_t job)
{
    const struct node *node = node_at(engine, slot);

    if (!engine->core.settings.spread_kinds)
        return false;
    return bh_host_lasts(job_at(engine, job)) ? node->leases > node->lasting : node->lasting > 0;
}

bool
bh_placement_misfits(const struct gpu *gpu, uint32_t profile)
{
    uint64_t twice = 2 * bh_parts_equivalent(bh_profile_parts((bh_profile_id){ profile }));

    switch ((enum bh_pool_layout)gpu->layout) {
    case BH_POOL_LAYOUT_DEVELOPMENT:
        return twice > BH_GPU_PARTS;
    case BH_POOL_LAYOUT_PRODUCTION:
        return twice < BH_GPU_PARTS;
    case BH_POOL_LAYOUT_BALANCED:
        return gpu->id % 2 ? twice > BH_GPU_PARTS : twice < BH_GPU_PARTS;
    case BH_POOL_LAYOUT_ON_DEMAND:
    case BH_POOL_LAYOUTS:
        break;
    }
    return false;
}

bool
bh_placement_is_hot(const struct bh_engine *engine, uint32_t node)
{
    return engine->core.settings.hotspots && node_at(engine, node)->hot;
}

/* The idle partition of the tenant, or of none yet, that stands exactly there (slot), or 0. */
static uint32_t
placement_idle(const struct bh_engine *engine, const struct bh_assignment *assignment, uint32_t tenant)
{
    const struct gpu *gpu = gpu_at(engine, assignment->gpu);

    for (uint32_t at = gpu->idle ? gpu->first_partition : 0; at;) {
        const struct partition *partition = partition_at(engine, at);

        if (partition->state == BH_PARTITION_IDLE && partition->profile == assignment->profile
            && partition->start == assignment->start
            && (partition->tenant == 0 || partition->tenant == tenant_at(engine, tenant)->id))
            return at;
        at = partition->next_on_gpu;
    }
    return 0;
}

bool
bh_placement_serves(const struct bh_engine *engine, const struct gpu *gpu, uint32_t tenant,
                    const struct sku *sku, uint32_t row)
{
    uint32_t profile = sku->profiles[row];

    if (gpu->model != sku->models[row])
        return false;
    if (!bh_capacity_accepts(gpu, profile) || !bh_gpu_form_allows(engine, tenant, sku, row))
        return false;
    return bh_grade_meets(bh_capacity_grade(engine, tenant, profile), (enum bh_grade)sku->grade);
}

static void
placement_add_chosen(const struct bh_plan *plan, uint32_t gpu, enum bh_gpu_model model,
                     struct bh_occupancy *occupancy)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->assignments[i].gpu == gpu)
            bh_capacity_block(occupancy, model, plan->assignments[i].profile, plan->assignments[i].start);
}

bool
bh_placement_imagines(const struct bh_search *search)
{
    return search->past_leaving || search->by_ns || search->gone_count;
}

/* Whether the search imagines a job gone that is on the node. */
static bool
placement_imagines_on(const struct bh_search *search, uint32_t node)
{
    const struct bh_engine *engine = search->engine;

    if (search->by_ns || search->gone_count)
        return true;
    for (uint32_t at = search->past_leaving ? engine->core.leaving : 0; at;
         at = lease_at(engine, at)->next_leaving)
        if (lease_at(engine, at)->node == node)
            return true;
    return false;
}

/* Whether what is counted rules the node out, before its GPUs are looked at.  Counts know
 * what is, not what is imagined. */
static bool
placement_is_hopeless(const struct bh_finder *finder, const struct node *node)
{
    if (!(node->models >> finder->model & 1))
        return true;
    if (!finder->counts || bh_profile_is_share((bh_profile_id){ finder->profile }))
        return false;
    return finder->profile == BH_PROFILE_WHOLE.v ? node->empty < finder->need->count : node->open == 0;
}

/* The same of the whole fleet. */
static bool
placement_is_in_vain(const struct bh_finder *finder)
{
    const struct bh_search *search = finder->search;
    const struct core *core = &search->engine->core;

    BH_ASSERT(core->empty[finder->model] <= core->open[finder->model]);
    BH_ASSERT(core->open[finder->model] <= core->offered[finder->model]);
    if (bh_placement_imagines(search) || bh_profile_is_share((bh_profile_id){ finder->profile }))
        return false;
    return finder->profile == BH_PROFILE_WHOLE.v
               ? core->empty[finder->model] < finder->need->count * finder->need->gang
               : core->open[finder->model] == 0;
}

/* The lowest of these starts that has an idle partition for the tenant, else the lowest. */
static struct bh_assignment
placement_choose_start(const struct bh_finder *finder, uint32_t slot, uint32_t starts)
{
    struct bh_assignment assignment = { .gpu = slot,
                                        .profile = finder->profile,
                                        .start = (uint32_t)__builtin_ctz(starts) },
                         first = assignment;

    if (bh_profile_is_share((bh_profile_id){ finder->profile }))
        first.start = bh_capacity_slot(finder->search->engine, slot, starts);
    if (!gpu_at(finder->search->engine, slot)->idle)
        return first;
    for (; starts; starts &= starts - 1) {
        assignment.start = (uint32_t)__builtin_ctz(starts);
        assignment.reuse = placement_idle(finder->search->engine, &assignment, finder->need->tenant);
        if (assignment.reuse)
            return assignment;
    }
    return first;
}

/* Where it may matter that a partition stands ready, that goes before what costs jobs to come
 * least.  False: it must stand ready, and none does. */
static bool
placement_choose_assignment(struct bh_finder *finder, uint32_t slot, const struct bh_occupancy *occupancy,
                            uint32_t starts, struct bh_assignment *ret_assignment)
{
    const struct bh_engine *engine = finder->search->engine;
    const struct gpu *gpu = gpu_at(engine, slot);
    uint32_t ready = 0, beside = 0;

    if (gpu->lone_carve || gpu->wanted.mode)
        ready = bh_exclusive_ready(finder->search, slot, finder->profile, occupancy);
    *ret_assignment =
        ready ? (struct bh_assignment){ slot, finder->profile, partition_at(engine, ready)->start, ready }
              : placement_choose_start(finder, slot, starts);
    if (ready || bh_exclusive_may_stand(finder->search, slot, finder->profile, &beside))
        return true;
    finder->alone = beside;
    finder->alone_gpu = slot;
    return false;
}

bool
bh_placement_assign(struct bh_finder *finder, const struct bh_plan *plan, uint32_t slot,
                    struct bh_assignment *ret_assignment, struct bh_score *ret_score)
{
    const struct bh_engine *engine = finder->search->engine;
    const struct gpu *gpu = gpu_at(engine, slot);
    struct bh_occupancy occupancy;
    const struct bh_candidate_starts *best;

    bh_capacity_occupancy(finder->search, slot, &occupancy);
    placement_add_chosen(plan, slot, (enum bh_gpu_model)gpu->model, &occupancy);
    best = bh_candidates_find(&finder->starts, &occupancy);
    if (best->starts == 0
        || !placement_choose_assignment(finder, slot, &occupancy, best->starts, ret_assignment))
        return false;
    *ret_score = (struct bh_score){ .growth = best->growth,
                                    .misfits = bh_placement_misfits(gpu, finder->profile)
                                               || (gpu->wanted.mode && !ret_assignment->reuse),
                                    .carve = !ret_assignment->reuse,
                                    .unused = occupancy.units == 0 || !gpu->mig,
                                    .gpu = gpu->id,
                                    .start = ret_assignment->start };
    return true;
}

bool
bh_placement_offers(struct bh_finder *finder, uint32_t slot)
{
    const struct gpu *gpu = gpu_at(finder->search->engine, slot);

    if ((finder->link && gpu->link != finder->link) || (finder->numa && gpu->numa != finder->numa))
        return false;
    if (finder->profile == BH_PROFILE_WHOLE.v
        && ((finder->counts && !(gpu->counted & GPU_EMPTY)) || (finder->claims_bind && gpu->claimed)))
        return false;
    return gpu->model == finder->model && !bh_avoids(finder->need, gpu->id, gpu->node)
           && bh_capacity_accepts(gpu, finder->profile) && bh_capacity_offered(finder->search->engine, gpu);
}

/* The best place on a node for one more partition. */
static bool
placement_next_assignment(struct bh_finder *finder, const struct bh_plan *plan,
                          struct bh_assignment *ret_assignment, struct bh_score *ret_score)
{
    const struct bh_engine *engine = finder->search->engine;
    bool found = false;

    for (uint32_t slot = node_at(engine, plan->node)->first_gpu; slot; slot = bh_gpu_after(engine, slot)) {
        struct bh_assignment assignment;
        struct bh_score score;

        if (!bh_placement_offers(finder, slot)
            || !bh_placement_assign(finder, plan, slot, &assignment, &score))
            continue;
        if (found && !bh_placement_better(&score, ret_score))
            continue;
        if (!bh_capacity_beside(finder->search, slot, finder->profile, &finder->beside)) {
            finder->beside_gpu = slot;
            continue;
        }
        *ret_assignment = assignment;
        *ret_score = score;
        found = true;
    }
    return found;
}

void
bh_placement_copy(struct bh_plan *to, const struct bh_plan *from)
{
    to->node = from->node;
    to->count = from->count;
    memcpy(to->assignments, from->assignments, from->count * sizeof(struct bh_assignment));
}

/* The score of partitions together: that of the first, with all growth. */
static void
placement_add_score(struct bh_score *sum, const struct bh_score *next, bool first)
{
    if (first) {
        *sum = *next;
        return;
    }
    sum->nodes += next->nodes;
    sum->hot += next->hot;
    sum->misfits += next->misfits;
    sum->mixed += next->mixed;
    sum->growth += next->growth;
    sum->apart += next->apart;
    sum->carve += next->carve;
    sum->unused += next->unused;
}

/* How far apart whole GPUs are: 0 in one NVLink domain, 1 on one NUMA node, else 2. */
static uint32_t
placement_apart(const struct bh_engine *engine, const struct bh_assignment *assignments, uint32_t count)
{
    const struct gpu *first = gpu_at(engine, assignments[0].gpu);
    bool link = first->link != 0, numa = first->numa != 0;

    if (count == 1 || assignments[0].profile != BH_PROFILE_WHOLE.v)
        return 0;
    for (uint32_t i = 1; i < count; i++) {
        link = link && gpu_at(engine, assignments[i].gpu)->link == first->link;
        numa = numa && gpu_at(engine, assignments[i].gpu)->numa == first->numa;
    }
    return link ? 0 : numa ? 1 : 2;
}

/* One member's partitions on the plan's node, as far as the finder looks. */
static bool
placement_fill_within(struct bh_finder *finder, struct bh_plan *plan, struct bh_score *ret_score)
{
    uint32_t first = plan->count;

    for (uint32_t i = 0; i < finder->need->count; i++) {
        struct bh_assignment assignment = { 0 };
        struct bh_score score = { 0 };

        if (!placement_next_assignment(finder, plan, &assignment, &score))
            return false;
        plan->assignments[plan->count++] = assignment;
        placement_add_score(ret_score, &score, i == 0);
    }
    ret_score->apart =
        placement_apart(finder->search->engine, &plan->assignments[first], finder->need->count);
    return true;
}

/* The same within the NVLink domain, or on the NUMA node, of one GPU, where it is better. */
static void
placement_fill_near(struct bh_finder *finder, uint32_t gpu, bool by_link, struct bh_plan *plan,
                    struct bh_score *score)
{
    const struct gpu *near = gpu_at(finder->search->engine, gpu);
    uint32_t before = plan->count - finder->need->count;
    struct bh_score next = { 0 };
    struct bh_plan other;
    bool found;

    if (by_link ? near->link == 0 : near->numa == 0)
        return;
    bh_placement_copy(&other, plan);
    other.count = before;
    finder->link = by_link ? near->link : 0;
    finder->numa = by_link ? 0 : near->numa;
    found = placement_fill_within(finder, &other, &next);
    finder->link = finder->numa = 0;
    if (!found || !bh_placement_better(&next, score))
        return;
    bh_placement_copy(plan, &other);
    *score = next;
}

/* One member's partitions on the plan's node: whole GPUs close together where that can be. */
static bool
placement_fill_member(struct bh_finder *finder, struct bh_plan *plan, struct bh_score *ret_score)
{
    const struct bh_engine *engine = finder->search->engine;

    if (!placement_fill_within(finder, plan, ret_score))
        return false;
    for (uint32_t by_link = 2; by_link-- > 0;)
        for (uint32_t gpu = node_at(engine, plan->node)->first_gpu;
             gpu && ret_score->apart > (by_link ? 0 : 1); gpu = bh_gpu_after(engine, gpu))
            placement_fill_near(finder, gpu, by_link, plan, ret_score);
    return true;
}

struct bh_node_request
bh_placement_whole(const struct bh_engine *engine, const struct bh_need *need, uint32_t members,
                   uint64_t models)
{
    const struct job *job = job_at(engine, need->job);

    return (struct bh_node_request){ .cpu_milli = job->cpu_milli * members,
                                     .memory_mib = job->memory_mib * members,
                                     .gpus = need->count * members,
                                     .models = models };
}

/* What a node's score is beside those of the partitions. */
static void
placement_score_node(const struct bh_finder *finder, uint32_t node, uint32_t members, struct bh_score *score)
{
    const struct bh_engine *engine = finder->search->engine;
    struct bh_node_request want =
        bh_placement_whole(engine, finder->need, members, UINT64_C(1) << finder->model);

    score->nodes = 1;
    score->hot = bh_placement_is_hot(engine, node);
    score->mixed = bh_placement_is_mixed(engine, node, finder->need->job);
    if (finder->profile != BH_PROFILE_WHOLE.v)
        return;
    score->node = node;
    score->growth = bh_node_index_cost(engine, node, &want);
}

/* How many of so many members the node has cores and memory for, beside those that the plan
 * puts there already. */
static uint32_t
placement_hosted(const struct bh_finder *finder, uint32_t node, uint32_t most, const struct bh_plan *plan)
{
    uint32_t capacity = bh_host_capacity(finder->search, node), partitions = 0, there;

    if (capacity == UINT32_MAX)
        return most;
    for (uint32_t i = 0; i < plan->count; i++)
        partitions += gpu_at(finder->search->engine, plan->assignments[i].gpu)->node == node;
    there = partitions / finder->need->count;
    capacity = capacity > there ? capacity - there : 0;
    return capacity < most ? capacity : most;
}

uint32_t
bh_placement_fill(struct bh_finder *finder, uint32_t node, uint32_t most, struct bh_plan *plan,
                  struct bh_score *ret_score)
{
    const struct node *at = node_at(finder->search->engine, node);
    uint32_t members = 0;

    finder->counts = !placement_imagines_on(finder->search, node);
    if (!at->up || placement_is_hopeless(finder, at)
        || !bh_capacity_on_node(finder->search, node, &finder->beside))
        return 0;
    plan->node = node;
    most = placement_hosted(finder, node, most, plan);
    while (members < most) {
        uint32_t before = plan->count;
        struct bh_score score = { 0 };

        if (!placement_fill_member(finder, plan, &score)) {
            plan->count = before;
            break;
        }
        placement_add_score(ret_score, &score, members == 0);
        members++;
    }
    placement_score_node(finder, node, members, ret_score);
    return members;
}

/* The node that holds most of the members that are left, and of those the best, behind the
 * plan; returns how many, 0 when none has room. */
static uint32_t
placement_add_node(struct bh_finder *finder, uint32_t left, struct bh_plan *plan, struct bh_score *ret_score)
{
    struct bh_plan next, best;
    uint32_t most = 0;

    for (uint32_t node = 0; bh_slot_next(finder->search->engine, TABLE_NODE, &node);) {
        struct bh_score score = { 0 };
        uint32_t members;

        bh_placement_copy(&next, plan);
        members = bh_placement_fill(finder, node, left, &next, &score);
        if (members == 0 || members < most || (members == most && !bh_placement_better(&score, ret_score)))
            continue;
        bh_placement_copy(&best, &next);
        *ret_score = score;
        most = members;
    }
    if (most)
        bh_placement_copy(plan, &best);
    return most;
}

/* All members for one row of the SKU.  Taking the nodes that hold most until one holds all
 * that are left needs the fewest nodes. */
static bool
placement_fill_row(struct bh_finder *finder, struct bh_plan *ret_plan, struct bh_score *ret_score)
{
    uint32_t placed = 0, gang = finder->need->gang;

    finder->claims_bind = bh_capacity_claims_bind(finder->search);
    ret_plan->count = 0;
    while (placed < gang) {
        struct bh_score score = { 0 };
        uint32_t members = placement_add_node(finder, gang - placed, ret_plan, &score);

        if (members == 0)
            return false;
        placement_add_score(ret_score, &score, placed == 0);
        placed += members;
    }
    return true;
}

struct bh_finder
bh_finder_for(const struct bh_search *search, const struct bh_need *need, uint32_t row)
{
    const struct sku *sku = sku_at(search->engine, need->sku);

    struct bh_finder finder = {
        .search = search, .need = need, .row = row, .model = sku->models[row], .profile = sku->profiles[row]
    };

    bh_candidates_init(&finder.starts, finder.model, finder.profile);
    return finder;
}

bool
bh_placement_on(const struct bh_search *search, const struct bh_need *need, uint32_t row, uint32_t node,
                struct bh_plan *ret_plan)
{
    const struct sku *sku = sku_at(search->engine, need->sku);
    struct bh_finder finder = bh_finder_for(search, need, row);
    struct bh_score score = { 0 };
    bool found;

    BH_ASSERT(row < sku->model_count);
    if (!bh_placement_by(search->engine, need, row))
        return false;
    ret_plan->count = 0;
    if (node)
        found = bh_placement_fill(&finder, node, need->gang, ret_plan, &score) == need->gang;
    else
        found = !placement_is_in_vain(&finder) && placement_fill_row(&finder, ret_plan, &score);
    ret_plan->growth = score.growth;
    return found;
}

struct bh_need
bh_placement_need(const struct bh_engine *engine, uint32_t slot)
{
    const struct class *class = class_at(engine, slot);
    bool fresh = engine->core.now_ns < class->avoid_until_ns;
    bool avoid = fresh && class->avoid_generation == engine->core.generation;

    return (struct bh_need){ .tenant = class->tenant,
                             .sku = class->sku,
                             .job = class->head,
                             .count = class->count,
                             .gang = class->gang,
                             .avoid_gpu = avoid ? class->avoid_gpu : 0,
                             .avoid_node = !fresh ? 0
                                           : class->avoid_node == BH_AVOID_ALL
                                               ? BH_AVOID_ALL
                                               : node_find(engine, class->avoid_node) };
}

bool
bh_placement_row(struct bh_finder *finder, struct bh_plan *ret_plan, struct bh_score *ret_score)
{
    if (placement_is_in_vain(finder))
        return false;
    bh_candidates_price(&finder->starts, finder->search->engine, finder->model);
    *ret_score = (struct bh_score){ 0 };
    if (!placement_fill_row(finder, ret_plan, ret_score))
        return false;
    ret_score->parts = sku_at(finder->search->engine, finder->need->sku)->equivalents[finder->row];
    return true;
}

struct bh_wanted
bh_placement_wanted(const struct bh_engine *engine, const struct bh_need *need, uint32_t row)
{
    const struct sku *sku = sku_at(engine, need->sku);
    uint32_t partitions = need->count * need->gang;

    BH_ASSERT(row < sku->model_count && sku->model_count <= BH_SKU_MODELS_MAX);
    BH_ASSERT(sku->models[row] < BH_GPU_MODELS && sku->equivalents[row] > 0);
    return (struct bh_wanted){ .tenant = need->tenant,
                               .sku = need->sku,
                               .count = partitions,
                               .principal = job_at(engine, need->job)->principal,
                               .model = sku->models[row],
                               .equivalent = (uint64_t)sku->equivalents[row] * partitions };
}

enum bh_cover
bh_placement_cover(const struct bh_engine *engine, const struct bh_need *need)
{
    enum bh_cover best = BH_COVER_NONE;

    for (uint32_t row = 0; row < sku_at(engine, need->sku)->model_count && best < BH_COVER_ALL; row++) {
        struct bh_wanted wanted = bh_placement_wanted(engine, need, row);
        uint32_t within;
        enum bh_cover cover =
            bh_placement_by(engine, need, row) ? bh_guarantee_cover(engine, &wanted, &within) : BH_COVER_NONE;

        best = cover > best ? cover : best;
    }
    return best;
}

bool
bh_placement_by(const struct bh_engine *engine, const struct bh_need *need, uint32_t row)
{
    const struct sku *sku = sku_at(engine, need->sku);

    return bh_grade_meets(bh_capacity_grade(engine, need->tenant, sku->profiles[row]),
                          (enum bh_grade)sku->grade)
           && bh_gpu_form_allows(engine, need->tenant, sku, row);
}

bool
bh_placement_allowed(const struct bh_search *search, const struct bh_need *need, uint32_t row,
                     struct bh_reason *ret_limit)
{
    const struct bh_engine *engine = search->engine;
    const struct sku *sku = sku_at(engine, need->sku);
    struct bh_wanted wanted = bh_placement_wanted(engine, need, row);
    uint32_t whose;

    return bh_placement_by(engine, need, row) && !(search->closed >> sku->models[row] & 1)
           && bh_quota_allows(search, &wanted, ret_limit, &whose);
}

/* A share needs a GPU that may be shared; whether one can be carved is the carving's matter. */
static bool
placement_may_be_shared(const struct gpu *gpu, uint32_t profile)
{
    return !bh_profile_is_share((bh_profile_id){ profile }) || bh_capacity_accepts(gpu, profile);
}

bool
bh_placement_hosted(const struct bh_search *search, const struct placement *placements, uint32_t count)
{
    const struct bh_engine *engine = search->engine;
    uint32_t node = gpu_at(engine, gpu_find(engine, placements[count].gpu))->node, partitions = 0;
    uint32_t capacity = bh_host_capacity(search, node);

    if (capacity == UINT32_MAX)
        return true;
    for (uint32_t i = 0; i < count; i++)
        partitions += gpu_at(engine, gpu_find(engine, placements[i].gpu))->node == node;
    return partitions / job_at(engine, search->job)->count < capacity;
}

bool
bh_placement_free(const struct bh_search *search, const struct placement *placements, uint32_t count)
{
    const struct bh_engine *engine = search->engine;
    const struct placement *placement = &placements[count];
    uint32_t slot = gpu_find(engine, placement->gpu), beside;
    const struct gpu *gpu = gpu_at(engine, slot);
    enum bh_gpu_model model = (enum bh_gpu_model)gpu->model;
    struct bh_occupancy occupancy;

    if (!slot || !bh_capacity_offered(engine, gpu) || search->closed >> gpu->model & 1
        || !bh_partition_exists(model, placement->profile)
        || !placement_may_be_shared(gpu, placement->profile))
        return false;
    bh_capacity_occupancy(search, slot, &occupancy);
    for (uint32_t i = 0; i < count; i++)
        if (placements[i].gpu == placement->gpu)
            bh_capacity_block(&occupancy, model, placements[i].profile, placements[i].start);
    if (!bh_partition_fits(&occupancy, model, placement->profile, placement->start))
        return false;
    if (!bh_exclusive_may_stand(search, slot, placement->profile, &beside)
        && !placement_idle(engine, &(struct bh_assignment){ slot, placement->profile, placement->start, 0 },
                           search->tenant))
        return false;
    return bh_capacity_beside(search, slot, placement->profile, &beside)
           && bh_capacity_on_node(search, gpu->node, &beside)
           && bh_placement_hosted(search, placements, count);
}

bool
bh_placement_possible(const struct bh_search *search, const struct placement *placements, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!bh_placement_free(search, placements, i))
            return false;
    return true;
}

void
bh_placement_list(const struct bh_engine *engine, const struct bh_plan *plan,
                  struct placement ret_places[BH_JOB_PARTITIONS_MAX])
{
    for (uint32_t i = 0; i < plan->count; i++)
        ret_places[i] = (struct placement){ (uint32_t)gpu_at(engine, plan->assignments[i].gpu)->id,
                                            plan->assignments[i].profile, plan->assignments[i].start };
}

bool
bh_placement_plan(const struct bh_engine *engine, uint32_t tenant, const struct placement *placements,
                  uint32_t count, struct bh_plan *ret_plan)
{
    ret_plan->count = count;
    ret_plan->node = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct bh_assignment *assignment = &ret_plan->assignments[i];

        *assignment = (struct bh_assignment){ gpu_find(engine, placements[i].gpu), placements[i].profile,
                                              placements[i].start, 0 };
        if (!assignment->gpu)
            return false;
        assignment->reuse = placement_idle(engine, assignment, tenant);
        ret_plan->node = gpu_at(engine, assignment->gpu)->node;
    }
    return count > 0;
}

void
bh_placement_decide(const struct bh_engine *engine, const struct bh_plan *plan,
                    struct bh_decision *ret_decision)
{
    uint64_t next = engine->core.next_partition;

    BH_ASSERT(plan->count <= BH_JOB_COUNT_MAX); /* of one member */
    ret_decision->partition_count = plan->count;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct bh_assignment *assignment = &plan->assignments[i];

        ret_decision->partitions[i] = (struct bh_partition){
            .partition = { assignment->reuse ? partition_at(engine, assignment->reuse)->id : next },
            .gpu = { (uint32_t)gpu_at(engine, assignment->gpu)->id },
            .profile = assignment->profile,
            .start = assignment->start,
            .carve = !assignment->reuse
        };
        next += !assignment->reuse;
    }
}
