#include "tests/evidence/optimum.h"

#include <string.h>

#include "base/assert.h"

/* One search under way. */
struct search {
    const struct bh_opt_site *site;
    const struct bh_opt_want *want;
    uint64_t gone;
    uint32_t spot_count;
    struct bh_opt_piece spots[BH_OPT_GPUS * 16];
    struct bh_opt_plan plan;
    struct bh_opt_plan *best; /* NULL: any will do */
    struct bh_opt_score best_score;
    bool found;
};

static uint32_t
pieces_of(const struct bh_opt_want *want)
{
    return want->count * want->gang;
}

static bool
is_gone(uint64_t gone, uint32_t runner)
{
    return runner == BH_OPT_NOBODY || (gone >> runner & 1);
}

/* ---- what stands together on one GPU ---- */

struct stack {
    uint32_t count;
    struct bh_opt_piece partitions[BH_OPT_PIECES];
};

/* What stays on the GPU, and what the plan puts there. */
static void
pile_up(const struct bh_opt_site *site, uint32_t gpu, uint64_t gone, const struct bh_opt_plan *plan,
        struct stack *ret_stack)
{
    ret_stack->count = 0;
    for (uint32_t i = 0; i < site->partition_count; i++)
        if (site->partitions[i].gpu == gpu && !is_gone(gone, site->partitions[i].runner))
            ret_stack->partitions[ret_stack->count++] = site->partitions[i];
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->partitions[i].gpu == gpu)
            ret_stack->partitions[ret_stack->count++] = plan->partitions[i];
}

static bool
apart(const struct bh_profile *a, uint32_t a_start, const struct bh_profile *b, uint32_t b_start)
{
    return a_start + a->memory_units <= b_start || b_start + b->memory_units <= a_start;
}

/* One partition against those before it. */
static bool
joins(const struct stack *stack, uint32_t at)
{
    const struct bh_opt_piece *partition = &stack->partitions[at];
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ partition->profile });
    uint32_t alike = 1;

    if (!profile)
        return stack->count == 1;
    for (uint32_t i = 0; i < at; i++) {
        const struct bh_opt_piece *other = &stack->partitions[i];
        const struct bh_profile *beside = bh_profile_get((bh_profile_id){ other->profile });

        if (!beside || !apart(profile, partition->start, beside, other->start)
            || (profile->media && beside->media))
            return false;
        alike += beside == profile;
    }
    return (profile->starts >> partition->start & 1) && alike <= profile->most;
}

static bool
stands(const struct bh_opt_site *site, uint32_t gpu, const struct stack *stack)
{
    const struct bh_model_facts *facts = bh_model_facts(site->gpus[gpu].model);
    uint32_t slices = 0;

    for (uint32_t i = 0; i < stack->count; i++) {
        const struct bh_profile *profile = bh_profile_get((bh_profile_id){ stack->partitions[i].profile });

        if (!joins(stack, i))
            return false;
        slices += profile ? profile->compute_slices : facts->compute_slices;
    }
    return slices <= facts->compute_slices;
}

/* ---- tenants ---- */

static bool
within(const struct bh_opt_site *site, uint32_t above, uint32_t tenant)
{
    while (tenant != BH_OPT_NOBODY && tenant != above)
        tenant = site->tenants[tenant].parent;
    return tenant == above;
}

/* What `from`, and those above it that are not above `other`, ask for. */
static void
demand(const struct bh_opt_site *site, uint32_t from, uint32_t other, struct bh_opt_tenant *strongest)
{
    for (; from != BH_OPT_NOBODY && !within(site, from, other); from = site->tenants[from].parent) {
        if (site->tenants[from].boundary > strongest->boundary)
            strongest->boundary = site->tenants[from].boundary;
        strongest->dedicated = strongest->dedicated || site->tenants[from].dedicated;
    }
}

static struct bh_opt_tenant
between(const struct bh_opt_site *site, uint32_t a, uint32_t b)
{
    struct bh_opt_tenant strongest = { .boundary = BH_BOUNDARY_NONE };

    demand(site, a, b, &strongest);
    demand(site, b, a, &strongest);
    return strongest;
}

static enum bh_grade
grade_of(const struct bh_opt_site *site, const struct bh_opt_want *want, uint32_t profile)
{
    for (uint32_t at = want->tenant; at != BH_OPT_NOBODY; at = site->tenants[at].parent)
        if (site->tenants[at].dedicated)
            return BH_GRADE_A;
    return profile == BH_PROFILE_WHOLE.v ? BH_GRADE_B : BH_GRADE_C;
}

