#include "engine/pack/pack_waste.h"

#include <string.h>

#include "base/assert.h"

/* The policy's constants, as tuned over the openb variants. */
enum {
    SHARE_BITS = 16,    /* shares of what is expected are fixed-point numbers */
    GPU_OFFERS = 32,    /* so many shapes are offered to one GPU */
    NODE_OFFERS = 24,   /* and so many to a node */
    CORE_WORTH = 16,    /* a core counts as so many thousandths of a GPU in a node's waste */
    NODE_WEIGHT = 8,    /* a node's waste counts 8/64 of its GPUs' own */
    SEVERAL_WEIGHT = 4, /* what shapes of several GPUs cannot use counts 4/64 */
};

enum {
    STEP_WASTE = 10 * BH_PACK_WASTE_UNIT, /* units in a level of one GPU */
    TENTH_MILLI = 100,
    CLASSES = BH_PACK_AMOUNTS_MAX + 1,
    NODE_TABLE = BH_PACK_TENTHS * BH_PACK_CORES,
    CORES_ROUND = 32, /* tables reach to a multiple of so many cores */
};

size_t
bh_pack_waste_rows_size(uint32_t kinds)
{
    return sizeof(struct bh_pack_waste_row) * kinds * CLASSES;
}

size_t
bh_pack_waste_nodes_size(uint32_t kinds)
{
    return sizeof(int32_t) * kinds * NODE_TABLE;
}

static struct bh_pack_waste_row *
pack_waste_row_of(const struct bh_pack *pack, uint32_t kind, uint32_t class)
{
    struct bh_pack_waste_row *rows = bh_pack_at(pack, pack->waste_rows);

    return &rows[kind * CLASSES + class];
}

/* A row of the table of nodes: by whole cores. */
static int32_t *
waste_cores_of(const struct bh_pack *pack, uint32_t kind, uint32_t tenths)
{
    int32_t *table = bh_pack_at(pack, pack->waste_nodes);

    return table + (size_t)kind * NODE_TABLE + (size_t)tenths * BH_PACK_CORES;
}

/* The expected shapes that one model may serve. */
struct waste_demand {
    const struct bh_pack *pack;
    uint32_t kind, model;
    int64_t gpu_weight, weight; /* of those with GPUs, of all */
};

static bool
waste_is_served(const struct waste_demand *demand, const struct bh_pack_request *ask)
{
    return ask->weight > 0 && (ask->want.gpus == 0 || ask->want.models >> demand->model & 1);
}

static struct waste_demand
waste_demand_for(const struct bh_pack *pack, uint32_t kind)
{
    struct waste_demand demand = { .pack = pack, .kind = kind, .model = pack->kinds.model[kind] };

    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);

        if (!waste_is_served(&demand, ask))
            continue;
        demand.weight += ask->weight;
        demand.gpu_weight += ask->want.gpus > 0 ? ask->weight : 0;
    }
    return demand;
}

static uint32_t
waste_share_of(uint32_t weight, int64_t of)
{
    return (uint32_t)(((int64_t)weight << SHARE_BITS) / of);
}

/* How a random shape finds one GPU: the share of those that ask for so many levels. */
struct waste_sizes {
    uint32_t share[BH_PACK_LEVELS + 1];
};

static void
waste_add_shape(const struct waste_demand *demand, const struct bh_pack_request *ask,
                struct waste_sizes *sizes, struct bh_pack_waste_row *row)
{
    const struct bh_pack_shape *want = &ask->want;
    uint32_t level = (want->parts + BH_PACK_WASTE_STEP - 1) / BH_PACK_WASTE_STEP;
    uint32_t among_all = waste_share_of(ask->weight, demand->weight);

    sizes->share[level] += waste_share_of(ask->weight, demand->gpu_weight);
    if (want->gpus <= 1)
        return;
    row->several += among_all;
    for (uint32_t f = 0; f < want->gpus && f <= BH_PACK_GPUS_MAX; f++)
        row->over[f] += among_all;
}

/* Add the shapes that need just this class of cores; false: there are none. */
static bool
waste_add_class(const struct waste_demand *demand, uint32_t class, struct waste_sizes *sizes,
                struct bh_pack_waste_row *row)
{
    const struct bh_pack *pack = demand->pack;
    bool added = false;

    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);

        if (ask->want.gpus == 0 || !waste_is_served(demand, ask)
            || bh_pack_ladder_count(&pack->loss.cores, ask->want.cpu_milli) != class)
            continue;
        waste_add_shape(demand, ask, sizes, row);
        added = true;
    }
    return added;
}

