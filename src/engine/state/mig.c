#include "engine/state/mig.h"

#include <string.h>

#include "base/assert.h"

enum {
    SLOTS = 2048, /* of the hash of figures: thrice as many */
    UNITS_MAX = 16,
    /* Spans, in ninths of a mean life: as far as each price looks, and how long a GPU is
     * left to empty for soon_p. */
    NINTHS = 9,
    NOW_NINTHS = 1,
    LATER_NINTHS = 2,
    FAR_NINTHS = 4,
    SHARE_TENTHS = 4, /* parts of the factor of room: w_p, and the price far ahead */
    FAR_TENTHS = 1,
    PRICE_ONE = 65536
};

struct mig_shape {
    uint32_t slices, units, starts;
    uint32_t profile; /* number of one that stands for all: the one least restricted */
};

struct mig_figure {
    uint64_t key;
    uint32_t soon[BH_MIG_SHAPES_MAX];
    uint8_t capacity[BH_MIG_SHAPES_MAX];
    uint32_t layouts, partitions;
};

struct bh_mig {
    uint32_t model, units, slices;
    uint32_t shape_count, figure_count;
    struct mig_shape shapes[BH_MIG_SHAPES_MAX];
    uint8_t shape_of[16];  /* by the profile's place in the model's rows */
    uint16_t slots[SLOTS]; /* figure + 1; 0: none */
    struct mig_figure figures[BH_MIG_FIGURES_MAX];
};

static const struct bh_profile *
mig_stands_for(const struct mig_shape *shape)
{
    return bh_profile_get((bh_profile_id){ shape->profile });
}

/* ---- shapes ---- */

static bool
mig_has_shape(const struct bh_profile *profile, const struct mig_shape *shape)
{
    return profile->compute_slices == shape->slices && profile->memory_units == shape->units
           && profile->starts == shape->starts;
}

static bool
mig_less_restricted(const struct bh_profile *a, const struct bh_profile *b)
{
    return a->most != b->most ? a->most > b->most : b->media && !a->media;
}

static void
mig_add_profile(struct bh_mig *mig, uint32_t row, const struct bh_profile *profile)
{
    uint32_t at = 0;

    while (at < mig->shape_count && !mig_has_shape(profile, &mig->shapes[at]))
        at++;
    BH_ASSERT(at < BH_MIG_SHAPES_MAX);
    if (at == mig->shape_count) {
        mig->shapes[at] = (struct mig_shape){ profile->compute_slices, profile->memory_units, profile->starts,
                                              profile->id.v };
        mig->shape_count++;
    } else if (mig_less_restricted(profile, mig_stands_for(&mig->shapes[at]))) {
        mig->shapes[at].profile = profile->id.v;
    }
    mig->shape_of[row] = (uint8_t)at;
}

uint32_t
bh_mig_shape(const struct bh_mig *mig, const struct bh_profile *profile)
{
    uint32_t count;
    const struct bh_profile *first = bh_profile_first((enum bh_gpu_model)mig->model, &count);

    BH_ASSERT(profile->id.v - first->id.v < count);
    return mig->shape_of[profile->id.v - first->id.v];
}

uint32_t
bh_mig_shapes(const struct bh_mig *mig)
{
    return mig->shape_count;
}

/* ---- figures: occupancies by their units and counts ---- */

static uint64_t
mig_key_of(const struct bh_mig *mig, const struct bh_occupancy *occupancy)
{
    uint64_t counts = 0;

    for (uint32_t row = 0; row < sizeof(occupancy->counts); row++)
        counts += (uint64_t)occupancy->counts[row] << 4 * mig->shape_of[row];
    return counts << 32 | occupancy->units;
}

/* The slot that holds the key, or the empty one where it belongs. */
static uint32_t
mig_slot_of(const struct bh_mig *mig, uint64_t key)
{
    uint32_t slot = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) % SLOTS;

    while (mig->slots[slot] && mig->figures[mig->slots[slot] - 1].key != key)
        slot = (slot + 1) % SLOTS;
    return slot;
}

static void
mig_compute_now(const struct bh_mig *mig, const struct bh_occupancy *occupancy, struct mig_figure *ret_figure)
{
    for (uint32_t p = 0; p < mig->shape_count; p++) {
        uint32_t capacity = bh_occupancy_capacity(occupancy, mig_stands_for(&mig->shapes[p]));

        ret_figure->capacity[p] = (uint8_t)capacity;
        ret_figure->soon[p] = capacity * BH_MIG_ONE;
    }
}