/* Whether those who stay let the job on the GPU, and on its node. */
static bool
welcome(const struct search *search, uint32_t gpu)
{
    const struct bh_opt_site *site = search->site;

    for (uint32_t i = 0; i < site->partition_count; i++) {
        const struct bh_opt_piece *partition = &site->partitions[i];
        struct bh_opt_tenant wall;

        if (is_gone(search->gone, partition->runner)
            || site->gpus[partition->gpu].node != site->gpus[gpu].node)
            continue;
        wall = between(site, search->want->tenant, site->runners[partition->runner].tenant);
        if (wall.dedicated)
            return false;
        if (partition->gpu == gpu && wall.boundary == BH_BOUNDARY_FORTRESS)
            return false; /* needs whole GPUs: without neighbors */
    }
    return true;
}

/* ---- limits ---- */

/* What those who stay, and the job, use of what a tenant limits. */
struct use {
    uint64_t parts, of_user, partitions, of_model;
};

static struct use
use_below(const struct search *search, uint32_t tenant, uint32_t row)
{
    const struct bh_opt_site *site = search->site;
    const struct bh_opt_want *want = search->want;
    const struct bh_opt_tenant *limits = &site->tenants[tenant];
    uint64_t wanted =
        bh_parts_equivalent(bh_profile_parts((bh_profile_id){ want->rows[row].profile })) * pieces_of(want);
    struct use use = { .parts = wanted, .of_user = wanted };

    use.partitions = want->sku == limits->quota_sku ? pieces_of(want) : 0;
    use.of_model = want->rows[row].model == limits->quota_model ? wanted : 0;
    for (uint32_t i = 0; i < site->runner_count; i++) {
        const struct bh_opt_runner *runner = &site->runners[i];

        if (is_gone(search->gone, i) || !within(site, tenant, runner->tenant))
            continue;
        use.parts += runner->equivalent;
        use.of_user += runner->principal == want->principal ? runner->equivalent : 0;
        use.partitions += runner->sku == limits->quota_sku ? runner->partitions : 0;
        use.of_model += runner->model == limits->quota_model ? runner->equivalent : 0;
    }
    return use;
}

/* A quota binds only those who want what it counts. */
static bool
limits_allow(const struct search *search, uint32_t row)
{
    const struct bh_opt_site *site = search->site;
    const struct bh_opt_want *want = search->want;

    for (uint32_t at = want->tenant; at != BH_OPT_NOBODY; at = site->tenants[at].parent) {
        const struct bh_opt_tenant *limits = &site->tenants[at];
        struct use use = use_below(search, at, row);

        if (use.parts > limits->limit || use.of_user > limits->user_limit)
            return false;
        if (want->sku == limits->quota_sku && use.partitions > limits->quota_pieces)
            return false;
        if (want->rows[row].model == limits->quota_model && use.of_model > limits->quota_parts)
            return false;
    }
    return true;
}

static bool
row_allowed(const struct search *search, uint32_t row)
{
    enum bh_grade have = grade_of(search->site, search->want, search->want->rows[row].profile);

    return bh_grade_meets(have, search->want->grade) && limits_allow(search, row);
}

/* ---- plans ---- */

static struct bh_occupancy
occupancy_with(const struct bh_opt_site *site, uint32_t gpu, const struct bh_opt_plan *plan)
{
    struct bh_occupancy occupancy = { 0 };
    struct stack stack;

    pile_up(site, gpu, 0, plan, &stack);
    for (uint32_t i = 0; i < stack.count; i++) {
        const struct bh_profile *profile = bh_profile_get((bh_profile_id){ stack.partitions[i].profile });

        if (profile)
            bh_occupancy_add(&occupancy, profile, stack.partitions[i].start);
        else
            occupancy.whole = true;
    }
    return occupancy;
}

struct bh_occupancy
bh_optimum_occupancy(const struct bh_opt_site *site, uint32_t gpu)
{
    static const struct bh_opt_plan nothing;

    return occupancy_with(site, gpu, &nothing);
}

/* How bad it is that a GPU stands so. */
static int64_t
badness(const struct bh_opt_site *site, uint32_t gpu, const struct bh_opt_plan *plan)
{
    struct bh_occupancy occupancy = occupancy_with(site, gpu, plan);
    enum bh_gpu_model model = site->gpus[gpu].model;

    if (site->figures[model])
        return -bh_mig_worth(site->figures[model], &site->prices[model], &occupancy);
    return (int64_t)bh_occupancy_fragmentation(&occupancy, model);
}

static bool
has_idle(const struct bh_opt_site *site, uint32_t tenant, const struct bh_opt_piece *wanted)
{
    for (uint32_t i = 0; i < site->partition_count; i++) {
        const struct bh_opt_piece *partition = &site->partitions[i];

        if (partition->runner == BH_OPT_NOBODY && partition->tenant == tenant && partition->gpu == wanted->gpu
            && partition->profile == wanted->profile && partition->start == wanted->start)
            return true;
    }
    return false;
}