/* Waste by level: what is left less the use that is expected of it.  With each shape that
 * is offered the use of r levels becomes the mean, over the shapes, of s + use[r - s] where
 * it takes s levels and of use[r] where it does not fit.  From the top down the new values
 * may stand where the old ones did. */
static void
waste_build_levels(const struct waste_sizes *sizes, int32_t waste[BH_PACK_LEVELS + 1])
{
    int32_t use[BH_PACK_LEVELS + 1] = { 0 };
    uint32_t asked[BH_PACK_LEVELS], count = 0;

    for (uint32_t s = 1; s <= BH_PACK_LEVELS; s++)
        if (sizes->share[s] > 0)
            asked[count++] = s;
    for (uint32_t offer = 0; offer < GPU_OFFERS; offer++) {
        for (uint32_t r = BH_PACK_LEVELS; r > 0; r--) {
            int64_t sum = (int64_t)use[r] << SHARE_BITS;

            for (uint32_t i = 0; i < count && asked[i] <= r; i++)
                sum += (int64_t)sizes->share[asked[i]]
                       * ((int32_t)asked[i] * STEP_WASTE + use[r - asked[i]] - use[r]);
            use[r] = (int32_t)(sum >> SHARE_BITS);
        }
    }
    for (int32_t r = 0; r <= BH_PACK_LEVELS; r++)
        waste[r] = r * STEP_WASTE - use[r];
}

static void
waste_build_rows(const struct waste_demand *demand)
{
    uint32_t classes = demand->pack->loss.core_amounts.count + 1;
    struct waste_sizes sizes = { { 0 } };

    for (uint32_t class = 0; class < classes; class ++) {
        struct bh_pack_waste_row *row = pack_waste_row_of(demand->pack, demand->kind, class);

        if (class == 0)
            *row = (struct bh_pack_waste_row){ .several = 0 };
        else
            *row = row[-1];
        if (waste_add_class(demand, class, &sizes, row) || class == 0)
            waste_build_levels(&sizes, row->level);
    }
}

/* Shapes as the table of nodes sees them: those that round to the same are one. */
struct waste_offer {
    uint32_t tenths, cores;
    int64_t share;
    int32_t use;
};

size_t
bh_pack_waste_offers_size(const struct bh_pack_caps *caps)
{
    return caps->shapes * sizeof(struct waste_offer);
}

/* All of that in units; it is within a table of nodes. */
static int32_t
waste_worth_of(uint32_t tenths, uint32_t cores)
{
    return (int32_t)(tenths * TENTH_MILLI + cores * CORE_WORTH) * BH_PACK_WASTE_UNIT;
}

static struct waste_offer
waste_offer_from(const struct waste_demand *demand, const struct bh_pack_request *ask)
{
    const struct bh_pack_shape *want = &ask->want;
    struct waste_offer offer = {
        .tenths = (want->gpus * want->parts + BH_PACK_WASTE_TENTH / 2) / BH_PACK_WASTE_TENTH,
        .cores = want->cpu_milli / 1000 + (want->cpu_milli % 1000 >= 500),
        .share = waste_share_of(ask->weight, demand->weight),
    };

    if (want->gpus > 0 && offer.tenths == 0)
        offer.tenths = 1;
    if (want->gpus > BH_PACK_GPUS_MAX)
        offer.tenths = BH_PACK_TENTHS; /* more than any node has */
    return offer;
}

static bool
waste_is_after(const struct waste_offer *a, const struct waste_offer *b)
{
    return a->tenths != b->tenths ? a->tenths > b->tenths : a->cores > b->cores;
}

/* Add it to the list, which is sorted by tenths and cores; returns how long that is now. */
static uint32_t
waste_insert_offer(struct waste_offer *offers, uint32_t count, const struct waste_offer *offer)
{
    uint32_t at = count;

    while (at > 0 && waste_is_after(&offers[at - 1], offer))
        at--;
    if (at > 0 && !waste_is_after(offer, &offers[at - 1])) {
        offers[at - 1].share += offer->share;
        return count;
    }
    memmove(offers + at + 1, offers + at, (count - at) * sizeof *offers);
    offers[at] = *offer;
    return count + 1;
}

/* Those that could fit a node; returns how many. */
static uint32_t
waste_collect_offers(const struct waste_demand *demand, struct waste_offer *offers)
{
    const struct bh_pack *pack = demand->pack;
    const struct bh_pack_reach *reach = &pack->kinds.reach[demand->kind];
    uint32_t count = 0;

    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);
        struct waste_offer offer;

        if (!waste_is_served(demand, ask))
            continue;
        offer = waste_offer_from(demand, ask);
        if (offer.tenths > reach->tenths || offer.cores > reach->cores)
            continue;
        offer.use = waste_worth_of(offer.tenths, offer.cores);
        count = waste_insert_offer(offers, count, &offer);
    }
    return count;
}