/* What is known of the occupancy; `blank` (all zero) is filled when nothing is. */
static const struct mig_figure *
mig_find_figure(const struct bh_mig *mig, const struct bh_occupancy *occupancy, struct mig_figure *blank)
{
    uint32_t found = 0;

    if (!occupancy->whole)
        found = mig->slots[mig_slot_of(mig, mig_key_of(mig, occupancy))];
    if (found)
        return &mig->figures[found - 1];
    mig_compute_now(mig, occupancy, blank);
    return blank;
}

/* ---- working the figures out ---- */

/* Partitions that stand together. */
struct mig_layout {
    struct bh_occupancy occupancy;
    uint32_t count;
    uint8_t shapes[UNITS_MAX], starts[UNITS_MAX];
};

static struct mig_figure *
mig_figure_for(struct bh_mig *mig, const struct mig_layout *layout)
{
    uint64_t key = mig_key_of(mig, &layout->occupancy);
    uint32_t slot = mig_slot_of(mig, key);
    struct mig_figure *figure;

    if (mig->slots[slot])
        return &mig->figures[mig->slots[slot] - 1];
    if (mig->figure_count == BH_MIG_FIGURES_MAX)
        return NULL;
    figure = &mig->figures[mig->figure_count++];
    mig->slots[slot] = (uint16_t)mig->figure_count;
    mig_compute_now(mig, &layout->occupancy, figure);
    memset(figure->soon, 0, sizeof(figure->soon));
    figure->key = key;
    figure->partitions = layout->count;
    return figure;
}

/* Each partition leaves at rate 1 and the span ends at rate 9/2: soon is what there is room
 * for now, or soon after the partition that leaves first, by their chances.  Summed over the
 * layouts of the figure. */
static void
mig_add_layout(struct bh_mig *mig, const struct mig_layout *layout)
{
    struct mig_figure *figure = mig_figure_for(mig, layout);
    uint64_t after[BH_MIG_SHAPES_MAX] = { 0 };

    if (!figure)
        return;
    for (uint32_t i = 0; i < layout->count; i++) {
        struct bh_occupancy without = layout->occupancy;
        struct mig_figure blank = { 0 };
        const struct mig_figure *left;

        bh_occupancy_remove(&without, mig_stands_for(&mig->shapes[layout->shapes[i]]), layout->starts[i]);
        left = mig_find_figure(mig, &without, &blank);
        for (uint32_t p = 0; p < mig->shape_count; p++)
            after[p] += left->soon[p];
    }
    for (uint32_t p = 0; p < mig->shape_count; p++)
        figure->soon[p] +=
            (uint32_t)((NINTHS * BH_MIG_ONE * (uint64_t)figure->capacity[p] + LATER_NINTHS * after[p])
                       / (NINTHS + LATER_NINTHS * layout->count));
    figure->layouts++;
}

/* All layouts of `partitions` partitions, each once: at every unit one of the shapes, or none. */
static void
mig_add_layouts(struct bh_mig *mig, uint32_t partitions, uint32_t unit, struct mig_layout *layout)
{
    if (unit == mig->units) {
        if (layout->count == partitions)
            mig_add_layout(mig, layout);
        return;
    }
    mig_add_layouts(mig, partitions, unit + 1, layout);
    for (uint32_t p = 0; layout->count < partitions && p < mig->shape_count; p++) {
        const struct bh_profile *profile = mig_stands_for(&mig->shapes[p]);

        if (!bh_occupancy_fits(&layout->occupancy, profile, unit))
            continue;
        bh_occupancy_add(&layout->occupancy, profile, unit);
        layout->shapes[layout->count] = (uint8_t)p;
        layout->starts[layout->count++] = (uint8_t)unit;
        mig_add_layouts(mig, partitions, unit + 1, layout);
        layout->count--;
        bh_occupancy_remove(&layout->occupancy, profile, unit);
    }
}

/* After the layouts of so many partitions: sums become means. */
static void
mig_divide_sums(struct bh_mig *mig, uint32_t partitions)
{
    for (uint32_t i = 0; i < mig->figure_count; i++) {
        struct mig_figure *figure = &mig->figures[i];

        for (uint32_t p = 0; figure->partitions == partitions && p < mig->shape_count; p++)
            figure->soon[p] /= figure->layouts;
    }
}