static uint32_t
nodes_of(const struct bh_opt_site *site, const struct bh_opt_plan *plan)
{
    uint32_t nodes = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        nodes |= 1u << site->gpus[plan->partitions[i].gpu].node;
    return (uint32_t)__builtin_popcount(nodes);
}

/* What the plan costs that takes whole GPUs. */
static int64_t
whole_cost(const struct bh_opt_site *site, const struct bh_opt_want *want, const struct bh_opt_plan *plan)
{
    uint32_t partitions[BH_OPT_NODES] = { 0 };
    int64_t cost = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        partitions[site->gpus[plan->partitions[i].gpu].node]++;
    for (uint32_t node = 0; node < BH_OPT_NODES; node++)
        cost += site->whole_costs[site->gpus[plan->partitions[0].gpu].model][node]
                                 [partitions[node] / want->count];
    return cost;
}

struct bh_opt_score
bh_optimum_score(const struct bh_opt_site *site, const struct bh_opt_want *want,
                 const struct bh_opt_plan *plan)
{
    static const struct bh_opt_plan nothing;
    struct bh_opt_score score = { 0 };

    for (uint32_t gpu = 0; gpu < site->gpu_count; gpu++) {
        bool touched = false;

        for (uint32_t i = 0; i < plan->count; i++)
            touched = touched
                      || (plan->partitions[i].gpu == gpu /* whole GPUs are alike */
                          && plan->partitions[i].profile != BH_PROFILE_WHOLE.v);
        if (touched)
            score.growth += badness(site, gpu, plan) - badness(site, gpu, &nothing);
    }
    score.nodes = nodes_of(site, plan);
    score.parts =
        (uint32_t)bh_parts_equivalent(bh_profile_parts((bh_profile_id){ plan->partitions[0].profile }));
    if (plan->partitions[0].profile == BH_PROFILE_WHOLE.v) {
        score.growth = whole_cost(site, want, plan);
        score.node = site->gpus[plan->partitions[0].gpu].node;
    }
    for (uint32_t i = 0; i < plan->count; i++)
        score.carve += !has_idle(site, want->tenant, &plan->partitions[i]);
    return score;
}

bool
bh_optimum_better(const struct bh_opt_score *a, const struct bh_opt_score *b)
{
    if (a->nodes != b->nodes)
        return a->nodes < b->nodes;
    if (a->parts != b->parts)
        return a->parts < b->parts;
    if (a->growth != b->growth)
        return a->growth < b->growth;
    return a->node != b->node ? a->node < b->node : a->carve < b->carve;
}

static uint32_t
starts_of(uint32_t profile_id)
{
    const struct bh_profile *profile = bh_profile_get((bh_profile_id){ profile_id });

    return profile ? profile->starts : 1;
}

static bool
serves(const struct search *search, uint32_t gpu, uint32_t row)
{
    const struct bh_opt_gpu *at = &search->site->gpus[gpu];
    uint32_t profile = search->want->rows[row].profile;

    return at->open && at->model == search->want->rows[row].model
           && (at->mig || profile == BH_PROFILE_WHOLE.v) && welcome(search, gpu);
}

/* Every spot of a row; GPUs stand node by node, and so do they. */
static void
list_spots(struct search *search, uint32_t row)
{
    uint32_t profile = search->want->rows[row].profile;

    search->spot_count = 0;
    for (uint32_t gpu = 0; gpu < search->site->gpu_count; gpu++) {
        BH_ASSERT(gpu == 0 || search->site->gpus[gpu - 1].node <= search->site->gpus[gpu].node);
        if (!serves(search, gpu, row))
            continue;
        for (uint32_t starts = starts_of(profile); starts; starts &= starts - 1)
            search->spots[search->spot_count++] =
                (struct bh_opt_piece){ gpu, profile, (uint32_t)__builtin_ctz(starts), 0, 0 };
    }
}

static void
weigh(struct search *search)
{
    struct bh_opt_score score;

    if (search->best) {
        score = bh_optimum_score(search->site, search->want, &search->plan);
        if (!search->found || bh_optimum_better(&score, &search->best_score)) {
            search->best_score = score;
            *search->best = search->plan;
        }
    }
    search->found = true;
}

/* Whether the next partition may stand there as far as nodes go: a member stands on one. */
static bool
on_node(const struct search *search, uint32_t spot)
{
    const struct bh_opt_plan *plan = &search->plan;
    const struct bh_opt_gpu *gpus = search->site->gpus;

    return plan->count % search->want->count == 0
           || gpus[search->spots[spot].gpu].node == gpus[plan->partitions[plan->count - 1].gpu].node;
}