/* The sum of waste_build_levels by cores, but for the use of what is left behind a shape that
 * fits: what those that fit use themselves, and what is used where none does. */
static void
waste_start_row(const int32_t *use, const struct waste_offer *offers, uint32_t count, uint32_t cores,
                int64_t sum[BH_PACK_CORES])
{
    int64_t fitting[BH_PACK_CORES] = { 0 }, taken[BH_PACK_CORES] = { 0 };
    int64_t share = 0, worth = 0;

    for (uint32_t k = 0; k < count; k++) {
        fitting[offers[k].cores] += offers[k].share;
        taken[offers[k].cores] += offers[k].share * offers[k].use;
    }
    for (uint32_t c = 0; c <= cores; c++) {
        share += fitting[c];
        worth += taken[c];
        sum[c] = worth + ((1 << SHARE_BITS) - share) * use[c];
    }
}

/* One more offer to the nodes with so many tenths, as in waste_build_levels; offers are sorted by
 * tenths. */
static void
waste_offer_row(int32_t *table, uint32_t tenths, const struct waste_offer *offers, uint32_t count,
                uint32_t cores)
{
    int32_t *use = table + (size_t)tenths * BH_PACK_CORES;
    int64_t sum[BH_PACK_CORES];

    while (count > 0 && offers[count - 1].tenths > tenths)
        count--;
    waste_start_row(use, offers, count, cores, sum);
    for (uint32_t k = 0; k < count; k++) {
        const int32_t *rest = use - (size_t)offers[k].tenths * BH_PACK_CORES;
        int64_t share = offers[k].share, *at = sum + offers[k].cores;

        for (uint32_t c = 0; c + offers[k].cores <= cores; c++)
            at[c] += share * rest[c];
    }
    for (uint32_t c = 0; c <= cores; c++)
        use[c] = (int32_t)(sum[c] >> SHARE_BITS);
}

static void
waste_build_nodes(const struct waste_demand *demand)
{
    const struct bh_pack *pack = demand->pack;
    const struct bh_pack_reach *reach = &pack->kinds.reach[demand->kind];
    struct waste_offer *offers = bh_pack_at(pack, pack->waste_offers);
    uint32_t count = waste_collect_offers(demand, offers);
    int32_t *table = waste_cores_of(pack, demand->kind, 0);

    memset(table, 0, (reach->tenths + 1) * BH_PACK_CORES * sizeof *table);
    for (uint32_t offer = 0; offer < NODE_OFFERS; offer++)
        for (uint32_t tenths = reach->tenths + 1; tenths-- > 0;)
            waste_offer_row(table, tenths, offers, count, reach->cores);
    for (uint32_t tenths = 0; tenths <= reach->tenths; tenths++) {
        int32_t *row = waste_cores_of(pack, demand->kind, tenths);

        for (uint32_t c = 0; c <= reach->cores; c++)
            row[c] = (waste_worth_of(tenths, c) - row[c]) * NODE_WEIGHT / BH_PACK_WASTE_UNIT;
        row[reach->cores + 1] = row[reach->cores];
    }
}

static uint32_t
waste_cores_reach(const struct bh_pack_node *left)
{
    uint32_t cores = left->cpu_milli / (CORES_ROUND * 1000U) + 1;

    return cores < BH_PACK_CORES_MAX / CORES_ROUND ? cores * CORES_ROUND : BH_PACK_CORES_MAX;
}

static void
waste_find_reach(struct bh_pack *pack)
{
    struct bh_pack_kinds *kinds = &pack->kinds;

    memset(kinds->reach, 0, sizeof kinds->reach);
    for (uint32_t n = 0; n < pack->caps.nodes; n++) {
        const struct bh_pack_node *left = &bh_pack_host(pack, n)->left;
        struct bh_pack_reach *reach = &kinds->reach[kinds->of[left->model]];
        uint32_t cores = waste_cores_reach(left), tenths = left->gpus * 10;

        reach->cores = cores > reach->cores ? cores : reach->cores;
        reach->tenths = tenths > reach->tenths ? tenths : reach->tenths;
    }
}

void
bh_pack_waste_build(struct bh_pack *pack)
{
    waste_find_reach(pack);
    for (uint32_t kind = 0; kind < pack->kinds.count; kind++) {
        struct waste_demand demand = waste_demand_for(pack, kind);

        waste_build_rows(&demand);
        waste_build_nodes(&demand);
    }
}

bool
bh_pack_waste_covers(const struct bh_pack *pack, const struct bh_pack_host *host)
{
    const struct bh_pack_reach *reach = &pack->kinds.reach[pack->kinds.of[host->left.model]];

    return waste_cores_reach(&host->left) <= reach->cores && host->left.gpus * 10 <= reach->tenths;
}