size_t
bh_mig_size(void)
{
    return sizeof(struct bh_mig);
}

struct bh_mig *
bh_mig_init(void *memory, enum bh_gpu_model model)
{
    const struct bh_model_facts *facts = bh_model_facts(model);
    struct bh_mig *mig = memory;
    struct mig_layout layout = { .count = 0 };
    uint32_t count;
    const struct bh_profile *profile = bh_profile_first(model, &count);

    BH_ASSERT(facts && facts->memory_units <= UNITS_MAX && count > 0);
    memset(mig, 0, sizeof(*mig));
    mig->model = model;
    mig->units = facts->memory_units;
    mig->slices = facts->compute_slices;
    for (uint32_t row = 0; row < count; row++)
        mig_add_profile(mig, row, &profile[row]);
    for (uint32_t partitions = 0; partitions <= mig->slices; partitions++) {
        mig_add_layouts(mig, partitions, 0, &layout);
        mig_divide_sums(mig, partitions);
    }
    BH_ASSERT(layout.occupancy.units == 0 && mig->figure_count > 1);
    BH_ASSERT(mig->figure_count < BH_MIG_FIGURES_MAX); /* all of a real model have a figure */
    return mig;
}

/* ---- the pool ---- */

void
bh_mig_pool_add(const struct bh_mig *mig, struct bh_mig_pool *pool, const struct bh_occupancy *occupancy)
{
    struct mig_figure blank = { 0 };
    const struct mig_figure *figure = mig_find_figure(mig, occupancy, &blank);

    BH_ASSERT(pool->gpus < BH_MIG_GPUS_MAX);
    pool->gpus++;
    for (uint32_t p = 0; p < mig->shape_count; p++) {
        pool->fits[p] += figure->capacity[p] ? BH_MIG_ONE : 0;
        pool->soon[p] += figure->soon[p];
        pool->capacity[p] += figure->capacity[p] * (uint64_t)BH_MIG_ONE;
    }
}

void
bh_mig_pool_remove(const struct bh_mig *mig, struct bh_mig_pool *pool, const struct bh_occupancy *occupancy)
{
    struct mig_figure blank = { 0 };
    const struct mig_figure *figure = mig_find_figure(mig, occupancy, &blank);

    BH_ASSERT(pool->gpus > 0);
    pool->gpus--;
    for (uint32_t p = 0; p < mig->shape_count; p++) {
        BH_ASSERT(pool->soon[p] >= figure->soon[p]);
        pool->fits[p] -= figure->capacity[p] ? BH_MIG_ONE : 0;
        pool->soon[p] -= figure->soon[p];
        pool->capacity[p] -= figure->capacity[p] * (uint64_t)BH_MIG_ONE;
    }
}

/* ---- prices ---- */

/* 65536 / (1 + exp(1.702 z)) for z = 0, 1/16, ... 6. */
enum { LOGISTIC_STEPS = 16, LOGISTIC_LAST = 96 };
static const uint16_t logistic[LOGISTIC_LAST + 1] = {
    32768, 31027, 29295, 27583, 25900, 24254, 22652, 21102, 19610, 18180, 16816, 15521, 14296, 13143,
    12061, 11049, 10106, 9230,  8418,  7668,  6976,  6341,  5757,  5222,  4733,  4287,  3880,  3509,
    3172,  2866,  2588,  2337,  2108,  1902,  1715,  1546,  1393,  1255,  1131,  1018,  917,   826,
    743,   669,   602,   542,   488,   439,   395,   355,   319,   287,   259,   233,   209,   188,
    169,   152,   137,   123,   111,   99,    89,    80,    72,    65,    58,    53,    47,    43,
    38,    34,    31,    28,    25,    22,    20,    18,    16,    15,    13,    12,    11,    10,
    9,     8,     7,     6,     6,     5,     5,     4,     4,     3,     3,     3,     2
};

/* By Newton's way from above, rounded down; `square` is not 0. */
static uint64_t
mig_square_root(uint64_t square)
{
    uint64_t root = 1ull << (65 - __builtin_clzll(square)) / 2, next;

    while ((next = (root + square / root) / 2) < root)
        root = next;
    return root;
}