/* All ways to put the rest of the partitions on spots from `from` on.  Pieces are alike, so one
 * order of them will do. */
static void
try_spots(struct search *search, uint32_t from)
{
    struct bh_opt_plan *plan = &search->plan;

    if (plan->count == pieces_of(search->want)) {
        weigh(search);
        return;
    }
    for (uint32_t i = from; i < search->spot_count; i++) {
        struct stack stack;

        if (!on_node(search, i))
            continue;
        plan->partitions[plan->count++] = search->spots[i];
        pile_up(search->site, search->spots[i].gpu, search->gone, plan, &stack);
        if (stands(search->site, search->spots[i].gpu, &stack))
            try_spots(search, i + 1);
        plan->count--;
        if (search->found && !search->best)
            return;
    }
}

bool
bh_optimum_find(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t gone,
                struct bh_opt_plan *ret_best)
{
    struct search search = { .site = site, .want = want, .gone = gone, .best = ret_best };

    for (uint32_t row = 0; row < want->row_count; row++) {
        if (!row_allowed(&search, row))
            continue;
        list_spots(&search, row);
        try_spots(&search, 0);
    }
    return search.found;
}

static bool
row_of(const struct bh_opt_want *want, enum bh_gpu_model model, uint32_t profile, uint32_t *ret_row)
{
    for (uint32_t row = 0; row < want->row_count; row++)
        if (want->rows[row].model == model && want->rows[row].profile == profile) {
            *ret_row = row;
            return true;
        }
    return false;
}

const char *
bh_optimum_illegal(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t gone,
                   const struct bh_opt_plan *plan)
{
    struct search search = { .site = site, .want = want, .gone = gone };
    uint32_t first = plan->partitions[0].gpu, row;

    if (plan->count != pieces_of(want))
        return "has too many pieces, or too few";
    if (!row_of(want, site->gpus[first].model, plan->partitions[0].profile, &row))
        return "is not what the SKU says";
    if (!row_allowed(&search, row))
        return "exceeds a limit, or is of too weak a grade";
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct bh_opt_piece *partition = &plan->partitions[i];
        struct stack stack;

        if (site->gpus[partition->gpu].node
            != site->gpus[plan->partitions[i / want->count * want->count].gpu].node)
            return "a member stands on two nodes";
        if (partition->profile != want->rows[row].profile || !serves(&search, partition->gpu, row))
            return "stands where it must not";
        pile_up(site, partition->gpu, gone, plan, &stack);
        if (!stands(site, partition->gpu, &stack))
            return "does not fit on the GPU";
    }
    return NULL;
}

/* ---- who leaves ---- */

struct bh_opt_cost
bh_optimum_cost(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t gone)
{
    struct bh_opt_cost cost = { 0 };

    for (; gone; gone &= gone - 1) {
        const struct bh_opt_runner *runner = &site->runners[__builtin_ctzll(gone)];

        cost.victims++;
        if (!runner->suspends || between(site, want->tenant, runner->tenant).dedicated)
            cost.lost += (bh_part_ns)runner->equivalent * runner->loses_ns;
        if (runner->priority > cost.priority)
            cost.priority = runner->priority;
    }
    return cost;
}

bool
bh_optimum_cheaper(const struct bh_opt_cost *a, const struct bh_opt_cost *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->lost != b->lost ? a->lost < b->lost : a->victims < b->victims;
}

uint64_t
bh_optimum_lower(const struct bh_opt_site *site, const struct bh_opt_want *want)
{
    uint64_t lower = 0;

    for (uint32_t i = 0; i < site->runner_count; i++)
        if (!site->runners[i].stays && site->runners[i].priority < want->priority)
            lower |= UINT64_C(1) << i;
    return lower;
}

bool
bh_optimum_victims(const struct bh_opt_site *site, const struct bh_opt_want *want, uint64_t *ret_gone)
{
    uint64_t lower = bh_optimum_lower(site, want);
    struct bh_opt_cost least = { 0 };
    bool found = false;

    if (!bh_optimum_find(site, want, lower, NULL))
        return false; /* whichever job leaves, there would still be room with more gone */
    for (uint64_t gone = lower; gone; gone = (gone - 1) & lower) {
        struct bh_opt_cost cost = bh_optimum_cost(site, want, gone);

        if ((found && !bh_optimum_cheaper(&cost, &least)) || !bh_optimum_find(site, want, gone, NULL))
            continue;
        least = cost;
        *ret_gone = gone;
        found = true;
    }
    return found;
}