/* Of the node's GPUs together with its cores, linear between whole cores. */
static int64_t
waste_together(const struct bh_pack *pack, uint32_t kind, uint32_t parts, uint32_t milli)
{
    const int32_t *at;

    if (milli > BH_PACK_CORES_MAX * 1000)
        milli = BH_PACK_CORES_MAX * 1000;
    at = waste_cores_of(pack, kind, (parts + BH_PACK_WASTE_TENTH / 2) / BH_PACK_WASTE_TENTH) + milli / 1000;
    return at[0] + (at[1] - at[0]) * (int64_t)(milli % 1000) / 1000;
}

/* What shapes of several GPUs cannot use: broken GPUs, and whole ones where they are too
 * few. */
static int64_t
waste_of_several(const struct bh_pack_waste_row *row, uint32_t parts, uint32_t whole)
{
    uint32_t broken = (parts - whole * BH_GPU_PARTS) * 5 / 21;
    int64_t lost = (int64_t)broken * row->several + (int64_t)whole * 1000 * row->over[whole];

    return (lost * SEVERAL_WEIGHT) >> SHARE_BITS;
}

static inline int64_t
waste_of_gpu(const struct bh_pack_waste_row *row, uint32_t parts)
{
    return row->level[parts / BH_PACK_WASTE_STEP];
}

static int64_t
waste_of_gpus(const struct bh_pack_waste_row *row, const struct bh_pack_host *host)
{
    int64_t waste = (int64_t)row->level[BH_PACK_LEVELS] * host->whole_count;

    for (uint32_t broken = host->broken; broken; broken &= broken - 1)
        waste += waste_of_gpu(row, host->left.parts[__builtin_ctz(broken)]);
    return waste;
}

static const struct bh_pack_waste_row *
waste_row_for(const struct bh_pack *pack, uint32_t kind, uint32_t milli)
{
    return pack_waste_row_of(pack, kind, bh_pack_ladder_count(&pack->loss.cores, milli));
}

void
bh_pack_waste_refresh(const struct bh_pack *pack, struct bh_pack_host *host)
{
    uint32_t kind = pack->kinds.of[host->left.model], milli = host->left.cpu_milli;
    const struct bh_pack_waste_row *row = waste_row_for(pack, kind, milli);

    host->waste = (int32_t)(waste_of_gpus(row, host) + waste_together(pack, kind, host->parts, milli)
                            + waste_of_several(row, host->parts, host->whole_count));
}

/* Of a part: what the GPUs save, by one GPU after another. */
static uint32_t
waste_part_choices(const struct bh_pack_host *host, const struct bh_pack_waste_row *row, uint32_t asked,
                   struct bh_pack_choice *choices)
{
    uint32_t whole = host->whole_count, left = host->parts - asked, count = 0;
    uint32_t first_whole = host->whole & -(uint32_t)host->whole;

    for (uint32_t gpus = host->broken | first_whole; gpus; gpus &= gpus - 1) {
        uint32_t gpu = gpus & -gpus, parts = host->left.parts[__builtin_ctz(gpus)];

        if (parts < asked)
            continue;
        choices[count].gain = waste_of_gpu(row, parts) - waste_of_gpu(row, parts - asked)
                              - waste_of_several(row, left, whole - (gpu == first_whole));
        choices[count++].gpus = gpu;
    }
    return count;
}

uint32_t
bh_pack_waste_choices(const struct bh_pack *pack, const struct bh_pack_host *host,
                      const struct bh_pack_shape *want, struct bh_pack_choice ret_choices[BH_PACK_GPUS_MAX])
{
    uint32_t kind = pack->kinds.of[host->left.model];
    uint32_t milli = host->left.cpu_milli - want->cpu_milli;
    uint32_t left = host->parts - want->gpus * want->parts, count = 1;
    const struct bh_pack_waste_row *row = waste_row_for(pack, kind, milli);
    int64_t saved = host->waste - waste_of_gpus(row, host) - waste_together(pack, kind, left, milli);

    if (want->gpus > 0 && want->parts < BH_GPU_PARTS)
        count = waste_part_choices(host, row, want->parts, ret_choices);
    else
        ret_choices[0] = (struct bh_pack_choice){
            .gain = (int64_t)row->level[BH_PACK_LEVELS] * want->gpus
                    - waste_of_several(row, left, host->whole_count - want->gpus),
            .gpus = bh_pack_first_gpus(host->whole, want->gpus),
        };
    for (uint32_t i = 0; i < count; i++)
        ret_choices[i].gain += saved;
    return count;
}
