#include "engine/pack/pack_loss.h"

#include <string.h>

#include "base/assert.h"

/* ln(k / (100 - k)) for k = 51 .. 99 in units of 2^-40, rounded: where 100 * sigmoid
 * reaches k.  Below 50 they are the same, negative.  pack_loss_test.c works them out anew.
 */
enum { LOGIT_BITS = 40, POINTS_MIDDLE = 50, POINTS = 99 };
static const int64_t logits[POINTS - POINTS_MIDDLE] = {
    43986330581,   88007887806,   132100067881,  176298608186,  220639763015,  265160485649,  309898619081,
    354893097930,  400184164341,  445813601022,  491824984985,  538263966095,  585178575213,  632619567527,
    680640807692,  729299704679,  778657705805,  828780861403,  879740474081,  931613849685,  984485171062,
    1038446520909, 1093599086619, 1150054588711, 1207936985808, 1267384524276, 1328552220886, 1391614894363,
    1456770899447, 1524246769572, 1594303048362, 1667241696309, 1743415613801, 1823241051730, 1907214029952,
    1995932426104, 2090126261854, 2190700133609, 2298794146748, 2415873971616, 2543868507063, 2685388964453,
    2844095011280, 3025345070926, 3237444894870, 3494307140166, 3822010928771, 4279101670987, 5052387706247
};

enum { CLASSES = BH_PACK_AMOUNTS_MAX + 1 };

size_t
bh_pack_loss_rows(uint32_t models)
{
    return (size_t)models * CLASSES;
}

/* The least gain, in parts times weight, that scores `point`.  Logarithms of fractions are
 * irrational, so nothing ever lies on a boundary except no gain at all, which is 50. */
static int64_t
loss_point_rung(int point, uint32_t weight)
{
    int64_t gpu = (int64_t)weight * BH_GPU_PARTS;
    int above = point - POINTS_MIDDLE;
    int64_t logit;

    if (above == 0)
        return 0;
    logit = above > 0 ? logits[above - 1] : -logits[-above - 1];
    return (int64_t)((__int128)gpu * logit >> LOGIT_BITS) + 1;
}

static void
loss_build_points(struct bh_pack_loss_table *table)
{
    int64_t rungs[POINTS];

    for (int point = 1; point <= POINTS; point++)
        rungs[point - 1] = loss_point_rung(point, table->weight ? table->weight : 1);
    bh_pack_ladder_build(&table->points, rungs, POINTS);
}

/* False: the list is full. */
static bool
loss_insert_amount(struct bh_pack_amounts *amounts, int64_t amount)
{
    uint32_t at = amounts->count;

    while (at > 0 && amounts->sorted[at - 1] >= amount)
        at--;
    if (at < amounts->count && amounts->sorted[at] == amount)
        return true;
    if (amounts->count == BH_PACK_AMOUNTS_MAX)
        return false;
    memmove(amounts->sorted + at + 1, amounts->sorted + at,
            (amounts->count - at) * sizeof amounts->sorted[0]);
    amounts->sorted[at] = amount;
    amounts->count++;
    return true;
}

static bool
loss_asks_for_part(const struct bh_pack_shape *want)
{
    return want->parts < BH_GPU_PARTS;
}

static bool
pack_loss_admit(struct bh_pack_loss_table *table, const struct bh_pack_shape *want)
{
    return loss_insert_amount(&table->core_amounts, want->cpu_milli)
           && (want->gpus == 0 || !loss_asks_for_part(want)
               || loss_insert_amount(&table->part_amounts, want->parts));
}

/* Forget the amounts of shapes that are no longer expected. */
static void
loss_collect_amounts(struct bh_pack *pack)
{
    pack->loss.core_amounts.count = pack->loss.part_amounts.count = 0;
    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);
        bool fits = ask->weight == 0 || pack_loss_admit(&pack->loss, &ask->want);

        BH_ASSERT(fits);
    }
}

bool
bh_pack_loss_admit(struct bh_pack *pack, const struct bh_pack_shape *want)
{
    if (pack_loss_admit(&pack->loss, want))
        return true;
    loss_collect_amounts(pack);
    return pack_loss_admit(&pack->loss, want);
}

static void
loss_build_amounts(struct bh_pack *pack)
{
    struct bh_pack_loss_table *table = &pack->loss;
    const struct bh_pack_amounts *parts = &table->part_amounts;

    table->weight = 0;
    for (uint32_t s = 0; s < pack->shapes; s++)
        table->weight += bh_pack_request(pack, s)->weight;
    BH_ASSERT(table->weight < BH_PACK_WEIGHT_MAX);
    bh_pack_ladder_build(&table->cores, table->core_amounts.sorted, table->core_amounts.count);
    for (uint32_t amount = 0, level = 0; amount <= BH_GPU_PARTS; amount++) {
        level += level < parts->count && parts->sorted[level] <= amount;
        table->level[amount] = (uint8_t)level;
    }
}

/* Weights of the shapes that one model and exactly one class of cores lets in, by the
 * level, or the number of whole GPUs, from which they can use what is free. */
static void
pack_loss_gather(const struct bh_pack *pack, uint32_t model, struct bh_pack_loss_row *rows)
{
    const struct bh_pack_loss_table *table = &pack->loss;

    memset(rows, 0, CLASSES * sizeof *rows);
    for (uint32_t s = 0; s < pack->shapes; s++) {
        const struct bh_pack_request *ask = bh_pack_request(pack, s);
        const struct bh_pack_shape *want = &ask->want;
        struct bh_pack_loss_row *row;

        if (want->gpus == 0 || !(want->models >> model & 1))
            continue;
        row = &rows[bh_pack_ladder_count(&table->cores, want->cpu_milli)];
        if (loss_asks_for_part(want))
            row->broken[table->level[want->parts]] += ask->weight;
        else if (want->gpus <= BH_PACK_GPUS_MAX)
            row->whole[want->gpus] += ask->weight;
    }
}