/* Of `far` / `unit` steps of the table, between its entries in proportion. */
static int64_t
mig_falling(uint64_t far, uint64_t unit)
{
    uint64_t step = far / unit, rest = far % unit;

    if (step >= LOGISTIC_LAST)
        return logistic[LOGISTIC_LAST];
    return logistic[step] - (int64_t)((uint64_t)(logistic[step] - logistic[step + 1]) * rest / unit);
}

/* The chance that more are asked for than there is room, all in 1/BH_MIG_ONE. */
static int64_t
mig_shortage(uint64_t capacity, uint64_t asked)
{
    uint64_t deviation = mig_square_root((asked + BH_MIG_ONE / 10) * BH_MIG_ONE);
    int64_t spare = (int64_t)(capacity + BH_MIG_ONE / 2) - (int64_t)asked;

    if (spare < 0)
        return PRICE_ONE - mig_falling((uint64_t)-spare * LOGISTIC_STEPS, deviation);
    return mig_falling((uint64_t)spare * LOGISTIC_STEPS, deviation);
}

void
bh_mig_price(const struct bh_mig *mig, const struct bh_mig_demand *demand, const struct bh_mig_pool *pool,
             struct bh_mig_prices *ret_prices)
{
    uint64_t capacity = (uint64_t)pool->gpus * mig->slices, jobs = 0, slices = 0;
    bool known = false;

    for (uint32_t p = 0; p < mig->shape_count; p++)
        known = known || demand->weights[p];
    for (uint32_t p = 0; p < mig->shape_count; p++) {
        uint64_t weight = known ? demand->weights[p] : 1;

        BH_ASSERT(weight <= BH_MIG_WEIGHT_MAX);
        jobs += weight;
        slices += weight * mig->shapes[p].slices;
    }
    for (uint32_t p = 0; p < mig->shape_count; p++) {
        uint64_t weight = known ? demand->weights[p] : 1, size = mig->shapes[p].slices;
        uint64_t life = weight * capacity * BH_MIG_ONE / slices; /* jobs in a mean life */
        uint64_t share = PRICE_ONE * weight / jobs;
        int64_t far = mig_shortage(pool->capacity[p], life * FAR_NINTHS / NINTHS);

        ret_prices->now[p] = (int64_t)size * mig_shortage(pool->fits[p], life * NOW_NINTHS / NINTHS);
        ret_prices->later[p] = (int64_t)size * mig_shortage(pool->soon[p], life * LATER_NINTHS / NINTHS);
        ret_prices->capacity[p] = (int64_t)size * (SHARE_TENTHS * (int64_t)share + FAR_TENTHS * far) / 10;
    }
}

/* ---- choosing ---- */

int64_t
bh_mig_worth(const struct bh_mig *mig, const struct bh_mig_prices *prices,
             const struct bh_occupancy *occupancy)
{
    struct mig_figure blank = { 0 };
    const struct mig_figure *figure = mig_find_figure(mig, occupancy, &blank);
    int64_t worth = 0;

    for (uint32_t p = 0; p < mig->shape_count; p++) {
        worth += (prices->now[p] * (figure->capacity[p] > 0) + prices->capacity[p] * figure->capacity[p])
                 * BH_MIG_ONE;
        worth += prices->later[p] * (int64_t)figure->soon[p];
    }
    return worth;
}

struct bh_mig_choice
bh_mig_choose(const struct bh_mig *mig, const struct bh_mig_prices *prices,
              const struct bh_occupancy *occupancy, const struct bh_profile *profile)
{
    struct bh_mig_choice choice = { 0, 0 };
    int64_t before = bh_mig_worth(mig, prices, occupancy);

    BH_ASSERT((uint32_t)profile->model == mig->model);
    for (uint32_t starts = profile->starts; starts; starts &= starts - 1) {
        uint32_t start = (uint32_t)__builtin_ctz(starts);
        struct bh_occupancy then = *occupancy;
        int64_t cost;

        if (!bh_occupancy_fits(occupancy, profile, start))
            continue;
        bh_occupancy_add(&then, profile, start);
        cost = before - bh_mig_worth(mig, prices, &then);
        if (choice.starts && cost > choice.cost)
            continue;
        if (choice.starts == 0 || cost < choice.cost)
            choice = (struct bh_mig_choice){ 0, cost };
        choice.starts |= 1u << start;
    }
    return choice;
}