/* Sum up over classes and levels, then make of users those that cannot use. */
static void
loss_accumulate(const struct bh_pack_loss_table *table, struct bh_pack_loss_row *rows)
{
    for (uint32_t c = 1; c < CLASSES; c++) {
        for (uint32_t level = 0; level <= table->part_amounts.count; level++)
            rows[c].broken[level] += rows[c - 1].broken[level];
        for (uint32_t gpus = 0; gpus <= BH_PACK_GPUS_MAX; gpus++)
            rows[c].whole[gpus] += rows[c - 1].whole[gpus];
    }
    for (uint32_t c = 0; c < CLASSES; c++) {
        struct bh_pack_loss_row *row = &rows[c];

        for (uint32_t level = 1; level <= table->part_amounts.count; level++)
            row->broken[level] += row->broken[level - 1];
        row->whole[0] = row->broken[table->part_amounts.count];
        for (uint32_t gpus = 1; gpus <= BH_PACK_GPUS_MAX; gpus++)
            row->whole[gpus] += row->whole[gpus - 1];
        for (uint32_t level = 0; level <= table->part_amounts.count; level++)
            row->broken[level] = table->weight - row->broken[level];
        for (int64_t gpus = 0; gpus <= BH_PACK_GPUS_MAX; gpus++)
            row->whole[gpus] = (table->weight - row->whole[gpus]) * gpus * BH_GPU_PARTS;
    }
}

void
bh_pack_loss_build(struct bh_pack *pack)
{
    uint32_t known = 0;

    loss_build_amounts(pack);
    loss_build_points(&pack->loss);
    for (uint32_t model = 0; model < BH_PACK_MODELS_MAX; model++) {
        struct bh_pack_loss_row *rows = bh_pack_loss_row(pack, known * CLASSES);

        if (!(pack->models >> model & 1))
            continue;
        pack->loss.first[model] = (uint8_t)known;
        pack_loss_gather(pack, model, rows);
        loss_accumulate(&pack->loss, rows);
        known += known + 1 < pack->caps.models;
    }
}

static uint32_t
pack_loss_row_of(const struct bh_pack *pack, const struct bh_pack_node *left, uint32_t cores)
{
    return (uint32_t)pack->loss.first[left->model] * CLASSES + bh_pack_ladder_count(&pack->loss.cores, cores);
}

static inline int64_t
broken_loss(const struct bh_pack *pack, const struct bh_pack_loss_row *row, uint32_t parts)
{
    return (int64_t)row->broken[pack->loss.level[parts]] * parts;
}

static int64_t
host_loss(const struct bh_pack *pack, const struct bh_pack_host *host, const struct bh_pack_loss_row *row)
{
    int64_t loss = row->whole[host->whole_count];

    for (uint32_t broken = host->broken; broken; broken &= broken - 1)
        loss += broken_loss(pack, row, host->left.parts[__builtin_ctz(broken)]);
    return loss;
}

void
bh_pack_loss_refresh(const struct bh_pack *pack, struct bh_pack_host *host)
{
    host->row = pack_loss_row_of(pack, &host->left, host->left.cpu_milli);
    host->loss = host_loss(pack, host, bh_pack_loss_row(pack, host->row));
}

/* Of a part: what the GPUs gain, by one GPU after another. */
static uint32_t
loss_part_choices(const struct bh_pack *pack, const struct bh_pack_host *host,
                  const struct bh_pack_loss_row *row, uint32_t asked, struct bh_pack_choice *choices)
{
    uint32_t whole = host->whole_count, count = 0;
    uint32_t first_whole = host->whole & -(uint32_t)host->whole;

    for (uint32_t gpus = host->broken | first_whole; gpus; gpus &= gpus - 1) {
        uint32_t gpu = gpus & -gpus, left = host->left.parts[__builtin_ctz(gpus)];
        int64_t loss;

        if (left < asked)
            continue;
        loss = gpu == first_whole ? row->whole[whole] - row->whole[whole - 1] : broken_loss(pack, row, left);
        choices[count].gain = loss - broken_loss(pack, row, left - asked);
        choices[count++].gpus = gpu;
    }
    return count;
}

uint32_t
bh_pack_loss_choices(const struct bh_pack *pack, const struct bh_pack_host *host,
                     const struct bh_pack_shape *want, struct bh_pack_choice ret_choices[BH_PACK_GPUS_MAX])
{
    uint32_t number = pack_loss_row_of(pack, &host->left, host->left.cpu_milli - want->cpu_milli);
    const struct bh_pack_loss_row *row = bh_pack_loss_row(pack, number);
    int64_t by_cores = number == host->row ? 0 : host->loss - host_loss(pack, host, row);
    uint32_t whole = host->whole_count, count = 1;

    if (want->gpus > 0 && loss_asks_for_part(want))
        count = loss_part_choices(pack, host, row, want->parts, ret_choices);
    else
        ret_choices[0] = (struct bh_pack_choice){
            .gain = row->whole[whole] - row->whole[whole - want->gpus],
            .gpus = bh_pack_first_gpus(host->whole, want->gpus),
        };
    for (uint32_t i = 0; i < count; i++)
        ret_choices[i].gain += by_cores;
    return count;
}
